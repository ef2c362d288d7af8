"""Hidden files and folders in which output is prepared, and how they take the place of the target.

An old result and a new one are exchanged in a single step of the system, so an interruption at any moment leaves one
of them, complete, at the target. On file systems without such a step the old result is renamed first; a run that is
interrupted between the two steps, or the next run after a killed one, renames it back.

A stage is locked while its process lives. The kernel releases the lock of a process that dies, so the next run can
remove its leftovers.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import secrets
import shutil
import stat
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from photostereo.io.names import shortened
from photostereo.io.ownership import MARK

#: Seconds after which an empty stage without a lock is a leftover; a run that lives locks its own within milliseconds.
ABOUT_TO_LOCK = 10.0

try:
    import fcntl
except ImportError:  # Windows: no locks, leftovers stay
    fcntl = None  # type: ignore[assignment]


@contextmanager
def staged(target: Path, *, folder: bool) -> Iterator[Path]:
    """A new hidden folder or file beside ``target``, removed at the end with whatever lies there by then."""
    path = _stage_path(target, "partial")
    if folder:
        path.mkdir()
    else:
        path.touch(exist_ok=False)
    try:
        if folder:
            (path / MARK).touch()
        with _locked(path):
            if folder:
                (path / MARK).write_bytes(b"{}")
            yield path
    finally:
        _remove(path)


def move_into_place(stage: Path, target: Path) -> None:
    """Make a staged folder the target; the old target, if any, is at the place of the stage afterwards, or gone."""
    if not os.path.lexists(target):
        os.rename(stage, target)
    elif not exchange(stage, target):
        _replace_in_two_steps(stage, target)


def clear_leftovers(target: Path) -> None:
    """Remove what killed runs left beside a target; bring back a result that one of them had renamed."""
    prefix, suffix = _affixes(target)
    pattern = re.compile(f"{re.escape(prefix)}(partial|replaced)-[0-9a-f]{{8}}({re.escape(suffix)})?")
    with suppress(OSError):
        for path in sorted(target.parent.iterdir(), reverse=True):  # replaced before partial
            found = path.name.startswith(prefix) and pattern.fullmatch(path.name)
            if found and _is_abandoned(path):
                if found[1] == "replaced":
                    _recover(path, target)
                else:
                    _remove(path)


def exchange(first: Path, second: Path) -> bool:
    """Swap two paths in one step; False if the system or the file system cannot."""
    names = os.fsencode(first), os.fsencode(second)
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if hasattr(library, "renameat2"):  # Linux; -100 is AT_FDCWD, 2 is RENAME_EXCHANGE
            failed = library.renameat2(-100, names[0], -100, names[1], 2)
        else:  # macOS; 2 is RENAME_SWAP
            failed = library.renamex_np(*names, 2)
    except (AttributeError, OSError, TypeError):
        return False
    if failed and ctypes.get_errno() not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(second))
    return not failed


def _replace_in_two_steps(stage: Path, target: Path) -> None:
    aside = _stage_path(target, "replaced")
    with _locked(target):
        try:
            os.rename(target, aside)
            os.rename(stage, target)
        finally:
            _recover(aside, target)


def _recover(aside: Path, target: Path) -> None:
    """End a replacement, wherever it stopped: the old result returns unless the new one is in place."""
    if os.path.lexists(aside):
        if os.path.lexists(target):
            _remove(aside)
        else:
            os.rename(aside, target)


def _affixes(target: Path) -> tuple[str, str]:
    """How the names of the stages of a target begin and end; short enough for any target, and no two share them."""
    name = shortened(target.name)
    if name != target.name:
        name += f"~{zlib.crc32(os.fsencode(target.name)):08x}"
    return f".{name}.", target.suffix if len(target.suffix) < 16 else ""


def _stage_path(target: Path, kind: str) -> Path:
    prefix, suffix = _affixes(target)
    return target.with_name(f"{prefix}{kind}-{secrets.token_hex(4)}{suffix}")


def _lock_file(path: Path) -> Path:
    return path / MARK if path.is_dir() else path


@contextmanager
def _locked(path: Path) -> Iterator[int | None]:
    """Lock a stage or a result; gives the open lock file, None if somebody has it or locks are not available."""
    handle, held = None, False
    try:
        with suppress(OSError):
            if fcntl is not None:
                handle = os.open(_lock_file(path), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = True
        yield handle if held else None
    finally:
        if handle is not None:
            os.close(handle)


def _is_abandoned(path: Path) -> bool:
    """Whether the process that made a stage is gone; one that never locked its stage may be about to."""
    if path.is_symlink() or not (path.is_dir() or path.is_file()):
        return False
    if path.is_dir() and not os.listdir(path):  # killed before it could be marked
        return fcntl is not None and _is_old(path.stat())
    with _locked(path) as handle:
        facts = None if handle is None else os.fstat(handle)
        return facts is not None and stat.S_ISREG(facts.st_mode) and (facts.st_size > 0 or _is_old(facts))


def _is_old(facts: os.stat_result) -> bool:
    return time.time() - facts.st_mtime > ABOUT_TO_LOCK


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
