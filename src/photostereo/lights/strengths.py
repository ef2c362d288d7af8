"""Photographs that are brighter or darker than their light strengths say, estimated from the object itself.

A change of the light or of the exposure scales a whole photograph. If the object is matte, the strength of each photograph
is the median over its lit pixels of the measured intensity over the one that the other photographs predict. A gloss moves
that by a few per cent, metal by more. So a photograph is corrected only if it stands out: farther from the closest half of
all photographs than four of their standard deviations, by a factor between 9/8 and 2, and similarly everywhere on the
object, because the strength of a light is the same in every part of a photograph and a gloss is not.

If the exposure varies in most photographs (automatic exposure, a fading lamp), none stands out. Then all are corrected,
provided that the estimates vary by more than a gloss makes them, and that they explain most of what a matte surface leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.runtime.arrays import Array, cast, is_tensor, like, namespace, to_numpy
from photostereo.runtime.illumination import shading
from photostereo.runtime.matte_fits import FEWEST_LIT, LIT_NOISE, LIT_SHARE, fit_lit
from photostereo.runtime.order import known_medians, median

#: Pixels used, the fewest that suffice, and the fewest photographs.
SAMPLE, FEWEST_PIXELS, FEWEST_PHOTOGRAPHS = 3000, 500, 8
#: Rounds of fit and median.
ROUNDS = 30
#: An entry counts if the surface faces the light at this cosine or more.
FACING = 0.3
#: A strength stands out beyond this many standard deviations of the closest half, and between these two factors.
DEVIATIONS, SMALLEST, LARGEST = 4.0, 1.125, 2.0
#: Each of this many parts of the object must show this share of the deviation.
PARTS, IN_EACH = 5, 0.6
#: All photographs are corrected if the logarithms of the estimates have a larger standard deviation than VARIES and the
#: correction leaves less than EXPLAINED of the median squared misfit. Of 28 captures (DiLiGenT, Harvard, UW, rendered) none
#: is beyond both limits, nor near: those that vary by more keep 0.75 of the misfit. With an exposure that falls by 45 % over
#: the series 24 are beyond both; the metallic cow is not.
VARIES, EXPLAINED = 0.13, 0.3
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
    as_stated = StrengthEstimate(np.ones(count), np.full(count, np.inf), np.ones(count, np.float32))
    if count < FEWEST_PHOTOGRAPHS or len(pixels) < FEWEST_PIXELS:
        return as_stated
    strengths, usable = like(np.ones(count), pixels), like(np.full(count, len(pixels)), pixels)
    directions, xp = like(np.asarray(lights, np.float64), pixels), namespace(pixels)
    on_gpu = is_tensor(pixels) and pixels.is_cuda and lights.ndim == 2
    ratios_of = cuda_ratios if on_gpu else readable_ratios
    for _ in range(ROUNDS):  # nothing is copied from a GPU before the end
        ratios = ratios_of(pixels, strengths, directions, noise)
        usable = xp.minimum(usable, (ratios == ratios).sum(0))
        strengths = known_medians(ratios)
        middle = known_medians(strengths[:, None])
        strengths = strengths / middle
    if int(usable.min()) < FEWEST_PIXELS // 10:
        return as_stated
    size = -(-len(ratios) // PARTS)
    medians = [_medians(ratios[first : first + size]) for first in range(0, len(ratios), size)]
    strength, parts = to_numpy(strengths), np.log(to_numpy(xp.stack(medians) / middle))
    center, deviation = _closest_half(np.log(strength))
    apart = np.log(strength) - center
    alike = ((parts - center) * np.sign(apart)).min(axis=0) > IN_EACH * np.abs(apart)
    far = np.abs(apart) > max(DEVIATIONS * deviation, np.log(SMALLEST))
    factors = np.where(far & alike & (np.abs(apart) < np.log(LARGEST)), np.exp(apart), 1.0)
    if apart.std() > VARIES and unexplained_share(pixels, np.exp(apart), lights, noise) < EXPLAINED:
        factors = np.exp(apart)
    return StrengthEstimate(
        np.exp(apart), parts.std(axis=0, ddof=1) / np.sqrt(len(parts)), factors.astype(np.float32)
    )


def strength_sample(count: int) -> slice:
    """Which of ``count`` pixels to estimate strengths from: evenly spread, at least :data:`SAMPLE` if there are as many.

    >>> strength_sample(9000), strength_sample(100)
    (slice(0, None, 3), slice(0, None, 1))
    """
    return slice(0, None, max(1, count // SAMPLE))


def describe_correction(factors: NDArray[Any] | None) -> str:
    """One sentence for users about the photographs that were corrected; empty if none was.

    >>> describe_correction(np.array([1.0, 1.45, 1.0, 0.9]))
    'Exposure varied by 61 %: corrected in 2 photographs. Was the camera on automatic?'
    >>> describe_correction(np.ones(4))
    ''
    """
    if factors is None or not (np.asarray(factors) != 1.0).any():
        return ""
    number = int((np.asarray(factors) != 1.0).sum())
    span = max(float(np.max(factors)), 1.0) / min(float(np.min(factors)), 1.0) - 1.0
    which = "1 photograph" if number == 1 else f"{number} photographs"
    return f"Exposure varied by {100 * span:.0f} %: corrected in {which}. Was the camera on automatic?"


def readable_ratios(seen: Array, strengths: Array, lights: Array, noise: Array) -> Array:
    """Measured intensities over those that the other photographs predict, (n, d); NaN if there is no prediction.

    Of (n, d) intensities under (3, d) lights of these strengths (d,), with noise of variance (n,).
    """
    xp = namespace(seen)
    fit = fit_lit(cast(seen / strengths, "float32"), to_numpy(lights), noise)
    expected = shading(cast(fit.scaled, "float64"), lights)
    length = (fit.scaled * fit.scaled).sum(-1)[:, None] ** 0.5
    known = (expected > FACING * length) & (seen > 0) & (length > 0) & (fit.photographs[:, None] > FEWEST_LIT)
    return xp.where(known, seen / xp.where(known, expected, 1.0), np.nan)


def cuda_ratios(seen: Any, strengths: Any, lights: Any, noise: Any) -> Any:
    """:func:`readable_ratios` in one launch on a GPU, ``strength_ratios.cu``."""
    import torch

    from photostereo.runtime.cuda_kernels import compile_kernel, device_of

    pixels, count = seen.shape
    ratios = torch.empty(count, pixels, dtype=torch.float64, device=seen.device)
    numbers = {
        "LIT_NOISE": f"{LIT_NOISE}f",
        "LIT_SHARE": f"{LIT_SHARE}f",
        "FACING": FACING,
        "FEWEST": FEWEST_LIT,
    }
    with device_of(seen):
        kernel = compile_kernel("photostereo.lights", "strength_ratios.cu", "strength_ratios", **numbers)
        arrays = (*(part.contiguous() for part in (seen, strengths, lights, noise)), ratios)
        kernel.launch(-(-pixels // 4), 128, (*arrays, pixels, count))
    return ratios.T


def unexplained_share(pixels: Array, strengths: NDArray[Any], lights: NDArray[Any], noise: Array) -> float:
    """The median squared misfit of a matte surface after a correction, as a share of that before."""
    corrected = cast(pixels / like(strengths, pixels), "float32")
    after, before = (median(fit_lit(part, lights, noise).misfit) for part in (corrected, pixels))
    return after / before if before > 0 else 1.0


def _medians(ratios: Array) -> Array:
    """Of each column's known values; 1 if there are too few."""
    enough = (ratios == ratios).sum(0) >= FEWEST_PIXELS // 50
    return namespace(ratios).where(enough, known_medians(ratios), 1.0)


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
