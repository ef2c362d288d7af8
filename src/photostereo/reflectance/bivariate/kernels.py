"""Compiled per-pixel loops of the bivariate model: statistics and small non-negative least squares.

The symbols are those of :class:`.model.Bivariate`.
"""

import numpy as np

from photostereo.runtime.algebra import SUMS, dot, invert_if_regular, value_range
from photostereo.runtime.loops import njit, prange

#: Pixels that share one set of scratch arrays.
CHUNK = 64
#: The smallest pivot, relative to the diagonal, of a matrix that counts as definite.
LEAST_PIVOT = 1e-12
#: Gradients below this, relative to the right-hand side, are rounding.
LEAST_GRADIENT = 1e-13


@njit(cache=True)
def _lambertian(y, L, T, Q):  # type: ignore[no-untyped-def]
    """Fill T and Q of the Lambertian model, with one coefficient."""
    T[:] = 0.0
    Q[:] = 0.0
    for j in range(y.size):
        value = np.float64(y[j])
        T[0, 0] += value * value
        for r in range(3):
            Q[0, r] += value * L[r, j]


@njit(cache=True, fastmath=SUMS)
def _columns(x, angle_basis, order, scale, phi, triangle):  # type: ignore[no-untyped-def]
    """Fill the columns of Φ, one per row of ``phi``: products of two Bernstein polynomials.

    Those of the intensities are computed by their triangle of convex combinations; every loop runs
    over the photographs.

    Parameters
    ----------
    x : array (lit,)
        Relative intensities.
    angle_basis : array (m, d)
        The polynomials of the light-view cosine.
    order : int
        N1.
    scale : float
        Of all columns.
    phi : array (N1 · m, d)
        Filled.
    triangle : array (N1 + 1, d)
        Scratch.
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
    """Fill L Lᵀ of the first ``lit`` lights as xx, xy, xz, yy, yz, zz."""
    entry = 0
    for r in range(3):
        for c in range(r, 3):
            A[entry] = dot(lights[r, :lit], lights[c, :lit])
            entry += 1


@njit(cache=True)
def _gather_lit(y, top, darkest, L, angle_basis, x, lights, angles):  # type: ignore[no-untyped-def]
    """Move the lit photographs together, so that sums run over contiguous values; count them.

    Fills the relative intensities x, the lights and the polynomials of their angles.
    """
    count = 0
    all_lit = darkest <= 0.0
    for j in range(y.size):
        value = np.float64(y[j])
        if all_lit:
            x[count] = max(value, 0.0) * (1.0 / top)
        elif value < darkest:
            continue
        else:
            x[count] = value / top
        for c in range(3):
            lights[c, count] = L[c, j]
        for k in range(angle_basis.shape[0]):
            angles[k, count] = angle_basis[k, j]
        count += 1
    return count


@njit(cache=True, parallel=True)
def statistics(Y, all_lights, all_angles, order, shadow, unit, T, Q, A, usable):  # type: ignore[no-untyped-def]
    """Compute ``T = ΦᵀΦ``, ``Q = ΦᵀLᵀ`` and ``A = L Lᵀ`` over the lit photographs of every pixel.

    Column (i, k) of Φ is the product of Bernstein polynomial i = 1…N1 of the pixel's relative
    intensity and row k of the pixel's angles, times ``unit`` times the pixel's maximum. A pixel is
    not usable if its curve cannot be determined (no light, no range, too few lit photographs); it
    gets the statistics of the Lambertian model, with one coefficient fixed at 1: ``T₀₀ = |y|²``,
    ``Q₀ = L y``.

    Parameters
    ----------
    Y : array (N, d)
        Intensities.
    all_lights : array (1, 3, d) or (N, 3, d)
        Unit lights.
    all_angles : array (1, m, d) or (N, m, d)
        Bernstein polynomials of the light-view cosine.
    order : int
        N1.
    shadow : float
        Entries darker than this share of their pixel's maximum are left out.
    unit : float
        Scale of Φ.
    T, Q, A, usable : arrays (N, M, M), (N, M, 3), (N, 6) and (N,)
        Filled; M = N1 m.
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
            lit = 0
            low, top = value_range(Y[p])
            usable[p] = top > 0.0 and low < top
            if usable[p]:
                darkest = 0.0 if shadow <= 0.0 or low >= shadow * top else shadow * top
                lit = _gather_lit(Y[p], top, darkest, L, all_angles[own], x, lights, angles)
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
    """Solve rows and columns ``passive[:count]`` of ``M z = b``; return False if not definite."""
    for r in range(count):
        for c in range(r + 1):
            value = M[passive[r], passive[c]]
            for k in range(c):
                value -= factor[r, k] * factor[c, k]
            if r == c:
                if value <= LEAST_PIVOT * M[passive[r], passive[r]]:
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
    """Return scratch arrays of :func:`nonnegative_least_squares`: passive, banned, factor, z."""
    return (
        np.empty(size, np.int64),
        np.empty(size, np.bool_),
        np.empty((size, size)),
        np.empty(size),
    )


@njit(cache=True)
def nonnegative_least_squares(M, b, w, tol, passive, banned, factor, z):  # type: ignore[no-untyped-def]
    """Solve ``min wᵀM w − 2 bᵀw`` over w ≥ 0 by Lawson and Hanson's active sets.

    A column that depends on the passive ones (up to rounding) never enters: it could not lower the
    cost.

    Parameters
    ----------
    M : array (n, n)
        Positive semidefinite.
    b : array (n,)
    w : array (n,)
        Filled with the solution.
    tol : float
        Columns whose gradient is below this do not enter.
    passive, banned, factor, z : arrays
        From :func:`scratch`.

    Returns
    -------
    int
        The steps taken.
    """
    size = b.size
    banned[:] = False
    count = 0
    w[:] = 0.0
    steps = 0
    while count < size and steps < 10 * size:
        # The column that lowers the cost fastest joins the passive ones...
        entering = _steepest(M, b, w, tol, passive, count, banned)
        if entering < 0:
            break
        passive[count] = entering
        # ... unless it depends on them, or would become negative at once.
        if not _solve_passive(M, b, passive, count + 1, factor, z) or z[count] <= 0.0:
            banned[entering] = True
            continue
        count += 1
        banned[:] = False
        while True:
            steps += 1
            # Move towards the unconstrained optimum of the passive columns, up to the border.
            leaving = _step_towards(z, w, passive, count)
            if leaving < 0:
                break
            # Set to zero explicitly, so that rounding does not keep the leaving column.
            w[passive[leaving]] = 0.0
            count = _positive(w, passive, count)
            if count == 0 or not _solve_passive(M, b, passive, count, factor, z):
                break
    return steps


@njit(cache=True)
def _steepest(M, b, w, tol, passive, count, banned):  # type: ignore[no-untyped-def]
    """Return the column outside the passive ones along which the cost falls most; -1: none."""
    best = tol
    entering = -1
    for i in range(b.size):
        if banned[i] or w[i] > 0.0:
            continue
        gradient = b[i]
        for k in range(count):
            gradient -= M[i, passive[k]] * w[passive[k]]
        if gradient > best:
            best = gradient
            entering = i
    return entering


@njit(cache=True)
def _step_towards(z, w, passive, count):  # type: ignore[no-untyped-def]
    """Move w towards z until a column becomes zero; return its place among the passive, or -1."""
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
    return leaving


@njit(cache=True)
def _positive(w, passive, count):  # type: ignore[no-untyped-def]
    """Remove passive columns that are not positive, in place; return how many remain."""
    remaining = 0
    for k in range(count):
        if w[passive[k]] > 0.0:
            passive[remaining] = passive[k]
            remaining += 1
        else:
            w[passive[k]] = 0.0
    return remaining


@njit(cache=True)
def _through_cone(S, cone, half, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with ``G S Gᵀ``; the entries of G are 0 or 1."""
    generators, size = cone.shape
    # G S first, then times Gᵀ; zeros of G are skipped.
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


@njit(cache=True)
def _eliminate_normal(T, Q, inverse, ridge, projected, S):  # type: ignore[no-untyped-def]
    """Fill ``projected = Q A⁻¹`` and ``S = T − Q A⁻¹ Qᵀ`` of one pixel, with a ridge."""
    size = Q.shape[0]
    trace = 0.0
    for i in range(size):
        trace += T[i, i]
        for r in range(3):
            projected[i, r] = (
                Q[i, 0] * inverse[0, r] + Q[i, 1] * inverse[1, r] + Q[i, 2] * inverse[2, r]
            )
    for i in range(size):
        for k in range(i + 1):
            value = T[i, k]
            for r in range(3):
                value -= projected[i, r] * Q[k, r]
            S[i, k] = S[k, i] = value
        S[i, i] += ridge * trace


@njit(cache=True, parallel=True)
def constrained_fit(T, Q, A, cone, total, fallback, usable, ridge, n, a):  # type: ignore[no-untyped-def]
    """Fit normals and coefficients without a prior, with ``totalᵀa = 1`` exactly.

    The cost is homogeneous on the cone, so the minimizer with ``totalᵀa = 1`` is that of
    cost + (totalᵀa − 1)², rescaled.

    Parameters
    ----------
    T, Q, A, usable : arrays
        From :func:`statistics`.
    cone : array (G, M)
        Generators of the monotone coefficients.
    total : array (M,)
        c of the constraint.
    fallback : array (N, 3)
        Normals of pixels that are not usable.
    ridge : float
        On T, relative to its trace.
    n, a : arrays (N, 3) and (N, M)
        Filled with normals and coefficients.
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
            _eliminate_normal(T[p], Q[p], inverse, ridge, projected, S)
            _through_cone(S, cone, half, M)
            # Cost and constraint are brought to the same scale before they are added.
            spread = 0.0
            for g in range(generators):
                spread += M[g, g]
            for g in range(generators):
                for h in range(generators):
                    M[g, h] = M[g, h] * (generators / spread) + sums[g] * sums[h]
            nonnegative_least_squares(M, sums, w, LEAST_GRADIENT, passive, banned, factor, z)
            # The minimizer of the sum is that of the constrained problem up to its length.
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
    """Minimize ``‖Φ a − Lᵀn‖² + γ (totalᵀa − 1)²`` over the cone at fixed normals.

    Parameters
    ----------
    T, Q, usable : arrays
        From :func:`statistics`.
    cone : array (G, M)
        Generators of the monotone coefficients.
    total : array (M,)
        c of the constraint.
    normals : array (N, 3)
        n.
    gamma : float
        γ.
    a : array (N, M)
        Filled with the coefficients.
    """
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
            tol = LEAST_GRADIENT * largest
            nonnegative_least_squares(M, right, w, tol, passive, banned, factor, z)
            for g in range(generators):
                for i in range(size):
                    a[p, i] += cone[g, i] * w[g]
