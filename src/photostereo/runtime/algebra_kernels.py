"""Small algebra for the compiled kernels, one pixel at a time; 3 × 3 functions are inlined to avoid calls.

A symmetric matrix is given by its six entries xx, xy, xz, yy, yz, zz, as in :mod:`.symmetric`. The two loops at the end are
called by :mod:`.algebra`.
"""

from __future__ import annotations

import numpy as np

from photostereo.runtime import symmetric
from photostereo.runtime.loops import njit, shared

#: The compiler may re-associate and contract sums, to use vector instructions. Infinities and NaN keep their meaning,
#: and the result is the same on every run on one machine.
SUMS = {"reassoc", "contract", "nsz"}

_inlined = njit(cache=True, inline="always")
solve_3x3 = _inlined(symmetric.solve_symmetric_3x3)
inverse_by_cofactors = _inlined(symmetric.inverse_symmetric_3x3)
quadratic_3x3 = _inlined(symmetric.quadratic_3x3)


@njit(cache=True, fastmath=SUMS)
def dot(a, b):  # type: ignore[no-untyped-def]
    """Return the inner product, in double precision."""
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@_inlined
def inverse_3x3(xx, xy, xz, yy, yz, zz):  # type: ignore[no-untyped-def]
    """Invert a positive definite matrix by its Cholesky factor."""
    g00 = 1.0 / np.sqrt(xx)
    l10 = xy * g00
    l20 = xz * g00
    g11 = 1.0 / np.sqrt(yy - l10 * l10)
    l21 = (yz - l10 * l20) * g11
    g22 = 1.0 / np.sqrt(zz - l20 * l20 - l21 * l21)
    # The inverse of the factor, then its square.
    g10 = -l10 * g00 * g11
    g21 = -l21 * g11 * g22
    g20 = -(l20 * g00 + l21 * g10) * g22
    return (
        g00 * g00 + g10 * g10 + g20 * g20,
        g10 * g11 + g20 * g21,
        g20 * g22,
        g11 * g11 + g21 * g21,
        g21 * g22,
        g22 * g22,
    )


@_inlined
def times_3x3(xx, xy, xz, yy, yz, zz, x, y, z):  # type: ignore[no-untyped-def]
    """Return the matrix times a vector."""
    return xx * x + xy * y + xz * z, xy * x + yy * y + yz * z, xz * x + yz * y + zz * z


@njit(cache=True, fastmath={*SUMS, "nnan"})
def value_range(values):  # type: ignore[no-untyped-def]
    """Return the smallest and largest intensity of a pixel; none may be NaN."""
    low, high = values[0], values[0]
    for value in values:
        low, high = min(low, value), max(high, value)
    return np.float64(low), np.float64(high)


@njit(cache=True)
def invert_if_regular(entries, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` (3 × 3) with the inverse of six entries, by cofactors; return False if they are nearly singular."""
    xx, xy, xz, yy, yz, zz = entries[0], entries[1], entries[2], entries[3], entries[4], entries[5]
    c00 = yy * zz - yz * yz
    c01 = xz * yz - xy * zz
    c02 = xy * yz - xz * yy
    det = xx * c00 + xy * c01 + xz * c02
    trace = xx + yy + zz
    if det <= 1e-9 * trace * trace * trace:
        return False
    out[0, 0] = c00 / det
    out[0, 1] = out[1, 0] = c01 / det
    out[0, 2] = out[2, 0] = c02 / det
    out[1, 1] = (xx * zz - xz * xz) / det
    out[1, 2] = out[2, 1] = (xy * xz - xx * yz) / det
    out[2, 2] = (xx * yy - xy * xy) / det
    return True


@shared(of="right")
def solve_each(first, last, hessian, shift, right, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with the solution of (H + shift I) n = b, one system per pixel."""
    for i in range(first, last):
        xx, yy, zz = hessian[i, 0] + shift[i], hessian[i, 3] + shift[i], hessian[i, 5] + shift[i]
        xy, xz, yz = hessian[i, 1], hessian[i, 2], hessian[i, 4]
        b0, b1, b2 = right[i, 0], right[i, 1], right[i, 2]
        out[i, 0], out[i, 1], out[i, 2] = solve_3x3(xx, xy, xz, yy, yz, zz, b0, b1, b2)


@shared(of="normals")
def cost_each(first, last, hessian, linear, constant, normals, out):  # type: ignore[no-untyped-def]
    """Compute nᵀH n − 2 hᵀn + κ of every pixel; summed outside, so that the sum does not depend on the threads."""
    for i in range(first, last):
        x, y, z = normals[i, 0], normals[i, 1], normals[i, 2]
        H = hessian[i]
        value = quadratic_3x3(H[0], H[1], H[2], H[3], H[4], H[5], x, y, z)
        out[i] = value - 2.0 * (linear[i, 0] * x + linear[i, 1] * y + linear[i, 2] * z) + constant[i]
