"""Compiled per-pixel loops of sparse regression: SBL by expectation maximization, the weighted 3 × 3 solve.

Pixels are processed in parallel, one per lane of the vector instructions: nothing is summed across lanes, and the 3 × 3
algebra runs in all lanes at once. When a pixel has converged, its lane takes the next one, so a finished pixel costs
nothing more. The precision is that of the intensities: single precision changes normals by 1e-4° on average.
"""

from __future__ import annotations

import numpy as np

from photostereo.runtime.algebra import SUMS, inverse_by_cofactors, times_3x3
from photostereo.runtime.loops import njit, prange

#: Pixels in parallel. Relative times of 16, 32, 64, single precision, 24 photographs: 1.18, 1, 0.91; in double with 64, 1.4.
LANES = 32
#: Pixels per thread and turn; at the end of a turn, lanes wait for the last pixel.
CHUNK = 2048
#: The smallest variance of an error.
LEAST_VARIANCE = 1e-10


@njit(cache=True, parallel=True, fastmath=SUMS, error_model="numpy")
def sbl_em(Y, L, scale, noise, prior_variance, tol, settled, max_iter, n, iterations, weights):  # type: ignore[no-untyped-def]
    """Run sparse Bayesian learning of ``y = Lᵀn + e + noise`` per row of Y; fills ``n``, ``iterations``,
    ``weights``.

    A pixel is processed in units of its ``scale``; a pixel of scale 0 saw no light and gets n = 0. ``weights``
    (N × d) receives noise / (noise + γ_j): one for a photograph that fits, near zero for an outlier; pass an
    array with no rows to skip it. ``iterations`` is negative if the last step was not below ``settled``.
    """
    pixels, d = Y.shape
    keep = weights.shape[0] == pixels
    real = Y.dtype.type
    for chunk in prange(-(-pixels // CHUNK)):
        ahead, last = chunk * CHUNK, min((chunk + 1) * CHUNK, pixels)
        # Row j of lights, intensities and v = 1 / S begins at j · LANES; a row of zeros pads to an even number.
        room = LANES * (d + d % 2)
        l0, l1, l2 = np.zeros(room, Y.dtype), np.zeros(room, Y.dtype), np.zeros(room, Y.dtype)
        y, v = np.zeros(room, Y.dtype), np.zeros(room, Y.dtype)
        sums, x, step = np.zeros(9 * LANES, Y.dtype), np.zeros(3 * LANES, Y.dtype), np.zeros(LANES, Y.dtype)
        pixel, done = np.full(LANES, -1), np.zeros(LANES, np.int64)
        while True:
            busy = False
            for lane in range(LANES):
                while pixel[lane] < 0 and ahead < last:
                    if scale[ahead] > 0.0:
                        lights = L[min(ahead, len(L) - 1)]
                        _take(lane, Y[ahead], lights, scale[ahead], noise, l0, l1, l2, y, v, x)
                        pixel[lane], done[lane] = ahead, 0
                    else:
                        n[ahead, 0] = n[ahead, 1] = n[ahead, 2] = 0.0
                        iterations[ahead] = 0
                        for j in range(d if keep else 0):
                            weights[ahead, j] = 1.0
                    ahead += 1
                busy |= pixel[lane] >= 0
            if not busy:
                break
            _sum(l0, l1, l2, y, v, sums)
            _solve(sums, x, step, real(1.0 / prior_variance))
            for lane in range(LANES):
                i = pixel[lane]
                done[lane] += 1
                if i < 0 or (step[lane] >= tol and done[lane] < max_iter):
                    continue
                for c in range(3):
                    n[i, c] = x[c * LANES + lane] * scale[i]
                iterations[i] = done[lane] if step[lane] < max(tol, settled) else -max_iter
                for j in range(d if keep else 0):
                    weights[i, j] = noise * v[j * LANES + lane]
                pixel[lane] = -1
            _reweigh(l0, l1, l2, y, v, sums, x, real(noise), real(LEAST_VARIANCE))


@njit(cache=True)
def _take(lane, values, lights, scale, noise, l0, l1, l2, y, v, x):  # type: ignore[no-untyped-def]
    """Put a pixel into a lane; γ begins at 1."""
    for j in range(values.size):
        k = j * LANES + lane
        l0[k], l1[k], l2[k] = lights[0, j], lights[1, j], lights[2, j]
        y[k] = values[j] / scale
        v[k] = 1.0 / (1.0 + noise)
    for c in range(3):
        x[c * LANES + lane] = 0.0


@njit(cache=True, fastmath=SUMS)
def _sum(l0, l1, l2, y, v, sums):  # type: ignore[no-untyped-def]
    """``L S⁻¹ Lᵀ`` (xx, xy, xz, yy, yz, zz) and ``L S⁻¹ y``, two photographs at a time to halve the stores."""
    for k in range(sums.size):
        sums[k] = 0
    for j in range(0, y.size, 2 * LANES):  # slices tell the compiler that no index is negative
        lx, ly, lz, values, own = l0[j:], l1[j:], l2[j:], y[j:], v[j:]
        for lane in range(LANES):
            next_ = LANES + lane
            p0, p1, p2, q0, q1, q2 = lx[lane], ly[lane], lz[lane], lx[next_], ly[next_], lz[next_]
            a0, a1, a2 = own[lane] * p0, own[lane] * p1, own[lane] * p2
            b0, b1, b2 = own[next_] * q0, own[next_] * q1, own[next_] * q2
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
    """Compute normals x and their largest step; replace the first six sums by the covariance, off-diagonals doubled."""
    for lane in range(LANES):
        i, j, k = lane, LANES + lane, 2 * LANES + lane
        c00, c01, c02, c11, c12, c22 = inverse_by_cofactors(
            sums[i] + precision,
            sums[j],
            sums[k],
            sums[3 * LANES + lane] + precision,
            sums[4 * LANES + lane],
            sums[5 * LANES + lane] + precision,
        )
        b0, b1, b2 = sums[6 * LANES + lane], sums[7 * LANES + lane], sums[8 * LANES + lane]
        z0, z1, z2 = times_3x3(c00, c01, c02, c11, c12, c22, b0, b1, b2)
        step[lane] = max(abs(z0 - x[i]), abs(z1 - x[j]), abs(z2 - x[k]))
        x[i], x[j], x[k] = z0, z1, z2
        sums[i], sums[j], sums[k] = c00, c01 + c01, c02 + c02
        sums[3 * LANES + lane], sums[4 * LANES + lane], sums[5 * LANES + lane] = c11, c12 + c12, c22


@njit(cache=True, fastmath=SUMS, error_model="numpy")
def _reweigh(l0, l1, l2, y, v, sums, x, noise, least):  # type: ignore[no-untyped-def]
    """Set v = 1 / S for the variances γ that explain the residuals."""
    one = noise / noise
    for j in range(0, y.size, LANES):
        lx, ly, lz, values, own = l0[j:], l1[j:], l2[j:], y[j:], v[j:]
        for lane in range(LANES):
            p0, p1, p2 = lx[lane], ly[lane], lz[lane]
            r = values[lane] - (p0 * x[lane] + p1 * x[LANES + lane] + p2 * x[2 * LANES + lane])
            q = (
                p0 * (sums[lane] * p0 + sums[LANES + lane] * p1 + sums[2 * LANES + lane] * p2)
                + p1 * (sums[3 * LANES + lane] * p1 + sums[4 * LANES + lane] * p2)
                + p2 * sums[5 * LANES + lane] * p2
            )
            k = one - noise * own[lane]  # γ / S
            own[lane] = one / (max(k * (k * (r * r + q) + noise), least) + noise)


@njit(cache=True, parallel=True, fastmath=SUMS)
def reweigh(Y, L, n, threshold, redescending, gram, moment, rest):  # type: ignore[no-untyped-def]
    """Compute the weights of the photographs at the normals n, reduced to the sums for the next 3 × 3 solve.

    With τ = threshold and ``s = max(r², τ)`` the weights are ``τ/s`` (redescending) or ``√(τ/s)``. Fills
    ``gram = Σ w l lᵀ`` (xx, xy, xz, yy, yz, zz), ``moment = Σ w y l`` and ``rest = Σ w y² + dual``, where the
    dual of a photograph is ``τ log(s/τ)`` or ``√(τ s) − τ``. A pixel without a threshold (τ = 0) keeps
    weight one.
    """
    pixels, d = Y.shape
    for i in prange(pixels):
        own = L[min(np.int64(i), len(L) - 1)]
        l0, l1, l2 = own[0], own[1], own[2]
        x0, x1, x2 = n[i, 0], n[i, 1], n[i, 2]
        tau = threshold[i]
        a00 = a01 = a02 = a11 = a12 = a22 = b0 = b1 = b2 = energy = dual = 0.0
        for j in range(d):
            y = np.float64(Y[i, j])
            r = y - (l0[j] * x0 + l1[j] * x1 + l2[j] * x2)
            w = 1.0
            if r * r > tau and tau > 0.0:
                if redescending:
                    w = tau / (r * r)
                    dual -= tau * np.log(w)
                else:
                    w = np.sqrt(tau) / abs(r)
                    dual += np.sqrt(tau) * abs(r) - tau
            w0, w1, w2 = w * l0[j], w * l1[j], w * l2[j]
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
        gram[i, 0], gram[i, 1], gram[i, 2] = a00, a01, a02
        gram[i, 3], gram[i, 4], gram[i, 5] = a11, a12, a22
        moment[i, 0], moment[i, 1], moment[i, 2] = b0, b1, b2
        rest[i] = energy + dual
