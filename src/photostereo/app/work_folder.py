"""Temporary folders for the copies of photographs, removed even if the app was killed."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

#: Beginning of the names of our temporary folders.
PREFIX = "photostereo-app-"
LOCK_SUFFIX = ".lock"


class WorkFolder:
    """A new temporary folder.

    A locked file beside it shows that it is in use. The system releases the lock when the process ends, however it
    ends, and whatever process number or host name a container gives it.
    """

    def __init__(self) -> None:
        number, name = tempfile.mkstemp(prefix=PREFIX, suffix=LOCK_SUFFIX)
        self._lock = os.fdopen(number, "wb")
        lock(self._lock)
        self._lock_path = Path(name)
        self.path = Path(name.removesuffix(LOCK_SUFFIX))
        self.path.mkdir(mode=0o700)

    def remove(self) -> None:
        """Remove the folder with its content."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()
        self._lock_path.unlink(missing_ok=True)


def remove_abandoned() -> None:
    """Remove the temporary folders of earlier runs that were killed."""
    for path in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        if path.suffix != LOCK_SUFFIX and path.is_dir() and not path.is_symlink():
            with suppress(OSError):  # in use
                _remove_if_abandoned(path)


def _remove_if_abandoned(path: Path) -> None:
    if hasattr(os, "getuid") and path.stat().st_uid != os.getuid():
        return
    lock_path = path.with_name(path.name + LOCK_SUFFIX)
    if lock_path.exists():
        with lock_path.open("ab") as file:
            lock(file)
            shutil.rmtree(path, ignore_errors=True)
        lock_path.unlink()
    else:  # of a version without locks, or its lock was removed
        shutil.rmtree(path, ignore_errors=True)


def lock(file: IO[bytes]) -> None:
    """Lock an open file until it is closed; raise an ``OSError`` if another process has locked it."""
    if os.name == "nt":
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
