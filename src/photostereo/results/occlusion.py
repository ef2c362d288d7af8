"""Ambient occlusion: how much of an evenly bright sky reaches a point of a relief.

In each direction φ in the plane, the sky is visible above the horizon h(φ): the steepest line of
sight to the relief within a radius, never below the tangent plane. With the normal n and its
component n_φ along φ, the light is

    A = 1/π ∫ dφ ∫_h^{π/2} (n_φ cos e + n_z sin e) cos e de
      = 1/π ∫ dφ [ n_φ ((π/2 − h)/2 − sin 2h / 4) + n_z cos² h / 2 ],

1 for a plane of any tilt.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import Float64
from photostereo.runtime.loops import njit, prange

#: Number of directions of the horizon search.
DIRECTIONS = 16
#: Reach of the search, as a share of the smaller side.
REACH = 0.125


def ambient_occlusion(height: Float64, normals: Float64, *, wrap: bool = False) -> Float64:
    """Return the ambient occlusion (H, W) of a relief: 1 is open, 0 occluded.

    Parameters
    ----------
    height : (H, W) array
        Heights in pixels.
    normals : (H, W, 3) array
        Unit vectors.
    wrap : bool
        The relief is periodic.
    """
    reach = max(4, int(REACH * min(height.shape)))
    steps = np.geomspace(1.0, reach, 4 + 4 * int(math.log2(reach)))
    distances = np.unique(np.rint(steps).astype(np.int64))
    relief = np.ascontiguousarray(height, dtype=np.float64)
    n = np.ascontiguousarray(normals, dtype=np.float64)
    return np.asarray(_occlusion(relief, n, distances, DIRECTIONS, wrap))


@njit(cache=True, parallel=True)  # type: ignore[untyped-decorator]
def _occlusion(
    height: Float64, normals: Float64, distances: NDArray[np.int64], directions: int, wrap: bool
) -> Float64:
    rows, cols = height.shape
    result = np.empty((rows, cols))
    for i in prange(rows):
        for j in range(cols):
            total = 0.0
            n_z = max(normals[i, j, 2], 0.05)
            for k in range(directions):
                turn = 2.0 * math.pi * (k + 0.5) / directions
                x = math.cos(turn)
                y = math.sin(turn)
                along = normals[i, j, 0] * x + normals[i, j, 1] * y
                steepest = -along / n_z  # the tangent plane
                for d in distances:
                    col = round(j + x * d)
                    row = round(i - y * d)
                    if wrap:
                        row = row % rows
                        col = col % cols
                    elif row < 0 or row >= rows or col < 0 or col >= cols:
                        break
                    steepest = max(steepest, (height[row, col] - height[i, j]) / d)
                h = math.atan(steepest)
                total += along * (0.5 * (0.5 * math.pi - h) - 0.25 * math.sin(2.0 * h))
                total += 0.5 * n_z * math.cos(h) ** 2
            result[i, j] = min(1.0, max(0.0, 2.0 * total / directions))
    return result
