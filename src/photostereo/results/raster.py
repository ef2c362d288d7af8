"""Triangles onto a grid of texels: what a graphics card does, for baking."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.runtime.loops import njit

Float64 = NDArray[np.float64]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _fill(points: Float64, faces: NDArray[np.int64], values: Float64, result: Float64) -> Any:
    height, width, depth = result.shape
    for number in range(faces.shape[0]):
        one, two, three = faces[number, 0], faces[number, 1], faces[number, 2]
        ax, ay = points[one, 0], points[one, 1]
        bx, by = points[two, 0] - ax, points[two, 1] - ay
        cx, cy = points[three, 0] - ax, points[three, 1] - ay
        area = bx * cy - by * cx
        if area == 0.0:
            continue
        left = max(0, math.ceil(ax + min(0.0, bx, cx) - 1e-6))
        right = min(width - 1, math.floor(ax + max(0.0, bx, cx) + 1e-6))
        top = max(0, math.ceil(ay + min(0.0, by, cy) - 1e-6))
        bottom = min(height - 1, math.floor(ay + max(0.0, by, cy) + 1e-6))
        for row in range(top, bottom + 1):
            for col in range(left, right + 1):
                b = ((col - ax) * cy - (row - ay) * cx) / area
                c = (bx * (row - ay) - by * (col - ax)) / area
                a = 1.0 - b - c
                if a >= -1e-9 and b >= -1e-9 and c >= -1e-9:
                    for k in range(depth):
                        result[row, col, k] = a * values[one, k] + b * values[two, k] + c * values[three, k]


def interpolate(
    points: Float64,
    faces: NDArray[np.int64],
    values: Float64,
    shape: tuple[int, int],
    dtype: type[np.floating[Any]] = np.float64,
) -> NDArray[Any]:
    """Values (h, w, k) of vertices (V, k), interpolated linearly over triangles in the plane; NaN outside of them.

    ``points`` are (V, 2) in texels, the center of the first texel being (0, 0). Texels on a shared edge belong to
    the triangle that comes last.

    >>> corners = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    >>> interpolate(corners, np.array([[0, 1, 2]]), np.array([[0.0], [1.0], [0.0]]), (3, 3))[..., 0]
    array([[0. , 0.5, 1. ],
           [0. , 0.5, nan],
           [0. , nan, nan]])
    """
    result = np.full((*shape, values.shape[1]), np.nan, dtype=dtype)
    _fill(np.ascontiguousarray(points), np.ascontiguousarray(faces), np.ascontiguousarray(values), result)
    return result
