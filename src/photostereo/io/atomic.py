"""Results appear complete or not at all: write beside the target, then move into place.

A run that fails or is interrupted (Ctrl-C, SIGTERM) leaves neither half a result nor a temporary folder behind, and an
older result stays untouched until the new one is complete. The next run removes the leftovers of a killed one.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike

from photostereo.core.errors import OutputError
from photostereo.io.json_text import json_bytes
from photostereo.io.ownership import MARK, foreign_files, is_ours, mark_content
from photostereo.io.staging import clear_leftovers, move_into_place, staged

Place = str | os.PathLike[str]


@contextmanager
def replacing_directory(
    out: Place, *, force: bool = False, keep: Iterable[Place] = (), renew: Collection[str] | None = None
) -> Iterator[Path]:
    """A temporary folder beside ``out`` that becomes ``out`` when the block ends without an exception.

    With ``force`` it replaces an existing folder of results, as a whole, at the very end. ``out`` must not contain
    any path in ``keep``, which the run needs. The block rewrites the files of ``out`` in ``renew`` and copies all others,
    which may be the user's. If something is in the way, an :class:`OutputError` is raised before the block runs.
    """
    target, kept = _followed(_reachable(out)), tuple(keep)
    clear_leftovers(target)
    _check_target(target, force, kept, renew)
    with _staged(target, folder=True) as folder:
        yield folder
        _check_target(target, force, kept, renew)  # it may have appeared meanwhile
        with _explained(target):
            foreign = set(foreign_files(target)) - set(renew) if renew is not None and target.is_dir() else ()
            (folder / MARK).write_bytes(mark_content(folder, foreign))
            move_into_place(folder, target)


def require_free(out: Place, *, force: bool = False) -> None:
    """Raise the errors of :func:`replacing_directory` early, before long work."""
    _check_target(_followed(_reachable(out)), force, (), None)


@contextmanager
def replacing_file(out: Place, *, force: bool = False) -> Iterator[Path]:
    """A hidden file beside ``out``, with the same suffix, that becomes ``out`` when the block succeeds.
    If the block removes it, ``out`` stays as it is.
    """
    target = _reachable(out)
    if target.is_dir():
        raise OutputError(code="output-is-a-folder", file=target)
    if target.exists() and not force:
        raise _exists(target)
    clear_leftovers(target)
    with _staged(target, folder=False) as partial:
        yield partial
        if partial.exists():
            with _explained(target):
                os.replace(partial, target)


@contextmanager
def writing(path: Place) -> Iterator[IO[bytes]]:
    """An open file that becomes ``path``, new or in place of an older one, when the block succeeds."""
    with replacing_file(path, force=True) as partial, _explained(Path(path)), partial.open("wb") as file:
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


@contextmanager
def _staged(target: Path, *, folder: bool) -> Iterator[Path]:
    with _parents(target), ExitStack() as stack:
        with _explained(target):
            stage = stack.enter_context(staged(target, folder=folder))
        with _explained(target, inside=stage):
            yield stage


def _reachable(out: Place) -> Path:
    """Return the absolute path; raise if the system rejects it (too long, with a NUL, a parent is not a folder)."""
    target = Path(os.path.abspath(os.path.expanduser(out)))
    try:
        os.lstat(target)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise _unwritable(target, error) from error
    return target


def _followed(target: Path) -> Path:
    """Return the folder that a link points to, so that the link itself is kept."""
    if not target.is_symlink():
        return target
    if not target.exists():
        raise OutputError(code="broken-link", file=target)
    return Path(os.path.realpath(target))


def _check_target(target: Path, force: bool, keep: Collection[Place], renew: Collection[str] | None) -> None:
    for place in keep:
        if _contains(target, Path(place)):
            raise OutputError(code="output-contains-input", file=target, needed=str(place))
    if not target.exists():
        return
    if not target.is_dir():
        raise OutputError(code="output-is-a-file", file=target)
    try:
        empty = next(target.iterdir(), None) is None
        in_use = _contains(target, Path.cwd()) or _contains(target, Path.home())
        if empty and not in_use:
            return
        if not force:
            raise _exists(target)
        # Replacing deletes the old content: never replace a folder in which people work.
        if in_use or (target / ".git").exists():
            raise OutputError(code="output-in-use", file=target)
        ours, foreign = is_ours(target), foreign_files(target)
    except OutputError:
        raise
    except OSError as error:
        raise _unwritable(target, error) from error
    if renew is not None:
        foreign = {name: why for name, why in foreign.items() if name in renew}
    name, why = next(iter(foreign.items()), ("", ""))
    if renew is None and not ours:
        raise OutputError(code="not-our-folder", file=target, name=name, reason=why)
    if foreign:
        raise OutputError(code="foreign-file", file=target, name=name, reason=why)


def _contains(target: Path, place: Path) -> bool:
    # Not Path.resolve: it fails on a link that leads to itself.
    real, inside = Path(os.path.realpath(target)), Path(os.path.realpath(place.expanduser()))
    return real == inside or real in inside.parents


@contextmanager
def _parents(target: Path) -> Iterator[None]:
    """Make missing parents; if the block fails, remove those that are still empty."""
    made = []
    step = target.parent
    while not step.exists() and step != step.parent:
        made.append(step)
        step = step.parent
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(target.parent, error) from error
    try:
        yield
    except BaseException:
        for parent in made:
            with suppress(OSError):  # no longer empty: in use by another program
                parent.rmdir()
        raise


@contextmanager
def _explained(target: Path, *, inside: Path | None = None) -> Iterator[None]:
    """Report system errors as errors of the target; ``inside`` a stage, in a caller's block, only those of the disk."""
    try:
        yield
    except OutputError as error:
        hidden = inside is not None and error.file is not None and error.file.is_relative_to(inside)
        if hidden and error.code == "cannot-write":
            raise _unwritable(target, error.values["reason"]) from error
        raise
    except OSError as error:
        if inside is None or error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG):
            raise _unwritable(target, error) from error
        raise


def _exists(target: Path) -> OutputError:
    return OutputError(code="output-exists", file=target, remedy="replace-output")


def _unwritable(target: Path, error: Exception | str) -> OutputError:
    reason = getattr(error, "strerror", None) or str(error)
    return OutputError(code="cannot-write", file=target, reason=reason)
