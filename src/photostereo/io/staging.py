"""Hidden files and folders in which output is prepared, and how they replace the target.

An old result and a new one are exchanged in a single atomic step, so an interruption at any moment leaves one
of them, complete, at the target. On file systems without such a step the old result is renamed first; a run that is
interrupted between the two steps, or the next run after a killed one, renames it back.

A stage is locked while its process lives. The kernel releases the lock of a process that dies, so the next run can
remove its leftovers. Before a new stage is locked, another run may mistake it for a leftover and remove it; a new one is
then made.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import secrets
import shutil
import stat
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from photostereo.io.names import shortened
from photostereo.io.ownership import MARK

try:
    import fcntl
except ImportError:  # Windows: no locks, leftovers stay
    fcntl = None  # type: ignore[assignment]


@contextmanager
def staged(target: Path, *, folder: bool) -> Iterator[Path]:
    """A new hidden folder or file beside ``target``, removed at the end with whatever lies there by then."""
    with ExitStack() as stack:
        while (path := _new_stage(target, folder, stack)) is None:
            stack.close()
        yield path


def _new_stage(target: Path, folder: bool, stack: ExitStack) -> Path | None:
    """Make and lock a stage; None if another run removed it before it was locked."""
    path = _stage_path(target, "partial")
    if folder:
        path.mkdir()
    else:
        path.touch(exist_ok=False)
    stack.callback(_remove, path)
    try:
        if folder:
            (path / MARK).write_bytes(b"{}")
        handle = stack.enter_context(_locked(path))
        ours = handle is None or os.path.samestat(os.fstat(handle), os.stat(_lock_file(path)))
        return path if ours else None
    except (BlockingIOError, FileNotFoundError):
        return None


def move_into_place(stage: Path, target: Path) -> None:
    """Make a staged folder the target; afterward the old target, if any, is at the path of the stage, or gone."""
    if not os.path.lexists(target):
        os.rename(stage, target)
    elif not exchange(stage, target):
        _replace_in_two_steps(stage, target)


def clear_leftovers(target: Path) -> None:
    """Remove what killed runs left beside a target; restore a result that one of them had renamed."""
    prefix, suffix = _affixes(target)
    pattern = re.compile(f"{re.escape(prefix)}(partial|replaced)-[0-9a-f]{{8}}({re.escape(suffix)})?")
    with suppress(OSError):
        for path in sorted(target.parent.iterdir(), reverse=True):  # replaced before partial
            found = path.name.startswith(prefix) and pattern.fullmatch(path.name)
            if found and not path.is_symlink():
                _clear(path, target if found[1] == "replaced" else None)


def _clear(path: Path, target: Path | None) -> None:
    """Remove a stage, or move an old result back to its target, if the process that made it is gone."""
    with suppress(OSError):
        if fcntl is not None and path.is_dir() and not os.listdir(path):  # killed before it could be marked
            path.rmdir()
            return
        with _locked(path) as handle:
            if handle is not None and stat.S_ISREG(os.fstat(handle).st_mode):
                if target is None:
                    _remove(path)
                else:
                    _recover(path, target)


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
    with ExitStack() as stack:
        with suppress(OSError):  # a result that another process has locked, or a folder without a marker
            stack.enter_context(_locked(target))
        try:
            os.rename(target, aside)
            os.rename(stage, target)
        finally:
            _recover(aside, target)


def _recover(aside: Path, target: Path) -> None:
    """Complete a replacement, wherever it stopped: restore the old result unless the new one is in place."""
    if os.path.lexists(aside):
        if os.path.lexists(target):
            _remove(aside)
        else:
            os.rename(aside, target)


def _affixes(target: Path) -> tuple[str, str]:
    """Prefix and suffix of the stages of a target; short enough for any target, and not shared by any two targets."""
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
    """Lock a stage or a result and yield the open lock file (None without locks); BlockingIOError if another has it."""
    handle = None
    try:
        if fcntl is not None:
            handle = os.open(_lock_file(path), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise
            except OSError:  # a file system without locks
                os.close(handle)
                handle = None
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
