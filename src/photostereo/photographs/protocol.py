"""Pictures of one scene as they are stored: in files, in memory, in an archive, in a video.

A source of photographs needs four methods, each for the k-th picture. Everything else, from the sRGB curve to camera
movement and lights, is the same for all of them::

    class Slides:
        def __len__(self): ...
        def name(self, k): ...    # to tell it from the others
        def head(self, k): ...    # exposure, focal length, orientation, size, as far as they are recorded
        def read(self, k): ...    # the stored numbers
        def digest(self, k): ...  # equal for equal pictures
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from photostereo.core.attempt import log
from photostereo.io.camera import Shot, read_shot
from photostereo.io.images import decode_image
from photostereo.photographs.frames import Frames


class Photographs(Protocol):
    """Pictures of one scene, read when they are needed, by several threads at once.

    Numbers are as stored: integers of 8 or 16 bits, or floating point, (H, W) or (H, W, 3) in RGB order. Development to
    linear light is the same for every source (:mod:`photostereo.photographs.developed`).
    """

    def __len__(self) -> int:
        """How many there are."""

    def name(self, k: int) -> str:
        """What messages, light files and results call the k-th picture; no two have the same name."""

    def head(self, k: int) -> Shot:
        """Its settings, as far as they are recorded, without decoding it."""

    def read(self, k: int) -> NDArray[np.generic]:
        """Its stored numbers; a :class:`~photostereo.core.errors.CaptureError` if it is damaged."""

    def digest(self, k: int) -> str:
        """A digest of its content once it was read; empty if it is not known."""


class PhotographFiles:
    """Photographs in files.

    >>> photographs = PhotographFiles([Path("a.png"), Path("b.png")])
    >>> len(photographs), photographs.name(1), photographs.digest(1)
    (2, 'b.png', '')
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = tuple(files)
        self._digests: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.files)

    def name(self, k: int) -> str:
        return self.files[k].name

    def head(self, k: int) -> Shot:
        return read_shot(self.files[k])

    def read(self, k: int) -> NDArray[np.generic]:
        def keep_digest(content: bytes) -> None:
            self._digests[k] = hashlib.sha256(content).hexdigest()

        return decode_image(self.files[k], seen=keep_digest)

    def digest(self, k: int) -> str:
        return self._digests.get(k, "")


class PhotographsInMemory:
    """Photographs in an array (d, H, W) or (d, H, W, 3), or in a sequence of pictures.

    >>> photographs = PhotographsInMemory(np.zeros((3, 4, 5), np.uint8))
    >>> len(photographs), photographs.name(0), photographs.head(0).frame
    (3, 'photograph-1', (4, 5))
    """

    def __init__(
        self, images: Sequence[NDArray[np.generic]] | NDArray[np.generic], names: Sequence[str] = ()
    ) -> None:
        self.images = images
        self.names = tuple(names) or tuple(f"photograph-{k + 1}" for k in range(len(images)))

    def __len__(self) -> int:
        return len(self.images)

    def name(self, k: int) -> str:
        return self.names[k]

    def head(self, k: int) -> Shot:
        height, width = self.images[k].shape[:2]
        return Shot(frame=(height, width))

    def read(self, k: int) -> NDArray[np.generic]:
        return np.asarray(self.images[k])

    def digest(self, k: int) -> str:
        return hashlib.sha256(np.ascontiguousarray(self.images[k]).data).hexdigest()


class PhotographsOfFrames:
    """Linear photographs as a source: those of an archive, or of a capture in memory."""

    def __init__(self, frames: Frames, names: Sequence[str] = ()) -> None:
        self.frames = frames
        self.names = tuple(names) or tuple(f"photograph-{k + 1}" for k in range(len(self)))
        self._digests: dict[int, str] = {}

    def __len__(self) -> int:
        return self.frames.shape[0]

    def name(self, k: int) -> str:
        return self.names[k]

    def head(self, k: int) -> Shot:
        height, width = self.frames.shape[1:3]
        return Shot(frame=(height, width))

    def read(self, k: int) -> NDArray[np.generic]:
        picture = np.empty(self.frames.shape[1:], np.float32)
        self.frames.develop(k, picture)
        self._digests[k] = hashlib.sha256(picture.data).hexdigest()
        return picture

    def digest(self, k: int) -> str:
        return self._digests.get(k, "")


class Pictures:
    """The pictures of a capture by their paths: photographs of any source, and files beside them (room light, balls).

    A photograph that is no file has the path of its source and its name.
    """

    def __init__(self, photographs: Photographs | None = None, place: Path = Path()) -> None:
        self.photographs = PhotographFiles(()) if photographs is None else photographs
        if isinstance(self.photographs, PhotographFiles):
            self.paths = self.photographs.files
        else:
            self.paths = tuple(
                place / self.photographs.name(k) for k in range(len(self.photographs))
            )
        self._numbers = {path: number for number, path in enumerate(self.paths)}
        self._beside: dict[Path, PhotographFiles] = {}
        self._heads: dict[Path, Shot] = {}

    def head(self, path: Path) -> Shot:
        """The settings of a picture, read once. What cannot be read is damaged; the pixels do not depend on it."""
        if path not in self._heads:
            photographs, number = self._source_of(path)
            try:
                self._heads[path] = photographs.head(number)
            except MemoryError:
                raise
            except Exception:
                log.exception("the header of %s cannot be read", path)
                self._heads[path] = Shot(damaged=True)
        return self._heads[path]

    def read(self, path: Path) -> NDArray[np.generic]:
        """The stored numbers of a picture."""
        photographs, number = self._source_of(path)
        return photographs.read(number)

    def digest(self, path: Path) -> str:
        """The digest of a picture that was read; empty if it is not known."""
        photographs, number = self._source_of(path)
        return photographs.digest(number)

    def _source_of(self, path: Path) -> tuple[Photographs, int]:
        number = self._numbers.get(path)
        if number is not None:
            return self.photographs, number
        if path not in self._beside:
            self._beside[path] = PhotographFiles([path])
        return self._beside[path], 0
