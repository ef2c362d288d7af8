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
from photostereo.core.control import Cancelled, Control, Iteration, Stage
from photostereo.core.errors import PhotostereoError
from photostereo.io.json_text import json_text

#: Minimum time between progress reports, in seconds.
_INTERVAL = 0.1


class Reporter(Control):
    """Sends the progress of one task to the server: the stages so far."""

    def __init__(self, emit: Callable[..., None]) -> None:
        self.emit = emit
        self._stage, self._said = Stage(), 0.0
        self._shown: list[dict[str, Any]] = []

    def on_stage(self, name: str, total: int | None) -> None:
        if not self._shown or name != self._stage.name:
            if self._shown:
                self._shown[-1] |= {"ended": time.time(), "seconds_left": None}
            self._shown.append({"stage": name, "began": time.time()})
        self._stage, self._said = Stage(name, total), 0.0  # said at once
        self._say()

    def on_advance(self, steps: int) -> None:
        self._stage.reach(self._stage.done + steps)
        self._say()

    def on_iteration(self, record: Iteration) -> None:
        self._stage.note = f"change {record.change:.1g}"

    def _say(self) -> None:
        if self._shown and time.monotonic() - self._said > _INTERVAL:
            self._said = time.monotonic()
            facts = ("total", "done", "note", "seconds_left")
            self._shown[-1] |= {name: getattr(self._stage, name) for name in facts}
            self.emit("progress", stages=list(self._shown))


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
