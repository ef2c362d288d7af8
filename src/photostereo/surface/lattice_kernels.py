"""The compiled twins of :mod:`photostereo.surface.lattice_readable`: one loop over the rows each, in threads.

Rows write only their own results and sums over the picture are made of one number a row, so a result does not
depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.runtime.loops import njit, prange

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]


@njit(cache=True, parallel=True)  # type: ignore[untyped-decorator]
def apply_laplacian(
    right: Float64, down: Float64, pull: Float64, values: Float64, out: Float64, products: Float64
) -> Any:
    """``out = A values``; ``products`` receives ``Σ values · out`` of every row. An empty ``pull`` pulls nothing."""
    height, width = values.shape
    pulled = pull.size > 0
    for row in prange(height):
        product = 0.0
        for col in range(width):
            here = values[row, col]
            total = pull[row, col] * here if pulled else 0.0
            if col > 0:
                total += right[row, col - 1] * (here - values[row, col - 1])
            if col < width - 1:
                total += right[row, col] * (here - values[row, col + 1])
            if row > 0:
                total += down[row - 1, col] * (here - values[row - 1, col])
            if row < height - 1:
                total += down[row, col] * (here - values[row + 1, col])
            out[row, col] = total
            product += here * total
        products[row] = product


@njit(cache=True, parallel=True)  # type: ignore[untyped-decorator]
def take_step(
    values: Float64, residual: Float64, direction: Float64, image: Float64, step: float, squares: Float64
) -> Any:
    """``values += step · direction``, ``residual −= step · image``; the squares of the new residual by row."""
    height, width = values.shape
    for row in prange(height):
        square = 0.0
        for col in range(width):
            values[row, col] += step * direction[row, col]
            left = residual[row, col] - step * image[row, col]
            residual[row, col] = left
            square += left * left
        squares[row] = square


@njit(cache=True, parallel=True)  # type: ignore[untyped-decorator]
def turn_direction(direction: Float64, share: float, smooth: Float32) -> Any:
    """``direction = share · direction + smooth``."""
    height, width = direction.shape
    for row in prange(height):
        for col in range(width):
            direction[row, col] = share * direction[row, col] + smooth[row, col]


@njit(cache=True, parallel=True)  # type: ignore[untyped-decorator]
def inner_product(first: Float64, second: Float32, products: Float64) -> Any:
    """``Σ first · second`` of every row."""
    height, width = first.shape
    for row in prange(height):
        product = 0.0
        for col in range(width):
            product += first[row, col] * second[row, col]
        products[row] = product


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def plus_neighbors(total: float, right: Float64, down: Float64, values: Float32, row: int, col: int) -> float:
    """``total`` plus the weighted values of a pixel's neighbors."""
    if col > 0:
        total += right[row, col - 1] * values[row, col - 1]
    if col < values.shape[1] - 1:
        total += right[row, col] * values[row, col + 1]
    if row > 0:
        total += down[row - 1, col] * values[row - 1, col]
    if row < values.shape[0] - 1:
        total += down[row, col] * values[row + 1, col]
    return total


@njit(cache=True, parallel=True, fastmath={"contract"})  # type: ignore[untyped-decorator]
def relax(right: Float64, down: Float64, inverse: Float32, side: Float32, values: Float32, color: int) -> Any:
    """One Gauss–Seidel sweep over the pixels of one color of a chessboard."""
    height, width = values.shape
    for row in prange(height):
        for col in range((row + color) % 2, width, 2):
            scale = inverse[row, col]
            if scale == 0:
                continue
            total = plus_neighbors(side[row, col], right, down, values, row, col)
            values[row, col] = scale * total


@njit(cache=True, parallel=True, fastmath={"contract"})  # type: ignore[untyped-decorator]
def jacobi_change(
    right: Float64, down: Float64, inverse: Float32, side: Float32, values: Float32, out: Float32
) -> Any:
    """``out = D⁻¹ (side − A values)``, D the diagonal of A."""
    height, width = values.shape
    for row in prange(height):
        for col in range(width):
            scale = inverse[row, col]
            if scale == 0:
                out[row, col] = 0
                continue
            total = plus_neighbors(side[row, col], right, down, values, row, col)
            out[row, col] = scale * total - values[row, col]


@njit(cache=True, parallel=True, fastmath={"contract"})  # type: ignore[untyped-decorator]
def restrict(right: Float64, down: Float64, change: Float32, out: Float32) -> Any:
    """``out = Pᵀ r`` at half the resolution, from ``change = D⁻¹ r``."""
    height, width = change.shape
    for block_row in prange(out.shape[0]):
        for block_col in range(out.shape[1]):
            total = 0.0
            for row in range(2 * block_row, min(2 * block_row + 2, height)):
                for col in range(2 * block_col, min(2 * block_col + 2, width)):
                    total = plus_neighbors(total, right, down, change, row, col)
            out[block_row, block_col] = total


@njit(cache=True, parallel=True, fastmath={"contract"})  # type: ignore[untyped-decorator]
def prolong(right: Float64, down: Float64, inverse: Float32, coarse: Float32, values: Float32) -> Any:
    """``values += P coarse``."""
    height, width = values.shape
    for row in prange(height):
        for col in range(width):
            scale = inverse[row, col]
            if scale == 0:
                continue
            total = 0.0
            if col > 0:
                total += right[row, col - 1] * coarse[row // 2, (col - 1) // 2]
            if col < width - 1:
                total += right[row, col] * coarse[row // 2, (col + 1) // 2]
            if row > 0:
                total += down[row - 1, col] * coarse[(row - 1) // 2, col // 2]
            if row < height - 1:
                total += down[row, col] * coarse[(row + 1) // 2, col // 2]
            values[row, col] += scale * total
