"""The compiled twin of :func:`photostereo.surface.softmin.soft_choice_readable`, one axis at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Int32 = NDArray[np.int32]


@njit(cache=True)  # type: ignore[untyped-decorator]
def soft_choice_axis(
    first: Int32,
    second: Int32,
    facing: Float64,
    tilt: Float64,
    confidence: Float64,
    values: Float64,
    sharpness: float,
    floor: float,
    share: Float64,
    energy: Float64,
) -> Any:
    """Write the forward shares of an axis to ``share`` and add the energy of each pixel to ``energy``."""
    plus = np.full(values.size, -1.0)
    minus = np.full(values.size, -1.0)
    for link in range(first.size):
        a, b = first[link], second[link]
        difference = values[b] - values[a]
        plus[a] = (facing[a] * difference - tilt[a]) ** 2
        minus[b] = (facing[b] * difference - tilt[b]) ** 2
    for pixel in range(values.size):
        p, m = plus[pixel], minus[pixel]
        if p < 0.0 or m < 0.0:
            share[pixel] = 0.5
            energy[pixel] += 0.5 * confidence[pixel] * max(p, m, 0.0)
            continue
        gap = m - p
        decay = np.exp(-sharpness * abs(gap))
        larger = 1.0 / (1.0 + decay)
        w = larger if gap >= 0.0 else decay * larger
        share[pixel] = min(max(w, floor), 1.0 - floor)
        energy[pixel] += confidence[pixel] * (min(p, m) + np.log(2.0 * larger) / sharpness)


@njit(cache=True)  # type: ignore[untyped-decorator]
def shared_lattice(
    mask: NDArray[np.bool_],
    facing: Float64,
    tilt_col: Float64,
    tilt_row: Float64,
    confidence: Float64,
    share_col: Float64,
    share_row: Float64,
    right: Float64,
    down: Float64,
    side: Float64,
) -> Any:
    """Weights of the links and the right-hand side as pictures, zero before: ``shared_equations`` and ``place_links``
    at once, without anything in between.

    Pixels are numbered in row-major order, so the one to the right of number i has i + 1, and those of the next row are
    counted beside.
    """
    height, width = mask.shape
    following = 0
    for col in range(width):
        following += mask[0, col]
    i = 0
    for row in range(height):
        j = following
        for col in range(width):
            below = row + 1 < height and mask[row + 1, col]
            if mask[row, col]:
                if col + 1 < width and mask[row, col + 1]:
                    k = i + 1
                    a = share_col[i] * confidence[i] * facing[i] ** 2
                    b = (1.0 - share_col[k]) * confidence[k] * facing[k] ** 2
                    push = a * tilt_col[i] / facing[i] + b * tilt_col[k] / facing[k]
                    right[row, col] = a + b
                    side[row, col + 1] += push
                    side[row, col] -= push
                if below:
                    a = share_row[i] * confidence[i] * facing[i] ** 2
                    b = (1.0 - share_row[j]) * confidence[j] * facing[j] ** 2
                    push = a * tilt_row[i] / facing[i] + b * tilt_row[j] / facing[j]
                    down[row, col] = a + b
                    side[row + 1, col] += push
                    side[row, col] -= push
                i += 1
            if below:
                j += 1
        following = j
