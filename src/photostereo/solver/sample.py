"""Sample a capture for a prior to learn on: square crops, spread evenly over the object.

A dictionary of 192 atoms does not need a million patches. What matters is how many there are and how evenly they
are spread (see ``benchmarks/README.md``): a few thousand give the error of learning on all, to within 1 %.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Rows and columns of a crop; its patches overlap as they do in the picture.
SIDE = 32
#: Number of crops: about 49 patches each, 9,800 in all.
CROPS = 200
#: Pixels of the sample. For a smaller object, the prior learns on all of it.
SAMPLE_PIXELS = CROPS * SIDE**2
#: Minimum share of a crop's pixels on the object, if there are such crops.
SHARE = 0.25
#: The golden ratio: any number of its multiples is spread evenly.
GOLDEN = 0.6180339887498949


@dataclass(frozen=True, eq=False)
class Part:
    """Pixels of a capture as a separate picture: crops stacked vertically, a band of rows, or all of it."""

    mask: NDArray[np.bool_]  #: (rows, columns) of the picture
    index: NDArray[np.int64]  #: (N,) the flat numbers of its mask pixels in the capture
    width: int  #: of the capture
    side: int = 0  #: rows and columns of a crop; 0 if there are none

    @classmethod
    def rows(cls, mask: NDArray[np.bool_], first: int = 0, last: int | None = None) -> Part:
        """Select rows ``first`` to ``last`` of a capture with this mask; all of them by default."""
        inside, width = np.asarray(mask[first:last]), mask.shape[1]
        return cls(inside, np.flatnonzero(inside) + first * width, width)

    @property
    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return rows and columns of the mask pixels in the capture."""
        return np.divmod(self.index, self.width)


def choose_sample(mask: NDArray[np.bool_], *, side: int = SIDE, crops: int = CROPS) -> Part:
    """Choose evenly spread crops on the object; all of them if there are no more than ``crops``."""
    side = min(side, *mask.shape)
    height, width = mask.shape[0] // side, mask.shape[1] // side
    cells = mask[: height * side, : width * side].reshape(height, side, width, side)
    share = cells.mean(axis=(1, 3))
    candidates = np.flatnonzero(share >= SHARE)
    if not candidates.size:
        candidates = np.flatnonzero(share > 0)
    if not candidates.size:  # the object lies in the margin that whole crops do not cover
        rows, cols = np.nonzero(mask)
        row, col = min(rows[0], mask.shape[0] - side), min(cols[0], mask.shape[1] - side)
        return _cut(mask, np.array([[row, col]]), side)
    if candidates.size > crops:
        places = (np.arange(1, crops + 1) * GOLDEN % 1.0 * candidates.size).astype(np.int64)
        candidates = candidates[np.unique(places)]
    return _cut(mask, np.stack(np.divmod(candidates, width), axis=1) * side, side)


def _cut(mask: NDArray[np.bool_], corners: NDArray[np.int64], side: int) -> Part:
    rows = corners[:, 0, None, None] + np.arange(side)[:, None]
    cols = corners[:, 1, None, None] + np.arange(side)
    inside = mask[rows, cols].reshape(-1, side)
    numbers = (rows * mask.shape[1] + cols).reshape(-1, side)
    return Part(inside, numbers[inside], mask.shape[1], side)
