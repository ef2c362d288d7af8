"""Convert between the pixels of an object and the cells of a square grid of fixed size across it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from photostereo.runtime.arrays import Array, like, to_numpy

#: Cells along a side of the square.
SIDE = 80
#: Ratio of the side of the square to the longer side of the mask; the training scenes have 1.05 to 1.17.
MARGIN = 1.11


@dataclass(frozen=True)
class Square:
    """The square around an object: its center (row, column) and the side of a cell in pixels, at least one."""

    row: float
    column: float
    cell: float

    @classmethod
    def around(cls, mask: NDArray[np.bool_]) -> Square:
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        longer = max(rows[-1] - rows[0], columns[-1] - columns[0]) + 1
        return cls(
            float(rows[0] + rows[-1]) / 2,
            float(columns[0] + columns[-1]) / 2,
            max(1.0, MARGIN * float(longer) / SIDE),
        )

    @property
    def pixels(self) -> NDArray[np.float32]:
        """Number of pixels, of the object or not, in each cell (SIDE, SIDE); it varies if cells are small."""
        reach = int(SIDE * self.cell)

        def along(middle: float) -> NDArray[np.float32]:
            places = np.arange(int(middle) - reach, int(middle) + reach)
            places = np.floor((places - middle) / self.cell + SIDE / 2).astype(np.intp)
            return np.bincount(places[(places >= 0) & (places < SIDE)], minlength=SIDE).astype(np.float32)

        return np.outer(along(self.row), along(self.column))

    def places(
        self, rows: NDArray[np.integer], columns: NDArray[np.integer]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Positions of pixels, in units of a cell from the top left corner of the square.

        >>> mask = np.zeros((300, 400), bool); mask[50:250, 100:300] = True
        >>> down, _ = Square.around(mask).places(*np.nonzero(mask))
        >>> float(down.min() + down.max()), round(float(down.max() - down.min()), 1)
        (80.0, 71.7)
        """
        down = ((rows - self.row) / self.cell + SIDE / 2).astype(np.float32)
        return down, ((columns - self.column) / self.cell + SIDE / 2).astype(np.float32)

    def average(
        self, rows: NDArray[np.integer], columns: NDArray[np.integer], values: Array
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Means (SIDE, SIDE, K) of (N, K) values over the pixels of each cell, and the number of pixels (SIDE, SIDE)."""
        r, c = (np.clip(part.astype(np.intp), 0, SIDE - 1) for part in self.places(rows, columns))
        index = r * SIDE + c
        count = np.bincount(index, minlength=SIDE * SIDE).astype(np.float32)
        if isinstance(values, np.ndarray):
            total = np.stack([np.bincount(index, column, SIDE * SIDE) for column in values.T], -1)
        else:
            zero = values.new_zeros(SIDE * SIDE, values.shape[1])
            total = to_numpy(zero.index_add_(0, like(index, values), values))
        mean = total / np.maximum(count, 1.0)[:, None]
        return mean.astype(np.float32).reshape(SIDE, SIDE, -1), count.reshape(SIDE, SIDE)

    def spread(
        self,
        rows: NDArray[np.integer],
        columns: NDArray[np.integer],
        maps: NDArray[np.float32],
        known: NDArray[np.bool_],
    ) -> NDArray[np.float32]:
        """Interpolate maps (SIDE, SIDE, K) at the pixels (N, K): bilinear between the centers of known cells."""
        weight = known.astype(np.float32)[..., None]
        flat = np.concatenate([maps * weight, weight], -1).reshape(SIDE * SIDE, -1)
        top, left = (np.clip(part - 0.5, 0, SIDE - 1) for part in self.places(rows, columns))
        r, c = (np.minimum(part.astype(np.intp), SIDE - 2) for part in (top, left))
        down, right = (top - r)[:, None], (left - c)[:, None]
        total = np.zeros((len(r), flat.shape[1]), np.float32)
        for dr, row_share in ((0, 1 - down), (1, down)):
            for dc, column_share in ((0, 1 - right), (1, right)):
                total += row_share * column_share * flat[(r + dr) * SIDE + c + dc]
        return np.asarray(total[:, :-1] / np.maximum(total[:, -1:], 1e-3), dtype=np.float32)
