"""Steps that a descent repeats for the symmetric 3 × 3 system of each pixel, given by its six entries.

Each is one launch on a GPU (``pixelwise.cu``), a compiled loop for NumPy arrays, otherwise a formula of :mod:`.symmetric`.
"""

from __future__ import annotations

from math import prod

import numpy as np

from photostereo.runtime.arrays import Array, is_tensor, namespace
from photostereo.runtime.cuda_kernels import are_doubles, launch_per_pixel
from photostereo.runtime.symmetric import quadratic_3x3, solve_symmetric_3x3


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
    parts = (right[..., k] for k in range(3))
    solution = solve_symmetric_3x3(xx + weight, xy, xz, yy + weight, yz, zz + weight, *parts)
    return namespace(right).stack(solution, -1)


def quadratic_form(entries: Array, n: Array) -> Array:
    """Return nᵀH n of each pixel: entries (..., 6), n (..., 3)."""
    if are_doubles(n, entries):
        return launch_per_pixel("quadratic_form", n, (entries, n), n.shape[:-1], prod(entries.shape[:-1]))
    return quadratic_3x3(*(entries[..., k] for k in range(6)), *(n[..., k] for k in range(3)))


def quadratic_cost(entries: Array, linear: Array, constant: Array, n: Array) -> Array:
    """Return nᵀH n − 2 hᵀn + κ of each pixel: entries (..., 6), linear (..., 3), constant (...), n (..., 3)."""
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
