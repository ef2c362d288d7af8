"""Results appear complete or not at all: write beside the target, then move into place.

A run that fails or is interrupted (Ctrl-C, SIGTERM) leaves neither half a result nor a temporary folder behind, and an
older result is kept until the new one is complete. An old result and a new one are exchanged in a single step
of the file system, if it has one; otherwise the old one is renamed first, and renamed back if the second step fails.
What is being written is locked (:mod:`.locks`): the next run removes what nobody holds, the leftovers of a killed one.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
import socket
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike

from photostereo.core.errors import OutputError
from photostereo.io.json_text import json_bytes
from photostereo.io.locks import lock, unlock
from photostereo.io.names import shortened
from photostereo.io.ownership import MARK, foreign_files, is_ours, mark_content

Place = str | os.PathLike[str]

#: This machine, for file systems without locks: there, a leftover counts as abandoned if it names this machine and a
#: process that has ended.
_MACHINE = f"{zlib.crc32(socket.gethostname().encode()):08x}"
#: Errors of the disk, which are reported as errors of the target wherever they occur.
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)


@contextmanager
def replacing_directory(
    out: Place,
    *,
    force: bool = False,
    keep: Iterable[Place] = (),
    renew: Collection[str] | None = None,
) -> Iterator[Path]:
    """A temporary folder beside ``out`` that becomes ``out`` when the block ends without an exception.

    If something is in the way, an :class:`OutputError` is raised before the block runs.

    Parameters
    ----------
    out : path
        The folder of the results.
    force : bool
        Replace an existing folder of results, as a whole, at the very end.
    keep : iterable of path
        What the run needs; none of it may be inside ``out``.
    renew : collection of str, optional
        Names of files in ``out`` that the block rewrites. It copies all others, which may be the user's.
    """
    target = _followed(_reachable(out))
    kept = tuple(keep)
    clear_leftovers(target)
    _check_target(target, force, kept, renew)
    with _staged(target, Path.mkdir) as folder:
        yield folder
        _check_target(target, force, kept, renew)  # it may have appeared meanwhile
        with _explained(target):
            foreign: set[str] = set()
            if renew is not None and target.is_dir():
                foreign = set(foreign_files(target)) - set(renew)
            # The mark lists what is ours, so that a later run may replace it.
            (folder / MARK).write_bytes(mark_content(folder, foreign))
            if not os.path.lexists(target):
                os.rename(folder, target)
            elif not exchange(folder, target):
                _replace_in_two_steps(folder, target)


def require_free(out: Place, *, force: bool = False) -> None:
    """Raise the errors of :func:`replacing_directory` early, before long work."""
    _check_target(_followed(_reachable(out)), force, (), None)


@contextmanager
def replacing_file(out: Place, *, force: bool = False) -> Iterator[Path]:
    """A hidden file beside ``out``, with the same suffix, that becomes ``out`` when the block succeeds.

    Libraries choose a format by the suffix. If the block removes the file, ``out`` stays as it is.
    """
    target = _reachable(out)
    if target.is_dir():
        raise OutputError(
            f"{target} is a folder, but the output is a file. Choose another name.",
            code="output-is-a-folder",
            file=target,
        )
    if target.exists() and not force:
        raise OutputError(
            f"{target} already exists.",
            code="output-exists",
            file=target,
            remedy="replace-output",
        )
    clear_leftovers(target)
    with _staged(target, Path.touch) as partial:
        yield partial
        if partial.exists():
            with _explained(target):
                os.replace(partial, target)


@contextmanager
def writing(path: Place) -> Iterator[IO[bytes]]:
    """An open file that becomes ``path``, new or in place of an older one, when the block succeeds."""
    with (
        replacing_file(path, force=True) as partial,
        _explained(Path(path)),
        partial.open("wb") as file,
    ):
        yield file


def write_bytes(path: Place, data: bytes) -> None:
    """Write a file in one step."""
    with writing(path) as file:
        file.write(data)


def write_text(path: Place, text: str) -> None:
    """Write text in UTF-8; lone surrogates (bytes of an undecodable file name) become escapes."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_json(path: Place, value: Any) -> None:
    """Write a value as strict JSON, with null for numbers that are not finite."""
    write_bytes(path, json_bytes(value))


def write_array(path: Place, array: ArrayLike) -> None:
    """Write an ``.npy`` file."""
    with writing(path) as file:
        np.save(file, array, allow_pickle=False)


def write_arrays(path: Place, **arrays: Any) -> None:
    """Write an uncompressed ``.npz`` file."""
    with writing(path) as file:
        np.savez(file, **arrays)


def clear_leftovers(target: Path) -> None:
    """Remove what killed runs left beside a target; restore a result that one of them had renamed."""
    replaced = _stem(target, "replaced")
    partial = _stem(target, "partial")
    with suppress(OSError):
        for path in sorted(target.parent.iterdir(), reverse=True):  # replaced before partial
            if path.is_symlink():
                continue
            if path.name.startswith(replaced):
                _recover(path, target)
            elif path.name.startswith(partial):
                _remove_if_abandoned(path, path.name.removeprefix(partial))


def _remove_if_abandoned(path: Path, owner: str) -> None:
    """Remove a stage that no process writes any longer; ``owner`` is the rest of its name."""
    try:
        held = lock(path)
    except (BlockingIOError, FileNotFoundError):
        return
    try:
        if held is not None or _has_ended(owner):
            _remove(path)
    finally:
        unlock(held)


def _has_ended(owner: str) -> bool:
    """Whether the process in the name of a stage ran on this machine and has ended."""
    import psutil  # type: ignore[import-untyped]

    machine, _, rest = owner.partition("-")
    process = rest.partition("-")[0]
    return machine == _MACHINE and process.isdecimal() and not psutil.pid_exists(int(process))


@contextmanager
def _staged(target: Path, make: Callable[[Path], None]) -> Iterator[Path]:
    """A new hidden path beside the target; removed at the end with whatever lies there, as are new, empty parents."""
    stage = _hidden(target, "partial")
    missing = [parent for parent in target.parents if not parent.exists()]
    held = None
    try:
        with _explained(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            make(stage)
            # Another run may be looking whether this stage is abandoned, and remove it.
            with suppress(BlockingIOError, FileNotFoundError):
                held = lock(stage)
            if held is None and not stage.exists():
                make(stage)
        with _explained(target, inside=stage):
            yield stage
    finally:
        _remove(stage)
        unlock(held)
        for parent in missing:
            with suppress(OSError):  # in use
                parent.rmdir()


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
    return not failed


def _replace_in_two_steps(stage: Path, target: Path) -> None:
    aside = _hidden(target, "replaced")
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


def _hidden(target: Path, kind: str) -> Path:
    """A new hidden path beside the target; its name is short enough for any target, and not shared by any two."""
    suffix = target.suffix if len(target.suffix) < 16 else ""
    owner = f"{_MACHINE}-{os.getpid()}-{secrets.token_hex(4)}"
    return target.with_name(f"{_stem(target, kind)}{owner}{suffix}")


def _stem(target: Path, kind: str) -> str:
    number = zlib.crc32(os.fsencode(target.name))
    return f".{shortened(target.name)}.{kind}-{number:08x}-"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _reachable(out: Place) -> Path:
    """Return the absolute path; raise if the system rejects it (too long, with a NUL, a parent is not a folder)."""
    target = Path(os.path.abspath(os.path.expanduser(out)))
    try:
        os.lstat(target)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise unwritable(target, error) from error
    return target


def _followed(target: Path) -> Path:
    """Return the folder that a link points to, so that the link itself is kept."""
    if not target.is_symlink():
        return target
    if not target.exists():
        raise OutputError(
            f"{target} is a broken link. Remove it or choose another folder for the results.",
            code="broken-link",
            file=target,
        )
    return Path(os.path.realpath(target))


def _check_target(
    target: Path, force: bool, keep: Collection[Place], renew: Collection[str] | None
) -> None:
    """Raise an error if something at the target is in the way; parameters as of :func:`replacing_directory`."""
    for place in keep:
        if _contains(target, Path(place)):
            raise OutputError(
                f"{target} contains {place}, which this run needs. Choose another folder for the "
                "results.",
                code="output-contains-input",
                file=target,
                needed=str(place),
            )
    if not target.exists():
        return
    if not target.is_dir():
        raise OutputError(
            f"{target} is a file, but the results need a folder. Choose another name or remove "
            "the file.",
            code="output-is-a-file",
            file=target,
        )
    with _explained(target):
        in_use = _contains(target, Path.cwd()) or _contains(target, Path.home())
        if next(target.iterdir(), None) is None and not in_use:
            return
        if not force:
            raise OutputError(
                f"{target} already exists.",
                code="output-exists",
                file=target,
                remedy="replace-output",
            )
        # Replacing deletes the old content: never replace a folder in which people work.
        if in_use or (target / ".git").exists():
            raise OutputError(
                f"{target} is never replaced, because it contains the current folder, your home "
                "folder or a git repository. Choose another folder for the results.",
                code="output-in-use",
                file=target,
            )
        _require_own_files(target, renew)


def _require_own_files(target: Path, renew: Collection[str] | None) -> None:
    """Raise an error if replacing a folder would delete files that photostereo did not write."""
    foreign = foreign_files(target)
    if renew is not None:
        # The others are copied.
        foreign = {name: why for name, why in foreign.items() if name in renew}
    name, why = next(iter(foreign.items()), ("", ""))
    if renew is None and not is_ours(target):
        raise OutputError(
            f"{target} is never replaced, because photostereo did not write it. Choose another "
            "folder for the results.",
            code="not-our-folder",
            file=target,
            name=name,
            reason=why,
        )
    if foreign:
        raise OutputError(
            f"{target} is never replaced, because it contains {name}, which {why}. Move that file "
            "elsewhere, or choose another folder for the results.",
            code="foreign-file",
            file=target,
            name=name,
            reason=why,
        )


def _contains(target: Path, place: Path) -> bool:
    # Not Path.resolve: it fails on a link that leads to itself.
    real = Path(os.path.realpath(target))
    inside = Path(os.path.realpath(place.expanduser()))
    return real == inside or real in inside.parents


@contextmanager
def _explained(target: Path, *, inside: Path | None = None) -> Iterator[None]:
    """Report system errors as errors of the target; ``inside`` a stage, in a caller's block, only those of the disk."""
    try:
        yield
    except OutputError as error:
        hidden = inside is not None and error.file is not None and error.file.is_relative_to(inside)
        if hidden and error.code == "cannot-write":
            raise unwritable(target, error.values["reason"]) from error
        raise
    except OSError as error:
        if inside is None or error.errno in _NO_SPACE:
            raise unwritable(target, error) from error
        raise


def unwritable(target: Path, error: Exception | str) -> OutputError:
    """Return the error that a file or folder cannot be written."""
    reason = getattr(error, "strerror", None) or str(error)
    return OutputError(
        f"Cannot write to {target}: {reason}. Check the path, the permissions and the free disk "
        "space.",
        code="cannot-write",
        file=target,
        reason=reason,
    )
