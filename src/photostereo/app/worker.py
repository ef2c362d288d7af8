"""A process that runs tasks for the app: reads them as lines of JSON, writes events as lines of JSON.

It ends when its input ends, so that no worker outlives the server.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

from photostereo.app.reporting import Reporter, run_task
from photostereo.app.tasks import Tasks
from photostereo.io.json_text import json_text


def main(lines: IO[bytes], out: IO[bytes]) -> None:
    """Run the tasks of a stream until it ends."""
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
        threading.Timer(0.8, os._exit, [1]).start()  # whatever still runs

    threading.Thread(target=listen, daemon=True).start()
    tasks = Tasks()
    while (message := waiting.get()) is not None:
        task, do = message.pop("task"), message.pop("do")
        run_task(getattr(tasks, f"do_{do}"), message, controls[task])
        del controls[task]


if __name__ == "__main__":
    from photostereo.runtime.threads import shorten_spinning

    shorten_spinning()
    # What libraries print goes to the log, not between the events.
    events = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    main(sys.stdin.buffer, events)
    os._exit(0)
