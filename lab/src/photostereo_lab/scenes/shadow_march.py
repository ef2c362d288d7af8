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
    """Mark the pixels in shadow: those whose ray to the light passes below the surface.

    Parameters
    ----------
    heights : (H, W + 1) array
        Heights in pixels; far below the surface outside the object.
    inside : (H, W) array
        The object.
    sign : int
        Direction of the rays along rows: 1 is downward, −1 upward.
    drift, rise : float
        Columns and height that a ray gains per row.
    bias : float
        Height above the surface at which a ray starts.
    shadow : (H, W) array
        Output; pixels in the light are not written.
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
                # Above the highest point, or outside the frame, nothing can be in the way.
                if not (0 <= row < rows and 0 <= position < columns and ray < top):
                    break
                left = math.floor(position)
                near = heights[row, left]
                if near + (position - left) * (heights[row, left + 1] - near) > ray:
                    shadow[i, j] = True
                    break
