"""Compiled per-pixel loops of sparse regression: SBL by expectation maximization, the weighted 3 × 3 solve.

Every pixel runs alone until it has converged, so a finished pixel costs nothing more, and the work is split
over the cores by pixel. One iteration is one pass over the d photographs, with a handful of sums in
registers: linear in d, and no memory beyond a few d-vectors per thread, which are filled up with zeros so that no entry is
left over by the vector instructions.
"""

from __future__ import annotations

import numpy as np

from photostereo.reflectance.algebra_kernels import SUMS, inverse_by_cofactors, times_3x3
from photostereo.runtime.loops import njit, prange

#: Entries that vector instructions take at a time.
LANES = 8


@njit(cache=True, parallel=True, fastmath=SUMS, error_model="numpy")
def sbl_em(Y, L, scale, noise, prior_variance, tol, settled, max_iter, n, iterations, weights):  # type: ignore[no-untyped-def]
    """Sparse Bayesian learning of ``y = Lᵀn + e + noise`` per row of Y; fills ``n``, ``iterations``,
    ``weights``.

    A pixel is worked on in units of its ``scale``; one of scale 0 saw no light and gets n = 0. ``weights``
    (N × d) receives noise / (noise + γ_j): one for a photograph that fits, near zero for an outlier; pass an
    array with no rows to do without. ``iterations`` is negative where the last step was not below
    ``settled``.
    """
    pixels, d = Y.shape
    keep = weights.shape[0] == pixels
    precision = 1.0 / prior_variance
    wide = -(-d // LANES) * LANES
    for i in prange(pixels):
        own = L[min(np.int64(i), len(L) - 1)]
        top = scale[i]
        if top == 0.0:
            n[i, :] = 0.0
            iterations[i] = 0
            if keep:
                weights[i, :] = 1.0
            continue
        l0, l1, l2 = np.zeros(wide), np.zeros(wide), np.zeros(wide)
        y, v = np.zeros(wide), np.zeros(wide)  # v = 1 / S; γ begins at 1
        for j in range(d):
            l0[j], l1[j], l2[j] = own[0, j], own[1, j], own[2, j]
            y[j] = Y[i, j] / top
            v[j] = 1.0 / (1.0 + noise)
        x0 = x1 = x2 = 0.0
        done = -max_iter
        step = np.inf
        for it in range(max_iter):
            a00 = a01 = a02 = a11 = a12 = a22 = b0 = b1 = b2 = 0.0
            for j in range(wide):
                v0, v1, v2 = v[j] * l0[j], v[j] * l1[j], v[j] * l2[j]
                a00 += v0 * l0[j]
                a01 += v0 * l1[j]
                a02 += v0 * l2[j]
                a11 += v1 * l1[j]
                a12 += v1 * l2[j]
                a22 += v2 * l2[j]
                b0 += v0 * y[j]
                b1 += v1 * y[j]
                b2 += v2 * y[j]
            c00, c01, c02, c11, c12, c22 = inverse_by_cofactors(
                a00 + precision, a01, a02, a11 + precision, a12, a22 + precision
            )
            z0, z1, z2 = times_3x3(c00, c01, c02, c11, c12, c22, b0, b1, b2)
            step = max(abs(z0 - x0), abs(z1 - x1), abs(z2 - x2))
            x0, x1, x2 = z0, z1, z2
            if step < tol:
                done = it + 1
                break
            for j in range(wide):
                p0, p1, p2 = l0[j], l1[j], l2[j]
                r = y[j] - (p0 * x0 + p1 * x1 + p2 * x2)
                q = (
                    p0 * (c00 * p0 + 2.0 * (c01 * p1 + c02 * p2))
                    + p1 * (c11 * p1 + 2.0 * c12 * p2)
                    + p2 * c22 * p2
                )
                k = 1.0 - noise * v[j]  # γ / S
                g = max(k * (k * (r * r + q) + noise), 1e-10)
                v[j] = 1.0 / (g + noise)
        n[i, 0] = x0 * top
        n[i, 1] = x1 * top
        n[i, 2] = x2 * top
        iterations[i] = max_iter if done < 0 and step < settled else done
        if keep:
            for j in range(d):
                weights[i, j] = noise * v[j]


@njit(cache=True, parallel=True, fastmath=SUMS)
def reweigh(Y, L, n, threshold, redescending, gram, moment, rest):  # type: ignore[no-untyped-def]
    """Weights of every photograph at the normals n, reduced at once to what the next 3 × 3 solve needs.

    With τ = threshold and ``s = max(r², τ)`` the weights are ``τ/s`` (redescending) or ``√(τ/s)``. Fills
    ``gram = Σ w l lᵀ`` (xx, xy, xz, yy, yz, zz), ``moment = Σ w y l`` and ``rest = Σ w y² + dual``, where the
    dual of a photograph is ``τ log(s/τ)`` or ``√(τ s) − τ``. A pixel without a threshold (τ = 0) keeps
    weight one.
    """
    pixels, d = Y.shape
    for i in prange(pixels):
        own = L[min(np.int64(i), len(L) - 1)]
        l0 = own[0]
        l1 = own[1]
        l2 = own[2]
        tau = threshold[i]
        x0 = n[i, 0]
        x1 = n[i, 1]
        x2 = n[i, 2]
        a00 = a01 = a02 = a11 = a12 = a22 = b0 = b1 = b2 = energy = 0.0
        dual = 0.0
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
