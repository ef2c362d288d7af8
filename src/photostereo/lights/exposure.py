"""Detect photographs that are brighter or darker than their light strengths imply, from the object itself.

A change of the light or of the exposure scales a whole photograph; :mod:`.strengths` estimates by how much. A photograph is
corrected if it stands out: by more than four standard deviations of the closest half of all photographs, by a
factor between 9/8 and 2, and if nothing else explains it:

- A strength is the same in every part of a photograph; gloss is not.
- A strength is the same on every slope. Gloss only brightens, and mostly slopes that mirror the light to the camera: those
  of a flat glossy object mirror some lights almost everywhere.
- The photograph also stands out if all strengths are as given. On a gentle relief, strengths can be exchanged for other
  normals with almost no misfit.

If the exposure varies in most photographs (automatic exposure, a fading light), none stands out. Then all are corrected,
provided that the estimates vary by more than gloss explains, and that they account for most of a matte surface's misfit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import FloatArray
from photostereo.core.findings import Finding
from photostereo.lights.ball.geometry import VIEW
from photostereo.lights.strengths import fit_strengths
from photostereo.runtime.arrays import Array, to_numpy
from photostereo.runtime.illumination import shading
from photostereo.runtime.quantiles import known_medians

#: Number of intensities used, if that makes 1000 to 3000 pixels. Three times as many change strengths of 96 photographs by
#: 0.2 % (root mean square on rendered objects; 3 % at most).
SAMPLE = 72_000
#: Minimum number of pixels.
FEWEST_PIXELS = 500
#: Minimum number of photographs: with fewer, the closest half says little about the others.
FEWEST_PHOTOGRAPHS = 8
#: A strength stands out beyond this many standard deviations of the closest half ...
DEVIATIONS = 4.0
#: ... if it differs from the others by at least this factor ...
SMALLEST = 1.125
#: ... and at most this one.
LARGEST = 2.0
#: Number of parts of the object that are examined by themselves.
PARTS = 5
#: Each part must show this share of the deviation.
IN_EACH = 0.6
#: Number of classes of slopes that are examined by themselves.
SLOPES = 3
#: Of a brighter photograph, each class must show this share. Photographs made brighter show 0.81 at least, gloss 0.69 at
#: most (716 renderings): from 0.6 to 0.8 the same 588 of 591 are corrected.
ON_SLOPES = 0.7
#: With strengths as given, a photograph must show this share: 98 % of those made brighter or darker show 0.33, gentle
#: reliefs 0.22 at most. Shares from 0.2 to 0.4 change two of 591 decisions.
AS_GIVEN = 0.3
#: All photographs are corrected if the logarithms of the estimates have a standard deviation above this ...
VARIES = 0.13
#: ... and the correction leaves less than this share of the squared misfit. An exposure that falls to 0.6, 0.3 and 0.1
#: leaves at most 0.05 on six rendered objects; captures with other faults that vary by as much keep 0.1 or more.
EXPLAINED = 0.08
#: Half of a Gaussian lies within this many standard deviations.
HALF = 1.349


@dataclass(frozen=True, eq=False)
class StrengthEstimate:
    """Strength of each photograph relative to the given one."""

    relative: NDArray[np.float64]  #: (d,) the estimate, 1 for a typical photograph
    #: (d,) standard error of the estimate, as a share of it; infinite if nothing could be estimated
    uncertainty: NDArray[np.float64]
    #: (d,) float32, divisor of each photograph; exactly 1 if it does not stand out
    factors: NDArray[np.float32]
    #: share of a matte surface's squared misfit that the estimates leave; 1 if they hardly vary
    left: float

    @property
    def corrects(self) -> bool:
        """Whether any photograph should be corrected."""
        return bool((self.factors != 1.0).any())


def estimate_strengths(pixels: Any, lights: NDArray[Any], noise: Array) -> StrengthEstimate:
    """Estimate the strength of each of d photographs, and which of them to correct, from a sample of pixels (N, d)
    (see :func:`strength_sample`) and the variance (N,) of their intensities."""
    count = lights.shape[-1]
    as_stated = StrengthEstimate(
        np.ones(count), np.full(count, np.inf), np.ones(count, np.float32), 1.0
    )
    if count < FEWEST_PHOTOGRAPHS or len(pixels) < FEWEST_PIXELS:
        return as_stated
    seen = np.asarray(to_numpy(pixels), np.float64)
    noise = to_numpy(noise)
    strength, ratios, surface, misfit = fit_strengths(seen, lights, noise)
    if int((ratios == ratios).sum(axis=0).min()) < FEWEST_PIXELS // 10:
        return as_stated
    split = np.array_split(ratios, PARTS)
    enough = [(part == part).sum(axis=0) >= FEWEST_PIXELS // 50 for part in split]
    parts = np.log(np.where(enough, [known_medians(part) for part in split], 1.0))
    center, deviation = _closest_half(np.log(strength))
    apart = np.log(strength) - center
    toward = np.sign(apart) / np.maximum(np.abs(apart), 1e-12)
    far = np.abs(apart) > max(DEVIATIONS * deviation, np.log(SMALLEST))
    varies = bool(apart.std() > VARIES)
    factors = np.ones(count)
    left = 1.0
    if varies or far.any():
        alike = ((parts - center) * toward).min(axis=0) > IN_EACH
        slopes = (np.log(_by_slope(ratios, surface, lights)) - center).min(axis=0)
        alike &= (apart < 0) | (slopes > ON_SLOPES * apart)
        _, given, _, misfit_given = fit_strengths(seen, lights, noise, equal=True)
        as_given = np.log(np.nan_to_num(known_medians(given), nan=1.0))
        alike &= (as_given - _closest_half(as_given)[0]) * toward > AS_GIVEN
        factors = np.where(far & alike & (np.abs(apart) < np.log(LARGEST)), np.exp(apart), 1.0)
        left = (misfit / misfit_given) ** 2 if varies else 1.0
    if left < EXPLAINED:
        factors = np.exp(apart)
    uncertainty = parts.std(axis=0, ddof=1) / np.sqrt(len(parts))
    return StrengthEstimate(np.exp(apart), uncertainty, factors.astype(np.float32), left)


def strength_sample(count: int, photographs: int) -> slice:
    """Choose which of ``count`` pixels to estimate strengths from: evenly spread, fewer if there are many photographs."""
    return slice(0, None, max(1, count // min(max(SAMPLE // photographs, 1000), 3000)))


def describe_correction(factors: NDArray[Any] | None) -> Finding | None:
    """Return a finding about the corrected photographs; None if there are none."""
    if factors is None or not (number := int((factors != 1.0).sum())):
        return None
    span = 1.0 - min(float(np.min(factors)), 1.0) / max(float(np.max(factors)), 1.0)
    return Finding("exposure-corrected", span=span, count=number, photographs=len(factors))


def _by_slope(ratios: FloatArray, surface: FloatArray, lights: NDArray[Any]) -> FloatArray:
    """Return the medians (SLOPES, d) of the estimates on slopes that come closer and closer to mirroring the light to the
    camera."""
    mirrors = lights + VIEW[:, None]
    mirrors = mirrors / np.linalg.norm(mirrors, axis=-2, keepdims=True)
    toward = shading(surface / (np.linalg.norm(surface, axis=1, keepdims=True) + 1e-12), mirrors)
    ordered = np.take_along_axis(ratios, np.argsort(toward, axis=0), axis=0).T
    classes = [np.array_split(row[row == row], SLOPES) for row in ordered]
    return np.array([[np.median(part) for part in parts] for parts in classes]).T


def _closest_half(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the center and standard deviation of the half of the values that lie closest together."""
    ordered = np.sort(values)
    size = len(ordered) // 2 + 1
    widths = ordered[size - 1 :] - ordered[: len(ordered) - size + 1]
    first = int(np.argmin(widths))
    return float(ordered[first] + 0.5 * widths[first]), float(widths[first]) / HALF
