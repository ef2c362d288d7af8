"""Results appear complete or not at all: write beside the target, then move into place.

A run that fails or is ended (Ctrl-C, SIGTERM) leaves neither half a result nor a temporary folder behind, and an
older result stays untouched until the new one is complete. What a killed run leaves, the next one removes.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike

from photostereo.core.errors import OutputError
from photostereo.io.json_text import json_bytes
from photostereo.io.ownership import Claim, clear_leftovers, foreign_files, is_ours, stage_prefix

Place = str | os.PathLike[str]


@contextmanager
def replacing_directory(
    out: Place, *, force: bool = False, keep: Iterable[Place] = (), renew: Collection[str] | None = None
) -> Iterator[Path]:
    """A temporary folder beside ``out`` that becomes ``out`` when the block ends without an exception.

    Parameters
    ----------
    out : path of the folder to make; missing parents are made too. An existing empty folder may be used.
    force : replace an existing folder of results (as a whole, at the very end). Without it an existing folder
        is an error.
    keep : what the run reads or writes elsewhere: the capture, a mask, a saved state; ``out`` may not hold it
    renew : ``out`` is being brought up to date: the block takes over what is in it but for these files, so
        that somebody else's may be there too, unless they are among these

    Raises
    ------
    OutputError
        If ``out`` exists (and ``force`` is not given), is a file, is not a folder that photostereo wrote, holds
        anything that photostereo did not write, the current folder, the home folder or a repository, or cannot
        be written. Raised before the block runs, so that no work is lost.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> base = pathlib.Path(tempfile.mkdtemp())
    >>> with replacing_directory(base / "result") as folder:
    ...     _ = (folder / "summary.json").write_text("{}")
    >>> sorted(p.name for p in (base / "result").iterdir())
    ['.photostereo.json', 'summary.json']
    """
    target, kept = _absolute(out), tuple(keep)
    _require_reachable(target)
    clear_leftovers(target)
    _refuse_existing_directory(target, force, kept, renew)
    with _parents(target):
        folder = _make_beside(target, "partial")
        try:
            claim = _claimed(folder, target)
            try:
                folder.chmod(0o777 & ~_umask())  # mkdtemp makes it private; a result is as readable as others
                with _explaining(target):
                    yield folder
                _refuse_existing_directory(target, force, kept, renew)  # it may have appeared meanwhile
                claim.list_files(() if renew is None else _carried(target) - set(renew))
                _move_into_place(folder, target)
            finally:
                claim.release()
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


@contextmanager
def replacing_file(out: Place, *, force: bool = False) -> Iterator[Path]:
    """A temporary file of the same name, in a hidden folder beside ``out``, that becomes ``out`` when the block
    ends well.
    """
    target = _absolute(out)
    _require_reachable(target)
    if target.is_dir():
        raise OutputError(f"{target} is a folder, but a file is to be written there. Choose another name.")
    if target.exists() and not force:
        raise _exists(target)
    clear_leftovers(target)
    with _parents(target):
        folder = _make_beside(target, "partial")  # a folder can carry the mark by which leftovers are known
        try:
            claim = _claimed(folder, target)
            try:
                partial = folder / target.name
                partial.touch()
                with _explaining(target):
                    yield partial
                    os.replace(partial, target)
            finally:
                claim.release()
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def writing(path: Place) -> Iterator[IO[bytes]]:
    """An open file that becomes ``path``, new or in place of an older one of ours, when the block ends well."""
    with (
        replacing_file(path, force=True) as partial,
        _explaining(_absolute(path), always=True),
        partial.open("wb") as file,
    ):
        yield file


def write_bytes(path: Place, data: bytes) -> None:
    """A file, at once."""
    with writing(path) as file:
        file.write(data)


def write_text(path: Place, text: str) -> None:
    """Text in UTF-8; what UTF-8 cannot hold (bytes of an undecodable file name) is written as an escape."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_json(path: Place, value: Any) -> None:
    """A value as strict JSON; null for numbers that are not finite."""
    write_bytes(path, json_bytes(value))


def write_array(path: Place, array: ArrayLike) -> None:
    """An ``.npy`` file."""
    with writing(path) as file:
        np.save(file, array, allow_pickle=False)


def write_arrays(path: Place, **arrays: Any) -> None:
    """An ``.npz`` file, not compressed."""
    with writing(path) as file:
        np.savez(file, **arrays)


def _absolute(out: Place) -> Path:
    return Path(os.path.abspath(os.path.expanduser(out)))


def _require_reachable(target: Path) -> None:
    """The system takes the name: not too long, no NUL, no file where a folder has to be."""
    try:
        os.lstat(target)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise _unwritable(target, error) from error


def _refuse_existing_directory(
    target: Path, force: bool, keep: Collection[Place], renew: Collection[str] | None
) -> None:
    for place in keep:
        if _holds(target, Path(place)):
            raise OutputError(
                f"{target} holds {place}, which this run needs, so the results cannot take its place. Choose "
                "another folder for the results."
            )
    if target.is_symlink() and not target.exists():
        raise OutputError(
            f"{target} is a link that leads nowhere. Remove it or choose another folder for the results."
        )
    if not target.exists():
        return
    if not target.is_dir():
        raise OutputError(
            f"{target} is a file, but the results need a folder. Choose another name or remove the file."
        )
    try:
        empty = next(target.iterdir(), None) is None
    except OSError as error:
        raise _unwritable(target, error) from error
    if empty and not _holds_someone(target):
        return
    if not force:
        raise _exists(target)
    # Replacing means deleting what is there: never a folder in which people live.
    if _holds_someone(target) or (target / ".git").exists():
        raise OutputError(
            f"{target} is not replaced, even by force, because it holds the current folder, your home "
            "folder or a git repository. Choose a folder of its own for the results."
        )
    _refuse_foreign(target, renew)


def _refuse_foreign(target: Path, renew: Collection[str] | None) -> None:
    try:
        foreign = foreign_files(target)
        ours = is_ours(target)
    except OSError as error:
        raise _unwritable(target, error) from error
    if renew is not None:
        foreign = {name: why for name, why in foreign.items() if name in renew}
    elif not ours:
        name = next(iter(foreign), "")
        raise OutputError(
            f"{target} is not replaced, even by force, because it does not look like a folder that photostereo "
            f"wrote{f': it holds {name}' if name else ''}. Choose another folder for the results, or remove this "
            "one by hand."
        )
    if foreign:
        name, why = next(iter(foreign.items()))
        raise OutputError(
            f"{target} is not replaced, even by force, because it holds {name}, which {why}. Move that file "
            "elsewhere, or choose another folder for the results."
        )


def _carried(target: Path) -> set[str]:
    """What a renewed folder takes over from somebody else."""
    return set(foreign_files(target)) if target.is_dir() else set()


def _holds_someone(target: Path) -> bool:
    return _holds(target, Path.cwd()) or _holds(target, Path.home())


def _holds(target: Path, place: Path) -> bool:
    # Not Path.resolve: it fails on a link that leads to itself.
    real, inside = Path(os.path.realpath(target)), Path(os.path.realpath(place.expanduser()))
    return real == inside or real in inside.parents


@contextmanager
def _parents(target: Path) -> Iterator[None]:
    """Make missing parents; a failure of the block removes those that were made, if they are still empty."""
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
            with suppress(OSError):  # not empty any more: someone else uses it now
                parent.rmdir()
        raise


def _make_beside(target: Path, stage: str) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=stage_prefix(target, stage), dir=target.parent))
    except OSError as error:
        raise _unwritable(target, error) from error


def _claimed(folder: Path, target: Path) -> Claim:
    with _explaining(target, always=True):
        return Claim(folder, target)


@contextmanager
def _explaining(target: Path, *, always: bool = False) -> Iterator[None]:
    """A full disk is the user's to mend; other errors keep their own words, unless the block does nothing else."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        if always or error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG):
            raise _unwritable(target, error) from error
        raise


def _move_into_place(folder: Path, target: Path) -> None:
    aside: Path | None = None
    claim: Claim | None = None
    try:
        if target.is_symlink():
            target = Path(os.path.realpath(target))
        if target.exists():
            aside = _make_beside(target, "replaced")
            claim = Claim(aside, target)
            os.rename(target, aside / "old")
        os.rename(folder, target)
    except OSError as error:
        if aside is not None and (aside / "old").exists() and not target.exists():
            os.rename(aside / "old", target)
        raise _unwritable(target, error) from error
    finally:
        if claim is not None:
            claim.release()
        if aside is not None:
            shutil.rmtree(aside, ignore_errors=True)


def _umask() -> int:
    # The only portable way to read it is to set it.
    current = os.umask(0)
    os.umask(current)
    return current


def _exists(target: Path) -> OutputError:
    return OutputError(
        f"{target} exists already and is not overwritten. Choose another name, or ask for it to be replaced "
        "(--force)."
    )


def _unwritable(target: Path, error: Exception) -> OutputError:
    return OutputError(
        f"Cannot write the results to {target}: {getattr(error, 'strerror', None) or error}. Choose a place where "
        "you may write and that has room."
    )
