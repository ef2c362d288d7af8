"""Compiled loop of :mod:`photostereo.surface.adaptive`: the errors of all blocks of one size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.runtime.loops import njit


@njit(cache=True)  # type: ignore[untyped-decorator]
def patch_errors(
    depth: NDArray[np.float64], usable: NDArray[np.bool_], side: int, errors: NDArray[np.float32]
) -> Any:
    """Write the errors of the usable blocks of ``side`` pixels."""
    for block_row in range(errors.shape[0]):
        for block_col in range(errors.shape[1]):
            if not usable[block_row, block_col]:
                continue
            top, left = block_row * side, block_col * side
            a, b = depth[top, left], depth[top, left + side]
            c, d = depth[top + side, left], depth[top + side, left + side]
            worst = 0.0
            for row in range(side + 1):
                above = a + (c - a) * row / side
                slope = (b + (d - b) * row / side - above) / side
                for col in range(side + 1):
                    worst = max(worst, abs(depth[top + row, left + col] - above - slope * col))
            errors[block_row, block_col] = worst + 0.25 * abs(a + d - b - c)
