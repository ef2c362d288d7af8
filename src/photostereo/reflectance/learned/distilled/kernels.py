"""Compiled loops of the distilled network: steps of its training, and its answers."""

import numpy as np

from photostereo.runtime.loops import njit
from photostereo.runtime.small_matmul import multiply

#: Adam's decay rate of the mean gradient, the usual one.
MEAN = 0.9
#: Adam's decay rate of the mean squared gradient: shorter than the usual 0.999, because training
#: takes few steps.
SQUARE = 0.98
#: Adam's constant against division by zero, the usual one.
TINY = 1e-8
#: Pixels that a thread passes through the layers together: their activations stay in its cache.
TOGETHER = 64


@njit(fastmath=True, error_model="numpy", cache=True)
def _through(x, matrix, offset, out, positive):  # type: ignore[no-untyped-def]
    """Compute x W + b, or its positive part."""
    multiply(x, matrix, out)
    least = np.float32(0.0) if positive else np.float32(-np.inf)
    for row in range(len(out)):
        for column in range(out.shape[1]):
            out[row, column] = max(out[row, column] + offset[column], least)


@njit(fastmath=True, error_model="numpy", cache=True)
def _slope(x, back, matrix, offset):  # type: ignore[no-untyped-def]
    """Compute xᵀ times the incoming gradient, and its sum."""
    multiply(x.T, back, matrix)
    offset[:] = np.float32(0.0)
    for row in range(len(back)):
        for j in range(back.shape[1]):
            offset[j] += back[row, j]


@njit(fastmath=True, error_model="numpy", cache=True)
def _loss_slope(y, goals, weights, batch):  # type: ignore[no-untyped-def]
    """Replace outputs y by the gradient of the mean Charbonnier loss of their weighted deviations."""
    size = len(batch)
    for row in range(size):
        sample = batch[row]
        total = np.float32(0.0)
        for j in range(4):
            y[row, j] = (y[row, j] - goals[sample, j]) * weights[sample, j]
            total += y[row, j] * y[row, j]
        total = np.float32(1.0) / (
            np.float32(size) * np.sqrt(np.float32(1.0) + np.float32(4.0) * total)
        )
        for j in range(4):
            y[row, j] *= weights[sample, j] * total


@njit(fastmath=True, error_model="numpy", cache=True)
def steps_down(samples, goals, weights, batches, rates, layers, slopes, vectors):  # type: ignore[no-untyped-def]
    """Take one step of Adam for each row of ``batches``, in place.

    Parameters
    ----------
    samples : array (N, F)
        Standardized inputs.
    goals : array (N, 4)
        Outputs to learn.
    weights : array (N, 4)
        Of their deviations.
    batches : array of int (steps, B)
        The samples of each step.
    rates : array (steps,)
        The learning rate of each step.
    layers, slopes : three pairs of arrays
        Matrices and offsets, and their gradients: views of the first two ``vectors``.
    vectors : four arrays
        All weights, their gradients, and Adam's means of gradients and of squared gradients.
    """
    (w0, b0), (w1, b1), (w2, b2) = layers
    (w0_slope, b0_slope), (w1_slope, b1_slope), (w2_slope, b2_slope) = slopes
    size = batches.shape[1]
    width = w1.shape[0]
    x = np.empty((size, w0.shape[0]), np.float32)
    y = np.empty((size, 4), np.float32)
    first = np.empty((size, width), np.float32)
    second = np.empty((size, width), np.float32)
    back2 = np.empty((size, width), np.float32)
    back1 = np.empty((size, width), np.float32)
    turned2 = np.empty((4, width), np.float32)
    turned1 = np.empty((width, width), np.float32)
    numbers, slope, mean, square = vectors
    for step in range(len(batches)):
        for row in range(size):
            x[row] = samples[batches[step, row]]
        _through(x, w0, b0, first, True)
        _through(first, w1, b1, second, True)
        _through(second, w2, b2, y, False)
        _loss_slope(y, goals, weights, batches[step])
        _slope(second, y, w2_slope, b2_slope)
        turned2[:] = w2.T
        multiply(y, turned2, back2)
        back2 *= second > 0
        _slope(first, back2, w1_slope, b1_slope)
        turned1[:] = w1.T
        multiply(back2, turned1, back1)
        back1 *= first > 0
        _slope(x, back1, w0_slope, b0_slope)
        rate = np.float32(rates[step])
        for i in range(len(numbers)):
            mean[i] += np.float32(1.0 - MEAN) * (slope[i] - mean[i])
            square[i] += np.float32(1.0 - SQUARE) * (slope[i] * slope[i] - square[i])
            numbers[i] -= rate * mean[i] / (np.sqrt(square[i]) + np.float32(TINY))


@njit(fastmath=True, error_model="numpy", cache=True)
def answers(samples, layers, miss, outputs):  # type: ignore[no-untyped-def]
    """Compute the outputs of one network.

    Fills ``outputs`` (N, 5) for ``samples`` (N, F): the normal, the logarithm of its expected
    error, and that of the expected deviation.
    """
    (w0, b0), (w1, b1), (w2, b2) = layers
    width = w1.shape[0]
    first = np.empty((TOGETHER, width), np.float32)
    second = np.empty((TOGETHER, width), np.float32)
    last = np.empty((TOGETHER, 4), np.float32)
    for begin in range(0, len(samples), TOGETHER):
        n = min(TOGETHER, len(samples) - begin)
        _through(samples[begin : begin + n], w0, b0, first[:n], True)
        _through(first[:n], w1, b1, second[:n], True)
        _through(second[:n], w2, b2, last[:n], False)
        for q in range(n):
            far = miss[width]
            for j in range(width):
                far += second[q, j] * miss[j]
            for j in range(4):
                outputs[begin + q, j] = last[q, j]
            outputs[begin + q, 4] = far
