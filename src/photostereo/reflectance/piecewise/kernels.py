"""Compiled kernels of the piecewise-linear model, and the readable forms they are tested against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.reflectance.algebra_kernels import SUMS, dot, quadratic_3x3, solve_3x3
from photostereo.reflectance.piecewise.statistics import PiecewiseStatistics
from photostereo.runtime.loops import njit, prange

#: Ridge on T relative to its trace: it settles pixels whose pieces are seen by too few photographs.
RIDGE = 1e-9
#: Pixels that a thread takes at a time.
TOGETHER = 256

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Reduced:
    """The data cost with the slopes eliminated: nᵀH n − 2 hᵀn + κ, and a = K n + k.

    Attributes
    ----------
    hessian : (N, 6) H as xx, xy, xz, yy, yz, zz
    linear : (N, 3) h
    constant : (N,) κ
    slopes_of_normals : (N, p, 3) K
    slopes_offset : (N, p) k
    """

    hessian: F64
    linear: F64
    constant: F64
    slopes_of_normals: F64
    slopes_offset: F64


def pieces_matrix(intensities: F64, p: int, from_minimum: bool = False) -> F64:
    """The matrix C of one pixel (d × p), readable: the part of each intensity that lies in each piece.

    >>> pieces_matrix(np.array([0.0, 0.3, 1.0]), 2)
    array([[0. , 0. ],
           [0.3, 0. ],
           [0.5, 0.5]])
    """
    low = float(intensities.min()) if from_minimum else 0.0
    knots = low + np.arange(p + 1) * (float(intensities.max()) - low) / p
    if low > 0:
        knots[0] = (
            0.0  # the curve starts at the origin: the first piece reaches from 0 to the first inner knot
        )
    width = np.diff(knots)
    clipped: F64 = np.clip(intensities[:, None] - knots[None, :-1], 0.0, width[None, :])
    return clipped


def statistics(pixels: NDArray[Any], lights: F64, p: int, from_minimum: bool = False) -> PiecewiseStatistics:
    """T = CᵀC and Q = CᵀLᵀ of every pixel, in one sweep over the photographs."""
    count = len(pixels)
    gram, cross = np.empty((count, p, p)), np.empty((count, p, 3))
    usable = np.empty(count, dtype=np.bool_)
    _statistics(pixels, np.ascontiguousarray(lights, dtype=np.float64), p, from_minimum, gram, cross, usable)
    return PiecewiseStatistics(gram, cross, usable)


@njit(cache=True, fastmath={*SUMS, "nnan"})
def _range(values):  # type: ignore[no-untyped-def]
    """The least and the largest; intensities are numbers."""
    low, high = values[0], values[0]
    for value in values:
        low, high = min(low, value), max(high, value)
    return float(low), float(high)


@njit(cache=True)
def _cut(values, base, step, pieces):  # type: ignore[no-untyped-def]
    """:func:`pieces_matrix` of one pixel, transposed."""
    for k in range(len(pieces)):
        start = 0.0 if k == 0 and base > 0.0 else base + k * step
        width = base + (k + 1) * step - start
        piece = pieces[k]
        for j in range(values.size):
            above = float(values[j]) - start
            above = above if above > 0.0 else 0.0
            piece[j] = above if above < width else width


@njit(cache=True, parallel=True)
def _statistics(pixels, lights, p, from_minimum, gram, cross, usable):  # type: ignore[no-untyped-def]
    count, photographs = pixels.shape
    for part in prange(-(-count // TOGETHER)):
        pieces = np.empty((p, photographs))  # in the first-level cache
        for i in range(part * TOGETHER, min((part + 1) * TOGETHER, count)):
            low, high = _range(pixels[i])
            T, Q = gram[i], cross[i]
            usable[i] = high > 0.0 and high > low
            if not usable[i]:
                for k in range(p):  # loops: Numba takes seconds to compile a slice that is filled
                    for m in range(p):
                        T[k, m] = 0.0
                    for axis in range(3):
                        Q[k, axis] = 0.0
                continue
            base = low if from_minimum else 0.0
            _cut(pixels[i], base, (high - base) / p, pieces)
            trace = 0.0
            for k in range(p):
                for m in range(k + 1):
                    T[k, m] = T[m, k] = dot(pieces[k], pieces[m])
                for axis in range(3):
                    Q[k, axis] = dot(pieces[k], lights[axis])
                trace += T[k, k]
            for k in range(p):
                T[k, k] += RIDGE * trace


@njit(cache=True)
def _cholesky_solve(A, B):  # type: ignore[no-untyped-def]
    """Solve A X = B in place of B for a small symmetric positive definite A, which is overwritten."""
    size, columns = B.shape
    for k in range(size):
        for m in range(k):
            A[k, k] -= A[k, m] * A[k, m]
        A[k, k] = np.sqrt(max(A[k, k], 1e-300))
        for i in range(k + 1, size):
            for m in range(k):
                A[i, k] -= A[i, m] * A[k, m]
            A[i, k] /= A[k, k]
    for c in range(columns):
        for k in range(size):
            for m in range(k):
                B[k, c] -= A[k, m] * B[m, c]
            B[k, c] /= A[k, k]
        for k in range(size - 1, -1, -1):
            for m in range(k + 1, size):
                B[k, c] -= A[m, k] * B[m, c]
            B[k, c] /= A[k, k]


def eliminate_slopes(stats: PiecewiseStatistics, pixels: NDArray[Any], lights: F64, gamma: float) -> Reduced:
    """Minimize over the slopes once and for all; what is left is quadratic in n. See :class:`.model.Piecewise`."""
    count, p = stats.gram.shape[:2]
    reduced = Reduced(
        np.empty((count, 6)),
        np.empty((count, 3)),
        np.empty(count),
        np.empty((count, p, 3)),
        np.empty((count, p)),
    )
    _eliminate(
        stats.gram,
        stats.cross,
        stats.usable,
        pixels,
        np.ascontiguousarray(lights.T, dtype=np.float64),
        lights @ lights.T,
        gamma,
        reduced.hessian,
        reduced.linear,
        reduced.constant,
        reduced.slopes_of_normals,
        reduced.slopes_offset,
    )
    return reduced


@njit(cache=True, parallel=True)
def _eliminate(gram, cross, usable, pixels, lights, lights_gram, gamma, H, h, kappa, K, k0):  # type: ignore[no-untyped-def]
    count, p = gram.shape[0], gram.shape[1]
    for i in prange(count):
        if not usable[i]:  # the Lambertian model: a = 1
            for axis in range(3):
                h[i, axis] = 0.0
            kappa[i] = 0.0
            for j in range(pixels.shape[1]):
                value = float(pixels[i, j])
                kappa[i] += value * value
                for axis in range(3):
                    h[i, axis] += value * lights[j, axis]
            for k in range(p):
                k0[i, k] = 1.0
                for axis in range(3):
                    K[i, k, axis] = 0.0
            entry = 0
            for r in range(3):
                for c in range(r, 3):
                    H[i, entry] = lights_gram[r, c]
                    entry += 1
            continue
        # M = T + γ 11ᵀ by Sherman and Morrison: γ never meets the ridge in one matrix, whose condition
        # would be γ / ridge, and H stays positive semidefinite to rounding.
        T = gram[i].copy()
        X = np.empty((p, 4))
        for k in range(p):
            X[k, 0], X[k, 1], X[k, 2], X[k, 3] = cross[i, k, 0], cross[i, k, 1], cross[i, k, 2], 1.0
        _cholesky_solve(T, X)
        total = 0.0
        sums = np.zeros(3)
        for k in range(p):
            total += X[k, 3]
            for axis in range(3):
                sums[axis] += X[k, axis]
        share = gamma / (1.0 + gamma * total)
        kappa[i] = share * p * p
        for k in range(p):
            k0[i, k] = share * p * X[k, 3]
            for axis in range(3):
                K[i, k, axis] = X[k, axis] - share * X[k, 3] * sums[axis]
        entry = 0
        for r in range(3):
            h[i, r] = share * p * sums[r]
            for c in range(r, 3):
                value = lights_gram[r, c] + share * sums[r] * sums[c]
                for k in range(p):
                    value -= cross[i, k, r] * X[k, c]
                H[i, entry] = value
                entry += 1


def constrained_fit(stats: PiecewiseStatistics, lights_gram: F64, fallback: F64) -> tuple[F64, F64]:
    """Normals and slopes under the exact constraint 1ᵀa = p; the fallback normals where the curve cannot be
    told."""
    count, p = stats.gram.shape[:2]
    normals, slopes = np.empty((count, 3)), np.empty((count, p))
    inverse = np.linalg.inv(lights_gram)
    _constrained_fit(stats.gram, stats.cross, stats.usable, inverse, fallback, normals, slopes)
    return normals, slopes


@njit(cache=True, parallel=True)
def _constrained_fit(gram, cross, usable, inverse, fallback, normals, slopes):  # type: ignore[no-untyped-def]
    count, p = gram.shape[0], gram.shape[1]
    for i in prange(count):
        if not usable[i]:
            for r in range(3):
                normals[i, r] = fallback[i, r]
            for k in range(p):
                slopes[i, k] = 1.0
            continue
        S = gram[i].copy()
        projected = np.zeros((p, 3))
        for k in range(p):
            for r in range(3):
                for c in range(3):
                    projected[k, r] += cross[i, k, c] * inverse[c, r]
        for k in range(p):
            for m in range(p):
                for r in range(3):
                    S[k, m] -= projected[k, r] * cross[i, m, r]
        X = np.ones((p, 1))
        _cholesky_solve(S, X)
        total = 0.0
        for k in range(p):
            total += X[k, 0]
        for k in range(p):
            slopes[i, k] = p * X[k, 0] / total
        for r in range(3):
            normals[i, r] = 0.0
            for k in range(p):
                normals[i, r] += projected[k, r] * slopes[i, k]


@njit(cache=True, parallel=True)
def pulled_normals(hessian, linear, shift, pull, normals):  # type: ignore[no-untyped-def]
    """(H + shift I) n = h + pull for every pixel."""
    for i in prange(len(normals)):
        xx, yy, zz = hessian[i, 0] + shift[i], hessian[i, 3] + shift[i], hessian[i, 5] + shift[i]
        xy, xz, yz = hessian[i, 1], hessian[i, 2], hessian[i, 4]
        b0, b1, b2 = linear[i, 0] + pull[i, 0], linear[i, 1] + pull[i, 1], linear[i, 2] + pull[i, 2]
        normals[i, 0], normals[i, 1], normals[i, 2] = solve_3x3(xx, xy, xz, yy, yz, zz, b0, b1, b2)


@njit(cache=True, parallel=True)
def slopes_of(normals, of_normals, offset, slopes):  # type: ignore[no-untyped-def]
    """a = K n + k for every pixel."""
    for i in prange(len(normals)):
        for k in range(slopes.shape[1]):
            slopes[i, k] = offset[i, k] + (
                of_normals[i, k, 0] * normals[i, 0]
                + of_normals[i, k, 1] * normals[i, 1]
                + of_normals[i, k, 2] * normals[i, 2]
            )


@njit(cache=True, parallel=True)
def costs_of(normals, hessian, linear, constant, costs):  # type: ignore[no-untyped-def]
    """nᵀH n − 2 hᵀn + κ of every pixel; summed outside, so that the sum does not depend on the threads."""
    for i in prange(len(normals)):
        x, y, z = normals[i, 0], normals[i, 1], normals[i, 2]
        H = hessian[i]
        value = quadratic_3x3(H[0], H[1], H[2], H[3], H[4], H[5], x, y, z)
        costs[i] = value - 2.0 * (linear[i, 0] * x + linear[i, 1] * y + linear[i, 2] * z) + constant[i]
