"""Locks on files and folders in use: the system releases them when a process ends, however it ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

if sys.platform != "win32":
    import fcntl


def lock(path: Path) -> int | None:
    """Lock a file or folder for this process.

    Unlike a process number, a lock also tells whether a process in another container is alive.

    Returns
    -------
    int or None
        The descriptor that holds the lock until it is closed; None if this system or file system has no such locks.

    Raises
    ------
    BlockingIOError
        If another process holds the lock.
    FileNotFoundError
        If there is nothing at the path.
    """
    if sys.platform == "win32":
        return None
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError:
        return None
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        raise
    except OSError:  # some network file systems
        os.close(number)
        return None
    return number


def unlock(number: int | None) -> None:
    """Release a lock."""
    if number is not None:
        os.close(number)
