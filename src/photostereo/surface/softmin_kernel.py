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
