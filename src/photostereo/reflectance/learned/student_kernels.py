"""The small network of one capture, compiled: steps of its learning, and its answers."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads as get_num_threads
from numpy.typing import NDArray

from photostereo.reflectance.learned.kernels import MULTIPLICATIONS, _multiply
from photostereo.runtime.loops import njit, prange

Floats = NDArray[np.float32]
#: A matrix and an offset, three times.
Layers = tuple[tuple[Floats, Floats], tuple[Floats, Floats], tuple[Floats, Floats]]

#: Adam's memory of slopes and of their squares, and what is added to their root.
MEAN, SQUARE, TINY = 0.9, 0.98, 1e-8


@njit(fastmath=True, error_model="numpy", cache=True)  # type: ignore[untyped-decorator]
def _through(x: Floats, matrix: Floats, offset: Floats, out: Floats, positive: bool) -> None:
    """x W + b, or what of it is positive."""
    _multiply(x, matrix, out)
    least = np.float32(0.0) if positive else np.float32(-np.inf)
    for row in range(len(out)):
        for column in range(out.shape[1]):
            out[row, column] = max(out[row, column] + offset[column], least)


@njit(fastmath=True, error_model="numpy", cache=True)  # type: ignore[untyped-decorator]
def _slope(x: Floats, back: Floats, part: Floats, matrix: Floats, offset: Floats) -> None:
    """xᵀ times what came back, and its sum, in slices of so few rows that BLAS does not start threads."""
    rows = max(1, MULTIPLICATIONS // matrix.size - 1)
    matrix[:] = np.float32(0.0)
    offset[:] = np.float32(0.0)
    for first in range(0, len(x), rows):
        np.dot(x[first : first + rows].T, back[first : first + rows], part)
        for i in range(matrix.shape[0]):
            for j in range(matrix.shape[1]):
                matrix[i, j] += part[i, j]
    for row in range(len(back)):
        for j in range(back.shape[1]):
            offset[j] += back[row, j]


@njit(fastmath=True, error_model="numpy", cache=True)  # type: ignore[untyped-decorator]
def descend(
    shown: Floats,
    taught: Floats,
    weight: Floats,
    batches: NDArray[np.intp],
    rates: NDArray[np.float64],
    layers: Layers,
    slopes: Layers,
    vectors: tuple[Floats, Floats, Floats, Floats],
) -> None:
    """One step for each row of ``batches``: all numbers, their slopes, and Adam's means are in ``vectors``."""
    (w0, b0), (w1, b1), (w2, b2) = layers
    size, width = batches.shape[1], w1.shape[0]
    x, y = np.empty((size, w0.shape[0]), np.float32), np.empty((size, 4), np.float32)
    first, second = np.empty((size, width), np.float32), np.empty((size, width), np.float32)
    back2, back1 = np.empty((size, width), np.float32), np.empty((size, width), np.float32)
    parts = (np.empty_like(w0), np.empty_like(w1), np.empty_like(w2))
    turned2, turned1 = np.empty((4, width), np.float32), np.empty((width, width), np.float32)
    numbers, slope, mean, square = vectors
    for step in range(len(batches)):
        for row in range(size):
            x[row] = shown[batches[step, row]]
        _through(x, w0, b0, first, True)
        _through(first, w1, b1, second, True)
        _through(second, w2, b2, y, False)
        for row in range(size):
            one, total = batches[step, row], np.float32(0.0)
            for j in range(4):
                y[row, j] = (y[row, j] - taught[one, j]) * weight[one, j]
                total += y[row, j] * y[row, j]
            total = np.float32(1.0) / (np.float32(size) * np.sqrt(np.float32(1.0) + np.float32(4.0) * total))
            for j in range(4):
                y[row, j] *= weight[one, j] * total
        _slope(second, y, parts[2], slopes[2][0], slopes[2][1])
        turned2[:] = w2.T
        _multiply(y, turned2, back2)
        back2 *= second > 0
        _slope(first, back2, parts[1], slopes[1][0], slopes[1][1])
        turned1[:] = w1.T
        _multiply(back2, turned1, back1)
        back1 *= first > 0
        _slope(x, back1, parts[0], slopes[0][0], slopes[0][1])
        rate = np.float32(rates[step])
        for i in range(len(numbers)):
            mean[i] += np.float32(1.0 - MEAN) * (slope[i] - mean[i])
            square[i] += np.float32(1.0 - SQUARE) * (slope[i] * slope[i] - square[i])
            numbers[i] -= rate * mean[i] / (np.sqrt(square[i]) + np.float32(TINY))


@njit(parallel=True, fastmath=True, error_model="numpy", cache=True)  # type: ignore[untyped-decorator]
def answers(shown: Floats, layers: Layers, miss: Floats, workers: int, found: Floats) -> None:
    """Normal, logarithm of its expected error, and that of the expected miss (N, 5) of inputs (N, F)."""
    (w0, b0), (w1, b1), (w2, b2) = layers
    width = w1.shape[0]
    together = max(1, MULTIPLICATIONS // w1.size - 1)
    for worker in prange(workers):
        first, second = np.empty((together, width), np.float32), np.empty((together, width), np.float32)
        last = np.empty((together, 4), np.float32)
        begin = np.int64(worker) * len(shown) // workers
        stop = (np.int64(worker) + 1) * len(shown) // workers
        while begin < stop:
            n = min(np.int64(together), stop - begin)
            _through(shown[begin : begin + n], w0, b0, first[:n], True)
            _through(first[:n], w1, b1, second[:n], True)
            _through(second[:n], w2, b2, last[:n], False)
            for q in range(n):
                far = miss[width]
                for j in range(width):
                    far += second[q, j] * miss[j]
                for j in range(4):
                    found[begin + q, j] = last[q, j]
                found[begin + q, 4] = far
            begin += n
