"""Compiled loop of :mod:`photostereo.surface.softmin`: shares and energies in one sweep over the picture.

Pixels outside the mask have confidence zero. Each row writes only its own results.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from photostereo.runtime.loops import njit, prange
from photostereo.surface.arrays import Float32, Float64


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def _choose(plus: float, minus: float, sharpness: float) -> tuple[float, float]:
    """Return the forward share and the energy of two squared residuals; a negative value means a missing one."""
    if plus < 0.0 or minus < 0.0:
        return 0.5, 0.5 * max(plus, minus, 0.0)
    gap = minus - plus
    decay = np.exp(-sharpness * abs(gap))
    larger = 1.0 / (1.0 + decay)
    share = larger if gap >= 0.0 else decay * larger
    return share, min(plus, minus) + np.log(2.0 * larger) / sharpness


@njit(cache=True, parallel=True)  # type: ignore[untyped-decorator]
def soft_sweep(
    facing: Float64,
    tilt_col: Float64,
    tilt_row: Float64,
    confidence: Float32,
    values: Float64,
    sharpness: float,
    floor: float,
    share_col: Float32,
    share_row: Float32,
    energy: Float32,
    by_row: Float64,
) -> Any:
    """Compute the forward shares and the energy of every pixel, and the energy of every row.

    Shares and energies are skipped if their arrays are empty.
    """
    height, width = confidence.shape
    for row in prange(height):
        total = 0.0
        for col in range(width):
            if confidence[row, col] > 0:
                own, steep = values[row, col], facing[row, col]
                right = left = up = down = -1.0
                if col + 1 < width and confidence[row, col + 1] > 0:
                    right = (steep * (values[row, col + 1] - own) - tilt_col[row, col]) ** 2
                if col > 0 and confidence[row, col - 1] > 0:
                    left = (steep * (own - values[row, col - 1]) - tilt_col[row, col]) ** 2
                if row + 1 < height and confidence[row + 1, col] > 0:
                    down = (steep * (values[row + 1, col] - own) - tilt_row[row, col]) ** 2
                if row > 0 and confidence[row - 1, col] > 0:
                    up = (steep * (own - values[row - 1, col]) - tilt_row[row, col]) ** 2
                along_col, first = _choose(right, left, sharpness)
                along_row, second = _choose(down, up, sharpness)
                cost = confidence[row, col] * (first + second)
                total += cost
                if share_col.size > 0:
                    share_col[row, col] = min(max(along_col, floor), 1.0 - floor)
                    share_row[row, col] = min(max(along_row, floor), 1.0 - floor)
                if energy.size > 0:
                    energy[row, col] = cost
        by_row[row] = total
