"""Compiled per-pixel loops of sparse regression.

They are SBL by expectation maximization, the weighted 3 × 3 solve, and least absolute residuals by
reweighting and an exact descent along edges.

In SBL, pixels are processed in parallel, one per lane of the vector instructions: nothing is summed
across lanes, and the 3 × 3 algebra runs in all lanes at once. When a pixel has converged, its lane
takes the next one, so a finished pixel costs nothing more. The precision is that of the
intensities: single precision changes normals by 1e-4° on average.
"""

import numpy as np

from photostereo.runtime.algebra import SUMS, inverse_3x3, inverse_by_cofactors, times_3x3
from photostereo.runtime.loops import njit, prange

#: Pixels in parallel. Relative times of 16, 32, 64, single precision, 24 photographs: 1.18, 1,
#: 0.91; in double with 64, 1.4.
LANES = 32
#: Pixels per thread and turn; at the end of a turn, lanes wait for the last pixel.
CHUNK = 2048
#: The smallest variance of an error.
LEAST_VARIANCE = 1e-10


@njit(cache=True, parallel=True, fastmath=SUMS, error_model="numpy")
def sbl_em(Y, L, scale, noise, prior_variance, tol, settled, max_iter, n, iterations, weights):  # type: ignore[no-untyped-def]
    """Run sparse Bayesian learning of ``y = Lᵀn + e + noise`` for every pixel.

    Parameters
    ----------
    Y : array (N, d)
        Intensities.
    L : array (1, 3, d) or (N, 3, d)
        Unit lights.
    scale : array (N,)
        A pixel is processed in units of its scale; a pixel of scale 0 saw no light and gets n = 0.
    noise : float
        λ, the variance of an inlier's noise, in these units.
    prior_variance : float
        Of a component of n.
    tol : float
        A pixel stops when its normal changes by less.
    settled : float
        ``iterations`` is negative if the last step was not below this.
    max_iter : int
        Most iterations of a pixel.
    n : array (N, 3)
        Filled with the normals.
    iterations : array of int (N,)
        Filled.
    weights : array (N, d) or (0, d)
        Filled with λ / (λ + γ_j): one for a photograph that fits, near zero for an outlier. Without
        rows, it is skipped.
    """
    pixels, d = Y.shape
    # Weights are N × d numbers, so they are written only if they are wanted.
    keep = weights.shape[0] == pixels
    real = Y.dtype.type
    for chunk in prange(-(-pixels // CHUNK)):
        ahead = chunk * CHUNK
        last = min((chunk + 1) * CHUNK, pixels)
        # Row j of lights, intensities and v = 1 / S begins at j · LANES; a row of zeros pads to an
        # even number.
        room = LANES * (d + d % 2)
        l0 = np.zeros(room, Y.dtype)
        l1 = np.zeros(room, Y.dtype)
        l2 = np.zeros(room, Y.dtype)
        y = np.zeros(room, Y.dtype)
        v = np.zeros(room, Y.dtype)
        sums = np.zeros(9 * LANES, Y.dtype)
        x = np.zeros(3 * LANES, Y.dtype)
        step = np.zeros(LANES, Y.dtype)
        pixel = np.full(LANES, -1)
        steps = np.zeros(LANES, np.int64)
        while True:
            busy = False
            # Fill the free lanes with the next pixels that saw light.
            for lane in range(LANES):
                while pixel[lane] < 0 and ahead < last:
                    if scale[ahead] > 0.0:
                        lights = L[min(ahead, len(L) - 1)]
                        _take(lane, Y[ahead], lights, scale[ahead], noise, l0, l1, l2, y, v, x)
                        pixel[lane] = ahead
                        steps[lane] = 0
                    else:
                        n[ahead, 0] = n[ahead, 1] = n[ahead, 2] = 0.0
                        iterations[ahead] = 0
                        for j in range(d if keep else 0):
                            weights[ahead, j] = 1.0
                    ahead += 1
                busy |= pixel[lane] >= 0
            if not busy:
                break
            # One iteration of all lanes; an idle one repeats its last pixel, at no extra cost.
            _sum(l0, l1, l2, y, v, sums)
            _solve(sums, x, step, real(1.0 / prior_variance))
            for lane in range(LANES):
                i = pixel[lane]
                steps[lane] += 1
                if i < 0 or (step[lane] >= tol and steps[lane] < max_iter):
                    continue
                for c in range(3):
                    n[i, c] = x[c * LANES + lane] * scale[i]
                # A pixel that reached the limit but moves little counts as settled.
                iterations[i] = steps[lane] if step[lane] < max(tol, settled) else -max_iter
                for j in range(d if keep else 0):
                    weights[i, j] = noise * v[j * LANES + lane]
                pixel[lane] = -1
            _reweigh(l0, l1, l2, y, v, sums, x, real(noise), real(LEAST_VARIANCE))


@njit(cache=True)
def _take(lane, values, lights, scale, noise, l0, l1, l2, y, v, x):  # type: ignore[no-untyped-def]
    """Put a pixel into a lane; γ begins at 1."""
    for j in range(values.size):
        k = j * LANES + lane
        l0[k] = lights[0, j]
        l1[k] = lights[1, j]
        l2[k] = lights[2, j]
        y[k] = values[j] / scale
        v[k] = 1.0 / (1.0 + noise)
    for c in range(3):
        x[c * LANES + lane] = 0.0


@njit(cache=True, fastmath=SUMS)
def _sum(l0, l1, l2, y, v, sums):  # type: ignore[no-untyped-def]
    """Sum ``L S⁻¹ Lᵀ`` (xx, xy, xz, yy, yz, zz) and ``L S⁻¹ y``, two photographs at a time.

    That halves the stores.
    """
    for k in range(sums.size):
        sums[k] = 0
    for j in range(0, y.size, 2 * LANES):  # slices tell the compiler that no index is negative
        lx = l0[j:]
        ly = l1[j:]
        lz = l2[j:]
        values = y[j:]
        inverse = v[j:]
        for lane in range(LANES):
            next_ = LANES + lane
            p0 = lx[lane]
            p1 = ly[lane]
            p2 = lz[lane]
            q0 = lx[next_]
            q1 = ly[next_]
            q2 = lz[next_]
            a0 = inverse[lane] * p0
            a1 = inverse[lane] * p1
            a2 = inverse[lane] * p2
            b0 = inverse[next_] * q0
            b1 = inverse[next_] * q1
            b2 = inverse[next_] * q2
            sums[lane] += a0 * p0 + b0 * q0
            sums[LANES + lane] += a0 * p1 + b0 * q1
            sums[2 * LANES + lane] += a0 * p2 + b0 * q2
            sums[3 * LANES + lane] += a1 * p1 + b1 * q1
            sums[4 * LANES + lane] += a1 * p2 + b1 * q2
            sums[5 * LANES + lane] += a2 * p2 + b2 * q2
            sums[6 * LANES + lane] += a0 * values[lane] + b0 * values[next_]
            sums[7 * LANES + lane] += a1 * values[lane] + b1 * values[next_]
            sums[8 * LANES + lane] += a2 * values[lane] + b2 * values[next_]


@njit(cache=True, fastmath=SUMS, error_model="numpy")
def _solve(sums, x, step, precision):  # type: ignore[no-untyped-def]
    """Compute normals x and their largest step.

    Replace the first six sums by the covariance, off-diagonals doubled.
    """
    for lane in range(LANES):
        i = lane
        j = LANES + lane
        k = 2 * LANES + lane
        c00, c01, c02, c11, c12, c22 = inverse_by_cofactors(
            sums[i] + precision,
            sums[j],
            sums[k],
            sums[3 * LANES + lane] + precision,
            sums[4 * LANES + lane],
            sums[5 * LANES + lane] + precision,
        )
        b0 = sums[6 * LANES + lane]
        b1 = sums[7 * LANES + lane]
        b2 = sums[8 * LANES + lane]
        z0, z1, z2 = times_3x3(c00, c01, c02, c11, c12, c22, b0, b1, b2)
        step[lane] = max(abs(z0 - x[i]), abs(z1 - x[j]), abs(z2 - x[k]))
        x[i] = z0
        x[j] = z1
        x[k] = z2
        sums[i] = c00
        sums[j] = c01 + c01
        sums[k] = c02 + c02
        sums[3 * LANES + lane] = c11
        sums[4 * LANES + lane] = c12 + c12
        sums[5 * LANES + lane] = c22


@njit(cache=True, fastmath=SUMS, error_model="numpy")
def _reweigh(l0, l1, l2, y, v, sums, x, noise, least):  # type: ignore[no-untyped-def]
    """Set v = 1 / S for the variances γ that explain the residuals."""
    one = noise / noise
    for j in range(0, y.size, LANES):
        lx = l0[j:]
        ly = l1[j:]
        lz = l2[j:]
        values = y[j:]
        inverse = v[j:]
        for lane in range(LANES):
            p0 = lx[lane]
            p1 = ly[lane]
            p2 = lz[lane]
            r = values[lane] - (p0 * x[lane] + p1 * x[LANES + lane] + p2 * x[2 * LANES + lane])
            q = (
                p0 * (sums[lane] * p0 + sums[LANES + lane] * p1 + sums[2 * LANES + lane] * p2)
                + p1 * (sums[3 * LANES + lane] * p1 + sums[4 * LANES + lane] * p2)
                + p2 * sums[5 * LANES + lane] * p2
            )
            k = one - noise * inverse[lane]  # γ / S
            inverse[lane] = one / (max(k * (k * (r * r + q) + noise), least) + noise)


@njit(cache=True, parallel=True, fastmath=SUMS)
def reweigh(Y, L, n, threshold, redescending, gram, moment, rest):  # type: ignore[no-untyped-def]
    """Weigh the photographs by their residuals, and sum them for a 3 × 3 solve.

    With τ the threshold and ``s = max(r², τ)`` the weights are ``τ/s`` (redescending) or
    ``√(τ/s)``. A pixel without a threshold (τ = 0) keeps weight one.

    Parameters
    ----------
    Y : array (N, d)
        Intensities.
    L : array (1, 3, d) or (N, 3, d)
        Unit lights.
    n : array (N, 3)
        The normals of the residuals.
    threshold : array (N,)
        τ.
    redescending : bool
        Which weights.
    gram : array (N, 6)
        Filled with ``Σ w l lᵀ`` as xx, xy, xz, yy, yz, zz.
    moment : array (N, 3)
        Filled with ``Σ w y l``.
    rest : array (N,)
        Filled with ``Σ w y² + dual``; the dual of a photograph is ``τ log(s/τ)`` or ``√(τ s) − τ``.
    """
    pixels, d = Y.shape
    for i in prange(pixels):
        own = L[min(np.int64(i), len(L) - 1)]
        l0 = own[0]
        l1 = own[1]
        l2 = own[2]
        x0 = n[i, 0]
        x1 = n[i, 1]
        x2 = n[i, 2]
        tau = threshold[i]
        a00 = a01 = a02 = a11 = a12 = a22 = b0 = b1 = b2 = energy = dual = 0.0
        for j in range(d):
            y = np.float64(Y[i, j])
            r = y - (l0[j] * x0 + l1[j] * x1 + l2[j] * x2)
            w = 1.0
            # Inliers have weight 1, so that they count as in least squares.
            if r * r > tau and tau > 0.0:
                if redescending:
                    w = tau / (r * r)
                    dual -= tau * np.log(w)
                else:
                    w = np.sqrt(tau) / abs(r)
                    dual += np.sqrt(tau) * abs(r) - tau
            w0 = w * l0[j]
            w1 = w * l1[j]
            w2 = w * l2[j]
            a00 += w0 * l0[j]
            a01 += w0 * l1[j]
            a02 += w0 * l2[j]
            a11 += w1 * l1[j]
            a12 += w1 * l2[j]
            a22 += w2 * l2[j]
            b0 += w0 * y
            b1 += w1 * y
            b2 += w2 * y
            energy += w * y * y
        gram[i, 0] = a00
        gram[i, 1] = a01
        gram[i, 2] = a02
        gram[i, 3] = a11
        gram[i, 4] = a12
        gram[i, 5] = a22
        moment[i, 0] = b0
        moment[i, 1] = b1
        moment[i, 2] = b2
        rest[i] = energy + dual


@njit(cache=True, fastmath=SUMS)
def _l1_reweight(y, l0, l1, l2, x, floor, tol, max_iter):  # type: ignore[no-untyped-def]
    """Run reweighted least squares from x, in place.

    Return the iterations, negative if not converged.
    """
    for it in range(max_iter):
        a00 = a01 = a02 = a11 = a12 = a22 = b0 = b1 = b2 = 0.0
        x0 = x[0]
        x1 = x[1]
        x2 = x[2]
        for j in range(y.size):
            r = y[j] - (l0[j] * x0 + l1[j] * x1 + l2[j] * x2)
            w = 1.0 / max(abs(r), floor)
            w0 = w * l0[j]
            w1 = w * l1[j]
            w2 = w * l2[j]
            a00 += w0 * l0[j]
            a01 += w0 * l1[j]
            a02 += w0 * l2[j]
            a11 += w1 * l1[j]
            a12 += w1 * l2[j]
            a22 += w2 * l2[j]
            # Use the residual, not y: the solve then gives a small correction, which stays accurate
            # even if the weights differ by six orders of magnitude.
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
    """Invert the 3 × 3 matrix whose rows are the lights of the basis.

    Return False if they are dependent.
    """
    i = basis[0]
    j = basis[1]
    k = basis[2]
    a0 = L[0, i]
    a1 = L[1, i]
    a2 = L[2, i]
    b0 = L[0, j]
    b1 = L[1, j]
    b2 = L[2, j]
    c0 = L[0, k]
    c1 = L[1, k]
    c2 = L[2, k]
    p0 = b1 * c2 - b2 * c1
    p1 = b2 * c0 - b0 * c2
    p2 = b0 * c1 - b1 * c0
    det = a0 * p0 + a1 * p1 + a2 * p2
    if abs(det) < 1e-9:
        return False
    det = 1.0 / det
    inverse[0, 0] = p0 * det
    inverse[1, 0] = p1 * det
    inverse[2, 0] = p2 * det
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
        x[c] = (
            inverse[c, 0] * y[basis[0]] + inverse[c, 1] * y[basis[1]] + inverse[c, 2] * y[basis[2]]
        )


@njit(cache=True)
def _nearest_vertex(r, L, basis, inverse):  # type: ignore[no-untyped-def]
    """Find the three photographs of smallest residual with independent lights.

    Return False if there are none.
    """
    # Near the minimizer the smallest residuals are probably those that become zero.
    order = np.argsort(np.abs(r), kind="mergesort")  # stable: of equal residuals, the first
    for later in range(1, r.size):
        for last in range(later + 1, r.size):
            basis[0] = order[0]
            basis[1] = order[later]
            basis[2] = order[last]
            if _inverse_rows(L, basis, inverse):
                return True
    return False


@njit(cache=True, fastmath=SUMS)
def _residuals_and_signs(y, L, x, basis, r):  # type: ignore[no-untyped-def]
    """Fill r; return the sum of the lights outside the basis times the signs of their residuals."""
    l0 = L[0]
    l1 = L[1]
    l2 = L[2]
    x0 = x[0]
    x1 = x[1]
    x2 = x[2]
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
    """Find where the residuals change sign along the edge e, and what the slope gains there.

    The position is infinite if a residual does not change its sign.
    """
    l0 = L[0]
    l1 = L[1]
    l2 = L[2]
    for j in range(r.size):
        s = l0[j] * e0 + l1[j] * e1 + l2[j] * e2
        t[j] = r[j] / s if r[j] * s > 0.0 else np.inf
        rise[j] = 2.0 * abs(s)


@njit(cache=True)
def _nudge(y, L, out):  # type: ignore[no-untyped-def]
    """Shift y by less than 1e-9, so that no four photographs fit one normal exactly.

    The shift depends on the light, not on its index: the order of the photographs must not matter.
    """
    for j in range(y.size):
        hashed = 1e4 * np.sin(12.9898 * L[0, j] + 78.233 * L[1, j] + 37.719 * L[2, j])
        out[j] = y[j] + 1e-9 * (hashed - np.floor(hashed) - 0.5)


@njit(cache=True)
def _l1_vertex(y, L, x, r, basis, max_steps):  # type: ignore[no-untyped-def]
    """Go from near the minimizer to the minimizer by descent along edges, as in the simplex method.

    A minimizer of ``Σ|y_j − l_j·x|`` fits three photographs exactly. With ``g = Σ sign(r_j) l_j``
    over the others, ``Σ u_b l_b = −g`` gives the multipliers of the three; all ``|u_b| ≤ 1`` proves
    the optimum. Otherwise the worst one leaves, and the cost decreases along the edge of the other
    two until its slope changes sign, where another photograph enters. Returns True at a proven
    optimum, with its three photographs in ``basis``.
    """
    d = y.size
    inverse = np.empty((3, 3))
    u = np.empty(3)
    t = np.empty(d)
    rise = np.empty(d)
    for j in range(d):
        r[j] = y[j] - (L[0, j] * x[0] + L[1, j] * x[1] + L[2, j] * x[2])
    if not _nearest_vertex(r, L, basis, inverse):
        return False
    for _ in range(max_steps):
        _solve_three(inverse, y, basis, x)
        g0, g1, g2 = _residuals_and_signs(y, L, x, basis, r)
        # Beyond ±1, the cost falls if the photograph of this multiplier is no longer fitted.
        leaving = 0
        for b in range(3):
            u[b] = -(g0 * inverse[0, b] + g1 * inverse[1, b] + g2 * inverse[2, b])
            if abs(u[b]) > abs(u[leaving]):
                leaving = b
        if abs(u[leaving]) <= 1.0 + 1e-9:
            return True
        # The edge: l_leaving · e = ±1, and 0 for the two that stay.
        side = -1.0 if u[leaving] > 0.0 else 1.0
        e0 = side * inverse[0, leaving]
        e1 = side * inverse[1, leaving]
        e2 = side * inverse[2, leaving]
        slope = 1.0 - abs(u[leaving])
        # Pass sign changes, nearest first, as long as the cost still falls.
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
    """Return ‖y − Lᵀx‖₁."""
    total = 0.0
    for j in range(y.size):
        total += abs(y[j] - (L[0, j] * x[0] + L[1, j] * x[1] + L[2, j] * x[2]))
    return total


@njit(cache=True, parallel=True)
def l1_regression(Y, lights, start, floor, tol, max_iter, n, iterations):  # type: ignore[no-untyped-def]
    """Solve ``min ‖y − Lᵀn‖₁`` for every pixel: reweighting, then the exact vertex descent.

    Parameters
    ----------
    Y : array (N, d)
        Intensities.
    lights : array (1, 3, d) or (N, 3, d)
        Unit lights.
    start : array (N, 3)
        Normals to begin with.
    floor : float
        Minimum |r| in a weight 1/|r|, relative to the brightness of a pixel.
    tol : float
        The step at which reweighting ends, likewise.
    max_iter : int
        Most reweighting steps.
    n : array (N, 3)
        Filled with the normals.
    iterations : array of int (N,)
        Filled with the reweighting steps; negative if neither method proved convergence.
    """
    pixels, d = Y.shape
    for i in prange(pixels):
        top = 0.0
        for j in range(d):
            top = max(top, abs(np.float64(Y[i, j])))
        if top == 0.0:
            n[i, :] = 0.0
            iterations[i] = 0
            continue
        y = np.empty(d)
        r = np.empty(d)
        x = np.empty(3)
        vertex = np.empty(3)
        for j in range(d):
            y[j] = Y[i, j] / top
        for c in range(3):
            x[c] = start[i, c] / top
        L = lights[min(np.int64(i), len(lights) - 1)]
        steps = _l1_reweight(y, L[0], L[1], L[2], x, floor, tol, max_iter)
        # The vertex is accepted only if it is at least as good as the reweighted answer.
        before = _absolute_sum(y, L, x)
        vertex[:] = x
        basis = np.empty(3, np.int64)
        proven = _l1_vertex(y, L, vertex, r, basis, 4 * d)
        if not proven:
            # With more than three exact fits, rounding decides the signs of the multipliers. Find
            # the optimal basis of a problem shifted by 1e-9, which has none, and solve it with the
            # original intensities.
            nudged = np.empty(d)
            inverse = np.empty((3, 3))
            _nudge(y, L, nudged)
            vertex[:] = x
            proven = _l1_vertex(nudged, L, vertex, r, basis, 4 * d)
            if proven and _inverse_rows(L, basis, inverse):
                _solve_three(inverse, y, basis, vertex)
        if proven and _absolute_sum(y, L, vertex) <= before + 1e-8:
            x[:] = vertex
            steps = abs(steps)
        for c in range(3):
            n[i, c] = x[c] * top
        iterations[i] = steps
