"""Server side of a worker process: start it, exchange lines of JSON, detect how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from photostereo.app.protocol import LAST, Event, Task, task_message
from photostereo.core.errors import PhotostereoError

#: Maximum bytes of one line; the lights of a thousand photographs take a tenth of it.
LINE_LIMIT = 16 << 20
#: Number of log lines kept, enough for a traceback of every task of an afternoon.
LOG_LINES = 400
#: Seconds before the process of a canceled task is killed; loops check for cancellation every 0.3 s.
PATIENCE = 4.0
#: Seconds for an idle process to end after its input was closed.
FAREWELL_SECONDS = 1.0


@dataclass(eq=False)
class _RunningTask:
    task: Task
    answer: asyncio.Future[Event] | None
    process: Process | None
    was_killed: bool = False  #: by this server, because it did not stop


class WorkerProcess:
    """Runs tasks one after another.

    Parameters
    ----------
    on_event : callable, optional
        Called with every :class:`~photostereo.app.protocol.Event`, in the server's event loop.
    """

    def __init__(self, on_event: Callable[[Event], None] = lambda event: None) -> None:
        self.on_event = on_event
        self.log: deque[str] = deque(maxlen=LOG_LINES)
        self._process: Process | None = None
        self._tasks: dict[int, _RunningTask] = {}
        self._number = 0
        self._starting = asyncio.Lock()
        self._is_closed = False
        self._readers: list[asyncio.Task[None]] = []

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def send(self, task: Task, answer: asyncio.Future[Event] | None = None) -> int:
        """Send a task and return its number. Its last event is also the result of ``answer``."""
        await self.start()
        self._number += 1
        number = self._number
        self._tasks[number] = _RunningTask(task, answer, self._process)
        await self._write(task_message(number, task))
        return number

    async def ask(self, task: Task) -> dict[str, Any]:
        """Send a task and wait for its result; raise a :class:`PhotostereoError` if it fails."""
        future: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
        await self.send(task, future)
        event = await future
        if event.kind == "done":
            return dict(event.values["result"])
        error = event.values.get("error") or {"code": "canceled", "message": "Canceled."}
        raise PhotostereoError(error["message"], code=error["code"])

    def running(self, *kinds: type[Task]) -> list[int]:
        """Return the numbers of running tasks of these kinds."""
        return [number for number, running in self._tasks.items() if type(running.task) in kinds]

    async def cancel(self, number: int) -> None:
        """Cancel a task; kill the process if the task does not stop in time."""
        if number not in self._tasks:
            return
        await self._write({"cancel": number})
        asyncio.get_running_loop().call_later(PATIENCE, self._kill_if_running, number)

    async def close(self) -> None:
        """End the process, and whatever it is running."""
        self._is_closed = True
        process = self._process
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), FAREWELL_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
        await asyncio.gather(*self._readers, return_exceptions=True)

    async def start(self) -> None:
        """Start the process if it is not running; its imports take half a second."""
        async with self._starting:
            if self._process is not None and self._process.returncode is None:
                return
            self._is_closed = False
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "photostereo.app.worker",
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                limit=LINE_LIMIT,
                start_new_session=os.name == "posix",  # Ctrl-C in the terminal is for the server
            )
            self._readers = [
                asyncio.create_task(self._read_events(self._process)),
                asyncio.create_task(self._read_log(self._process)),
            ]

    async def _write(self, message: Mapping[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError, ConnectionResetError):  # the reader reports the end
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            await self._process.stdin.drain()

    async def _read_events(self, process: Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            if line.endswith(b"\n"):  # otherwise it was killed while writing
                message = json.loads(line)
                self._receive(message.pop("task"), message.pop("event"), message)
        code = await process.wait()
        for number, running in list(self._tasks.items()):
            if running.process is not process:
                continue
            if running.was_killed or self._is_closed:
                self._receive(number, "canceled", {})
            else:
                self._receive(number, "failed", {"error": end_error(code)})

    async def _read_log(self, process: Process) -> None:
        assert process.stderr is not None
        while line := await process.stderr.readline():
            self.log.append(line.decode("utf-8", "replace").rstrip())

    def _receive(self, number: int, kind: str, values: Mapping[str, Any]) -> None:
        running = self._tasks.get(number)
        if running is None:
            return
        event = Event(running.task, kind, values)
        if kind in LAST:
            del self._tasks[number]
            if running.answer is not None and not running.answer.done():
                running.answer.set_result(event)
        self.on_event(event)

    def _kill_if_running(self, number: int) -> None:
        process = self._process
        if number in self._tasks and process is not None and process.returncode is None:
            self._tasks[number].was_killed = True
            process.kill()


def end_error(code: int) -> dict[str, Any]:
    """Describe why a process ended unexpectedly, from its exit code (negative: a signal)."""
    if code == -9:
        return PhotostereoError(
            "The solver was stopped by the system: out of memory. Close other programs, or work "
            "at a lower resolution.",
            code="worker-out-of-memory",
        ).as_dict("app")
    name = f"exit code {code}"
    if code < 0:
        name = signal.Signals(-code).name
    return PhotostereoError(
        f"The solver stopped unexpectedly ({name}). The log may say why.",
        code="worker-stopped",
        name=name,
    ).as_dict("app")
