"""Statistics of the piecewise-linear model in one pass over the photographs: compiled, or on tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.reflectance.piecewise.elimination import RIDGE, PiecewiseStatistics
from photostereo.reflectance.projection import tensor_batches
from photostereo.runtime.algebra_kernels import dot, value_range
from photostereo.runtime.arrays import Array, empty, is_tensor, like
from photostereo.runtime.illumination import for_loops, some_lights
from photostereo.runtime.loops import njit, shared


def statistics(
    pixels: Array, lights: NDArray[Any], p: int, from_minimum: bool = False
) -> PiecewiseStatistics:
    """Compute T = CᵀC and Q = CᵀLᵀ of every pixel, in double precision."""
    count = len(pixels)
    gram, cross = empty((count, p, p), pixels), empty((count, p, 3), pixels)
    usable = empty((count,), pixels, "bool")
    if is_tensor(pixels):
        _statistics_of_tensors(pixels, lights, p, from_minimum, gram, cross, usable)
    else:
        _statistics(pixels, for_loops(lights), p, from_minimum, gram, cross, usable)
    return PiecewiseStatistics(gram, cross, usable)


def _statistics_of_tensors(
    pixels: Any, lights: NDArray[Any], p: int, from_minimum: bool, gram: Any, cross: Any, usable: Any
) -> None:
    directions = like(np.asarray(lights.swapaxes(-1, -2), dtype=np.float64), pixels)
    piece = like(np.arange(p, dtype=np.float64), pixels)
    for part in tensor_batches(pixels, copies=p):
        y = pixels[part].double()
        low, high = y.amin(1), y.amax(1)
        usable[part] = (high > 0) & (high > low)
        base = low if from_minimum else 0.0 * low
        step = (high - base) / p
        ends = base[:, None] + (piece + 1) * step[:, None]
        starts = base[:, None] + piece * step[:, None]
        starts[:, 0] = starts[:, 0].clamp(max=0.0)  # the curve starts at the origin
        C = (y[:, None, :] - starts[:, :, None]).clamp(min=0.0).minimum((ends - starts)[:, :, None])
        C *= usable[part][:, None, None]
        gram[part] = C @ C.transpose(1, 2)
        cross[part] = C @ some_lights(directions, part)
    diagonal = gram.diagonal(dim1=1, dim2=2)
    diagonal += RIDGE * diagonal.sum(1, keepdim=True)


@njit(cache=True)
def _cut(values, base, step, pieces):  # type: ignore[no-untyped-def]
    """Split the intensities of one pixel into their parts in each piece."""
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
    pieces = np.empty((p, pixels.shape[1]))  # stays in the L1 cache
    for i in range(first, last):
        low, high = value_range(pixels[i])
        T, Q = gram[i], cross[i]
        usable[i] = high > 0.0 and high > low
        if not usable[i]:
            for k in range(p):  # loops, since Numba takes seconds to compile a slice assignment
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
