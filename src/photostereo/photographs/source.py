"""Where the photographs of a capture are: in memory, or anywhere that gives them one by one and in bands of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, FloatArray

Float32 = NDArray[np.float32]


#: No intensity is larger: squares and sums of what is below it stay within 32 bits of floating point.
LARGEST_INTENSITY = 1e15


def bad_values(image: NDArray[Any]) -> int:
    """The number of values that cannot be intensities: NaN, infinite or beyond any measure."""
    if image.size == 0 or max(float(image.max()), -float(image.min())) <= LARGEST_INTENSITY:  # NaN is not
        return 0
    return int((~(np.abs(image) <= LARGEST_INTENSITY)).sum())


@runtime_checkable
class Photographs(Protocol):
    """A source of photographs that need not be in memory."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(d, H, W), or (d, H, W, 3) in color."""

    def take(self, chosen: Sequence[int]) -> Photographs:
        """Some of the photographs."""

    def frames(self, control: Control = SILENT) -> Iterator[Float32]:
        """Every photograph, (H, W) or (H, W, 3), in the order of the lights."""

    def rows(self, first: int, last: int, which: slice = slice(None)) -> Float32:
        """These rows of all photographs, or of some: (d, last − first, W) or (d, last − first, W, 3)."""

    def all(self) -> Float32:
        """The whole stack."""

    def keep_decoded(self) -> None:
        """Promise that they are asked for more than once: decoding is not to be repeated."""


class PhotographsInMemory:
    """A stack that is in memory already."""

    def __init__(self, images: Float32) -> None:
        self._images = images.view()
        self._images.flags.writeable = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self._images.shape

    def take(self, chosen: Sequence[int]) -> PhotographsInMemory:
        return PhotographsInMemory(self._images[chosen])

    def frames(self, control: Control = SILENT) -> Iterator[Float32]:
        yield from self._images

    def rows(self, first: int, last: int, which: slice = slice(None)) -> Float32:
        return self._images[which, first:last]

    def all(self) -> Float32:
        return self._images

    def keep_decoded(self) -> None:
        """They are in memory."""


def digest_of(
    shape: tuple[int, ...], photographs: Iterable[bytes], lights: FloatArray, mask: BoolArray
) -> str:
    """The digest of a capture, from the :func:`hash_of` each of its photographs."""
    state = hashlib.blake2b(digest_size=8)
    state.update(repr((shape, np.dtype(np.float32).str)).encode())
    for array in (lights, mask):
        state.update(repr((array.shape, array.dtype.str)).encode())
    for part in (*photographs, hash_of(lights), hash_of(mask)):
        state.update(part)
    return state.hexdigest()


def hash_of(array: NDArray[Any]) -> bytes:
    """Of the content of an array."""
    # SHA-256 has instructions of its own on today's processors: twice as fast as BLAKE2 there.
    return hashlib.sha256(np.ascontiguousarray(array).data).digest()
