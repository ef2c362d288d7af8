"""A sample of a capture for a prior to learn on: square crops, spread evenly over the object.

A dictionary of 192 atoms does not need a million patches. What decides is how many there are and how well they
are spread (``benchmarks/README.md`` has the figures): a few thousand give the error of learning on all, to 1 %.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Rows and columns of a crop: patches in it overlap as they do in the picture.
SIDE = 32
#: Crops; about 49 patches each, 9,800 in all.
CROPS = 200
#: Pixels of the sample. An object with fewer is learned on as a whole.
SAMPLE_PIXELS = CROPS * SIDE**2
#: At least this share of a crop's pixels lies on the object, if there are such crops.
SHARE = 0.25
#: The golden ratio: its multiples are spread evenly however many are taken.
GOLDEN = 0.6180339887498949


@dataclass(frozen=True, eq=False)
class Sample:
    """Crops of a picture, one below the other, or all of it."""

    mask: NDArray[np.bool_]  #: (crops · side, side) bool
    index: NDArray[np.int64]  #: (N,) the flat numbers, in the whole picture, of the mask pixels
    side: int  #: rows and columns of a crop; 0 for the whole picture

    @classmethod
    def whole(cls, mask: NDArray[np.bool_]) -> Sample:
        """All of a picture."""
        return cls(mask, np.flatnonzero(mask), 0)


def choose_sample(mask: NDArray[np.bool_], *, side: int = SIDE, crops: int = CROPS) -> Sample:
    """Crops on the object, evenly spread; all of them if there are no more than ``crops``.

    >>> sample = choose_sample(np.ones((1000, 800), bool), crops=50)
    >>> sample.mask.shape, len(sample.index)
    ((1600, 32), 51200)
    """
    side = min(side, *mask.shape)
    height, width = mask.shape[0] // side, mask.shape[1] // side
    cells = mask[: height * side, : width * side].reshape(height, side, width, side)
    share = cells.mean(axis=(1, 3))
    candidates = np.flatnonzero(share >= SHARE)
    if not candidates.size:
        candidates = np.flatnonzero(share > 0)
    if not candidates.size:  # an object in the margin that whole crops leave
        rows, cols = np.nonzero(mask)
        row, col = min(rows[0], mask.shape[0] - side), min(cols[0], mask.shape[1] - side)
        return _cut(mask, np.array([[row, col]]), side)
    if candidates.size > crops:
        places = (np.arange(1, crops + 1) * GOLDEN % 1.0 * candidates.size).astype(np.int64)
        candidates = candidates[np.unique(places)]
    return _cut(mask, np.stack(np.divmod(candidates, width), axis=1) * side, side)


def _cut(mask: NDArray[np.bool_], corners: NDArray[np.int64], side: int) -> Sample:
    rows = corners[:, 0, None, None] + np.arange(side)[:, None]
    cols = corners[:, 1, None, None] + np.arange(side)
    inside = mask[rows, cols].reshape(-1, side)
    numbers = (rows * mask.shape[1] + cols).reshape(-1, side)
    return Sample(inside, numbers[inside], side)
