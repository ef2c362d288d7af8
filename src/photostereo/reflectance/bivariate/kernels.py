"""Compiled per-pixel loops of the bivariate model: statistics and small non-negative least squares."""

import numpy as np

from photostereo.runtime.algebra import SUMS, dot, invert_if_regular, value_range
from photostereo.runtime.loops import njit, prange

#: Pixels that share one set of scratch arrays.
CHUNK = 64


@njit(cache=True)
def _lambertian(y, L, T, Q):  # type: ignore[no-untyped-def]
    T[:] = 0.0
    Q[:] = 0.0
    for j in range(y.size):
        value = np.float64(y[j])
        T[0, 0] += value * value
        for r in range(3):
            Q[0, r] += value * L[r, j]


@njit(cache=True, fastmath=SUMS)
def _columns(x, angle_basis, order, scale, phi, triangle):  # type: ignore[no-untyped-def]
    """Fill the columns of Φ, one per row of ``phi`` (order · m, lit): products of two Bernstein
    polynomials. Those of the intensities are computed by their triangle of convex combinations;
    every loop runs over the photographs.
    """
    m = angle_basis.shape[0]
    lit = x.size
    for j in range(lit):
        triangle[0, j] = 1.0
    for n in range(1, order + 1):
        for j in range(lit):
            triangle[n, j] = x[j] * triangle[n - 1, j]
        for k in range(n - 1, 0, -1):
            for j in range(lit):
                triangle[k, j] += x[j] * (triangle[k - 1, j] - triangle[k, j])
        for j in range(lit):
            triangle[0, j] *= 1.0 - x[j]
    for i in range(order):
        for k in range(m):
            for j in range(lit):
                phi[i * m + k, j] = scale * triangle[i + 1, j] * angle_basis[k, j]


@njit(cache=True)
def _lights_gram(lights, lit, A):  # type: ignore[no-untyped-def]
    entry = 0
    for r in range(3):
        for c in range(r, 3):
            A[entry] = dot(lights[r, :lit], lights[c, :lit])
            entry += 1


@njit(cache=True, parallel=True)
def statistics(Y, all_lights, all_angles, order, shadow, unit, T, Q, A, usable):  # type: ignore[no-untyped-def]
    """Compute ``T = ΦᵀΦ``, ``Q = ΦᵀLᵀ`` and ``A = L Lᵀ`` over the lit photographs of every pixel.

    Column (i, k) of Φ is the product of Bernstein polynomial i = 1…order of the pixel's relative
    intensity and row k of ``all_angles`` (1 or N × m × d), times ``unit`` times the pixel's
    maximum. A pixel is not usable if its curve cannot be determined (no light, no range, too few
    lit photographs); it gets the statistics of the Lambertian model, with one coefficient fixed at
    1: ``T₀₀ = |y|²``, ``Q₀ = L y``.
    """
    pixels, d = Y.shape
    m = all_angles.shape[1]
    size = order * m
    for first in prange((pixels + CHUNK - 1) // CHUNK):
        x = np.empty(d)
        inverse = np.empty((3, 3))
        phi = np.empty((size, d))
        triangle = np.empty((order + 1, d))
        lights = np.empty((3, d))
        angles = np.empty((m, d))
        for p in range(first * CHUNK, min((first + 1) * CHUNK, pixels)):
            own = min(np.int64(p), len(all_lights) - 1)
            L = all_lights[own]
            angle_basis = all_angles[own]
            low, top = value_range(Y[p])
            usable[p] = top > 0.0 and low < top
            if usable[p]:
                # Move the lit photographs together, so that the sums run over contiguous values.
                lit = 0
                all_lit = shadow <= 0.0 or low >= shadow * top
                for j in range(d):
                    value = np.float64(Y[p, j])
                    if not all_lit and value < shadow * top:
                        continue
                    x[lit] = max(value, 0.0) * (1.0 / top) if all_lit else value / top
                    for c in range(3):
                        lights[c, lit] = L[c, j]
                    for k in range(m):
                        angles[k, lit] = angle_basis[k, j]
                    lit += 1
                _lights_gram(lights, lit, A[p])
                usable[p] = lit > 3 and invert_if_regular(A[p], inverse)
            if not usable[p]:
                _lambertian(Y[p], L, T[p], Q[p])
                _lights_gram(L, d, A[p])
                continue
            _columns(x[:lit], angles, order, unit * top, phi, triangle)
            for i in range(size):
                for k in range(i + 1):
                    T[p, i, k] = T[p, k, i] = dot(phi[i, :lit], phi[k, :lit])
                for c in range(3):
                    Q[p, i, c] = dot(phi[i, :lit], lights[c, :lit])


@njit(cache=True)
def _solve_passive(M, b, passive, count, factor, z):  # type: ignore[no-untyped-def]
    """Solve rows and columns ``passive[:count]`` of ``M z = b`` by Cholesky; return False if not
    definite.
    """
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
def scratch(size):  # type: ignore[no-untyped-def]
    """Allocate the scratch arrays of :func:`nonnegative_least_squares` for problems of this size."""
    return (
        np.empty(size, np.int64),
        np.empty(size, np.bool_),
        np.empty((size, size)),
        np.empty(size),
    )


@njit(cache=True)
def nonnegative_least_squares(M, b, w, tol, passive, banned, factor, z):  # type: ignore[no-untyped-def]
    """Solve ``min wᵀM w − 2 bᵀw`` over w ≥ 0 by Lawson and Hanson's active sets; fill w, return the
    steps taken.

    M is positive semidefinite. A column that depends on the passive ones (up to rounding) never
    enters: it could not lower the cost. ``passive``, ``banned``, ``factor``, ``z`` are scratch: see
    :func:`scratch`.
    """
    size = b.size
    banned[:] = False
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
            # Set to zero explicitly, so that rounding does not keep the leaving column.
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


@njit(cache=True)
def _through_cone(S, cone, half, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with ``G S Gᵀ``; the entries of G are 0 or 1."""
    generators, size = cone.shape
    for g in range(generators):
        for i in range(size):
            half[g, i] = 0.0
        for k in range(size):
            if cone[g, k] != 0.0:
                for i in range(size):
                    half[g, i] += S[k, i]
    for g in range(generators):
        for h in range(g + 1):
            total = 0.0
            for i in range(size):
                total += half[g, i] * cone[h, i]
            out[g, h] = out[h, g] = total


@njit(cache=True, parallel=True)
def constrained_fit(T, Q, A, cone, total, fallback, usable, ridge, n, a):  # type: ignore[no-untyped-def]
    """Fit normals and coefficients without a prior, ``totalᵀa = 1`` exactly; the fallback if a
    pixel is not usable. The cost is homogeneous on the cone, so the minimizer with ``totalᵀa = 1``
    is that of cost + (totalᵀa − 1)², rescaled.
    """
    pixels = Q.shape[0]
    size = Q.shape[1]
    generators = cone.shape[0]
    sums = np.zeros(generators)
    for g in range(generators):
        for i in range(size):
            sums[g] += cone[g, i] * total[i]
    for first in prange((pixels + CHUNK - 1) // CHUNK):
        inverse = np.empty((3, 3))
        projected = np.empty((size, 3))
        S = np.empty((size, size))
        half = np.empty((generators, size))
        M = np.empty((generators, generators))
        w = np.empty(generators)
        passive, banned, factor, z = scratch(generators)
        for p in range(first * CHUNK, min((first + 1) * CHUNK, pixels)):
            if not usable[p]:
                n[p] = fallback[p]
                a[p] = 0.0
                a[p, 0] = 1.0
                continue
            invert_if_regular(A[p], inverse)
            trace = 0.0
            for i in range(size):
                trace += T[p, i, i]
                for r in range(3):
                    projected[i, r] = (
                        Q[p, i, 0] * inverse[0, r]
                        + Q[p, i, 1] * inverse[1, r]
                        + Q[p, i, 2] * inverse[2, r]
                    )
            for i in range(size):
                for k in range(i + 1):
                    value = T[p, i, k]
                    for r in range(3):
                        value -= projected[i, r] * Q[p, k, r]
                    S[i, k] = S[k, i] = value
                S[i, i] += ridge * trace
            _through_cone(S, cone, half, M)
            spread = 0.0
            for g in range(generators):
                spread += M[g, g]
            for g in range(generators):
                for h in range(generators):
                    M[g, h] = M[g, h] * (generators / spread) + sums[g] * sums[h]
            nonnegative_least_squares(M, sums, w, 1e-13, passive, banned, factor, z)
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


@njit(cache=True, parallel=True)
def update_coefficients(T, Q, cone, total, normals, gamma, usable, a):  # type: ignore[no-untyped-def]
    """Minimize ``‖Φ a − Lᵀn‖² + γ (totalᵀa − 1)²`` over the cone at fixed normals; fills a."""
    pixels = Q.shape[0]
    size = Q.shape[1]
    generators = cone.shape[0]
    for first in prange((pixels + CHUNK - 1) // CHUNK):
        S = np.empty((size, size))
        half = np.empty((generators, size))
        M = np.empty((generators, generators))
        b = np.empty(size)
        right = np.empty(generators)
        w = np.empty(generators)
        passive, banned, factor, z = scratch(generators)
        for p in range(first * CHUNK, min((first + 1) * CHUNK, pixels)):
            a[p] = 0.0
            if not usable[p]:
                a[p, 0] = 1.0
                continue
            for i in range(size):
                b[i] = gamma * total[i]
                for c in range(3):
                    b[i] += Q[p, i, c] * normals[p, c]
                for k in range(size):
                    S[i, k] = T[p, i, k] + gamma * total[i] * total[k]
            _through_cone(S, cone, half, M)
            largest = 0.0
            for g in range(generators):
                right[g] = 0.0
                for i in range(size):
                    right[g] += cone[g, i] * b[i]
                largest = max(largest, abs(right[g]))
            nonnegative_least_squares(M, right, w, 1e-13 * largest, passive, banned, factor, z)
            for g in range(generators):
                for i in range(size):
                    a[p, i] += cone[g, i] * w[g]
