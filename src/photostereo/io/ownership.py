"""Keep track of the files that photostereo wrote and may therefore replace.

Every folder of results holds a marker file, ``.photostereo.json``, that lists the files in it with their sizes and
checksums. Folders without a marker, files that the marker does not list and files that have changed since are never
deleted. Modification times are ignored, so a copied result can be replaced like the original.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from photostereo._version import __version__
from photostereo.core.errors import PhotostereoError
from photostereo.io.json_text import json_bytes
from photostereo.io.safe import read_json

MARK = ".photostereo.json"
_FORMAT = "photostereo folder"
#: Files that operating systems put into folders by themselves.
_SYSTEM_FILES = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})


def mark_content(folder: Path, foreign: Collection[str] = ()) -> bytes:
    """The marker of a folder: every file that is in it now, except foreign ones."""
    files = {
        name: [path.stat().st_size, _checksum(path)]
        for name, path in _files_in(folder)
        if name != MARK and name not in foreign and path.is_file() and not path.is_symlink()
    }
    return json_bytes({"format": _FORMAT, "version": __version__, "files": files})


def is_ours(folder: Path) -> bool:
    """Whether the folder has a marker."""
    return _read_mark(folder) is not None


def foreign_files(folder: Path) -> dict[str, str]:
    """Files, links and empty folders that are not ours, each with the reason; everything if there is no marker."""
    listed = _read_mark(folder) or {}
    foreign = {}
    for name, path in _files_in(folder):
        if name == MARK or path.name in _SYSTEM_FILES:
            continue
        if path.is_symlink() or not path.is_file() or name not in listed:
            foreign[name] = "was not written by photostereo"
        else:
            size, checksum = listed[name]
            if path.stat().st_size != size or _checksum(path) != checksum:
                foreign[name] = "has changed since photostereo wrote it"
    return foreign


def _checksum(path: Path) -> str:
    """CRC-32 of a file: it must detect a retouched picture, not an attack."""
    value = 0
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            value = zlib.crc32(part, value)
    return f"{value:08x}"


def _read_mark(folder: Path) -> dict[str, tuple[float, Any]] | None:
    if (folder / MARK).is_symlink():
        return None
    try:
        content = read_json(folder / MARK, "marker", remedy="")
        if content["format"] != _FORMAT:
            return None
        return {str(name): (float(size), checksum) for name, (size, checksum) in content["files"].items()}
    except (KeyError, TypeError, AttributeError, ValueError, PhotostereoError):
        return None


def _files_in(folder: Path, above: str = "") -> Iterator[tuple[str, Path]]:
    """Every file, link and empty folder below a folder, with its relative name; links are not followed."""
    for path in sorted(folder.iterdir()):
        name = above + path.name
        if path.is_dir() and not path.is_symlink() and next(path.iterdir(), None) is not None:
            yield from _files_in(path, f"{name}/")
        else:
            yield name, path
