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

from photostereo.reflectance.learned.matte import FEWEST, LIT_NOISE, LIT_SHARE, fit_lit
from photostereo.runtime.arrays import Array, cast, is_tensor, like, namespace, to_numpy
from photostereo.runtime.order import known_medians

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
    >>> found = lamp_strengths(pixels, scene.lights.matrix, np.zeros(len(pixels), np.float32))
    >>> np.flatnonzero(found != 1.0).tolist(), bool(abs(found[3] - 1.25) < 0.05)
    ([3], True)
    """
    count = lights.shape[1]
    as_stated = np.ones(count, np.float32)
    if count < FEWEST_PHOTOGRAPHS or len(pixels) < FEWEST_PIXELS:
        return as_stated
    some = slice(0, None, max(1, len(pixels) // SAMPLE))
    seen, variance = pixels[some], noise[some]
    strengths, told = like(np.ones(count), pixels), like(np.full(count, len(seen)), pixels)
    directions, xp = like(np.asarray(lights, np.float64), pixels), namespace(pixels)
    ratios_of = cuda_ratios if is_tensor(seen) and seen.is_cuda else readable_ratios
    for _ in range(ROUNDS):  # nothing is fetched from a GPU before the end
        ratios = ratios_of(seen, strengths, directions, variance)
        told = xp.minimum(told, (ratios == ratios).sum(0))
        strengths = known_medians(ratios)
        middle = known_medians(strengths[:, None])
        strengths = strengths / middle
    if int(told.min()) < FEWEST_PIXELS // 10:
        return as_stated
    size = -(-len(ratios) // PARTS)
    medians = [_medians(ratios[first : first + size]) for first in range(0, len(ratios), size)]
    strength, parts = to_numpy(strengths), np.log(to_numpy(xp.stack(medians) / middle))
    center, deviation = _closest_half(np.log(strength))
    apart = np.log(strength) - center
    alike = ((parts - center) * np.sign(apart)).min(axis=0) > IN_EACH * np.abs(apart)
    far = np.abs(apart) > max(DEVIATIONS * deviation, np.log(SMALLEST))
    return np.where(far & alike & (np.abs(apart) < np.log(LARGEST)), np.exp(apart), 1.0).astype(np.float32)


def readable_ratios(seen: Array, strengths: Array, lights: Array, noise: Array) -> Array:
    """What was seen over what the other photographs let expect, (n, d); NaN where nothing is told.

    Of (n, d) intensities under (3, d) lights of these strengths (d,), with noise of variance (n,).
    """
    xp = namespace(seen)
    fit = fit_lit(cast(seen / strengths, "float32"), to_numpy(lights), noise)
    expected = cast(fit.scaled, "float64") @ lights
    length = (fit.scaled * fit.scaled).sum(-1)[:, None] ** 0.5
    told = (expected > FACING * length) & (seen > 0) & (length > 0) & (fit.photographs[:, None] > FEWEST)
    return xp.where(told, seen / xp.where(told, expected, 1.0), np.nan)


def cuda_ratios(seen: Any, strengths: Any, lights: Any, noise: Any) -> Any:
    """:func:`readable_ratios` in one launch on a GPU, ``strength_ratios.cu``."""
    import torch

    from photostereo.runtime.cuda_kernels import compile_kernel, device_of

    pixels, count = seen.shape
    ratios = torch.empty(count, pixels, dtype=torch.float64, device=seen.device)
    numbers = {"LIT_NOISE": f"{LIT_NOISE}f", "LIT_SHARE": f"{LIT_SHARE}f", "FACING": FACING, "FEWEST": FEWEST}
    with device_of(seen):
        kernel = compile_kernel(
            "photostereo.reflectance.learned", "strength_ratios.cu", "strength_ratios", **numbers
        )
        arrays = (*(part.contiguous() for part in (seen, strengths, lights, noise)), ratios)
        kernel.launch(-(-pixels // 4), 128, (*arrays, pixels, count))
    return ratios.T


def _medians(ratios: Array) -> Array:
    """Of each column's known values; 1 where there are too few."""
    enough = (ratios == ratios).sum(0) >= FEWEST_PIXELS // 50
    return namespace(ratios).where(enough, known_medians(ratios), 1.0)


def _closest_half(values: NDArray[np.float64]) -> tuple[float, float]:
    """Middle and deviation of the half of the values that lie closest together.

    >>> center, deviation = _closest_half(np.array([0.0, 0.1, 5.0, -0.1, 9.0]))
    >>> round(center, 3), round(deviation, 3)
    (0.0, 0.148)
    """
    ordered = np.sort(values)
    size = len(ordered) // 2 + 1
    widths = ordered[size - 1 :] - ordered[: len(ordered) - size + 1]
    first = int(np.argmin(widths))
    return float(ordered[first] + 0.5 * widths[first]), float(widths[first]) / HALF
