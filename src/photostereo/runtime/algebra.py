"""Small algebra of pixels: steps that a descent repeats, and what the compiled kernels need for one pixel at a time.

A symmetric 3 × 3 matrix is given by its six entries xx, xy, xz, yy, yz, zz, as in :mod:`.symmetric`. Each step is one launch
on a GPU (``pixelwise.cu``), a compiled loop for NumPy arrays, otherwise a formula. The 3 × 3 functions for kernels are
inlined to avoid calls.
"""

from __future__ import annotations

from math import prod

import numpy as np

from photostereo.runtime.arrays import Array, is_tensor, namespace
from photostereo.runtime.cuda_kernels import are_doubles, launch_per_pixel
from photostereo.runtime.loops import njit, shared
from photostereo.runtime.symmetric import inverse_symmetric_3x3, solve_symmetric_3x3

#: The compiler may re-associate and contract sums, to use vector instructions. Infinities and NaN keep their meaning,
#: and the result is the same on every run on one machine.
SUMS = {"reassoc", "contract", "nsz"}

#: Maximum number of Newton steps. From the left of the root they never overshoot, and each doubles the digits.
NEWTON_STEPS = 30


def solve_shifted_3x3(entries: Array, weight: Array, right: Array) -> Array:
    """Solve ``(H + w I) n = b``, one system per pixel.

    Parameters
    ----------
    entries : (..., 6) array
        The entries xx, xy, xz, yy, yz, zz of H.
    weight : (...) array
        w
    right : (..., 3) array
        b

    Returns
    -------
    (..., 3) array
        n
    """
    if are_doubles(right, entries, weight):
        counts = prod(entries.shape[:-1]), prod(weight.shape)
        return launch_per_pixel(
            "solve_shifted", right, (entries, weight, right), right.shape, *counts
        )
    if _for_loops(right, entries, weight):
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
        return launch_per_pixel(
            "quadratic_form", n, (entries, n), n.shape[:-1], prod(entries.shape[:-1])
        )
    xx, xy, xz, yy, yz, zz = (entries[..., k] for k in range(6))
    x, y, z = (n[..., k] for k in range(3))
    return xx * x * x + yy * y * y + zz * z * z + 2.0 * (xy * x * y + xz * x * z + yz * y * z)


def quadratic_cost(entries: Array, linear: Array, constant: Array, n: Array) -> Array:
    """Return nᵀH n − 2 hᵀn + κ of each pixel.

    Parameters
    ----------
    entries : (..., 6) array
        The entries xx, xy, xz, yy, yz, zz of H.
    linear : (..., 3) array
        h
    constant : (...) array
        κ
    n : (..., 3) array
        Scaled normals.
    """
    return quadratic_form(entries, n) - 2.0 * (linear * n).sum(-1) + constant


def _for_loops(first: Array, *others: Array) -> bool:
    """Return whether these are NumPy arrays of one problem, each with a row for every pixel."""
    if is_tensor(first) or first.ndim != 2:
        return False
    rows = first.shape[:1]
    return all(array.shape[:1] == rows and array.dtype == np.float64 for array in (first, *others))


_inlined = njit(cache=True, inline="always")
solve_3x3 = _inlined(solve_symmetric_3x3)
inverse_by_cofactors = _inlined(inverse_symmetric_3x3)


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
    low = values[0]
    high = values[0]
    for value in values:
        low = min(low, value)
        high = max(high, value)
    return np.float64(low), np.float64(high)


@njit(cache=True)
def invert_if_regular(entries, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` (3 × 3) with the inverse of six entries, by cofactors; return False if they are nearly singular."""
    xx = entries[0]
    xy = entries[1]
    xz = entries[2]
    yy = entries[3]
    yz = entries[4]
    zz = entries[5]
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
        xx = hessian[i, 0] + shift[i]
        yy = hessian[i, 3] + shift[i]
        zz = hessian[i, 5] + shift[i]
        xy = hessian[i, 1]
        xz = hessian[i, 2]
        yz = hessian[i, 4]
        b0 = right[i, 0]
        b1 = right[i, 1]
        b2 = right[i, 2]
        out[i, 0], out[i, 1], out[i, 2] = solve_3x3(xx, xy, xz, yy, yz, zz, b0, b1, b2)


@shared(of="center")
def step_within(first, last, hessian, linear, center, radius, weight, pull, tolerance, out):  # type: ignore[no-untyped-def]
    """Minimize ``nᵀH n − 2 hᵀn + w |n|² − 2 n·q`` subject to ``|n − m| ≤ radius``, pixel by pixel.

    With s = n − m and A = H + w I, the minimizer is s(ν) = (A + ν I)⁻¹ (h + q − A m), where ν ≥ 0 is the root of
    φ(ν) = 1/|s(ν)| − 1/radius. φ is concave and increasing, so Newton's steps approach the root from the left.
    """
    same = hessian.shape[0] == 1
    isotropic = hessian.shape[1] == 1
    for i in range(first, last):
        k = 0 if same else i
        w = weight[i]
        m0 = center[i, 0]
        m1 = center[i, 1]
        m2 = center[i, 2]
        if isotropic:  # the nearest point of the ball
            a = hessian[k, 0] + w
            s0 = (linear[i, 0] + pull[i, 0]) / a - m0
            s1 = (linear[i, 1] + pull[i, 1]) / a - m1
            s2 = (linear[i, 2] + pull[i, 2]) / a - m2
            length = np.sqrt(s0 * s0 + s1 * s1 + s2 * s2)
            scale = 1.0 if length <= radius[i] else radius[i] / length
            out[i, 0] = m0 + scale * s0
            out[i, 1] = m1 + scale * s1
            out[i, 2] = m2 + scale * s2
            continue
        a00 = hessian[k, 0] + w
        a01 = hessian[k, 1]
        a02 = hessian[k, 2]
        a11 = hessian[k, 3] + w
        a12 = hessian[k, 4]
        a22 = hessian[k, 5] + w
        p0, p1, p2 = times_3x3(a00, a01, a02, a11, a12, a22, m0, m1, m2)
        g0 = linear[i, 0] + pull[i, 0] - p0
        g1 = linear[i, 1] + pull[i, 1] - p1
        g2 = linear[i, 2] + pull[i, 2] - p2
        most = radius[i]
        nu = 0.0
        s0, s1, s2 = solve_3x3(a00, a01, a02, a11, a12, a22, g0, g1, g2)
        length = np.sqrt(s0 * s0 + s1 * s1 + s2 * s2)
        if length > most:
            if most <= 0.0:
                s0 = s1 = s2 = 0.0
            else:
                for _ in range(NEWTON_STEPS):
                    t0, t1, t2 = solve_3x3(a00 + nu, a01, a02, a11 + nu, a12, a22 + nu, s0, s1, s2)
                    # |s|' = −s·(A + ν)⁻¹s / |s|
                    slope = (s0 * t0 + s1 * t1 + s2 * t2) / (length * length)
                    nu += (length / most - 1.0) / slope
                    s0, s1, s2 = solve_3x3(a00 + nu, a01, a02, a11 + nu, a12, a22 + nu, g0, g1, g2)
                    length = np.sqrt(s0 * s0 + s1 * s1 + s2 * s2)
                    if abs(length - most) <= tolerance * most:
                        break
                if length > most:  # remove the remaining tolerance: the answer is always inside
                    s0 = s0 * most / length
                    s1 = s1 * most / length
                    s2 = s2 * most / length
        out[i, 0] = m0 + s0
        out[i, 1] = m1 + s1
        out[i, 2] = m2 + s2
