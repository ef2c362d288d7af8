"""Measure by trial how the photographs' noise changes a model's normals, and compare them with a matte fit.

A model that bends a curve, or removes whatever is not of low rank, responds to noise in its own way, and its error is
larger than noise: it is biased. Then the noise alone does not determine how much of a prior's shift to keep
(:mod:`photostereo.solver.share`). With m the model's normals, s the shift and t the truth, the shift removes −(m − t)·s
of the error. Least squares u is an unbiased estimate of t wherever the surface is matte, so

    −(m − t)·s  =  −(m − u)·s − (u − t)·s,

The first term is known, and Stein's lemma gives the mean of the second: add a little noise to the photographs and
measure how u and s move together. Where least squares does not explain the photographs, at a pixel or around it, it
gives no information on t (as in :mod:`photostereo.reflectance.learned.matte`, where it is a witness). There the bias of m
counts as unknown, and the effect of noise on m itself replaces both terms. The added noise is like that of the
photographs (:func:`photostereo.diagnosis.noise_fields.more_noise`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from photostereo.core.control import SILENT
from photostereo.core.conventions import BoolArray
from photostereo.diagnosis.noise import Noise
from photostereo.diagnosis.noise_fields import more_noise
from photostereo.reflectance.learned.matte import HIDDEN_MISFIT, misfit_around
from photostereo.reflectance.model import Model
from photostereo.runtime.arrays import Array, cast, namespace
from photostereo.runtime.illumination import least_squares
from photostereo.runtime.matte_fits import MatteFit, fit_all

#: ε, in standard deviations of the noise.
STEP = 0.3


@dataclass(frozen=True, eq=False)
class NormalNoise:
    """Noise of a model's normals and, if measured by trial, their comparison with least squares."""

    noise: Array  #: (N, 3) of the model's own normals, in full
    bias: Array | None = None  #: (N, 3) the model's normals less those of least squares, of the same lengths
    matte_noise: Array | None = None  #: (N, 3) of the latter
    matte: Array | None = None  #: (N,) from 1, where noise explains the least-squares residual, to 0

    def removed(self, shift: Array, change: Array) -> Array:
        """Return the part (N,) of a model's error that a shift removes; ``change`` is that of the shift with full noise."""
        by_noise = -(self.noise * change).sum(-1)
        if self.matte is None:
            return by_noise
        by_matte = -(self.bias * shift).sum(-1) - (self.matte_noise * change).sum(-1)
        return self.matte * by_matte + (1.0 - self.matte) * by_noise


def try_noise(
    build: Callable[[Array], Model], measured: Noise, disturbing: float, normals: Array
) -> NormalNoise:
    """Rebuild the model from photographs with more noise; see
    :class:`photostereo.solver.within_noise.NoiseEvidence`.
    """
    pixels, lights = measured.pixels, measured.lights
    more = more_noise(pixels, lights, disturbing)
    again = cast(build(pixels + STEP * more).start(SILENT)[0], "float64")
    normals = cast(normals, "float64")
    fit = fit_all(cast(pixels, "float32"), lights)
    longer = _length(normals) / (_length(cast(fit.scaled, "float64")) + 1e-12)
    return NormalNoise(
        noise=(again - normals) / STEP,
        bias=normals - longer * cast(fit.scaled, "float64"),
        matte_noise=longer * least_squares(cast(more, "float64"), lights),
        matte=_explained(fit, measured.over_blocks**2, None if measured.has_blocks else measured.mask),
    )


def _explained(fit: MatteFit, noise: float, mask: BoolArray | None) -> Array:
    """Return the share (N,) of noise in the variance that the matte witness would have.

    Without a mask the neighboring pixels are ignored: pixels in the same JPEG block share their noise.
    """
    excess = fit.misfit / (noise + 1e-30) - (1.0 + fit.scatter)
    if mask is not None:
        xp = namespace(excess)
        around = misfit_around(fit, xp.full_like(excess, noise), mask)
        excess = xp.maximum(excess, around)
    return cast(1.0 / (1.0 + HIDDEN_MISFIT * fit.photographs * excess.clip(0.0)), "float64")


def _length(vectors: Array) -> Array:
    return namespace(vectors).sqrt((vectors * vectors).sum(-1))[..., None]
