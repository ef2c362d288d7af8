"""Keep track of the files that photostereo wrote and may therefore replace.

Every folder of results holds a marker file, ``.photostereo.json``, that lists the files in it with their sizes and
checksums. Folders without a marker, files that the marker does not list and files that have changed since are never
deleted. Modification times are ignored, so a copied result can be replaced like the original.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path

from photostereo._version import __version__
from photostereo.core.errors import PhotostereoError
from photostereo.io.json_text import json_bytes
from photostereo.io.safe import read_json

#: Name of the marker.
MARK = ".photostereo.json"
_FORMAT = "photostereo folder"
#: Files that operating systems put into folders by themselves.
_SYSTEM_FILES = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})


def mark_content(folder: Path, foreign: Collection[str] = ()) -> bytes:
    """The marker of a folder: every file that is in it now, except foreign ones."""
    files = {}
    for name, path in _files_in(folder):
        if name not in foreign and path.is_file() and not path.is_symlink():
            files[name] = _content_of(path)
    return json_bytes({"format": _FORMAT, "version": __version__, "files": files})


def is_ours(folder: Path) -> bool:
    """Whether the folder has a marker."""
    return _read_mark(folder) is not None


def foreign_files(folder: Path) -> dict[str, str]:
    """Files, links and empty folders that are not ours, each with the reason; everything if there is no marker."""
    listed = _read_mark(folder) or {}
    foreign = {}
    for name, path in _files_in(folder):
        if path.is_symlink() or not path.is_file() or name not in listed:
            foreign[name] = "was not written by photostereo"
        elif _content_of(path) != listed[name]:
            foreign[name] = "has changed since photostereo wrote it"
    return foreign


def _content_of(path: Path) -> list[int | str]:
    """Size and CRC-32 of a file: they must detect a retouched picture, not an attack."""
    value = 0
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            value = zlib.crc32(part, value)
    return [path.stat().st_size, f"{value:08x}"]


def _read_mark(folder: Path) -> dict[str, list[int | str]] | None:
    try:
        content = read_json(folder / MARK, "marker", remedy="")
        if content["format"] == _FORMAT:
            return dict(content["files"])
        return None
    except (KeyError, TypeError, ValueError, PhotostereoError):
        return None


def _files_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every file, link and empty folder below a folder but our marker, with its relative name; links are not followed."""
    for place, folders, files in os.walk(folder):
        inside = Path(place)
        links = [name for name in folders if (inside / name).is_symlink()]
        for name in sorted([*files, *links]):
            path = inside / name
            if name not in _SYSTEM_FILES and path != folder / MARK:
                yield path.relative_to(folder).as_posix(), path
        if not files and not folders and inside != folder:
            yield inside.relative_to(folder).as_posix(), inside
