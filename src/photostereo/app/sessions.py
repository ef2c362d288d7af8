"""The captures that are open in the app."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from photostereo._version import __version__
from photostereo.app import user_folders
from photostereo.app.drops import Drop
from photostereo.app.errors import NotFoundError
from photostereo.app.process import WorkerProcess
from photostereo.app.protocol import CompileKernels, ImportCapture, WriteExample
from photostereo.app.session import Session
from photostereo.app.work_folder import remove_abandoned
from photostereo.io.names import folder_name

#: Maximum number of open captures, each of which has a process; beyond it the least recently used one is closed, and
#: its pages offer to open it again.
MOST_OPEN = 3


class Sessions:
    """Opens and closes captures.

    Attributes
    ----------
    first : path, optional
        The capture that the command line names.
    open_sessions : dict
        The open captures by their names in addresses, least recently used first.
    drops : dict
        Photographs that are being dropped, by random keys.
    """

    def __init__(self, first: Path | None = None) -> None:
        self.first = first
        self.open_sessions: dict[str, Session] = {}
        self.drops: dict[str, Drop] = {}
        self._spare = WorkerProcess()

    async def prepare(self, *, compiling: bool) -> None:
        """Start the worker for the next capture and, once, compile the kernels that every solve needs."""
        remove_abandoned()
        await self._spare.start()
        stamp = user_folders.state_folder() / f"compiled-{__version__}"
        if not compiling or stamp.exists():
            return
        worker = WorkerProcess()
        try:
            await worker.ask(CompileKernels(str(stamp)))
        finally:
            await worker.close()

    async def start(self) -> str | None:
        """Open the capture of the command line; return its name in addresses."""
        await self._spare.start()
        return None if self.first is None else (await self.open(self.first)).id

    async def open(self, path: Path) -> Session:
        """Open a capture; return its session if it is already open.

        Parameters
        ----------
        path : path
            A folder of photographs; or a file or folder that is a capture of another kind, of which a folder of
            photographs is made first.
        """
        if not path.exists():
            raise NotFoundError(f"{path} does not exist.", code="no-such-capture", file=path)
        if user_folders.needs_import(path):
            path = await self._import(path)
        for session in self.open_sessions.values():
            if session.folder == path:
                return session
        await self._close_oldest()
        session = Session(path, self._spare)
        self._spare = WorkerProcess()
        self.open_sessions[session.id] = session
        user_folders.remember(path)
        await session.open()
        return session

    async def open_example(self) -> Session:
        """Open the example capture, which is written if it does not exist."""
        place = user_folders.captures_folder() / "example-figure"
        answer = await self._spare.ask(WriteExample(str(place)))
        return await self.open(Path(answer["folder"]))

    async def _import(self, path: Path) -> Path:
        """Return a folder of photographs that holds the same as a capture of another kind."""
        state = path.stat()
        facts = f"{path} {state.st_size} {state.st_mtime_ns}"
        digest = hashlib.blake2b(os.fsencode(facts), digest_size=4).hexdigest()
        name = folder_name(path.stem if path.is_file() else path.name)
        target = user_folders.captures_folder() / "imported" / digest / name
        if target.is_dir():
            return target
        answer = await self._spare.ask(ImportCapture(str(path), str(target)))
        return Path(answer["folder"])

    async def _close_oldest(self) -> None:
        """Make room for another capture; one that is being solved stays open."""
        while len(self.open_sessions) >= MOST_OPEN:
            idle = [one for one in self.open_sessions.values() if not one.is_solving()]
            if not idle:
                return
            del self.open_sessions[idle[0].id]
            await idle[0].close()

    def get(self, name: str) -> Session:
        """Return an open capture, now the most recently used one."""
        session = self.open_sessions.pop(name, None)
        if session is None:
            raise NotFoundError("This capture is no longer open.", code="not-open")
        self.open_sessions[name] = session
        return session

    def result_folder(self, key: str) -> Path | None:
        """Return the result folder that is served under a random name."""
        for session in self.open_sessions.values():
            if key in session.keys:
                return session.keys[key]
        return None

    def end_pages(self) -> None:
        """Tell all pages that the app has ended."""
        for session in self.open_sessions.values():
            session.page.end("app")

    async def close(self) -> None:
        """Close everything."""
        for session in self.open_sessions.values():
            await session.close("app")
        await self._spare.close()
