"""Formulas for symmetric 3 × 3 matrices, given by their six entries xx, xy, xz, yy, yz, zz.

Only arithmetic operators are used, so NumPy arrays and torch tensors of any shape work; :mod:`.algebra` compiles
the same functions for one pixel at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.runtime.arrays import Array, to_numpy


def mean_symmetric_3x3(entries: Array) -> NDArray[Any]:
    """Return the 3 × 3 mean, a NumPy array, of N symmetric matrices given as (N, 6): xx, xy, xz, yy, yz, zz."""
    xx, xy, xz, yy, yz, zz = to_numpy(entries.mean(0))
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def symmetric_entries(matrix: Array) -> Array:
    """Return the six entries xx, xy, xz, yy, yz, zz of symmetric matrices (..., 3, 3)."""
    return matrix[..., [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]


def solve_symmetric_3x3(
    xx: Array,
    xy: Array,
    xz: Array,
    yy: Array,
    yz: Array,
    zz: Array,
    b0: Array,
    b1: Array,
    b2: Array,
) -> tuple[Array, Array, Array]:
    """Solve one symmetric positive definite 3 × 3 system per pixel by an LDLᵀ factorization."""
    l10 = xy / xx
    l20 = xz / xx
    d1 = yy - l10 * xy
    e21 = yz - l20 * xy
    l21 = e21 / d1
    z1 = b1 - l10 * b0
    x2 = (b2 - l20 * b0 - l21 * z1) / (zz - l20 * xz - l21 * e21)
    x1 = z1 / d1 - l21 * x2
    return b0 / xx - l10 * x1 - l20 * x2, x1, x2


def inverse_symmetric_3x3(
    xx: Array, xy: Array, xz: Array, yy: Array, yz: Array, zz: Array
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Return the six entries of the inverse per pixel, by cofactors: one division, and no roots."""
    cxx = yy * zz - yz * yz
    cxy = xz * yz - xy * zz
    cxz = xy * yz - xz * yy
    scale = 1.0 / (xx * cxx + xy * cxy + xz * cxz)
    cyy = xx * zz - xz * xz
    cyz = xy * xz - xx * yz
    czz = xx * yy - xy * xy
    return scale * cxx, scale * cxy, scale * cxz, scale * cyy, scale * cyz, scale * czz
