"""Input of the network: the object's bounding square in every photograph, shrunk to a small picture, in the
symmetries of the square.

Photographs are processed one by one, so that no stack in full resolution is ever in memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import cv2
import numpy as np

from photostereo.core.conventions import BoolArray, Float32, FloatArray
from photostereo.core.errors import EMPTY_MASK, CaptureError

#: Pixels along a side of the network's square input pictures.
SIDE = 96
#: Side of the square over the longer side of the mask; the training scenes have 1.05 to 1.17.
MARGIN = 1.11
#: Large photographs are subsampled first, to this number of pixels along each side of a small pixel: with three, a
#: small pixel is the average of nine, and its noise is far below that of the training data.
SAMPLES = 3
#: A small pixel belongs to the object if at least this share of it does.
LEAST_COVER = 0.5
#: Minimum number of small pixels needed to estimate lights.
LEAST_PIXELS = 60


@dataclass(frozen=True, eq=False)
class Thumbnails:
    """Small pictures of the object."""

    images: Float32  #: (d, SIDE, SIDE, 3) linear intensities, zero outside the mask
    mask: BoolArray  #: (SIDE, SIDE)


class Crop:
    """The square around an object, to which photographs are cropped and shrunk to ``side`` pixels."""

    def __init__(self, mask: BoolArray, side: int) -> None:
        rows = np.flatnonzero(mask.any(axis=1))
        columns = np.flatnonzero(mask.any(axis=0))
        if not len(rows):
            raise CaptureError(
                f"The mask of the object {EMPTY_MASK}", code="empty-mask", name="the object"
            )
        longer = max(rows[-1] + 1 - rows[0], columns[-1] + 1 - columns[0])
        whole = int(np.ceil(longer * MARGIN))
        step = max(1, whole // (SAMPLES * side))
        # Position of the object's box in the square, in subsampled pixels.
        self._box = (slice(rows[0], rows[-1] + 1, step), slice(columns[0], columns[-1] + 1, step))
        self._weight = mask[self._box].astype(np.float32)
        self._square = -(-whole // step)
        self._side = side
        share = self._shrunk(self._weight)
        self.mask = np.asarray(share >= LEAST_COVER)
        self._scale = np.where(self.mask, 1 / np.maximum(share, LEAST_COVER), 0).astype(np.float32)[
            ..., None
        ]

    def _shrunk(self, values: FloatArray) -> Float32:
        canvas = np.zeros((self._square, self._square, *values.shape[2:]), dtype=np.float32)
        top, left = ((self._square - length) // 2 for length in values.shape[:2])
        canvas[top : top + values.shape[0], left : left + values.shape[1]] = values
        size = (self._side, self._side)
        return np.asarray(cv2.resize(canvas, size, interpolation=cv2.INTER_AREA), dtype=np.float32)

    def shrink(self, photograph: FloatArray) -> Float32:
        """Shrink a photograph (H, W) or (H, W, 3) to (side, side, 3), zero outside the mask."""
        part = photograph[self._box]
        color = part if part.ndim == 3 else part[..., None]
        small = self._shrunk(np.where(self._weight[..., None] > 0, np.nan_to_num(color), 0))
        small = small[..., None] if small.ndim == 2 else small
        return np.broadcast_to(np.maximum(small, 0) * self._scale, (self._side, self._side, 3))


def crop_photographs(photographs: Iterable[FloatArray], mask: BoolArray) -> Thumbnails:
    """Shrink photographs (H, W) or (H, W, 3), linear and not divided by strengths, to the network's input."""
    crop = Crop(mask, SIDE)
    if np.count_nonzero(crop.mask) < LEAST_PIXELS:
        raise CaptureError(
            f"The mask is too thin: almost no pixels remain after reduction to {SIDE} × "
            f"{SIDE} pixels. Give a mask that covers the object.",
            code="thin-mask",
            side=SIDE,
        )
    return Thumbnails(np.stack([crop.shrink(photograph) for photograph in photographs]), crop.mask)


@dataclass(frozen=True)
class Symmetry:
    """Optional left-right mirroring, then counterclockwise turns by right angles."""

    turns: int
    mirrored: bool

    @property
    def matrix(self) -> Float32:
        turn = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]], dtype=np.float32)
        mirror = np.diag([-1 if self.mirrored else 1, 1, 1]).astype(np.float32)
        return np.asarray(np.linalg.matrix_power(turn, self.turns) @ mirror, dtype=np.float32)

    @property
    def inverse(self) -> Symmetry:
        """The symmetry that undoes this one: a mirrored one undoes itself."""
        if self.mirrored:
            return self
        return Symmetry(-self.turns % 4, mirrored=False)

    def of_vectors(self, vectors: Float32) -> Float32:
        """Apply to vectors (..., 3)."""
        return vectors @ self.matrix.T

    def of_pictures(self, pictures: Float32) -> Float32:
        """Apply to pictures (d, h, w) or (d, h, w, channels), row 0 at the top."""
        flipped = pictures[:, :, ::-1] if self.mirrored else pictures
        return np.ascontiguousarray(np.rot90(flipped, self.turns, (1, 2)))


#: All eight symmetries; the first four are turns, the first two keep rows as rows.
SYMMETRIES = tuple(
    Symmetry(turns, mirrored) for mirrored in (False, True) for turns in (0, 2, 1, 3)
)
