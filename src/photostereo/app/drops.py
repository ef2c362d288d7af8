"""Photographs that are dropped onto the page: received one by one into a new folder."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from photostereo.app.errors import RequestError, TooLargeError
from photostereo.app.user_folders import free_place
from photostereo.io.camera import read_shot
from photostereo.io.images import IMAGE_SUFFIXES, PLAIN_SUFFIXES
from photostereo.io.names import WINDOWS_DEVICES, folder_name, shortened
from photostereo.lights.files.reading import formats

#: Maximum bytes of one file: the largest RAW files take a fifth of it.
FILE_LIMIT = 512 << 20
#: Maximum bytes of all files of a drop: a thousand large TIFF files.
DROP_LIMIT = 64 << 30
#: Maximum number of files of a drop.
MOST_FILES = 1000
#: Maximum number of folders within each other; the rest of a path is left away.
DEPTH = 3


class Drop:
    """Receives files into a folder, which does not exist before the first file arrives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 0  # files, also those on their way
        self._bytes = 0

    async def receive(self, path: str, content: AsyncIterator[bytes]) -> str:
        """Store a file and return its name, changed if it could do harm.

        Parameters
        ----------
        path : str
            Name of the file on the user's disk, with the folders that were dropped.
        content : asynchronous iterator of bytes
            The file, in parts.

        Raises
        ------
        RequestError
            ``"file-refused"`` if it is neither a photograph nor a light file, ``"too-large"``.
        """
        *parents, name = re.split(r"[/\\\\]", path)
        folders = [folder_name(part) for part in parents if part.strip(". ")][:DEPTH]
        safe_name = harmless_name(name)
        if safe_name is None or self._count >= MOST_FILES:
            raise RequestError("This kind of file is not accepted.", code="file-refused")
        if self._count == 0:
            self.folder = free_place(self.folder.parent, self.folder.name)
            self.folder.mkdir(parents=True)
        self._count += 1
        place = self.folder.joinpath(*folders)
        place.mkdir(parents=True, exist_ok=True)
        try:
            self._bytes += await self._store(place / safe_name, content)
        except BaseException:
            self._count -= 1
            raise
        finally:
            with suppress(OSError):
                for empty in (place, *place.parents)[: len(folders) + 1]:
                    empty.rmdir()  # only if it is empty
        return safe_name

    async def _store(self, target: Path, content: AsyncIterator[bytes]) -> int:
        """Write a file, complete or not at all, and return its size."""
        part = target.with_name(f".{secrets.token_hex(6)}.part")
        size = 0
        try:
            with part.open("xb") as file:
                async for piece in content:
                    size += len(piece)
                    if size > FILE_LIMIT or self._bytes + size > DROP_LIMIT:
                        raise TooLargeError(
                            "The file is too large.", code="too-large", limit=FILE_LIMIT
                        )
                    file.write(piece)
            if target.exists() or not _may_be_photograph(part, target.suffix):
                raise RequestError(
                    f"{target.name} is not a photograph, or was added already.",
                    code="file-refused",
                )
            part.rename(target)
        finally:
            part.unlink(missing_ok=True)
        return size


def _may_be_photograph(file: Path, suffix: str) -> bool:
    """Check the header of formats that can be checked without another library."""
    return suffix.lower() not in PLAIN_SUFFIXES or read_shot(file).frame is not None


def harmless_name(name: str) -> str | None:
    """Return a safe, single-line name for a dropped file, without folders; None if its type is not accepted.

    >>> harmless_name("../../IMG 1.JPG"), harmless_name("NUL.png"), harmless_name("run.sh")
    ('IMG 1.JPG', '_NUL.png', None)
    """
    base = re.split(r"[/\\\\]", name)[-1]
    visible = "".join(c if c.isprintable() and c not in '<>:"|?*' else "_" for c in base)
    visible = re.sub("_+", "_", visible).strip(" .")
    stem, suffix = os.path.splitext(visible)
    if stem.casefold() in WINDOWS_DEVICES:
        stem = "_" + stem
    safe = shortened(stem) + suffix
    return safe if stem and suffix.lower() in accepted_suffixes() else None


@cache
def accepted_suffixes() -> frozenset[str]:
    """Return the suffixes of photographs and of light files that can be dropped."""
    lights = [suffix for entry in formats().values() for suffix in entry.suffixes]
    return frozenset(lights) | IMAGE_SUFFIXES
