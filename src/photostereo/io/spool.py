"""Arrays kept on disk until they are used again, in a temporary file without a name.

A photograph of 24 megapixels takes half a second to decode and a few milliseconds to read back as it was decoded.
The file is never mapped: data take up memory once, and only while they are used.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Bytes that stay free on the disk.
SPARED = 1_000_000_000
#: File systems that are in memory: files there free none of it.
IN_MEMORY = ("tmpfs", "ramfs")


@dataclass(frozen=True)
class Spooled:
    """Position of an array in the file of a :class:`Spool`."""

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Spool:
    """A temporary file of arrays; it is deleted with this object."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  (it lives as long as this object)
        self._end = 0
        self._lock = threading.Lock()

    def write(self, array: NDArray[Any]) -> Spooled:
        """Append an array and return its position."""
        content = np.ascontiguousarray(array)
        with self._lock:
            place = Spooled(self._end, content.shape, content.dtype)
            self._file.seek(place.offset)
            self._file.write(content.data.cast("B"))
            self._end += content.nbytes
        return place

    def read(self, place: Spooled, rows: slice = slice(None)) -> NDArray[Any]:
        """Read these rows of an array."""
        first, last, _ = rows.indices(place.shape[0])
        part = np.empty((max(last - first, 0), *place.shape[1:]), dtype=place.dtype)
        row = part.itemsize * int(np.prod(place.shape[1:], dtype=np.int64))
        with self._lock:
            self._file.seek(place.offset + first * row)
            self._file.readinto(part.data.cast("B"))
        return part


@dataclass(frozen=True)
class SpooledStack:
    """A stack of arrays of one shape and type in a :class:`Spool`: ``stack[k, rows]`` reads rows of one of them."""

    spool: Spool
    places: tuple[Spooled, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.places), *self.places[0].shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.places[0].dtype

    def __getitem__(self, at: tuple[int, slice]) -> NDArray[Any]:
        return self.spool.read(self.places[at[0]], at[1])

    def take(self, chosen: Sequence[int], axis: int = 0) -> SpooledStack:
        """Some of the arrays, as from ``take`` of a NumPy array."""
        return SpooledStack(self.spool, tuple(self.places[number] for number in chosen))


def open_spool(size: int) -> Spool | None:
    """A spool for ``size`` bytes on a disk with room for them; None if there is no such disk.

    The usual place for temporary files (``TMPDIR``) is tried first, then ``/var/tmp``, which is never in memory.
    """
    for folder in (Path(tempfile.gettempdir()), Path("/var/tmp")):
        try:
            if not _lies_in_memory(folder) and shutil.disk_usage(folder).free > size + SPARED:
                return Spool(folder)
        except OSError:  # no such folder, or no permission to write there
            continue
    return None


def _lies_in_memory(folder: Path) -> bool:
    import psutil  # type: ignore[import-untyped]

    place = folder.resolve()
    mounts = {Path(part.mountpoint): part.fstype for part in psutil.disk_partitions(all=True)}
    nearest = max(
        (mount for mount in mounts if place.is_relative_to(mount)),
        key=lambda m: len(m.parts),
        default=None,
    )
    return nearest is not None and mounts[nearest] in IN_MEMORY


@dataclass
class Kept:
    """Decoded photographs: some in memory until they are used, others in a temporary file."""

    first: dict[Path, NDArray[Any]]
    spool: Spool | None = None
    places: dict[Path, Spooled] = field(default_factory=dict)
    holds: bool = False

    def __reduce__(self) -> Any:  # another process decodes for itself
        return Kept, ({},)
