"""Compiled per-pixel loops of least absolute residuals: reweighting, then an exact descent along edges."""

from __future__ import annotations

import numpy as np

from photostereo.runtime.algebra import SUMS, inverse_3x3, times_3x3
from photostereo.runtime.loops import njit, prange


@njit(cache=True, fastmath=SUMS)
def _l1_reweight(y, l0, l1, l2, x, floor, tol, max_iter):  # type: ignore[no-untyped-def]
    """Run reweighted least squares from x, in place; return the iterations, negative if not converged."""
    for it in range(max_iter):
        a00 = a01 = a02 = a11 = a12 = a22 = b0 = b1 = b2 = 0.0
        x0, x1, x2 = x[0], x[1], x[2]
        for j in range(y.size):
            r = y[j] - (l0[j] * x0 + l1[j] * x1 + l2[j] * x2)
            w = 1.0 / max(abs(r), floor)
            w0, w1, w2 = w * l0[j], w * l1[j], w * l2[j]
            a00 += w0 * l0[j]
            a01 += w0 * l1[j]
            a02 += w0 * l2[j]
            a11 += w1 * l1[j]
            a12 += w1 * l2[j]
            a22 += w2 * l2[j]
            # Use the residual, not y: the solve then gives a small correction, which stays accurate even if
            # the weights differ by six orders of magnitude.
            b0 += w0 * r
            b1 += w1 * r
            b2 += w2 * r
        c00, c01, c02, c11, c12, c22 = inverse_3x3(a00, a01, a02, a11, a12, a22)
        d0, d1, d2 = times_3x3(c00, c01, c02, c11, c12, c22, b0, b1, b2)
        x[0] += d0
        x[1] += d1
        x[2] += d2
        if max(abs(d0), abs(d1), abs(d2)) < tol:
            return it + 1
    return -max_iter


@njit(cache=True)
def _inverse_rows(L, basis, inverse):  # type: ignore[no-untyped-def]
    """Invert the 3 × 3 matrix whose rows are the lights of the basis; return False if they are dependent."""
    i, j, k = basis[0], basis[1], basis[2]
    a0, a1, a2 = L[0, i], L[1, i], L[2, i]
    b0, b1, b2 = L[0, j], L[1, j], L[2, j]
    c0, c1, c2 = L[0, k], L[1, k], L[2, k]
    p0, p1, p2 = b1 * c2 - b2 * c1, b2 * c0 - b0 * c2, b0 * c1 - b1 * c0
    det = a0 * p0 + a1 * p1 + a2 * p2
    if abs(det) < 1e-9:
        return False
    det = 1.0 / det
    inverse[0, 0], inverse[1, 0], inverse[2, 0] = p0 * det, p1 * det, p2 * det
    inverse[0, 1] = (c1 * a2 - c2 * a1) * det
    inverse[1, 1] = (c2 * a0 - c0 * a2) * det
    inverse[2, 1] = (c0 * a1 - c1 * a0) * det
    inverse[0, 2] = (a1 * b2 - a2 * b1) * det
    inverse[1, 2] = (a2 * b0 - a0 * b2) * det
    inverse[2, 2] = (a0 * b1 - a1 * b0) * det
    return True


@njit(cache=True)
def _solve_three(inverse, y, basis, x):  # type: ignore[no-untyped-def]
    """Fill x with the normal that fits the three photographs of the basis."""
    for c in range(3):
        x[c] = inverse[c, 0] * y[basis[0]] + inverse[c, 1] * y[basis[1]] + inverse[c, 2] * y[basis[2]]


@njit(cache=True)
def _nearest_vertex(r, L, basis, inverse):  # type: ignore[no-untyped-def]
    """Find the three photographs of smallest residual with independent lights; return False if there are none."""
    order = np.argsort(np.abs(r), kind="mergesort")  # stable: of equal residuals, the first
    for later in range(1, r.size):
        for last in range(later + 1, r.size):
            basis[0], basis[1], basis[2] = order[0], order[later], order[last]
            if _inverse_rows(L, basis, inverse):
                return True
    return False


@njit(cache=True, fastmath=SUMS)
def _residuals_and_signs(y, L, x, basis, r):  # type: ignore[no-untyped-def]
    """Fill r; return the sum of the lights outside the basis times the signs of their residuals."""
    l0, l1, l2 = L[0], L[1], L[2]
    x0, x1, x2 = x[0], x[1], x[2]
    for j in range(y.size):
        r[j] = y[j] - (l0[j] * x0 + l1[j] * x1 + l2[j] * x2)
    for b in range(3):
        r[basis[b]] = 0.0
    g0 = g1 = g2 = 0.0
    for j in range(y.size):
        s = (1.0 if r[j] > 0.0 else 0.0) - (1.0 if r[j] < 0.0 else 0.0)
        g0 += s * l0[j]
        g1 += s * l1[j]
        g2 += s * l2[j]
    return g0, g1, g2


@njit(cache=True, fastmath=SUMS)
def _breakpoints(r, L, e0, e1, e2, t, rise):  # type: ignore[no-untyped-def]
    """Along the edge e: positions of the sign changes of the residuals (infinite if none), and gains of the slope."""
    l0, l1, l2 = L[0], L[1], L[2]
    for j in range(r.size):
        s = l0[j] * e0 + l1[j] * e1 + l2[j] * e2
        t[j] = r[j] / s if r[j] * s > 0.0 else np.inf
        rise[j] = 2.0 * abs(s)


@njit(cache=True)
def _nudge(y, L, out):  # type: ignore[no-untyped-def]
    """Shift y by less than 1e-9, differently for every light, so that no four photographs fit one normal exactly. The shift
    depends on the light, not on its index: the order of the photographs must not matter."""
    for j in range(y.size):
        hashed = 1e4 * np.sin(12.9898 * L[0, j] + 78.233 * L[1, j] + 37.719 * L[2, j])
        out[j] = y[j] + 1e-9 * (hashed - np.floor(hashed) - 0.5)


@njit(cache=True)
def _l1_vertex(y, L, x, r, basis, max_steps):  # type: ignore[no-untyped-def]
    """Go from near the minimizer to the exact minimizer by descent along edges, as in the simplex method.

    A minimizer of ``Σ|y_j − l_j·x|`` fits three photographs exactly. With ``g = Σ sign(r_j) l_j`` over the
    others, ``Σ u_b l_b = −g`` gives the multipliers of the three; all ``|u_b| ≤ 1`` proves the optimum.
    Otherwise the worst one leaves, and the cost decreases along the edge of the other two until its slope
    changes sign, where another photograph enters. Returns True at a proven optimum, with its three
    photographs in ``basis``.
    """
    d = y.size
    inverse, u = np.empty((3, 3)), np.empty(3)
    t, rise = np.empty(d), np.empty(d)
    for j in range(d):
        r[j] = y[j] - (L[0, j] * x[0] + L[1, j] * x[1] + L[2, j] * x[2])
    if not _nearest_vertex(r, L, basis, inverse):
        return False
    for _ in range(max_steps):
        _solve_three(inverse, y, basis, x)
        g0, g1, g2 = _residuals_and_signs(y, L, x, basis, r)
        leaving = 0
        for b in range(3):
            u[b] = -(g0 * inverse[0, b] + g1 * inverse[1, b] + g2 * inverse[2, b])
            if abs(u[b]) > abs(u[leaving]):
                leaving = b
        if abs(u[leaving]) <= 1.0 + 1e-9:
            return True
        # The edge: l_leaving · e = ±1, and 0 for the two that stay.
        side = -1.0 if u[leaving] > 0.0 else 1.0
        e0, e1, e2 = side * inverse[0, leaving], side * inverse[1, leaving], side * inverse[2, leaving]
        slope = 1.0 - abs(u[leaving])
        _breakpoints(r, L, e0, e1, e2, t, rise)
        entering = -1
        while slope < 0.0:
            nearest = np.inf
            entering = -1
            for j in range(d):
                if t[j] < nearest:
                    nearest = t[j]
                    entering = j
            if entering < 0:
                return False
            slope += rise[entering]
            t[entering] = np.inf
        basis[leaving] = entering
        if not _inverse_rows(L, basis, inverse):
            return False
    return False


@njit(cache=True)
def _absolute_sum(y, L, x):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(y.size):
        total += abs(y[j] - (L[0, j] * x[0] + L[1, j] * x[1] + L[2, j] * x[2]))
    return total


@njit(cache=True, parallel=True)
def l1_regression(Y, lights, start, floor, tol, max_iter, n, iterations):  # type: ignore[no-untyped-def]
    """Solve ``min ‖y − Lᵀn‖₁`` for each row y of Y: reweighting first, then the exact vertex descent. Fills ``n`` and
    ``iterations`` (reweighting steps; negative if neither method proved convergence)."""
    pixels, d = Y.shape
    for i in prange(pixels):
        top = 0.0
        for j in range(d):
            top = max(top, abs(np.float64(Y[i, j])))
        if top == 0.0:
            n[i, :] = 0.0
            iterations[i] = 0
            continue
        y, r = np.empty(d), np.empty(d)
        x, vertex = np.empty(3), np.empty(3)
        for j in range(d):
            y[j] = Y[i, j] / top
        for c in range(3):
            x[c] = start[i, c] / top
        L = lights[min(np.int64(i), len(lights) - 1)]
        done = _l1_reweight(y, L[0], L[1], L[2], x, floor, tol, max_iter)
        before = _absolute_sum(y, L, x)
        vertex[:] = x
        basis = np.empty(3, np.int64)
        proven = _l1_vertex(y, L, vertex, r, basis, 4 * d)
        if not proven:
            # With more than three exact fits, rounding decides the signs of the multipliers. Find the optimal
            # basis of a problem shifted by 1e-9, which has none, and solve it with the original intensities.
            nudged, inverse = np.empty(d), np.empty((3, 3))
            _nudge(y, L, nudged)
            vertex[:] = x
            proven = _l1_vertex(nudged, L, vertex, r, basis, 4 * d)
            if proven and _inverse_rows(L, basis, inverse):
                _solve_three(inverse, y, basis, vertex)
        if proven and _absolute_sum(y, L, vertex) <= before + 1e-8:
            x[:] = vertex
            done = abs(done)
        for c in range(3):
            n[i, c] = x[c] * top
        iterations[i] = done
