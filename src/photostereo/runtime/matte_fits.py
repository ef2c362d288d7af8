"""Least squares per pixel under a matte model, on all photographs or on those in which the pixel is lit.

Light strengths, the learned model and the noise of a prior all compare photographs with a matte surface. They use these
two fits, which work on both NumPy arrays and torch tensors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from photostereo.runtime.arrays import Array, cast, like, namespace
from photostereo.runtime.illumination import gram_of, projected, pseudo_inverse, shading
from photostereo.runtime.symmetric import inverse_symmetric_3x3

#: A lit pixel is brighter than this many standard deviations of the noise,
LIT_NOISE = 2.0
#: plus this share of its brightest photograph: above the light that bounces into a shadow.
LIT_SHARE = 0.02
#: With fewer lit photographs than this, two residuals or less remain, and the fit cannot be checked.
FEWEST_LIT = 5
#: Added to the diagonal of the normal equations of a lit fit.
LIT_RIDGE = 1e-6
#: Variance factor that marks a fit as unusable.
UNUSABLE = 1e6


class MatteFit(NamedTuple):
    """Least squares per pixel."""

    scaled: Array  #: (N, 3) albedo × normal
    misfit: Array  #: (N,) sum of squared residuals per degree of freedom
    photographs: Array  #: (N,) number of photographs in the fit
    #: (N,) trace((L Lᵀ)⁻¹) / 3, the variance of a component of ``scaled`` over that of an intensity
    gain: Array

    @property
    def scatter(self) -> Array:
        """Twice the relative standard deviation of the misfit under noise alone."""
        freedom = self.photographs - 3.0
        return 2.0 * (2.0 / (freedom * (freedom > 1.0) + (freedom <= 1.0))) ** 0.5


def fit_all(pixels: Array, lights: NDArray[Any]) -> MatteFit:
    """Fit all of (N, d) intensities under (3, d) or (N, 3, d) lights."""
    scaled = shading(pixels, like(pseudo_inverse(lights).astype(np.float32), pixels))
    residual = pixels - shading(scaled, like(lights.astype(np.float32), pixels))
    d = pixels.shape[1]
    gain = np.trace(np.linalg.inv(gram_of(lights)), axis1=-2, axis2=-1) / 3.0
    gain = cast(like(np.asarray(gain), pixels), "float32")
    none = 0.0 * scaled[:, 0]
    return MatteFit(scaled, (residual * residual).sum(-1) / max(d - 3, 1), none + d, none + gain)


def fit_lit(pixels: Array, lights: NDArray[Any], noise: Array) -> MatteFit:
    """Fit the photographs in which each pixel is lit.

    Parameters
    ----------
    pixels : (N, d) array
        Intensities.
    lights : (3, d) or (N, 3, d) array
        Directions to the lights times their strengths.
    noise : (N,) array
        The variance of an intensity.
    """
    xp = namespace(pixels)
    floor = LIT_NOISE * noise[:, None] ** 0.5 + LIT_SHARE * xp.amax(pixels, -1)[:, None]
    lit = cast(pixels > floor, "float32")
    first, second = np.triu_indices(3)
    products = like((lights[..., first, :] * lights[..., second, :]).astype(np.float32), pixels)
    directions = like(lights.astype(np.float32), pixels)
    gram = cast(projected(lit, products), "float64")
    xx, xy, xz, yy, yz, zz = inverse_symmetric_3x3(
        *(gram[:, k] + LIT_RIDGE * (first[k] == second[k]) for k in range(6))
    )
    right = cast(projected(lit * pixels, directions), "float64")
    bx = right[:, 0]
    by = right[:, 1]
    bz = right[:, 2]
    rows = (xx * bx + xy * by + xz * bz, xy * bx + yy * by + yz * bz, xz * bx + yz * by + zz * bz)
    scaled = cast(xp.stack(rows, -1), "float32")
    residual = lit * (pixels - shading(scaled, directions))
    count = lit.sum(-1)
    freedom = (count - 3.0) * (count > 4.0) + (count <= 4.0)
    gain = cast((xx + yy + zz) / 3.0 + UNUSABLE * (count < FEWEST_LIT), "float32")
    return MatteFit(scaled, (residual * residual).sum(-1) / freedom, count, gain)
