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

from photostereo.app.protocol import Task, read_task
from photostereo.app.tasks import Tasks
from photostereo.core.control import Cancelled, Control, Iteration, Stage
from photostereo.core.errors import PhotostereoError
from photostereo.io.json_text import json_text

#: Minimum time between progress reports, in seconds: faster than the eye follows.
INTERVAL = 0.1
#: Seconds after which a worker whose server is gone no longer waits for its task to stop.
PATIENCE = 0.8

#: Sends an event: its kind, and its values by name.
Emit = Callable[..., None]


class Reporter(Control):
    """Sends the progress of one task to the server: the stages so far."""

    def __init__(self, emit: Emit) -> None:
        self.emit = emit
        self._stage = Stage()
        self._last_report = 0.0
        self._stages: list[dict[str, Any]] = []

    def on_stage(self, name: str, total: int | None) -> None:
        if not self._stages or name != self._stage.name:
            if self._stages:
                self._stages[-1] |= {"ended": time.time(), "seconds_left": None}
            self._stages.append({"stage": name, "began": time.time()})
        self._stage = Stage(name, total)
        self._last_report = 0.0  # a new stage is reported at once
        self._report()

    def on_advance(self, steps: int) -> None:
        self._stage.reach(self._stage.done + steps)
        self._report()

    def on_iteration(self, record: Iteration) -> None:
        self._stage.note = f"change {record.change:.1g}"

    def _report(self) -> None:
        if not self._stages or time.monotonic() - self._last_report <= INTERVAL:
            return
        self._last_report = time.monotonic()
        self._stages[-1] |= {
            "total": self._stage.total,
            "done": self._stage.done,
            "note": self._stage.note,
            "seconds_left": self._stage.seconds_left,
        }
        self.emit("progress", stages=list(self._stages))


def run_task(tasks: Tasks, task: Task, control: Reporter) -> None:
    """Run a task and send its last event; nothing that goes wrong ends the process."""
    try:
        control.check()
        control.emit("done", result=tasks.run(task, control))
    except Cancelled:
        control.emit("canceled")
    except PhotostereoError as problem:
        control.emit("failed", error=problem.as_dict("app"))
    except MemoryError:
        control.emit("failed", error={"code": "out-of-memory", "message": "Not enough memory."})
    except Exception as problem:
        traceback.print_exc()
        message = f"Internal error ({type(problem).__name__}: {problem}). See the log for details."
        control.emit("failed", error={"code": "internal", "message": message})


class Worker:
    """Runs the tasks of a stream, one after another, until the stream ends."""

    def __init__(self, lines: IO[bytes], out: IO[bytes]) -> None:
        self._lines = lines
        self._out = out
        self._writing = threading.Lock()
        self._waiting: queue.Queue[tuple[int, Task] | None] = queue.Queue()
        self._controls: dict[int, Reporter] = {}

    def run(self) -> None:
        """Run tasks; another thread reads the stream, so that a running task can be canceled."""
        threading.Thread(target=self._listen, daemon=True).start()
        tasks = Tasks()
        while (item := self._waiting.get()) is not None:
            number, task = item
            run_task(tasks, task, self._controls[number])
            del self._controls[number]

    def _listen(self) -> None:
        for line in self._lines:
            message = json.loads(line)
            if "cancel" in message:
                control = self._controls.get(message["cancel"])
                if control is not None:
                    control.cancel()
            else:
                number = message["task"]
                self._controls[number] = Reporter(self._emitter(number))
                self._waiting.put((number, read_task(message)))
        for control in list(self._controls.values()):
            control.cancel()
        self._waiting.put(None)
        threading.Timer(PATIENCE, os._exit, [1]).start()  # stop whatever is still running

    def _emitter(self, number: int) -> Emit:
        def emit(kind: str, **values: Any) -> None:
            event = {"task": number, "event": kind, **values}
            line = json_text(event, indent=None, ascii_only=True)
            with self._writing:
                self._out.write(line.encode() + b"\n")
                self._out.flush()

        return emit


if __name__ == "__main__":
    from photostereo.runtime.threads import shorten_spinning

    shorten_spinning()
    # Redirect output of libraries to the log, away from the events.
    events = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    Worker(sys.stdin.buffer, events).run()
    os._exit(0)
