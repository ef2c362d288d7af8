"""3 × 3 algebra shared by the models: symmetric systems, one per pixel, given by their six entries.

Only arithmetic operators are used, so both NumPy arrays and torch tensors of any shape work; the steps that a descent
repeats are one launch each on a GPU (``pixelwise.cu``), and compiled loops elsewhere (``algebra_kernels``).
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.runtime.arrays import Array, is_tensor, namespace, to_numpy
from photostereo.runtime.cuda_kernels import are_doubles, launch_per_pixel


def difference(new: Array, old: Array) -> Array:
    """Return ``new - old``, by several threads: most of the time goes into memory for the result."""
    if not _for_loops(new, old):
        return new - old
    from photostereo.runtime.algebra_kernels import subtract_each

    out = np.empty_like(new)
    subtract_each(new, old, out)
    return out


def mean_symmetric_3x3(entries: Array) -> NDArray[Any]:
    """Return the 3 × 3 mean, a NumPy array, of N symmetric matrices given as (N, 6): xx, xy, xz, yy, yz, zz."""
    xx, xy, xz, yy, yz, zz = to_numpy(entries.mean(0))
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def symmetric_entries(matrix: Array) -> Array:
    """Return the six entries xx, xy, xz, yy, yz, zz of symmetric matrices (..., 3, 3)."""
    return matrix[..., [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]


def solve_symmetric_3x3(
    xx: Array, xy: Array, xz: Array, yy: Array, yz: Array, zz: Array, right: tuple[Array, Array, Array]
) -> tuple[Array, Array, Array]:
    """Solve one symmetric positive definite 3 × 3 system per pixel by an LDLᵀ factorization."""
    b0, b1, b2 = right
    l10, l20 = xy / xx, xz / xx
    d1 = yy - l10 * xy
    e21 = yz - l20 * xy
    l21 = e21 / d1
    d2 = zz - l20 * xz - l21 * e21
    z1 = b1 - l10 * b0
    z2 = b2 - l20 * b0 - l21 * z1
    x2 = z2 / d2
    x1 = z1 / d1 - l21 * x2
    x0 = b0 / xx - l10 * x1 - l20 * x2
    return x0, x1, x2


def inverse_symmetric_3x3(entries: Array, ridge: float = 0.0) -> tuple[Array, ...]:
    """Return the six entries of (A + ridge I)⁻¹ per pixel, by cofactors: entries (..., 6) xx, xy, xz, yy, yz, zz."""
    xx, yy, zz = (entries[..., k] + ridge for k in (0, 3, 5))
    xy, xz, yz = (entries[..., k] for k in (1, 2, 4))
    cxx, cxy, cxz = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
    scale = 1.0 / (xx * cxx + xy * cxy + xz * cxz)
    cyy, cyz, czz = xx * zz - xz * xz, xy * xz - xx * yz, xx * yy - xy * xy
    return tuple(scale * part for part in (cxx, cxy, cxz, cyy, cyz, czz))


def solve_shifted_3x3(entries: Array, weight: Array, right: Array) -> Array:
    """Solve ``(H + w I) n = b``, one system per pixel: entries (..., 6) xx, xy, xz, yy, yz, zz; w (...); b (..., 3)."""
    if are_doubles(right, entries, weight):
        counts = prod(entries.shape[:-1]), prod(weight.shape)
        return launch_per_pixel("solve_shifted", right, (entries, weight, right), right.shape, *counts)
    if _for_loops(right, entries, weight):
        from photostereo.runtime.algebra_kernels import solve_each

        out = np.empty_like(right)
        solve_each(entries, weight, right, out)
        return out
    xx, xy, xz, yy, yz, zz = (entries[..., k] for k in range(6))
    parts = (right[..., 0], right[..., 1], right[..., 2])
    solution = solve_symmetric_3x3(xx + weight, xy, xz, yy + weight, yz, zz + weight, parts)
    return namespace(right).stack(solution, -1)


def quadratic_form(entries: Array, n: Array) -> Array:
    """Return nᵀH n of each pixel: entries (..., 6), n (..., 3)."""
    if are_doubles(n, entries):
        return launch_per_pixel("quadratic_form", n, (entries, n), n.shape[:-1], prod(entries.shape[:-1]))
    x, y, z = n[..., 0], n[..., 1], n[..., 2]
    square = entries[..., 0] * x * x + entries[..., 3] * y * y + entries[..., 5] * z * z
    return square + 2.0 * (entries[..., 1] * x * y + entries[..., 2] * x * z + entries[..., 4] * y * z)


def quadratic_cost(entries: Array, linear: Array, constant: Array, n: Array) -> Array:
    """Return nᵀH n − 2 hᵀn + κ of each pixel: entries (..., 6), linear (..., 3), constant (...), n (..., 3).

    >>> import numpy as np
    >>> quadratic_cost(np.array([[1.0, 0.5, 0, 3, 0, 4]]), np.ones((1, 3)), np.ones(1), np.ones((1, 3)))
    array([4.])
    """
    if _for_loops(n, entries, linear, constant):
        from photostereo.runtime.algebra_kernels import cost_each

        costs = np.empty(len(n))
        cost_each(entries, linear, constant, np.ascontiguousarray(n), costs)
        return costs
    return quadratic_form(entries, n) - 2.0 * (linear * n).sum(-1) + constant


def _for_loops(first: Array, *others: Array) -> bool:
    """Return whether these are NumPy arrays of one problem, each with a row for every pixel."""
    if is_tensor(first) or first.ndim != 2:
        return False
    return all(one.shape[:1] == first.shape[:1] and one.dtype == np.float64 for one in (first, *others))
