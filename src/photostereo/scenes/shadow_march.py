"""The compiled march of :mod:`photostereo.scenes.shadows`; imported only when a shadow is cast."""

from __future__ import annotations

import math

from photostereo.core.conventions import BoolArray
from photostereo.runtime.loops import njit
from photostereo.scenes.jets import Array

#: Side of the blocks whose maxima let a ray jump.
BLOCK = 8


@njit(cache=True)  # type: ignore[untyped-decorator]
def march(
    heights: Array,
    inside: BoolArray,
    ceilings: Array,
    top: float,
    sign: int,
    drift: float,
    rise: float,
    bias: float,
    shadow: BoolArray,
) -> None:
    """Fill ``shadow``; rays run along rows (``sign`` ±1), ``drift`` columns and ``rise`` heights a row.

    A sample is skipped only if its block's maximum lies below the ray where the ray enters: it rises from
    there on.
    """
    rows, columns = inside.shape
    for i in range(rows):
        for j in range(columns):
            if not inside[i, j]:
                continue
            height = heights[i, j]
            k = 1
            while True:
                row = i + sign * k
                if row < 0 or row >= rows:
                    break
                position = j + drift * k
                left = math.floor(position)
                if left < 0 or left >= columns:
                    break
                ray = height + k * rise + bias
                if ray >= top:
                    break
                block_row, block_column = row // BLOCK, left // BLOCK
                if ray >= ceilings[block_row, block_column]:
                    steps = (block_row + 1) * BLOCK - row if sign > 0 else row - block_row * BLOCK + 1
                    if drift > 0.0:
                        steps = min(steps, int(((block_column + 1) * BLOCK - position) / drift))
                    elif drift < 0.0:
                        steps = min(steps, int((block_column * BLOCK - position) / drift))
                    k += max(steps, 1)
                    continue
                near = heights[row, left]
                if near + (position - left) * (heights[row, left + 1] - near) > ray:
                    shadow[i, j] = True
                    break
                k += 1
