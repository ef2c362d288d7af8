"""Progress of a task, and its end, as events for the server."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from photostereo.core.control import Cancelled, Control, Iteration
from photostereo.core.errors import PhotostereoError
from photostereo.core.pace import Pace

#: Progress is reported at most this often, in seconds.
_INTERVAL = 0.1


class Reporter(Control):
    """Sends progress of one task to the server."""

    def __init__(self, emit: Callable[..., None]) -> None:
        self.emit = emit
        self._stage: dict[str, Any] = {}
        self._pace = Pace()
        self._said = 0.0

    def on_stage(self, name: str, total: int | None) -> None:
        self._stage = {"stage": name, "total": total, "done": 0}
        self._pace.restart()
        self._say(at_once=True)

    def on_advance(self, steps: int) -> None:
        if self._stage:
            self._stage["done"] += steps
            self._pace.note(self._stage["done"])
            self._say()

    def on_iteration(self, record: Iteration) -> None:
        self._stage["note"] = f"change {record.change:.1g}"

    def _say(self, *, at_once: bool = False) -> None:
        now = time.monotonic()
        if at_once or now - self._said > _INTERVAL:
            self._said = now
            self.emit("progress", **self._stage, seconds_left=self._pace.seconds_left(self._stage["total"]))


def run_task(handler: Callable[..., Any], arguments: dict[str, Any], control: Reporter) -> None:
    """Run one task; its end is an event, whatever it is."""
    emit = control.emit
    try:
        control.check()
        emit("done", result=handler(**arguments, control=control))
    except Cancelled:
        emit("cancelled")
    except PhotostereoError as problem:
        emit("failed", error=problem.as_dict("app"))
    except MemoryError:
        emit("failed", error={"code": "out-of-memory", "message": "There is not enough memory."})
    except Exception as problem:
        import traceback

        traceback.print_exc()
        message = f"An internal error ({type(problem).__name__}: {problem}). The log has the details."
        emit("failed", error={"code": "internal", "message": message})
