"""Worker process of the app: reads tasks and writes events, both as lines of JSON.

It exits when its input ends, so no worker outlives the server.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import IO, Any

from photostereo.app.tasks import Tasks
from photostereo.core.control import Cancelled, Control, Iteration, Pace
from photostereo.core.errors import PhotostereoError
from photostereo.io.json_text import json_text

#: Minimum time between progress reports, in seconds.
_INTERVAL = 0.1


class Reporter(Control):
    """Sends the progress of one task to the server."""

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
    emit = control.emit
    try:
        control.check()
        emit("done", result=handler(**arguments, control=control))
    except Cancelled:
        emit("cancelled")
    except PhotostereoError as problem:
        emit("failed", error=problem.as_dict("app"))
    except MemoryError:
        emit("failed", error={"code": "out-of-memory", "message": "Not enough memory."})
    except Exception as problem:
        traceback.print_exc()
        message = f"Internal error ({type(problem).__name__}: {problem}). See the log for details."
        emit("failed", error={"code": "internal", "message": message})


def main(lines: IO[bytes], out: IO[bytes]) -> None:
    """Run tasks from a stream until it ends."""
    waiting: queue.Queue[dict[str, Any] | None] = queue.Queue()
    controls: dict[int, Reporter] = {}
    writing = threading.Lock()

    def emitter(task: int) -> Callable[..., None]:
        def emit(event: str, **facts: Any) -> None:
            line = json_text({"task": task, "event": event, **facts}, indent=None, ascii_only=True)
            with writing:
                out.write(line.encode() + b"\n")
                out.flush()

        return emit

    def listen() -> None:
        for line in lines:
            message = json.loads(line)
            if "cancel" in message:
                if message["cancel"] in controls:
                    controls[message["cancel"]].cancel()
            else:
                controls[message["task"]] = Reporter(emitter(message["task"]))
                waiting.put(message)
        for control in list(controls.values()):
            control.cancel()
        waiting.put(None)
        threading.Timer(0.8, os._exit, [1]).start()  # stop whatever is still running

    threading.Thread(target=listen, daemon=True).start()
    tasks = Tasks()
    while (message := waiting.get()) is not None:
        task, do = message.pop("task"), message.pop("do")
        run_task(getattr(tasks, f"do_{do}"), message, controls[task])
        del controls[task]


if __name__ == "__main__":
    from photostereo.runtime.threads import shorten_spinning

    shorten_spinning()
    # Redirect output of libraries to the log, away from the events.
    events = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    main(sys.stdin.buffer, events)
    os._exit(0)
