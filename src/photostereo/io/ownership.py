"""Which folders are ours, and which of their files: what may be replaced by force, and what never.

Every folder that we write carries a mark, ``.photostereo.json``, with the name, size and time of each file that we
put there. A folder without it is somebody else's, and so is a file that the mark does not list or that has changed
since: such a folder is not replaced. While a folder is being made its mark is locked; the kernel takes the lock from
a process that dies, so that the next run can tell what is left over from what is still in use.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from photostereo._version import __version__
from photostereo.core.errors import PhotostereoError
from photostereo.io.json_text import json_bytes
from photostereo.io.names import shortened
from photostereo.io.safe import read_json

MARK = ".photostereo.json"
_FORMAT = "photostereo folder"
#: What operating systems put into folders by themselves.
_LITTER = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
#: Seconds by which the time of a file may differ: some file systems keep only every other second.
_TIME_STEP = 2.0
#: The names of folders in the making, and of old results on their way out.
_STAGES = ("partial", "replaced")


class Claim:
    """The mark of a folder in the making, locked until the folder is released."""

    def __init__(self, folder: Path, target: Path) -> None:
        self.folder, self.target = folder, target
        self._handle = os.open(folder / MARK, os.O_RDWR | os.O_CREAT, 0o666)
        _lock(self._handle)
        self._write({})

    def list_files(self, foreign: Collection[str] = ()) -> None:
        """Put every file that is in the folder now on the list, but for those that are somebody else's."""
        files = {}
        for path in _files_in(self.folder):
            name = path.relative_to(self.folder).as_posix()
            if name != MARK and name not in foreign:
                facts = path.lstat()
                files[name] = [facts.st_size, facts.st_mtime]
        self._write(files)

    def release(self) -> None:
        """The folder is done with, or gone."""
        os.close(self._handle)

    def _write(self, files: dict[str, list[float]]) -> None:
        content = json_bytes(
            {"format": _FORMAT, "version": __version__, "folder": self.target.name, "files": files}
        )
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, content, 0)


def stage_prefix(target: Path, stage: str) -> str:
    """How the names of hidden folders beside a target begin; short enough for any target that may exist."""
    return f".{shortened(target.name)}.{stage}-"


def is_ours(folder: Path) -> bool:
    """Whether the folder carries our mark."""
    return _read_mark(folder) is not None


def foreign_files(folder: Path) -> dict[str, str]:
    """What is in a folder but not ours, and why: files, links, empty folders; all of it where there is no mark."""
    listed = _read_mark(folder) or {}
    foreign = {}
    for path in _files_in(folder):
        name = path.relative_to(folder).as_posix()
        if name == MARK or path.name in _LITTER:
            continue
        facts = path.lstat()
        if path.is_symlink() or not path.is_file() or name not in listed:
            foreign[name] = "was not written by photostereo"
        else:
            size, written = listed[name]
            if facts.st_size != size or abs(facts.st_mtime - written) > _TIME_STEP:
                foreign[name] = "has changed since photostereo wrote it"
    return foreign


def clear_leftovers(target: Path) -> None:
    """Remove what runs that were killed left beside a target; bring back results that one had set aside."""
    with suppress(OSError):
        for stage in _STAGES:
            for folder in sorted(target.parent.iterdir()):
                if folder.name.startswith(stage_prefix(target, stage)) and _is_left_over(folder, target):
                    old = folder / "old"
                    if stage == "replaced" and old.is_dir() and not os.path.lexists(target):
                        old.rename(target)
                    shutil.rmtree(folder, ignore_errors=True)


def _is_left_over(folder: Path, target: Path) -> bool:
    """Whether it is a folder of ours for this target, and whoever made it is gone."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    try:
        mark = _mark(folder)
        if mark.get("folder") != target.name:
            return False
        handle = os.open(folder / MARK, os.O_RDWR)
    except (OSError, ValueError, PhotostereoError):
        return False
    try:
        return _lock(handle)
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    """Take the lock of an open file; False where somebody has it, or where locks are not to be had."""
    try:
        import fcntl
    except ImportError:  # Windows: leftovers stay
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _read_mark(folder: Path) -> dict[str, tuple[float, float]] | None:
    try:
        listed = _mark(folder)["files"]
        return {str(name): (float(size), float(written)) for name, (size, written) in listed.items()}
    except (KeyError, TypeError, AttributeError, ValueError, PhotostereoError):
        return None


def _mark(folder: Path) -> dict[str, Any]:
    if (folder / MARK).is_symlink():
        raise ValueError("a link is not a mark")
    content = read_json(folder / MARK, "mark", remedy="")
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ValueError("not a mark of ours")
    return content


def _files_in(folder: Path) -> Iterator[Path]:
    """Every file, link and empty folder below a folder; links are not followed."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink() and next(path.iterdir(), None) is not None:
            yield from _files_in(path)
        else:
            yield path
