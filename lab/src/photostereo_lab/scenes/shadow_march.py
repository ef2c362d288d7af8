"""The compiled march of :mod:`photostereo_lab.scenes.shadows`.

It is imported only when a shadow is cast.
"""

from __future__ import annotations

import math

from photostereo.core.conventions import BoolArray
from photostereo.runtime.loops import njit
from photostereo_lab.scenes.jets import Array


@njit(cache=True)  # type: ignore[untyped-decorator]
def march(
    heights: Array,
    inside: BoolArray,
    sign: int,
    drift: float,
    rise: float,
    bias: float,
    shadow: BoolArray,
) -> None:
    """Fill ``shadow`` (H, W).

    Rays run along rows (``sign`` ±1), with ``drift`` columns and ``rise`` in height per row, from
    ``bias`` above the surface.
    """
    rows, columns = inside.shape
    top = heights.max()
    for i in range(rows):
        for j in range(columns):
            if not inside[i, j]:
                continue
            for k in range(1, rows):
                row = i + sign * k
                position = j + drift * k
                ray = heights[i, j] + k * rise + bias
                if not (0 <= row < rows and 0 <= position < columns and ray < top):
                    break
                left = math.floor(position)
                near = heights[row, left]
                if near + (position - left) * (heights[row, left + 1] - near) > ray:
                    shadow[i, j] = True
                    break
