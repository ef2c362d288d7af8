"""Training of the distilled network on the answers of the set network."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import Float32
from photostereo.reflectance.learned.distilled.kernels import MEAN, SQUARE, steps_down
from photostereo.reflectance.learned.distilled.network import Distilled, Layers, inputs
from photostereo.reflectance.learned.matte import Witness

#: Smaller captures are left to the set network: learning would take as long.
LEAST_PIXELS = 600_000
#: Training samples visited per pixel of the capture; twice as many reduce the share of pixels left
#: to the set network by a fifth.
VISITS = 0.6
#: At most this many visits: training then takes a few seconds.
MOST_VISITS = 2_500_000
#: Width of a layer.
WIDTH = 96
#: Samples per step of the training.
BATCH = 256
#: Initial learning rate; it falls to zero.
RATE = 4e-3
#: Steps until that rate is reached, and between two checks for cancellation.
WARM_UP = 50
#: A pixel is left to the set network if its expected squared deviation is above this multiple of
#: the squared expected error: the deviation then adds at most an eighth to the error. The package's
#: page has the accuracy.
FAR = 0.25
#: It is also left if it is among this share of the sample that deviates most...
WORST = 0.2
#: ... unless the deviation is below this multiple, which does not matter.
NEAR = 0.05
#: Number of pixels for estimating the deviation.
JUDGED = 50_000


def distill(
    pixels: Float32,
    colors: Float32 | None,
    matte: Witness,
    network: Witness,
    noise: NDArray[Any],
    pixel_count: int,
    control: Control = SILENT,
) -> Distilled | None:
    """Train small networks on the answers of the set network for a sample of a capture.

    Parameters
    ----------
    pixels : array (N, d)
        Intensities of the sample.
    colors : array (N, d, 3), or None
        The same in color.
    matte : Witness
        The matte fit.
    network : Witness
        The answers of the set network; of infinite variance where it was not asked.
    noise : array (N,)
        Variance of these normals due to noise, which does not count as a deviation.
    pixel_count : int
        Pixels of the capture.
    control : Control
        Cancellation.

    Returns
    -------
    Distilled or None
        None if there are too few pixels.
    """
    answered = np.flatnonzero(np.isfinite(network.variance))
    if pixel_count < LEAST_PIXELS or len(answered) < 10 * BATCH:
        return None
    in_color = None if colors is None else colors[answered]
    samples = inputs(pixels[answered], in_color, matte.some(answered))
    center = samples.mean(0)
    scale = samples.std(0) + np.float32(1e-3)
    samples = (samples - center) / scale
    variance = network.variance[answered]
    log_error = 0.5 * np.log(variance)[:, None]
    goals = np.concatenate([network.normals[answered], log_error], 1).astype(np.float32)
    visits = min(int(VISITS * pixel_count), MOST_VISITS)
    networks = _train_two(samples, goals, variance, visits, control)

    some = slice(0, None, 1 + len(answered) // JUDGED)
    samples = samples[some].copy()
    goals = goals[some]
    variance = variance[some]
    control.check()
    no_misses = [np.zeros(WIDTH + 1, np.float32)] * 2
    one, other = Distilled(center, scale, networks, no_misses, 0.0).outputs(samples)
    control.check()
    far = ((0.5 * (one + other)[:, :3] - goals[:, :3]) ** 2).sum(1)
    # The teacher's own noise is averaged away by the small network: no deviation.
    far = (far - noise[answered[some]]).clip(0.0) / variance
    misses = []
    expected = np.zeros(len(samples))
    for first, second, _ in networks:
        hidden = np.maximum(samples @ first[0] + first[1], 0.0)
        hidden = np.maximum(hidden @ second[0] + second[1], 0.0)
        miss = control.aside(partial(_predict_deviation, hidden, far))
        expected += 0.5 * (hidden @ miss[:-1] + miss[-1])
        misses.append(miss)
    limit = max(np.log(NEAR), float(np.quantile(expected, 1.0 - WORST)))
    return Distilled(center, scale, networks, misses, min(np.log(FAR), limit))


def _train_two(
    samples: Float32, goals: Float32, variance: Float32, visits: int, control: Control
) -> list[Layers]:
    """Train two networks at a time, from different initial weights.

    Their outputs are in the units of the goals.
    """
    middle = goals.mean(0)
    spread = goals.std(0) + np.float32(1e-6)
    # Errors are relative to the expected error; errors of the expected error itself have less
    # weight.
    relative = np.sqrt(np.median(variance) / variance).clip(0.2, 3.0)
    weights = relative[:, None].repeat(4, 1).astype(np.float32)
    weights[:, 3] = 0.2
    lesson = (samples, (goals - middle) / spread, weights, visits)
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(_descend, *lesson, seed, control) for seed in (0, 1)]
        networks = [job.result() for job in waiting]
    return [
        (first, second, (matrix * spread, offset * spread + middle))
        for first, second, (matrix, offset) in networks
    ]


def _descend(
    samples: Float32, goals: Float32, weights: Float32, visits: int, seed: int, control: Control
) -> Layers:
    """Train layers that map ``samples`` (N, F) to ``goals`` (N, 4).

    By Adam on the Charbonnier loss, with a rate that falls to zero.
    """
    rng = np.random.default_rng(seed)
    sizes = [(samples.shape[1], WIDTH), (WIDTH, WIDTH), (WIDTH, 4)]
    # All weights are in one vector, and so are their gradients.
    count = sum((rows + 1) * columns for rows, columns in sizes)
    vectors = tuple(np.zeros(count, np.float32) for _ in range(4))
    layers = _views(vectors[0], sizes)
    slopes = _views(vectors[1], sizes)
    for (matrix, _), (rows, _) in zip(layers, sizes, strict=True):
        matrix[:] = rng.standard_normal(matrix.shape) * np.sqrt(2.0 / rows)
    # The last layer begins small, so that all outputs begin near the mean of the goals.
    layers[2][0][:] *= 0.1
    steps = max(1, visits // BATCH)
    step = np.arange(1, steps + 1)
    rates = RATE * 0.5 * (1.0 + np.cos(np.pi * step / steps)) * np.minimum(1.0, step / WARM_UP)
    # Adam's correction for means that begin at zero.
    rates *= np.sqrt(1.0 - SQUARE**step) / (1.0 - MEAN**step)
    per_epoch = len(samples) // BATCH
    for first in range(0, steps, per_epoch):  # each sample at most once per epoch
        order = rng.permutation(len(samples))[: per_epoch * BATCH]
        order = order.reshape(per_epoch, BATCH)[: steps - first]
        for some in range(0, len(order), WARM_UP):
            part = slice(some, some + WARM_UP)
            now = slice(first + some, first + min(some + WARM_UP, len(order)))
            steps_down(samples, goals, weights, order[part], rates[now], layers, slopes, vectors)
            control.check()
    return layers


def _views(numbers: Float32, sizes: list[tuple[int, int]]) -> Layers:
    """Return views of the matrices and offsets in one vector."""
    views = []
    at = 0
    for rows, columns in sizes:
        end = at + rows * columns
        views.append((numbers[at:end].reshape(rows, columns), numbers[end : end + columns]))
        at = end + columns
    return views[0], views[1], views[2]


def _predict_deviation(hidden: Float32, far: NDArray[Any]) -> Float32:
    """Fit weights and a constant that predict the logarithm of ``far`` (N,).

    The prediction is unbiased in the mean of ``far``, up to 4 times FAR.
    """
    far = np.minimum(far, 4.0 * FAR)
    ones = np.concatenate([hidden, np.ones((len(hidden), 1), np.float32)], 1)
    gram = (ones.T @ ones).astype(np.float64) + 1e-3 * len(ones) * np.eye(ones.shape[1])
    fit = np.linalg.solve(gram, ones.T @ np.log(far + 1e-3).astype(np.float32))
    fit[-1] += np.log(float((far * np.exp(-ones @ fit)).mean()))
    return np.asarray(fit, dtype=np.float32)
