"""Photographs that are brighter or darker than their light file says, told by the object itself.

A lamp that was changed, or an exposure, scales a whole photograph. Were the object matte, each photograph's strength
would be the median over its lit pixels of what was seen over what the other photographs let expect. A gloss moves that
by a few per cent, and on metal by more. So a photograph is corrected only where it stands out: further from the closest
half of all photographs than four deviations of those, by an eighth at least and a factor of two at most, and alike all
over the object: a lamp's strength is the same in every part of a photograph, a gloss is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.backend import Array, cast, like, namespace, to_numpy
from photostereo.backend.order import known_medians, median
from photostereo.reflectance.learned.matte import fit_lit

#: Pixels looked at, the fewest that tell, the fewest photographs, and rounds of fit and median.
SAMPLE, FEWEST_PIXELS, FEWEST_PHOTOGRAPHS, ROUNDS = 3000, 500, 8, 30
#: Entries that count face the lamp by this cosine at least.
FACING = 0.3
#: A strength stands out beyond so many deviations of the closest half, and by this factor at least and at most.
DEVIATIONS, SMALLEST, LARGEST = 4.0, 1.125, 2.0
#: Each of so many parts of the object must show this share of it.
PARTS, IN_EACH = 5, 0.6
#: Half of a Gaussian lies within so many deviations.
HALF = 1.349


def lamp_strengths(pixels: Array, lights: NDArray[Any], noise: Array) -> NDArray[np.float32]:
    """What to divide each of d photographs by, 1 where its strength is as stated.

    Parameters
    ----------
    pixels : (N, d) intensities
    lights : (3, d) unit columns
    noise : (N,) variance of an intensity

    Examples
    --------
    >>> from photostereo.scenes import render_scene
    >>> scene = render_scene("sphere", size=40, reflectance="ggx")
    >>> pixels = np.stack([image[scene.mask] for image in scene.images], 1)
    >>> pixels[:, 3] *= 1.25
    >>> found = lamp_strengths(pixels, scene.lights.T, np.zeros(len(pixels), np.float32))
    >>> np.flatnonzero(found != 1.0).tolist(), bool(abs(found[3] - 1.25) < 0.05)
    ([3], True)
    """
    count = lights.shape[1]
    as_stated = np.ones(count, np.float32)
    if count < FEWEST_PHOTOGRAPHS or len(pixels) < FEWEST_PIXELS:
        return as_stated
    some = slice(0, None, max(1, len(pixels) // SAMPLE))
    seen, variance = pixels[some], noise[some]
    strengths = like(np.ones(count), pixels)
    directions, xp = like(np.asarray(lights, np.float64), pixels), namespace(pixels)
    for _ in range(ROUNDS):
        fit = fit_lit(cast(seen / strengths, "float32"), lights, variance)
        expected = cast(fit.scaled, "float64") @ directions
        length = (fit.scaled * fit.scaled).sum(-1)[:, None] ** 0.5
        told = (expected > FACING * length) & (seen > 0) & (length > 0) & (fit.photographs[:, None] > 5)
        if int(told.sum(0).min()) < FEWEST_PIXELS // 10:
            return as_stated
        ratios = xp.where(told, seen / xp.where(told, expected, 1.0), np.nan)
        strengths = known_medians(ratios)
        scale = float(np.log(median(strengths)))
        strengths = strengths / np.exp(scale)
    strength, ratio = to_numpy(strengths), to_numpy(ratios)
    centre, deviation = _closest_half(np.log(strength))
    apart = np.log(strength) - centre
    parts = np.log([_median(part) for part in np.array_split(ratio, PARTS)]) - scale - centre
    alike = (parts * np.sign(apart)).min(axis=0) > IN_EACH * np.abs(apart)
    far = np.abs(apart) > max(DEVIATIONS * deviation, np.log(SMALLEST))
    return np.where(far & alike & (np.abs(apart) < np.log(LARGEST)), np.exp(apart), 1.0).astype(np.float32)


def _median(ratio: NDArray[Any]) -> NDArray[Any]:
    """Of each column's known values; 1 where there are too few."""
    enough = np.isfinite(ratio).sum(0) >= FEWEST_PIXELS // 50
    return np.where(enough, known_medians(np.where(enough, ratio, 1.0)), 1.0)


def _closest_half(values: NDArray[np.float64]) -> tuple[float, float]:
    """Middle and deviation of the half of the values that lie closest together.

    >>> centre, deviation = _closest_half(np.array([0.0, 0.1, 5.0, -0.1, 9.0]))
    >>> round(centre, 3), round(deviation, 3)
    (0.0, 0.148)
    """
    ordered = np.sort(values)
    size = len(ordered) // 2 + 1
    widths = ordered[size - 1 :] - ordered[: len(ordered) - size + 1]
    first = int(np.argmin(widths))
    return float(ordered[first] + 0.5 * widths[first]), float(widths[first]) / HALF
