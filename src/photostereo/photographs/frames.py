"""Linear photographs of a capture: in memory, or anything that provides them one by one and in bands of rows."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, Float32, FloatArray
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.io.memory import require_memory
from photostereo.runtime.threads import in_turn, processors

#: No intensity is larger: squares and sums of smaller values stay within the range of 32-bit floating point.
LARGEST_INTENSITY = 1e15


def require_finite(image: NDArray[Any], file: Path | None, what: object = None) -> None:
    """Raise if a photograph has values that cannot be intensities: NaN, infinite or far too large."""
    if (
        image.size == 0 or max(float(image.max()), -float(image.min())) <= LARGEST_INTENSITY
    ):  # false for NaN
        return
    bad = int((~(np.abs(image) <= LARGEST_INTENSITY)).sum())
    raise CaptureError(
        f"{what or file} has {bad} values that are NaN, infinite or beyond 1e15. Export it again "
        "without undefined pixels, or leave it out together with its light.",
        code="photograph-not-finite",
        file=file,
        what=what or file,
        found=bad,
    )


class Frames(ABC):
    """Linear photographs that need not be in memory; threads develop them on demand."""

    place: Path | None = None  #: the folder or the file that holds them
    workers: int | None = None  #: threads; None for one per processor
    bit_depth: int = 0  #: bits per channel on disk, as far as decoded; 0 if not applicable
    notes: tuple[Finding, ...] = ()  #: what decoding revealed

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """(d, H, W), or (d, H, W, 3) in color."""

    @abstractmethod
    def take(self, chosen: Sequence[int]) -> Frames:
        """Some of the photographs."""

    @abstractmethod
    def develop(self, number: int, target: Float32, rows: slice = slice(None)) -> None:
        """Write these rows of one photograph."""

    def keep_decoded(self) -> None:  # noqa: B027  (most have nothing to do)
        """Announce that they will be read more than once, so that decoding need not be repeated."""

    def frames(self, control: Control = SILENT) -> Iterator[Float32]:
        """Every photograph, (H, W) or (H, W, 3), in the order of the lights; the next ones are decoded ahead."""
        for frame in self.frames_or_errors(control):
            if isinstance(frame, CaptureError):
                raise frame
            yield frame

    def frames_or_errors(self, control: Control = SILENT) -> Iterator[Float32 | CaptureError]:
        """Every photograph in turn, or the error if it cannot be read."""

        def read(number: int) -> Float32 | CaptureError:
            target = np.empty(self.shape[1:], dtype=np.float32)
            try:
                self.develop(number, target)
            except CaptureError as error:
                return error
            return target

        yield from in_turn(read, self.shape[0], self.workers or processors(), control)

    def rows(self, first: int, last: int, which: slice = slice(None)) -> Float32:
        """These rows of all photographs, or of some: (d, last − first, W) or (d, last − first, W, 3)."""
        chosen = range(self.shape[0])[which]
        images = np.empty((len(chosen), last - first, *self.shape[2:]), dtype=np.float32)
        self._develop_all(images, slice(first, last), chosen)
        return images

    def all(self, control: Control = SILENT) -> Float32:
        """The whole stack."""
        count, height, width = self.shape[:3]
        require_memory(
            4 * math.prod(self.shape),
            f"The {count} photographs of {width} × {height} pixels in {self.place}",
            "Scale them down, crop them, or use fewer.",
        )
        images = np.empty(self.shape, dtype=np.float32)
        control.stage("photographs", count)
        self._develop_all(images, slice(None), range(count), control)
        return images

    def _develop_all(
        self, images: Float32, rows: slice, chosen: Sequence[int], control: Control = SILENT
    ) -> None:
        def read(place: int) -> None:
            self.develop(chosen[place], images[place], rows)

        # In the order of the files, so that the error names the first bad one.
        for _ in in_turn(
            read, len(images), self.workers or processors(), control, ahead=len(images)
        ):
            control.advance()


class FramesInMemory(Frames):
    """A stack that is in memory already: parts of it are views."""

    def __init__(self, images: Float32) -> None:
        self._images = images.view()
        self._images.flags.writeable = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self._images.shape

    def take(self, chosen: Sequence[int]) -> FramesInMemory:
        return FramesInMemory(self._images[chosen])

    def develop(self, number: int, target: Float32, rows: slice = slice(None)) -> None:
        target[:] = self._images[number, rows]

    def frames(self, control: Control = SILENT) -> Iterator[Float32]:
        yield from self._images

    def rows(self, first: int, last: int, which: slice = slice(None)) -> Float32:
        return self._images[which, first:last]

    def all(self, control: Control = SILENT) -> Float32:
        return self._images


def digest_of(
    shape: tuple[int, ...], photographs: Iterable[bytes], lights: FloatArray, mask: BoolArray
) -> str:
    """The digest of a capture, from the :func:`hash_of` of each of its photographs."""
    state = hashlib.blake2b(digest_size=8)
    state.update(repr((shape, np.dtype(np.float32).str)).encode())
    for array in (lights, mask):
        state.update(repr((array.shape, array.dtype.str)).encode())
    for part in (*photographs, hash_of(lights), hash_of(mask)):
        state.update(part)
    return state.hexdigest()


def hash_of(array: NDArray[Any]) -> bytes:
    """SHA-256 of the content of an array."""
    # Current processors have instructions for SHA-256, which make it twice as fast as BLAKE2.
    return hashlib.sha256(np.ascontiguousarray(array).data).digest()
