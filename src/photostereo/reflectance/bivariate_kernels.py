"""Compiled per-pixel work of the bivariate model: its statistics and its small non-negative least squares."""

from __future__ import annotations

import numpy as np
from numba import njit, prange


@njit(cache=True, inline="always")
def _bernstein(order, x, out):  # type: ignore[no-untyped-def]
    """The order + 1 Bernstein polynomials at x in [0, 1], by their triangle of convex combinations."""
    out[0] = 1.0
    for n in range(1, order + 1):
        out[n] = x * out[n - 1]
        for k in range(n - 1, 0, -1):
            out[k] = (1.0 - x) * out[k] + x * out[k - 1]
        out[0] *= 1.0 - x


@njit(cache=True)
def _inverse_3x3(A, out):  # type: ignore[no-untyped-def]
    """Inverse of a symmetric 3 × 3 matrix (xx, xy, xz, yy, yz, zz); False where it is nearly singular."""
    c00 = A[3] * A[5] - A[4] * A[4]
    c01 = A[2] * A[4] - A[1] * A[5]
    c02 = A[1] * A[4] - A[2] * A[3]
    det = A[0] * c00 + A[1] * c01 + A[2] * c02
    trace = A[0] + A[3] + A[5]
    if det <= 1e-9 * trace * trace * trace:
        return False
    out[0, 0] = c00 / det
    out[0, 1] = out[1, 0] = c01 / det
    out[0, 2] = out[2, 0] = c02 / det
    out[1, 1] = (A[0] * A[5] - A[2] * A[2]) / det
    out[1, 2] = out[2, 1] = (A[1] * A[2] - A[0] * A[4]) / det
    out[2, 2] = (A[0] * A[3] - A[1] * A[1]) / det
    return True


@njit(cache=True)
def _lambertian(y, L, T, Q, A):  # type: ignore[no-untyped-def]
    T[:] = 0.0
    Q[:] = 0.0
    A[:] = 0.0
    for j in range(y.size):
        value = np.float64(y[j])
        T[0, 0] += value * value
        entry = 0
        for r in range(3):
            Q[0, r] += value * L[r, j]
            for c in range(r, 3):
                A[entry] += L[r, j] * L[c, j]
                entry += 1


@njit(cache=True, parallel=True)
def statistics(Y, L, angle_basis, order, shadow, unit, T, Q, A, usable):  # type: ignore[no-untyped-def]
    """``T = ΦᵀΦ``, ``Q = ΦᵀLᵀ`` and ``A = L Lᵀ`` over the lit photographs of every pixel.

    Column (i, j) of Φ is the product of Bernstein polynomial i = 1…order of the pixel's relative intensity
    and column j of ``angle_basis`` (d × m), times ``unit`` times the pixel's maximum. A pixel is not usable
    where the curve cannot be told (no light, no range, too few lit photographs); it gets the statistics of
    the Lambertian model as one coefficient that is fixed at 1: ``T₀₀ = |y|²``, ``Q₀ = L y``.
    """
    pixels, d = Y.shape
    m = angle_basis.shape[1]
    size = order * m
    for p in prange(pixels):
        inverse = np.empty((3, 3))
        T[p] = 0.0
        Q[p] = 0.0
        A[p] = 0.0
        top = 0.0
        low = np.inf
        for j in range(d):
            top = max(top, np.float64(Y[p, j]))
            low = min(low, np.float64(Y[p, j]))
        bernstein = np.empty(order + 1)
        phi = np.empty(size)
        lit = 0
        for j in range(d):
            value = np.float64(Y[p, j])
            if value < shadow * top or top <= 0.0 or low == top:
                continue
            lit += 1
            _bernstein(order, min(max(value / top, 0.0), 1.0), bernstein)
            for i in range(order):
                for k in range(m):
                    phi[i * m + k] = unit * top * bernstein[i + 1] * angle_basis[j, k]
            for i in range(size):
                for k in range(i + 1):
                    T[p, i, k] += phi[i] * phi[k]
                for c in range(3):
                    Q[p, i, c] += phi[i] * L[c, j]
            entry = 0
            for r in range(3):
                for c in range(r, 3):
                    A[p, entry] += L[r, j] * L[c, j]
                    entry += 1
        for i in range(size):
            for k in range(i):
                T[p, k, i] = T[p, i, k]
        usable[p] = lit > 3 and _inverse_3x3(A[p], inverse)
        if not usable[p]:
            _lambertian(Y[p], L, T[p], Q[p], A[p])


@njit(cache=True)
def _solve_passive(M, b, passive, count, factor, z):  # type: ignore[no-untyped-def]
    """Cholesky solution of the rows and columns ``passive[:count]`` of ``M z = b``; False if not definite."""
    for r in range(count):
        for c in range(r + 1):
            value = M[passive[r], passive[c]]
            for k in range(c):
                value -= factor[r, k] * factor[c, k]
            if r == c:
                if value <= 1e-12 * M[passive[r], passive[r]]:
                    return False
                factor[r, r] = np.sqrt(value)
            else:
                factor[r, c] = value / factor[c, c]
    for r in range(count):
        value = b[passive[r]]
        for k in range(r):
            value -= factor[r, k] * z[k]
        z[r] = value / factor[r, r]
    for r in range(count - 1, -1, -1):
        value = z[r]
        for k in range(r + 1, count):
            value -= factor[k, r] * z[k]
        z[r] = value / factor[r, r]
    return True


@njit(cache=True)
def nonnegative_least_squares(M, b, w, tol):  # type: ignore[no-untyped-def]
    """``min wᵀM w − 2 bᵀw`` over w ≥ 0 by Lawson and Hanson's active sets; fills w, returns the steps taken.

    M is positive semi-definite. A column that depends on the passive ones (to rounding) never enters: it
    could not lower the cost.
    """
    size = b.size
    passive = np.empty(size, np.int64)
    banned = np.zeros(size, np.bool_)
    factor = np.empty((size, size))
    z = np.empty(size)
    count = 0
    w[:] = 0.0
    steps = 0
    while count < size and steps < 10 * size:
        best = tol
        entering = -1
        for i in range(size):
            if banned[i] or w[i] > 0.0:
                continue
            gradient = b[i]
            for k in range(count):
                gradient -= M[i, passive[k]] * w[passive[k]]
            if gradient > best:
                best = gradient
                entering = i
        if entering < 0:
            break
        passive[count] = entering
        if not _solve_passive(M, b, passive, count + 1, factor, z) or z[count] <= 0.0:
            banned[entering] = True
            continue
        count += 1
        banned[:] = False
        while True:
            steps += 1
            step = 1.0
            leaving = -1
            for k in range(count):
                if z[k] <= 0.0:
                    ratio = w[passive[k]] / (w[passive[k]] - z[k])
                    if leaving < 0 or ratio < step:
                        step = ratio
                        leaving = k
            for k in range(count):
                w[passive[k]] += step * (z[k] - w[passive[k]])
            if leaving < 0:
                break
            # Set, not computed: rounding must not keep the one that leaves.
            w[passive[leaving]] = 0.0
            kept = 0
            for k in range(count):
                if w[passive[k]] > 0.0:
                    passive[kept] = passive[k]
                    kept += 1
                else:
                    w[passive[k]] = 0.0
            count = kept
            if count == 0 or not _solve_passive(M, b, passive, count, factor, z):
                break
    return steps


@njit(cache=True, parallel=True)
def constrained_fit(T, Q, A, cone, total, fallback, ridge, usable, n, a):  # type: ignore[no-untyped-def]
    """Normals and coefficients without a prior, ``totalᵀa = 1`` exactly; the fallback where nothing can be
    told.

    The cost is homogeneous on the cone: the minimiser with ``totalᵀa = 1`` is that of cost + (totalᵀa − 1)²,
    rescaled.
    """
    pixels, size = Q.shape[0], Q.shape[1]
    generators = cone.shape[0]
    sums = cone @ total
    for p in prange(pixels):
        inverse = np.empty((3, 3))
        if not usable[p]:
            n[p] = fallback[p]
            a[p] = 0.0
            a[p, 0] = 1.0
            continue
        _inverse_3x3(A[p], inverse)
        projected = np.zeros((size, 3))
        for i in range(size):
            for r in range(3):
                for c in range(3):
                    projected[i, r] += Q[p, i, c] * inverse[c, r]
        S = T[p].copy()
        trace = 0.0
        for i in range(size):
            trace += T[p, i, i]
            for k in range(size):
                for r in range(3):
                    S[i, k] -= projected[i, r] * Q[p, k, r]
        for i in range(size):
            S[i, i] += ridge * trace
        M = _through_cone(S, cone)
        spread = 0.0
        for g in range(generators):
            spread += M[g, g]
        for g in range(generators):
            for h in range(generators):
                M[g, h] = M[g, h] * (generators / spread) + sums[g] * sums[h]
        w = np.empty(generators)
        nonnegative_least_squares(M, sums, w, 1e-13)
        reached = 0.0
        for g in range(generators):
            reached += w[g] * sums[g]
        for i in range(size):
            a[p, i] = 0.0
            for g in range(generators):
                a[p, i] += cone[g, i] * w[g] / reached
        for r in range(3):
            n[p, r] = 0.0
            for i in range(size):
                n[p, r] += projected[i, r] * a[p, i]


@njit(cache=True)
def _through_cone(S, cone):  # type: ignore[no-untyped-def]
    """``G S Gᵀ``."""
    return cone @ S @ cone.T


@njit(cache=True, parallel=True)
def update_coefficients(T, Q, cone, total, normals, gamma, usable, a):  # type: ignore[no-untyped-def]
    """``min ‖Φ a − Lᵀn‖² + γ (totalᵀa − 1)²`` over the cone, at fixed normals; fills a."""
    pixels, size = Q.shape[0], Q.shape[1]
    generators = cone.shape[0]
    for p in prange(pixels):
        a[p] = 0.0
        if not usable[p]:
            a[p, 0] = 1.0
            continue
        M = T[p].copy()
        b = np.empty(size)
        for i in range(size):
            b[i] = gamma * total[i]
            for k in range(size):
                M[i, k] += gamma * total[i] * total[k]
            for c in range(3):
                b[i] += Q[p, i, c] * normals[p, c]
        H = _through_cone(M, cone)
        right = cone @ b
        largest = 0.0
        for g in range(generators):
            largest = max(largest, abs(right[g]))
        w = np.empty(generators)
        nonnegative_least_squares(H, right, w, 1e-13 * largest)
        for g in range(generators):
            for i in range(size):
                a[p, i] += cone[g, i] * w[g]
