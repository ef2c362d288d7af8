"""Compiled kernels of the piecewise-linear model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.reflectance.algebra_kernels import dot, quadratic_3x3, value_range
from photostereo.reflectance.piecewise.elimination import RIDGE, PiecewiseStatistics
from photostereo.runtime.illumination import for_loops
from photostereo.runtime.loops import njit, shared

F64 = NDArray[np.float64]


def statistics(pixels: NDArray[Any], lights: F64, p: int, from_minimum: bool = False) -> PiecewiseStatistics:
    """T = CᵀC and Q = CᵀLᵀ of every pixel, in one sweep over the photographs."""
    count = len(pixels)
    gram, cross = np.empty((count, p, p)), np.empty((count, p, 3))
    usable = np.empty(count, dtype=np.bool_)
    _statistics(pixels, for_loops(lights), p, from_minimum, gram, cross, usable)
    return PiecewiseStatistics(gram, cross, usable)


@njit(cache=True)
def _cut(values, base, step, pieces):  # type: ignore[no-untyped-def]
    """The part of each intensity of one pixel that lies in each piece."""
    for k in range(len(pieces)):
        start = 0.0 if k == 0 and base > 0.0 else base + k * step
        width = base + (k + 1) * step - start
        piece = pieces[k]
        for j in range(values.size):
            above = float(values[j]) - start
            above = above if above > 0.0 else 0.0
            piece[j] = above if above < width else width


@shared(of="pixels")
def _statistics(first, last, pixels, lights, p, from_minimum, gram, cross, usable):  # type: ignore[no-untyped-def]
    pieces = np.empty((p, pixels.shape[1]))  # in the first-level cache
    for i in range(first, last):
        low, high = value_range(pixels[i])
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
                Q[k, axis] = dot(pieces[k], lights[min(i, len(lights) - 1), axis])
            trace += T[k, k]
        for k in range(p):
            T[k, k] += RIDGE * trace


@shared(of="normals")
def slopes_of(first, last, normals, of_normals, offset, slopes):  # type: ignore[no-untyped-def]
    """a = K n + k for every pixel."""
    for i in range(first, last):
        for k in range(slopes.shape[1]):
            slopes[i, k] = offset[i, k] + (
                of_normals[i, k, 0] * normals[i, 0]
                + of_normals[i, k, 1] * normals[i, 1]
                + of_normals[i, k, 2] * normals[i, 2]
            )


@shared(of="normals")
def costs_of(first, last, normals, hessian, linear, constant, costs):  # type: ignore[no-untyped-def]
    """nᵀH n − 2 hᵀn + κ of every pixel; summed outside, so that the sum does not depend on the threads."""
    for i in range(first, last):
        x, y, z = normals[i, 0], normals[i, 1], normals[i, 2]
        H = hessian[i]
        value = quadratic_3x3(H[0], H[1], H[2], H[3], H[4], H[5], x, y, z)
        costs[i] = value - 2.0 * (linear[i, 0] * x + linear[i, 1] * y + linear[i, 2] * z) + constant[i]
