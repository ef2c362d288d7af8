"""Server side of a worker process: start it, exchange lines of JSON, detect how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from photostereo.core.errors import PhotostereoError

Event = dict[str, Any]
#: Maximum bytes of one line; the lights of a thousand photographs take a tenth of it.
_LINE = 16 << 20
#: Number of log lines kept.
_LOG = 400
#: Seconds before the process of a canceled task is killed; loops check for cancellation every 0.3 s.
PATIENCE = 4.0


class WorkerProcess:
    """Runs tasks one after another; the last event of each is ``done``, ``failed`` or ``cancelled``."""

    def __init__(self, on_event: Callable[[Event], None] = lambda event: None) -> None:
        self.on_event = on_event
        self.log: deque[str] = deque(maxlen=_LOG)
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: dict[int, Event] = {}
        self._number = 0
        self._starting = asyncio.Lock()
        self._ended = False
        self._readers: list[asyncio.Task[None]] = []

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def send(
        self, do: str, answer: asyncio.Future[Event] | None = None, /, **arguments: Any
    ) -> int:
        """Send a task and return its number. The last event of the task is also the result of ``answer``."""
        await self.start()
        self._number = number = self._number + 1
        self._tasks[number] = {"task": number, "do": do, "answer": answer, "process": self._process}
        await self._write({"task": number, "do": do, **arguments})
        return number

    async def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Send a task and wait for its result; raise a :class:`PhotostereoError` if it fails."""
        future: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
        await self.send(do, future, **arguments)
        event = await future
        if event["event"] == "done":
            return dict(event["result"])
        error = event.get("error") or {"code": "cancelled", "message": "Canceled."}
        raise PhotostereoError(error["message"], code=error["code"])

    def running(self, *kinds: str) -> list[int]:
        """Return the numbers of running tasks of these kinds."""
        return [number for number, task in self._tasks.items() if task["do"] in kinds]

    async def cancel(self, task: int) -> None:
        """Cancel a task; kill the process if the task does not stop in time."""
        if task not in self._tasks:
            return
        await self._write({"cancel": task})
        asyncio.get_running_loop().call_later(PATIENCE, self._end_if_running, task)

    async def close(self) -> None:
        self._ended = True
        process = self._process
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 1.0)
        except TimeoutError:
            process.kill()
            await process.wait()
        await asyncio.gather(*self._readers, return_exceptions=True)

    async def start(self) -> None:
        """Start the process if it is not running; its imports take half a second."""
        async with self._starting:
            if self._process is not None and self._process.returncode is None:
                return
            self._ended = False
            command = (sys.executable, "-m", "photostereo.app.worker")
            pipe = asyncio.subprocess.PIPE
            own = os.name == "posix"  # Ctrl-C in the terminal is only for the server
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, stderr=pipe, limit=_LINE, start_new_session=own
            )
            self._readers = [
                asyncio.create_task(self._read()),
                asyncio.create_task(self._read_log()),
            ]

    async def _write(self, message: Event) -> None:
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            await self._process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            pass  # _read reports the end of the process

    async def _read(self) -> None:
        process = self._process
        assert process is not None and process.stdout is not None
        while line := await process.stdout.readline():
            if line.endswith(b"\n"):  # otherwise it was killed while writing
                self._receive(json.loads(line))
        code = await process.wait()
        for task in [task for task in self._tasks.values() if task["process"] is process]:
            cancelled = task.get("ended") or self._ended
            about = (
                {"event": "cancelled"}
                if cancelled
                else {"event": "failed", "error": end_error(code)}
            )
            self._receive({"task": task["task"], **about})

    async def _read_log(self) -> None:
        assert self._process is not None and self._process.stderr is not None
        while line := await self._process.stderr.readline():
            self.log.append(line.decode("utf-8", "replace").rstrip())

    def _receive(self, event: Event) -> None:
        task = self._tasks.get(event.get("task", 0))
        if task is None:
            return
        if event["event"] in ("done", "failed", "cancelled"):
            del self._tasks[event["task"]]
            if task["answer"] is not None and not task["answer"].done():
                task["answer"].set_result(event)
        self.on_event({"do": task["do"], **event})

    def _end_if_running(self, task: int) -> None:
        if task in self._tasks and self._process is not None and self._process.returncode is None:
            self._tasks[task]["ended"] = True
            self._process.kill()


def end_error(code: int) -> dict[str, Any]:
    """Describe why a process ended unexpectedly."""
    if code == -9:
        return PhotostereoError(code="worker-out-of-memory").as_dict("app")
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return PhotostereoError(code="worker-stopped", name=name).as_dict("app")
