"""Witnesses of a pixel's normal, and the matte fit as one of them.

The matte fit is exact if the surface is matte, and has a large variance otherwise.

Each witness (the network, the matte fit, the outline of the mask) is a unit normal with a variance
(mean squared angle, radians²). They are averaged with inverse-variance weights, so none is switched
on or off.

If the fit explains the photographs, its variance is that of noise; otherwise the misfit counts as
an error shared by all d photographs:

    v = 2 (σ² + c d max(s² − t σ², 0)) g / albedo²,
    s² = |residual|² / (d − 3),   g = trace((L Lᵀ)⁻¹) / 3,

with t σ² an upper limit of s² under noise alone, t = 1 + 2 √(2 / (d − 3)), and c > 1 because the
fit absorbs part of the misfit.

**Shadows.** A matte surface in a shadow is dark, but matte in all other photographs. So there are
two fits (:mod:`photostereo.runtime.matte_fits`): to all photographs, and to those in which the
pixel is lit. The second, with d, s² and g per pixel, is used if its variance is ten times smaller:
without shadows, leaving out the darkest photographs would only add noise.

**Neighbors.** In noise, gloss can stay below t σ² and still bias the fit of every glossy pixel. A
material extends beyond one pixel, so the misfit is also averaged over a window
(:func:`misfits_around`): the mean of s²/σ² over 49 pixels separates a non-matte material from noise
seven times more finely than one pixel can. The larger of the two is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray
from photostereo.runtime.arrays import (
    Array,
    cast,
    is_tensor,
    like,
    namespace,
    tensor_batches,
    zeros,
)
from photostereo.runtime.illumination import some_lights
from photostereo.runtime.matte_fits import UNUSABLE, MatteFit, fit_all, fit_lit

#: c, ratio of the error of a matte fit to its visible misfit.
HIDDEN_MISFIT = 10.0
#: The fit to lit photographs is used if its variance is below this share of the other's.
MUCH_BETTER = 0.1
#: Half the side of the window over which the misfit is averaged.
AROUND = 3
#: Allowance for noise in that mean, in units of :attr:`MatteFit.scatter`: 2.8 standard deviations
#: of 49 pixels. If all pixels of a JPEG block share their noise, 49 count as two (the mean of 1 / Σ
#: w² over positions of the window), and the allowance is five times as large. With half of that, a
#: matte coin fails the rule of the harm suite; without this test, gloss in JPEG files costs 6 %
#: more.
BY_NOISE = 0.2
BY_BLOCKS = 1.0


@dataclass(frozen=True)
class Witness:
    """Unit normals (N, 3) and their variances (N,) in radians²; infinite if nothing is known."""

    normals: Array
    variance: Array

    def some(self, which: Any) -> Witness:
        """Return a copy for some of the pixels."""
        return Witness(self.normals[which] + 0, self.variance[which] + 0)


def combine(*witnesses: Witness) -> Witness:
    """Return the inverse-variance average, as a unit normal with the remaining variance."""
    xp = namespace(witnesses[0].variance)
    precision: Array = 0.0
    total: Array = 0.0
    for witness in witnesses:
        precision = precision + 1.0 / witness.variance
        total = total + witness.normals / witness.variance[:, None]
    length = xp.sqrt((total * total).sum(-1))
    return Witness(total / (length + 1e-30)[:, None], 1.0 / precision)


def variance_of_fit(fit: MatteFit, noise: Array, around: Array | float) -> Array:
    """Return the variance v (N,) of a fit's normals.

    Parameters
    ----------
    fit : MatteFit
        Of N pixels.
    noise : array (N,)
        σ², the variance of an intensity.
    around : array (N,) or float
        The misfit shared by neighbors, in units of σ².
    """
    # Only what noise cannot explain counts, and the larger of the pixel's own and its neighbors'.
    excess = fit.misfit - noise * (1.0 + fit.scatter)
    excess = namespace(excess).maximum(excess * (excess > 0), noise * around)
    squared = (fit.scaled * fit.scaled).sum(-1)
    error = noise + HIDDEN_MISFIT * fit.photographs * excess + 1e-10
    # A normal that faces away from the camera belongs to no visible surface.
    return 2.0 * error * fit.gain / (squared + 1e-12) + UNUSABLE * (fit.scaled[:, 2] <= 0)


def fit_both(pixels: Array, lights: NDArray[Any], noise: Array) -> tuple[MatteFit, MatteFit]:
    """Fit all photographs, and the lit ones, of each pixel.

    Parameters
    ----------
    pixels : array (N, d)
        Intensities. NumPy arrays are fitted in batches, so that temporaries stay small.
    lights : array (3, d) or (N, 3, d)
        Unit lights.
    noise : array (N,)
        Variance of an intensity.
    """
    parts = [slice(None)]
    if len(pixels) and not is_tensor(pixels):
        parts = list(tensor_batches(pixels, copies=8))
    whole = [fit_all(pixels[part], some_lights(lights, part)) for part in parts]
    lit = [fit_lit(pixels[part], some_lights(lights, part), noise[part]) for part in parts]
    return _joined(whole), _joined(lit)


def _joined(fits: list[MatteFit]) -> MatteFit:
    """Join the fits of batches of pixels."""
    join = namespace(fits[0].scaled).concatenate
    return MatteFit(*map(join, zip(*fits, strict=True)))


def matte_witness(
    fits: tuple[MatteFit, MatteFit],
    noise: Array,
    around: tuple[Array | float, Array | float] = (0.0, 0.0),
) -> Witness:
    """Return the better of two fits.

    Parameters
    ----------
    fits : tuple of two MatteFit
        From :func:`fit_both`.
    noise : array (N,)
        Variance of an intensity.
    around : tuple of two arrays
        From :func:`misfits_around`.
    """
    whole, lit = fits
    around_whole, around_lit = around
    of_whole = variance_of_fit(whole, noise, around_whole)
    of_lit = variance_of_fit(lit, noise, around_lit)
    xp = namespace(noise)
    # Leaving out dark photographs must pay clearly: without shadows it only adds noise.
    better = of_lit < MUCH_BETTER * of_whole
    scaled = xp.where(better[:, None], lit.scaled, whole.scaled)
    length = xp.sqrt((scaled * scaled).sum(-1) + 1e-30)
    return Witness(scaled / length[:, None], xp.where(better, of_lit, of_whole))


def misfits_around(
    fits: tuple[MatteFit, MatteFit], noise: Array, mask: BoolArray, blocks: bool = False
) -> tuple[Array, Array]:
    """Average the misfit of both fits over a window around each pixel.

    A single pixel counts only up to four times the scatter of noise, because the edge of a shadow
    is not a material.

    Parameters
    ----------
    fits : tuple of two MatteFit
        From :func:`fit_both`.
    noise : array (N,)
        Variance of an intensity.
    mask : array of bool (H, W)
        The positions of the pixels, row by row.
    blocks : bool
        Whether the pixels of a JPEG block may share their noise.

    Returns
    -------
    tuple of two arrays (N,)
        Mean misfits beyond noise, in units of its variance.
    """
    if not bool(noise.any()):
        return 0.0 * noise, 0.0 * noise
    whole, lit = fits
    return misfit_around(whole, noise, mask, blocks), misfit_around(lit, noise, mask, blocks)


def misfit_around(fit: MatteFit, noise: Array, mask: BoolArray, blocks: bool = False) -> Array:
    """Average the misfit of one fit over a window around each pixel; see :func:`misfits_around`."""
    xp = namespace(noise)
    scatter = fit.scatter
    allowance = BY_BLOCKS if blocks else BY_NOISE
    expected = 1.0 + allowance * scatter
    excess = xp.minimum(fit.misfit / noise.clip(1e-12), 1.0 + 4.0 * scatter) - expected
    return cast(mean_around(excess, mask).clip(0.0), "float32")


def mean_around(values: Array, mask: BoolArray) -> Array:
    """Average values over the pixels of a mask in a window around each.

    Parameters
    ----------
    values : array (N,) or (N, K)
    mask : array of bool (H, W)
        The positions of the pixels, row by row.
    """
    side = 2 * AROUND + 1
    columns = values.reshape(len(values), -1).T
    # A channel of ones counts the pixels of the mask in each window.
    columns = namespace(values).concatenate([columns, namespace(values).ones_like(columns[:1])])
    inside = like(mask, values)
    pictures = zeros((len(columns), *mask.shape), values, "float32")
    pictures[:, inside] = cast(columns, "float32")
    if is_tensor(pictures):
        from torch.nn.functional import avg_pool2d

        sums = avg_pool2d(pictures[None], side, 1, AROUND)[0][:, inside]
    else:
        sums = np.stack([_box_sum(picture, side)[inside] for picture in pictures])
    return (sums[:-1] / sums[-1]).T.reshape(values.shape)


def _box_sum(picture: NDArray[Any], side: int) -> NDArray[Any]:
    """Return the sum over a square around each pixel; beyond the border there is nothing."""
    border = cv2.BORDER_CONSTANT
    sums = cv2.boxFilter(picture, cv2.CV_64F, (side, side), normalize=False, borderType=border)
    return np.asarray(sums)
