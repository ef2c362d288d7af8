"""What the solver does to a lattice, in array operations: the reference of its compiled kernels.

With the links of a pixel to its neighbors, ``N`` the weighted sum over neighbors and ``D`` the diagonal
(the sum of its links' weights and its pull), the matrix is ``A = D − N``. ``P`` takes a picture of half the
resolution to the full one: every pixel starts with the value of its block of 2 × 2 and takes one Jacobi step
of ``A``, so ``P = D⁻¹ N E`` with ``E`` the enlargement. With equal weights that is ½ of its own block and ¼ of
the next one along each axis: linear interpolation. Across a cut link, and outside the mask, nothing is mixed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def neighbors(right: Array, down: Array, values: Array) -> Array:
    """``N values``: the weighted sum over the four neighbors of each pixel."""
    total = np.zeros(values.shape, dtype=np.result_type(right, values))
    total[:, :-1] += right[:, :-1] * values[:, 1:]
    total[:, 1:] += right[:, :-1] * values[:, :-1]
    total[:-1] += down[:-1] * values[1:]
    total[1:] += down[:-1] * values[:-1]
    return total


def degree(right: Array, down: Array, pull: Array | None) -> Array:
    """``D``: the diagonal of the matrix."""
    total = neighbors(right, down, np.ones_like(right))
    return total if pull is None else total + pull


def apply_laplacian(right: Array, down: Array, pull: Array | None, values: Array) -> Array:
    """``A values``."""
    right, down = right.astype(np.float64), down.astype(np.float64)
    return np.asarray(degree(right, down, pull) * values - neighbors(right, down, values))


def relax(right: Array, down: Array, inverse: Array, side: Array, values: Array, color: int) -> Array:
    """One Gauss–Seidel sweep over the pixels of one color of a chessboard."""
    row, col = np.indices(values.shape)
    chosen = ((row + col) % 2 == color) & (inverse > 0)
    return np.where(chosen, inverse * (side + neighbors(right, down, values)), values)


def jacobi_change(right: Array, down: Array, inverse: Array, side: Array, values: Array) -> Array:
    """``D⁻¹ (side − A values)``."""
    return np.where(inverse > 0, inverse * (side + neighbors(right, down, values)) - values, 0)


def restrict(right: Array, down: Array, change: Array) -> Array:
    """``Pᵀ r = Eᵀ N D⁻¹ r`` from ``change = D⁻¹ r``."""
    return sum_blocks(neighbors(right, down, change))


def prolong(right: Array, down: Array, inverse: Array, coarse: Array) -> Array:
    """``P coarse``."""
    height, width = right.shape
    large = np.repeat(np.repeat(coarse, 2, axis=0), 2, axis=1)[:height, :width]
    return np.asarray(inverse * neighbors(right, down, large))


def even(picture: Array) -> Array:
    """With an even number of rows and columns; zeros are added."""
    height, width = picture.shape
    return np.pad(picture, ((0, height % 2), (0, width % 2))) if height % 2 or width % 2 else picture


def sum_blocks(picture: Array) -> Array:
    """The sums over blocks of 2 × 2 pixels.

    >>> sum_blocks(np.ones((3, 2))).tolist()
    [[4.0], [2.0]]
    """
    p = even(picture)
    return np.asarray(p[::2, ::2] + p[1::2, ::2] + p[::2, 1::2] + p[1::2, 1::2])


def halve_links(right: Array, down: Array) -> tuple[Array, Array]:
    """The links between blocks of 2 × 2: half the sum of the links that cross from one to the other.

    A coarse link is twice as long. Half the sum keeps the energy of a plane, and never less than that of any
    picture that is constant in each block, cut in half: a coarse step may fall short, but not run away.
    """
    across, along = even(right)[:, 1::2], even(down)[1::2]
    return 0.5 * (across[::2] + across[1::2]), 0.5 * (along[:, ::2] + along[:, 1::2])
