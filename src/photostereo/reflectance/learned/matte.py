"""The matte fit as a witness: exact where the surface is matte, and saying so where it is not.

Its variance is that of noise where the fit explains the photographs; elsewhere the misfit counts as an error shared by
all d photographs:

    v = 2 (σ² + c d max(s² − t σ², 0)) g / albedo²,     s² = |residual|² / (d − 3),  g = trace((L Lᵀ)⁻¹) / 3,

with t σ² what s² stays below where there is nothing but noise, t = 1 + 2 √(2 / (d − 3)), and c > 1 because a
misfit hides partly in the fit itself.

**Shadows.** A matte surface in a shadow is dark, and matte in all other photographs. So there are two fits: to all
photographs, and to those in which the pixel is lit. The second, whose d, s² and g are each pixel's own, is taken where
it is told ten times better: where nothing is in shadow, leaving out the darkest photographs would only add noise.

**Neighbors.** Under noise a gloss hides below t σ², yet misleads the fit of every pixel that has it. A material goes on
beyond one pixel, so the misfit is also looked at over the pixels around (:func:`misfits_around`): the mean of s²/σ² over 49
pixels tells a material that is not matte from noise seven times finer than one pixel can. The larger of the two counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.reflectance.algebra import inverse_symmetric_3x3
from photostereo.reflectance.learned.witnesses import Witness
from photostereo.runtime.arrays import Array, cast, empty, is_tensor, like, namespace

#: c, how much larger the error of a matte fit is than its misfit shows.
HIDDEN_MISFIT = 10.0
#: A lit pixel is brighter than so many deviations of the noise and so much of its brightest photograph; fewer than so
#: many of them leave nothing to check a fit by.
LIT_NOISE, LIT_SHARE, FEWEST = 2.0, 0.02, 5
#: The lit photographs alone are taken where their variance is below this share of the other's.
MUCH_BETTER = 0.1
#: Half the side of the window over which the misfit of neighbors is looked at together.
AROUND = 3


@dataclass(frozen=True)
class MatteFit:
    """Least squares per pixel: albedo × normal (N, 3), s² (N,), how many photographs, and g."""

    scaled: Array
    misfit: Array
    photographs: Array
    gain: Array

    @property
    def scatter(self) -> Array:
        """Twice the relative scatter of s² under noise alone."""
        freedom = self.photographs - 3.0
        return 2.0 * (2.0 / (freedom * (freedom > 1.0) + (freedom <= 1.0))) ** 0.5

    def variance(self, noise: Array, around: Array | None = None) -> Array:
        """v (N,) with noise of variance σ² (N,); ``around`` is the misfit that neighbors share, in units of σ²."""
        excess = self.misfit - noise * (1.0 + self.scatter)
        excess = excess * (excess > 0)
        if around is not None:
            excess = namespace(excess).maximum(excess, noise * around)
        squared = (self.scaled * self.scaled).sum(-1)
        told = (
            2.0 * (noise + HIDDEN_MISFIT * self.photographs * excess + 1e-10) * self.gain / (squared + 1e-12)
        )
        # Behind the camera's horizon there is no visible surface: such a fit says nothing.
        return told + 1e6 * (self.scaled[:, 2] <= 0)


def fit_all(pixels: Array, lights: NDArray[Any]) -> MatteFit:
    """Least squares on all of (N, d) intensities under (3, d) lights."""
    scaled = pixels @ like(np.linalg.pinv(lights).astype(np.float32), pixels)
    residual = pixels - scaled @ like(lights.astype(np.float32), pixels)
    d = lights.shape[1]
    gain = float(np.trace(np.linalg.inv(lights @ lights.T))) / 3.0
    none = 0.0 * scaled[:, 0]
    return MatteFit(scaled, (residual * residual).sum(-1) / max(d - 3, 1), none + d, none + gain)


def fit_lit(pixels: Array, lights: NDArray[Any], noise: Array) -> MatteFit:
    """Least squares on the photographs in which each pixel is lit."""
    xp = namespace(pixels)
    floor = LIT_NOISE * noise[:, None] ** 0.5 + LIT_SHARE * xp.amax(pixels, -1)[:, None]
    lit = cast(pixels > floor, "float32")
    x, y, z = lights
    products = like(np.stack([x * x, x * y, x * z, y * y, y * z, z * z], -1).astype(np.float32), pixels)
    xx, xy, xz, yy, yz, zz = inverse_symmetric_3x3(cast(lit @ products, "float64"), ridge=1e-6)
    right = cast((lit * pixels) @ like(np.ascontiguousarray(lights.T, dtype=np.float32), pixels), "float64")
    bx, by, bz = right[:, 0], right[:, 1], right[:, 2]
    rows = (xx * bx + xy * by + xz * bz, xy * bx + yy * by + yz * bz, xz * bx + yz * by + zz * bz)
    scaled = cast(xp.stack(rows, -1), "float32")
    residual = lit * (pixels - scaled @ like(lights.astype(np.float32), pixels))
    count = lit.sum(-1)
    freedom = (count - 3.0) * (count > 4.0) + (count <= 4.0)
    gain = cast((xx + yy + zz) / 3.0, "float32")
    # Too few to check the fit by: it says nothing.
    gain = gain + 1e6 * (count < FEWEST)
    return MatteFit(scaled, (residual * residual).sum(-1) / freedom, count, gain)


def matte_witness(
    pixels: Array,
    lights: NDArray[Any],
    noise: Array,
    around: tuple[Array | None, Array | None] = (None, None),
) -> Witness:
    """The better told of the two fits; ``around`` from :func:`misfits_around`."""
    whole, lit = fit_all(pixels, lights), fit_lit(pixels, lights, noise)
    first, second = whole.variance(noise, around[0]), lit.variance(noise, around[1])
    xp = namespace(pixels)
    better = second < MUCH_BETTER * first
    scaled = xp.where(better[:, None], lit.scaled, whole.scaled)
    length = xp.sqrt((scaled * scaled).sum(-1) + 1e-30)
    return Witness(scaled / length[:, None], xp.where(better, second, first))


def misfits_around(
    pixels: Array, lights: NDArray[Any], noise: Array, mask: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Mean misfit (N,) of both fits over the pixels around each, beyond noise and in units of its variance.

    The edge of a shadow is no material: a single pixel counts up to four times the scatter of noise.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> L = np.array([[0.0, 0.5, 0.0, -0.5, 0.0], [0.0, 0.0, 0.5, 0.0, -0.5], [1.0, 0.9, 0.9, 0.9, 0.9]])
    >>> matte = (0.5 * L[2] + rng.normal(0, 0.05, (400, 5))).astype(np.float32)
    >>> gloss = matte + np.float32(0.1) * (np.arange(5) == 0)
    >>> noise, mask = np.full(400, 0.05**2, np.float32), np.ones((20, 20), bool)
    >>> [bool(misfits_around(p, L, noise, mask)[0].mean() > 0.3) for p in (matte, gloss)]
    [False, True]
    """
    if not bool(noise.any()):
        return 0.0 * noise, 0.0 * noise
    fits = fit_all(pixels, lights), fit_lit(pixels, lights, noise)
    whole, lit = (misfit_around(fit, noise, mask) for fit in fits)
    return whole, lit


def misfit_around(fit: MatteFit, noise: Array, mask: NDArray[np.bool_]) -> Array:
    """Mean over the pixels around each of s² (N,), beyond noise and in units of its variance (N,)."""
    xp, scatter = namespace(noise), fit.scatter
    excess = xp.minimum(fit.misfit / noise.clip(1e-12), 1.0 + 4.0 * scatter) - (1.0 + 0.2 * scatter)
    total, count = _mean_around(excess, mask), _mean_around(xp.ones_like(excess), mask)
    return cast((total / count).clip(0.0), "float32")


def _mean_around(values: Array, mask: NDArray[np.bool_]) -> Array:
    """Mean of (N,) values over a window around each pixel, zeros outside the mask."""
    side = 2 * AROUND + 1
    index = like(np.flatnonzero(mask), values)
    picture = namespace(values).zeros_like(empty((mask.size,), values, "float32"))
    picture[index] = cast(values, "float32")
    if is_tensor(picture):
        from torch.nn.functional import avg_pool2d

        return avg_pool2d(picture.view(1, *mask.shape), side, 1, AROUND).view(-1)[index]
    from scipy.ndimage import uniform_filter

    return np.asarray(uniform_filter(picture.reshape(mask.shape), side, mode="constant").ravel()[index])
