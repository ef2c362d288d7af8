"""Compiled loops of :mod:`photostereo.surface.lattice` and :mod:`photostereo.surface.multigrid`.

Each row writes only its own results, so a result does not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

from photostereo.runtime.loops import njit, prange
from photostereo.surface.arrays import Float32, Float64


@njit(cache=True, parallel=True)  # type: ignore[untyped-decorator]
def apply_laplacian(right: Float32, down: Float32, pull: Float32, values: Float64, out: Float64) -> Any:
    """Compute ``out = A values``. An empty ``pull`` means none."""
    height, width = values.shape
    for row in prange(height):
        for col in range(width):
            own = values[row, col]
            total = pull[row, col] * own if pull.size > 0 else 0.0
            if col > 0:
                total += right[row, col - 1] * (own - values[row, col - 1])
            if col < width - 1:
                total += right[row, col] * (own - values[row, col + 1])
            if row > 0:
                total += down[row - 1, col] * (own - values[row - 1, col])
            if row < height - 1:
                total += down[row, col] * (own - values[row + 1, col])
            out[row, col] = total


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def plus_neighbors(
    total: float, right: Float32, down: Float32, values: Float32, row: int, col: int, halvings: int = 0
) -> float:
    """Return ``total`` plus the weighted values of a pixel's neighbors; ``values`` may have half the resolution."""
    if col > 0:
        total += right[row, col - 1] * values[row >> halvings, (col - 1) >> halvings]
    if col < right.shape[1] - 1:
        total += right[row, col] * values[row >> halvings, (col + 1) >> halvings]
    if row > 0:
        total += down[row - 1, col] * values[(row - 1) >> halvings, col >> halvings]
    if row < right.shape[0] - 1:
        total += down[row, col] * values[(row + 1) >> halvings, col >> halvings]
    return total


@njit(cache=True, parallel=True, fastmath={"contract"})  # type: ignore[untyped-decorator]
def relax(right: Float32, down: Float32, inverse: Float32, side: Float32, values: Float32, color: int) -> Any:
    """Run one Gauss–Seidel sweep over the pixels of one chessboard color."""
    height, width = values.shape
    for row in prange(height):
        for col in range((row + color) % 2, width, 2):
            scale = inverse[row, col]
            if scale > 0:
                values[row, col] = scale * plus_neighbors(side[row, col], right, down, values, row, col)


@njit(cache=True, parallel=True, fastmath={"contract"})  # type: ignore[untyped-decorator]
def jacobi_change(
    right: Float32, down: Float32, inverse: Float32, side: Float32, values: Float32, out: Float32
) -> Any:
    """Compute ``out = D⁻¹ (side − A values)``."""
    height, width = values.shape
    for row in prange(height):
        for col in range(width):
            scale = inverse[row, col]
            change = scale * plus_neighbors(side[row, col], right, down, values, row, col) - values[row, col]
            out[row, col] = change if scale > 0 else 0.0


@njit(cache=True, parallel=True, fastmath={"contract"})  # type: ignore[untyped-decorator]
def restrict(right: Float32, down: Float32, change: Float32, out: Float32) -> Any:
    """Compute ``out = Pᵀ r`` at half the resolution, from ``change = D⁻¹ r``."""
    height, width = change.shape
    for block_row in prange(out.shape[0]):
        for block_col in range(out.shape[1]):
            total = 0.0
            for row in range(2 * block_row, min(2 * block_row + 2, height)):
                for col in range(2 * block_col, min(2 * block_col + 2, width)):
                    total = plus_neighbors(total, right, down, change, row, col)
            out[block_row, block_col] = total


@njit(cache=True, parallel=True, fastmath={"contract"})  # type: ignore[untyped-decorator]
def prolong(right: Float32, down: Float32, inverse: Float32, coarse: Float32, values: Float32) -> Any:
    """Compute ``values += P coarse``."""
    height, width = values.shape
    for row in prange(height):
        for col in range(width):
            values[row, col] += inverse[row, col] * plus_neighbors(0.0, right, down, coarse, row, col, 1)
