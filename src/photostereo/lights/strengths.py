"""Photographs that are brighter or darker than their light strengths say, estimated from the object itself.

A change of the light or of the exposure scales a whole photograph. A matte pixel y, with b its albedo times its normal, asks
for w_i y_i = l_i · b, where w_i is the inverse of the strength of photograph i. So all pixels together

    minimize  Σ_y Σ_i v_yi (w_i y_i - l_i · b_y)²      subject to  Σ_y Σ_i v_yi (w_i y_i)² = 1

over w and all b: an eigenvalue problem of the size of the number of photographs. The weights v are 0 in shadow and at
white, and elsewhere those of a Cauchy distribution, so gloss counts little. On a relief, strengths and a tilt of the whole
are nearly interchangeable; solving for all at once keeps them apart.

A photograph is corrected if it stands out: farther from the closest half of all photographs than four of their standard
deviations, by a factor between 9/8 and 2, and similarly everywhere on the object, because the strength of a light is the
same in every part of a photograph and a gloss is not.

If the exposure varies in most photographs (automatic exposure, a fading light), none stands out. Then all are corrected,
provided that the estimates vary by more than a gloss makes them, and that they explain most of what a matte surface leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from photostereo.core.conventions import FloatArray
from photostereo.core.findings import Finding
from photostereo.runtime.arrays import Array, to_numpy
from photostereo.runtime.illumination import shading
from photostereo.runtime.matte_fits import FEWEST_LIT, LIT_NOISE, LIT_SHARE
from photostereo.runtime.order import MAD_TO_SIGMA, known_medians

#: Intensities used, if that makes 1000 to 3000 pixels; the fewest pixels that suffice, and the fewest photographs.
#: Three times as many change strengths of 96 photographs by 0.2 % (root mean square on rendered objects; 3 % at most).
SAMPLE, FEWEST_PIXELS, FEWEST_PHOTOGRAPHS = 72_000, 500, 8
#: Rounds of fit and weights. 10 in place of 15 changes strengths by 0.1 % (a glossy relief: 1 %).
#: They end when no strength moves by more than SETTLED.
ROUNDS, SETTLED = 15, 1e-4
#: Values at this share of the brightest and above may be clipped.
WHITE = 0.98
#: An entry says how strong its photograph is if the surface faces the light at this cosine or more.
FACING = 0.3
#: A strength stands out beyond this many standard deviations of the closest half, and between these two factors.
DEVIATIONS, SMALLEST, LARGEST = 4.0, 1.125, 2.0
#: Each of this many parts of the object must show this share of the deviation.
PARTS, IN_EACH = 5, 0.6
#: All photographs are corrected if the logarithms of the estimates have a larger standard deviation than VARIES and the
#: correction leaves less than EXPLAINED of the squared misfit. An exposure that falls to 0.6, 0.3 and 0.1 leaves 0.05 at
#: most on six rendered objects; of captures with other faults those that vary by as much keep 0.1 and more.
VARIES, EXPLAINED = 0.13, 0.08
#: Half of a Gaussian lies within this many standard deviations.
HALF = 1.349


@dataclass(frozen=True, eq=False)
class StrengthEstimate:
    """The strength of each photograph relative to the one stated."""

    relative: NDArray[np.float64]  #: (d,) the estimate, 1 for a typical photograph
    #: (d,) standard error of the estimate, as a share of it; infinite if nothing could be estimated
    uncertainty: NDArray[np.float64]
    #: (d,) float32, what to divide each photograph by; exactly 1 if it does not stand out
    factors: NDArray[np.float32]
    #: what the estimates leave of the squared misfit of a matte surface; 1 if they hardly vary
    left: float

    @property
    def corrects(self) -> bool:
        """Whether any photograph should be corrected."""
        return bool((self.factors != 1.0).any())


def estimate_strengths(pixels: Any, lights: NDArray[Any], noise: Array) -> StrengthEstimate:
    """Estimate the strength of each of d photographs, and which of them to correct, from a sample of pixels (N, d)
    (see :func:`strength_sample`) and the variance (N,) of their intensities.

    >>> from photostereo.scenes import render_scene
    >>> scene = render_scene("sphere", size=40, reflectance="ggx")
    >>> pixels = np.stack([image[scene.mask] for image in scene.images], 1)
    >>> pixels[:, 3] *= 1.25
    >>> found = estimate_strengths(pixels, scene.lights.matrix, np.zeros(len(pixels), np.float32))
    >>> np.flatnonzero(found.factors != 1.0).tolist(), bool(abs(found.factors[3] - 1.25) < 0.05)
    ([3], True)
    """
    count = lights.shape[-1]
    as_stated = StrengthEstimate(np.ones(count), np.full(count, np.inf), np.ones(count, np.float32), 1.0)
    if count < FEWEST_PHOTOGRAPHS or len(pixels) < FEWEST_PIXELS:
        return as_stated
    seen, noise = np.asarray(to_numpy(pixels), np.float64), to_numpy(noise)
    strength, ratios, misfit = _matte(seen, lights, noise)
    if int((ratios == ratios).sum(axis=0).min()) < FEWEST_PIXELS // 10:
        return as_stated
    parts = np.log([_medians(part) for part in np.array_split(ratios, PARTS)])
    center, deviation = _closest_half(np.log(strength))
    apart = np.log(strength) - center
    alike = ((parts - center) * np.sign(apart)).min(axis=0) > IN_EACH * np.abs(apart)
    far = np.abs(apart) > max(DEVIATIONS * deviation, np.log(SMALLEST))
    factors = np.where(far & alike & (np.abs(apart) < np.log(LARGEST)), np.exp(apart), 1.0)
    left = (misfit / _matte(seen, lights, noise, equal=True)[2]) ** 2 if apart.std() > VARIES else 1.0
    if left < EXPLAINED:
        factors = np.exp(apart)
    uncertainty = parts.std(axis=0, ddof=1) / np.sqrt(len(parts))
    return StrengthEstimate(np.exp(apart), uncertainty, factors.astype(np.float32), left)


def strength_sample(count: int, photographs: int) -> slice:
    """Which of ``count`` pixels to estimate strengths from: evenly spread, and fewer of many photographs.

    >>> strength_sample(9000, 12), strength_sample(9000, 96), strength_sample(100, 12)
    (slice(0, None, 3), slice(0, None, 9), slice(0, None, 1))
    """
    return slice(0, None, max(1, count // min(max(SAMPLE // photographs, 1000), 3000)))


def describe_correction(factors: NDArray[Any] | None) -> Finding | None:
    """What to say about the photographs that were corrected; None if none was.

    >>> describe_correction(np.array([1.0, 1.45, 1.0, 0.9]))
    'Exposure varied by 38%: corrected in 2 of 4 photographs. Was the camera on automatic?'
    >>> describe_correction(np.ones(4))
    """
    if factors is None or not (np.asarray(factors) != 1.0).any():
        return None
    number = int((np.asarray(factors) != 1.0).sum())
    span = 1.0 - min(float(np.min(factors)), 1.0) / max(float(np.max(factors)), 1.0)
    return Finding("exposure-corrected", span=span, count=number, photographs=len(factors))


def _matte(
    seen: FloatArray, lights: NDArray[Any], noise: FloatArray, *, equal: bool = False
) -> tuple[FloatArray, FloatArray, float]:
    """Strengths (d,), 1 for a typical photograph, or all ``equal``; each by each pixel, (n, d), NaN if it says nothing; and
    the median misfit of a lit entry, as a share of a pixel's brightness."""
    directions = np.asarray(lights, np.float64)
    floor = LIT_NOISE * np.sqrt(noise)[:, None] + LIT_SHARE * seen.max(axis=1, keepdims=True)
    lit = (seen > floor) & (seen < WHITE * seen.max())
    lit &= (lit.sum(axis=1) > FEWEST_LIT)[:, None]
    brightness = np.linalg.norm(seen, axis=1, keepdims=True)
    values = seen / np.where(brightness > 0, brightness, 1.0)
    weight: FloatArray = lit.astype(np.float64)
    inverse: FloatArray = np.ones(seen.shape[1])
    for _ in range(ROUNDS):
        weighted = weight[:, None] * directions  # (n, 3, d)
        moment = weighted @ np.swapaxes(directions, -1, -2) + 1e-9 * np.eye(3)
        right = weighted * values[:, None]
        fit = np.linalg.inv(moment) @ right  # b = fit @ inverse
        before = inverse
        if not equal:
            inverse = _least(right, fit, (weight * values**2).sum(axis=0))
        surface = fit @ inverse
        model = shading(surface, directions)
        miss = np.abs(inverse * values - model)
        misfit = float(np.median(miss[lit])) if lit.any() else 1.0
        weight = lit / (1.0 + (miss / (MAD_TO_SIGMA * misfit + 1e-9)) ** 2)
        if not equal and np.abs(inverse - before).max() < SETTLED:
            break
    known = lit & (model > FACING * np.linalg.norm(surface, axis=1, keepdims=True))
    middle = float(np.median(1.0 / inverse))
    ratios = np.where(known, values / np.where(known, model, 1.0), np.nan) / middle
    return 1.0 / inverse / middle, ratios, misfit + 1e-9


def _least(right: FloatArray, fit: FloatArray, squares: FloatArray) -> FloatArray:
    """The inverse strengths that leave the least, of root mean square 1 over what is seen."""
    squares = np.maximum(squares, 1e-9 * squares.sum() + 1e-30)
    count = len(squares)
    rest = np.diag(squares) - right.reshape(-1, count).T @ fit.reshape(-1, count)
    _, vectors = eigh((rest + rest.T) / 2, np.diag(squares), subset_by_index=[0, 0])
    inverse = vectors[:, 0] * np.sign(vectors[:, 0].sum())
    inverse = np.maximum(inverse, 1e-3 * np.abs(inverse).max())
    return np.asarray(inverse / np.sqrt((squares * inverse**2).sum() / squares.sum()))


def _medians(ratios: FloatArray) -> FloatArray:
    """Of each column's known values; 1 if there are too few."""
    enough = (ratios == ratios).sum(axis=0) >= FEWEST_PIXELS // 50
    return np.where(enough, known_medians(ratios), 1.0)


def _closest_half(values: NDArray[np.float64]) -> tuple[float, float]:
    """Middle and standard deviation of the half of the values that lie closest together.

    >>> center, deviation = _closest_half(np.array([0.0, 0.1, 5.0, -0.1, 9.0]))
    >>> round(center, 3), round(deviation, 3)
    (0.0, 0.148)
    """
    ordered = np.sort(values)
    size = len(ordered) // 2 + 1
    widths = ordered[size - 1 :] - ordered[: len(ordered) - size + 1]
    first = int(np.argmin(widths))
    return float(ordered[first] + 0.5 * widths[first]), float(widths[first]) / HALF
