"""A small network for one capture that replaces the set network where it can.

The set network covers every material and every arrangement of lights. One capture has few materials and one arrangement,
so the output of the set network is a simple function of a pixel's intensities. Two layers learn it from the outputs on a
sample of the pixels, at a twentieth of the work for each remaining pixel. A regression on the last layer predicts the
deviation from the set network's normal. Two small networks are trained, which differ on inputs that neither has seen. If
the predicted deviation or their difference is too large, the pixel is left to the set network.

The small network averages over similar pixels, so part of its deviation is the noise in the outputs of the set network.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, Float32, Indices
from photostereo.reflectance.learned.matte import Witness
from photostereo.runtime.loops import njit
from photostereo.runtime.products import multiply
from photostereo.runtime.threads import in_turn

#: A matrix and an offset.
Layer = tuple[Float32, Float32]
Layers = tuple[Layer, Layer, Layer]

#: Smaller captures are left to the set network: learning would take as long.
LEAST_PIXELS = 600_000
#: Training samples visited, per pixel of the capture and at most; twice as many reduce the share of pixels left to the
#: set network by a fifth.
VISITS = 0.6
MOST_VISITS = 2_500_000
#: Width of a layer, batch size, and initial learning rate.
WIDTH = 96
BATCH = 256
RATE = 4e-3
#: Adam's decay rates of gradients and of their squares, and the constant added to their root.
MEAN = 0.9
SQUARE = 0.98
TINY = 1e-8
#: Steps until that rate is reached, and between two checks for cancellation.
WARM_UP = 50
#: A pixel is left to the set network if its expected squared deviation is above FAR times the squared expected error, or
#: in the WORST share of the sample and above NEAR. On five scenes with up to three materials and noise of 0.3 to 2 %, errors
#: are 0.96 to 1.00 times those of the set network alone, which handles a fifth to a third of the pixels up to 1 % of noise;
#: without any limit, up to 1.04 times.
FAR = 0.25
WORST = 0.2
NEAR = 0.05
#: Two networks differ by about twice the squared deviation on a pixel like those seen; more means it is unlike them.
APART = 4.0
#: Values of ``half`` in v / (v + half), with v the intensities divided by their root mean square.
HALVES = (0.5, 0.1)
#: Number of pixels for estimating the deviation of a student.
JUDGED = 50_000
#: Pixels that a thread processes at once, and in its cache.
AT_ONCE = 32_768
TOGETHER = 64


@dataclass(frozen=True, eq=False)
class Student:
    """Two small networks, trained independently from different initial weights."""

    #: center, scale: of the inputs
    center: Float32
    scale: Float32
    #: three layers each; the last gives the normal and the logarithm of its expected error
    networks: list[Layers]
    #: for each, weights of the last hidden layer and a constant that predict the logarithm of the squared
    #: deviation over the squared expected error
    misses: list[Float32]
    limit: float  #: of that logarithm, above which the set network is used

    def answer(
        self,
        pixels: Float32,
        colors: Float32 | None,
        matte: Witness,
        which: Indices,
        control: Control,
    ) -> tuple[Float32, Float32, BoolArray]:
        """Return normals and expected errors of the pixels ``which``, and whether they can be trusted."""
        normals = np.empty((len(which), 3), np.float32)
        errors = np.empty(len(which), np.float32)
        trusted = np.empty(len(which), np.bool_)

        def tell(number: int) -> None:
            part = slice(number * AT_ONCE, (number + 1) * AT_ONCE)
            some = which[part]
            shown = inputs(pixels[some], None if colors is None else colors[some], matte.some(some))
            one, other = self.tell((shown - self.center) / self.scale)
            found = 0.5 * (one + other)
            length = np.linalg.norm(found[:, :3], axis=1)
            normals[part] = found[:, :3] / np.maximum(length, 1e-6)[:, None]
            errors[part] = np.exp(found[:, 3])
            apart = ((one - other)[:, :3] ** 2).sum(1) / errors[part] ** 2
            trusted[part] = (found[:, 4] < self.limit) & (apart < APART * np.exp(self.limit))

        for _ in in_turn(tell, -(-len(which) // AT_ONCE), get_num_threads(), control):
            control.check()
        return normals, errors, trusted

    def tell(self, shown: Float32) -> list[Float32]:
        """Return the outputs (N, 5) of both networks for standardized inputs."""
        found = [np.empty((len(shown), 5), np.float32) for _ in self.networks]
        for layers, miss, out in zip(self.networks, self.misses, found, strict=True):
            answers(shown, layers, miss, out)
        return found


def learn(
    pixels: Float32,
    colors: Float32 | None,
    matte: Witness,
    network: Witness,
    noise: NDArray[Any],
    captured: int,
    control: Control = SILENT,
) -> Student | None:
    """Train a student on the network's answers for a sample of ``captured`` pixels; None if there are too few. ``noise``
    (N,) is the variance of the network's normals due to noise, which does not count as a deviation."""
    known = np.flatnonzero(np.isfinite(network.variance))
    if captured < LEAST_PIXELS or len(known) < 10 * BATCH:
        return None
    shown = inputs(pixels[known], None if colors is None else colors[known], matte.some(known))
    center = shown.mean(0)
    scale = shown.std(0) + np.float32(1e-3)
    shown = (shown - center) / scale
    variance = network.variance[known]
    taught = np.concatenate([network.normals[known], 0.5 * np.log(variance)[:, None]], 1).astype(
        np.float32
    )
    middle = taught.mean(0)
    spread = taught.std(0) + np.float32(1e-6)
    # Errors are relative to the expected error; errors of the expected error itself have less weight.
    weight = (
        np.sqrt(np.median(variance) / variance)
        .clip(0.2, 3.0)[:, None]
        .repeat(4, 1)
        .astype(np.float32)
    )
    weight[:, 3] = 0.2
    lesson = (shown, (taught - middle) / spread, weight, min(int(VISITS * captured), MOST_VISITS))
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(_descend, *lesson, seed, control) for seed in (0, 1)]
        networks = [job.result() for job in waiting]
    networks = [
        (one, two, (last[0] * spread, last[1] * spread + middle)) for one, two, last in networks
    ]
    nothing = [np.zeros(WIDTH + 1, np.float32)] * 2
    some = slice(0, None, 1 + len(known) // JUDGED)
    shown = shown[some].copy()
    taught = taught[some]
    variance = variance[some]
    control.check()
    one, other = Student(center, scale, networks, nothing, 0.0).tell(shown)
    control.check()
    far = ((0.5 * (one + other)[:, :3] - taught[:, :3]) ** 2).sum(1)
    far = (far - noise[known[some]]).clip(0.0) / variance
    misses = []
    expected = np.zeros(len(shown))
    for first, second, _ in networks:
        hidden = np.maximum(
            np.maximum(shown @ first[0] + first[1], 0.0) @ second[0] + second[1], 0.0
        )
        misses.append(control.aside(partial(_miss, hidden, far)))
        expected += 0.5 * (hidden @ misses[-1][:-1] + misses[-1][-1])
    limit = min(np.log(FAR), max(np.log(NEAR), float(np.quantile(expected, 1.0 - WORST))))
    return Student(center, scale, networks, misses, limit)


def inputs(pixels: Float32, colors: Float32 | None, matte: Witness) -> Float32:
    """Inputs of a student for N pixels: compressed intensities, also of two channels for colors, and the matte fit."""
    scale = 1.0 / np.sqrt((pixels * pixels).mean(1, keepdims=True) + np.float32(1e-12))
    v = np.maximum(pixels * scale, 0.0)
    parts = [v / (v + np.float32(half)) for half in HALVES]
    if colors is not None:
        for channel in (0, 2):
            v = np.maximum(colors[..., channel] * scale, 0.0)
            parts.append(v / (v + np.float32(HALVES[0])))
    parts += [matte.normals, np.log(matte.variance).clip(-12.0, 2.0)[:, None]]
    return np.concatenate(parts, 1, dtype=np.float32)


def _descend(
    shown: Float32, taught: Float32, weight: Float32, visits: int, seed: int, control: Control
) -> Layers:
    """Train layers that map ``shown`` (N, F) to ``taught`` (N, 4): Adam, Charbonnier loss, rate falling to zero."""
    rng = np.random.default_rng(seed)
    sizes = [(shown.shape[1], WIDTH), (WIDTH, WIDTH), (WIDTH, 4)]
    # All weights are in one vector, and so are their gradients.
    count = sum((rows + 1) * columns for rows, columns in sizes)
    vectors = tuple(np.zeros(count, np.float32) for _ in range(4))
    layers = _views(vectors[0], sizes)
    slopes = _views(vectors[1], sizes)
    for (matrix, _), (rows, _) in zip(layers, sizes, strict=True):
        matrix[:] = rng.standard_normal(matrix.shape) * np.sqrt(2.0 / rows)
    layers[2][0][:] *= 0.1
    steps = max(1, visits // BATCH)
    step = np.arange(1, steps + 1)
    rates = RATE * 0.5 * (1.0 + np.cos(np.pi * step / steps)) * np.minimum(1.0, step / WARM_UP)
    rates *= np.sqrt(1.0 - SQUARE**step) / (1.0 - MEAN**step)
    each = len(shown) // BATCH
    for first in range(0, steps, each):  # each sample at most once per epoch
        order = rng.permutation(len(shown))[: each * BATCH].reshape(each, BATCH)[: steps - first]
        for some in range(0, len(order), WARM_UP):
            part = slice(some, some + WARM_UP)
            now = slice(first + some, first + min(some + WARM_UP, len(order)))
            steps_down(shown, taught, weight, order[part], rates[now], layers, slopes, vectors)
            control.check()
    return layers


def _views(numbers: Float32, sizes: list[tuple[int, int]]) -> Layers:
    """Views of the matrices and offsets in one vector."""
    found = []
    at = 0
    for rows, columns in sizes:
        end = at + rows * columns
        found.append((numbers[at:end].reshape(rows, columns), numbers[end : end + columns]))
        at = end + columns
    return found[0], found[1], found[2]


def _miss(hidden: Float32, far: NDArray[Any]) -> Float32:
    """Fit weights and a constant that predict log ``far`` (N,), unbiased in the mean of ``far``, up to 4 times FAR."""
    far = np.minimum(far, 4.0 * FAR)
    ones = np.concatenate([hidden, np.ones((len(hidden), 1), np.float32)], 1)
    gram = (ones.T @ ones).astype(np.float64) + 1e-3 * len(ones) * np.eye(ones.shape[1])
    found = np.linalg.solve(gram, ones.T @ np.log(far + 1e-3).astype(np.float32))
    found[-1] += np.log(float((far * np.exp(-ones @ found)).mean()))
    return np.asarray(found, dtype=np.float32)


# The loops.


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
def steps_down(shown, taught, weight, batches, rates, layers, slopes, vectors):  # type: ignore[no-untyped-def]
    """Take one step for each row of ``batches``; ``vectors`` holds weights, gradients and Adam's means."""
    (w0, b0), (w1, b1), (w2, b2) = layers
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
            x[row] = shown[batches[step, row]]
        _through(x, w0, b0, first, True)
        _through(first, w1, b1, second, True)
        _through(second, w2, b2, y, False)
        for row in range(size):
            one = batches[step, row]
            total = np.float32(0.0)
            for j in range(4):
                y[row, j] = (y[row, j] - taught[one, j]) * weight[one, j]
                total += y[row, j] * y[row, j]
            total = np.float32(1.0) / (
                np.float32(size) * np.sqrt(np.float32(1.0) + np.float32(4.0) * total)
            )
            for j in range(4):
                y[row, j] *= weight[one, j] * total
        _slope(second, y, slopes[2][0], slopes[2][1])
        turned2[:] = w2.T
        multiply(y, turned2, back2)
        back2 *= second > 0
        _slope(first, back2, slopes[1][0], slopes[1][1])
        turned1[:] = w1.T
        multiply(back2, turned1, back1)
        back1 *= first > 0
        _slope(x, back1, slopes[0][0], slopes[0][1])
        rate = np.float32(rates[step])
        for i in range(len(numbers)):
            mean[i] += np.float32(1.0 - MEAN) * (slope[i] - mean[i])
            square[i] += np.float32(1.0 - SQUARE) * (slope[i] * slope[i] - square[i])
            numbers[i] -= rate * mean[i] / (np.sqrt(square[i]) + np.float32(TINY))


@njit(fastmath=True, error_model="numpy", cache=True)
def answers(shown, layers, miss, found):  # type: ignore[no-untyped-def]
    """Return normal, log of its expected error, and log of the expected deviation (N, 5) for inputs (N, F)."""
    (w0, b0), (w1, b1), (w2, b2) = layers
    width = w1.shape[0]
    first = np.empty((TOGETHER, width), np.float32)
    second = np.empty((TOGETHER, width), np.float32)
    last = np.empty((TOGETHER, 4), np.float32)
    for begin in range(0, len(shown), TOGETHER):
        n = min(TOGETHER, len(shown) - begin)
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
