"""Results appear complete or not at all: write beside the target, then move into place.

A run that fails or is ended (Ctrl-C, SIGTERM) leaves neither half a result nor a temporary folder behind, and an
older result stays untouched until the new one is complete.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from photostereo.errors import OutputError

#: Files by which a folder of ours is known: of a solve, a comparison, a capture.
MARKS = ("summary.json", "comparison.json", "photostereo.json")


@contextmanager
def replacing_directory(
    out: str | os.PathLike[str], *, force: bool = False, keep: str | os.PathLike[str] | None = None
) -> Iterator[Path]:
    """A temporary folder beside ``out`` that becomes ``out`` when the block ends without an exception.

    Parameters
    ----------
    out : path of the folder to make; missing parents are made too. An existing empty folder may be used.
    force : replace an existing folder of results (as a whole, at the very end). Without it an existing folder
        is an error.
    keep : the capture that the results are made from; never replaced, by itself or with a folder around it

    Raises
    ------
    OutputError
        If ``out`` exists (and ``force`` is not given), is a file, is not a folder that photostereo wrote, holds
        the capture, the current folder, the home folder or a repository, or cannot be written. Raised before
        the block runs, so that no work is lost.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> base = pathlib.Path(tempfile.mkdtemp())
    >>> with replacing_directory(base / "result") as folder:
    ...     _ = (folder / "summary.json").write_text("{}")
    >>> [p.name for p in (base / "result").iterdir()]
    ['summary.json']
    """
    target = Path(os.path.abspath(os.path.expanduser(out)))
    _refuse_existing_directory(target, force, keep)
    made = _make_parents(target.parent)
    try:
        try:
            folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.partial-", dir=target.parent))
        except OSError as error:
            raise _unwritable(target, error) from error
        try:
            folder.chmod(
                0o777 & ~_umask()
            )  # mkdtemp makes it private; a result is as readable as its neighbours
            try:
                yield folder
            except OSError as error:
                # A full disk in the middle of writing is the user's to mend; other errors keep their own
                # words.
                if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
                    raise _unwritable(target, error) from error
                raise
            _move_into_place(folder, target, force, keep)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    except BaseException:
        for parent in made:
            with suppress(OSError):  # not empty any more: someone else uses it now
                parent.rmdir()
        raise


@contextmanager
def replacing_file(out: str | os.PathLike[str], *, force: bool = False) -> Iterator[Path]:
    """A temporary file name beside ``out`` (same suffix) that becomes ``out`` when the block ends well."""
    target = Path(os.path.abspath(os.path.expanduser(out)))
    if target.is_dir():
        raise OutputError(f"{target} is a folder, but a file is to be written there. Choose another name.")
    if target.exists() and not force:
        raise _exists(target)
    made = _make_parents(target.parent)
    try:
        try:
            handle, name = tempfile.mkstemp(
                prefix=f".{target.stem}.partial-", suffix=target.suffix, dir=target.parent
            )
        except OSError as error:
            raise _unwritable(target, error) from error
        os.close(handle)
        partial = Path(name)
        try:
            partial.chmod(0o666 & ~_umask())
            yield partial
            os.replace(partial, target)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except BaseException:
        for parent in made:
            with suppress(OSError):
                parent.rmdir()
        raise


def _refuse_existing_directory(target: Path, force: bool, keep: str | os.PathLike[str] | None) -> None:
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
    if keep is not None and _holds(target, Path(keep)):
        raise OutputError(
            f"{target} holds the photographs themselves, so the results cannot take its place. Choose another "
            "folder for the results."
        )
    if not force:
        raise _exists(target)
    # Replacing means deleting what is there: never a folder in which people live.
    if _holds_someone(target) or (target / ".git").exists():
        raise OutputError(
            f"{target} is not replaced, even by force, because it holds the current folder, your home "
            "folder or a git repository. Choose a folder of its own for the results."
        )
    if not any((target / mark).is_file() for mark in MARKS):
        raise OutputError(
            f"{target} is not replaced, even by force, because it does not look like a folder that photostereo "
            "wrote. Choose another folder for the results, or remove this one by hand."
        )


def _holds_someone(target: Path) -> bool:
    return _holds(target, Path.cwd()) or _holds(target, Path.home())


def _holds(target: Path, place: Path) -> bool:
    real, inside = target.resolve(), place.expanduser().resolve()
    return real == inside or real in inside.parents


def _make_parents(parent: Path) -> list[Path]:
    """Make missing parents; return those made, innermost first, so that a failure can remove them."""
    missing = []
    step = parent
    while not step.exists() and step != step.parent:
        missing.append(step)
        step = step.parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(parent, error) from error
    return missing


def _move_into_place(folder: Path, target: Path, force: bool, keep: str | os.PathLike[str] | None) -> None:
    _refuse_existing_directory(target, force, keep)  # it may have appeared while we worked
    aside: Path | None = None
    try:
        if target.is_symlink():
            target = target.resolve()
        if target.exists():
            aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.replaced-", dir=target.parent))
            os.rename(target, aside / "old")
        os.rename(folder, target)
    except OSError as error:
        if aside is not None and (aside / "old").exists() and not target.exists():
            os.rename(aside / "old", target)
        raise _unwritable(target, error) from error
    finally:
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


def _unwritable(target: Path, error: OSError) -> OutputError:
    return OutputError(
        f"Cannot write the results to {target}: {error.strerror or error}. Choose a place where you may "
        "write and that has room."
    )
