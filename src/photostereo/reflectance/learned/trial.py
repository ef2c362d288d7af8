"""How far noise moves the answers of the learned model, measured by adding as much noise again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import GRAY_WEIGHTS, Float64
from photostereo.diagnosis.noise import NoiseTable
from photostereo.reflectance.learned.evidence import Observations, PixelEvidence
from photostereo.reflectance.learned.matte import Witness
from photostereo.runtime.arrays import like, to_numpy

#: Number of pixels of the trial: enough for a median in each of the classes below.
TRIAL_PIXELS = 3000
#: Number of classes of similar spread. The effect of noise differs between pixels that the model is
#: sure of and others.
SPREAD_CLASSES = 6
#: Largest ratio of the variance of a class to that of the middle one: a class of 500 pixels may be
#: exceptional.
WIDEST = 10.0
#: Ratio of the noise of a channel to that of the luma if the channels have independent noise: 1 /
#: |GRAY_WEIGHTS|.
CHANNEL_TO_LUMA = 1.5


def try_noise(
    ask: Callable[[Observations], Witness],
    answer: Witness,
    evidence: PixelEvidence,
    lights: NDArray[Any],
) -> NoiseTable | None:
    """Measure how far noise moves the normals, as a function of their spread.

    The figure is the variance of one component.

    Parameters
    ----------
    ask : callable
        Maps observations of the pixels to the normals of the model.
    answer : Witness
        Its normals without more noise, and their variances.
    evidence : PixelEvidence
        Observations of these pixels, and their noise.
    lights : array (3, d)
        The same noise is added for the same light, whatever the order of the photographs.

    Returns
    -------
    tuple of two arrays, or None
        Increasing log variances of the answer, and the median variance due to noise in classes of
        similar spread. None without noise.
    """
    noise = evidence.fine
    observations = evidence.observations
    deviation = np.sqrt(to_numpy(noise))[:, None]
    if not deviation.any():
        return None
    # Always the same noise: a result must not depend on chance.
    rng = np.random.default_rng(0)
    rank = np.argsort(np.lexsort(lights))
    gray = to_numpy(observations.pixels)
    colors = None
    if observations.colors is None:
        noisy = gray + deviation * rng.standard_normal(gray.shape)[:, rank]
    else:
        values = to_numpy(observations.colors)
        extra = CHANNEL_TO_LUMA * deviation[..., None] * rng.standard_normal(values.shape)[:, rank]
        noisy = gray + extra @ np.asarray(GRAY_WEIGHTS)
        colors = like((values + extra).astype(np.float32), noise)
    pixels = like(noisy.astype(np.float32), noise)
    again = ask(Observations(pixels, colors, observations.lights))
    moved = np.square(to_numpy(again.normals) - to_numpy(answer.normals)).sum(-1)
    log_variance = np.log(to_numpy(answer.variance))
    # Pixels of similar spread respond alike; the median ignores single failures.
    order = np.argsort(log_variance)
    classes = np.array_split(order, min(SPREAD_CLASSES, len(order)))
    places = [float(np.mean(log_variance[members])) for members in classes]
    # Two components in a plane: the median of their sum of squares is 2 ln 2 times the variance of
    # one.
    variances = [float(np.median(moved[members])) / (2.0 * np.log(2.0)) for members in classes]
    typical = max(float(np.median(variances)), 1e-12)
    return np.asarray(places), np.clip(variances, typical / WIDEST, typical * WIDEST)


def noise_part(log_variance: NDArray[Any], table: NoiseTable | None) -> Float64:
    """Return the variance (N,) of one component of the normals due to noise.

    Parameters
    ----------
    log_variance : array (N,)
        Logarithm of the variance of the answer.
    table : tuple of two arrays, or None
        The result of :func:`try_noise`.
    """
    if table is None:
        return np.zeros(len(log_variance))
    # Noise is part of the whole error: each of two components has at most half of the variance.
    return np.asarray(np.minimum(np.interp(log_variance, *table), 0.5 * np.exp(log_variance)))
