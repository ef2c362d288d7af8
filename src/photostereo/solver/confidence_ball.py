"""Limit a prior to changes that the noise of the photographs allows.

A prior knows the shape only in part. It treats everything else (fine detail that no atom represents yet, a material
edge) as noise. But the photographs show how large noise can be: around the model's own normal m its variance
is τ² = v trace(H⁻¹) / 3 in each component, with H the mean Hessian of the data cost and v the noise of an
intensity. So with a prior of automatic strength each pixel solves

    minimize  data(n) + w |n|² − 2 n·q     subject to     |n − m|² ≤ β τ²,

where β is the 99.9 % point of χ² with three degrees of freedom. Within that ball the photographs cannot distinguish one
normal from another, and the prior may choose; beyond it they contradict the prior.

v is the noise of the capture, or the pixel's own mean squared misfit if that is larger: photographs that
disagree with each other (a highlight on a matte model) carry less information.

A model with a curve for each pixel scales the noise of an intensity by the slope a of that curve. If an entry many times
too bright has bent the curve, a is a tenth of that of other pixels, the normal is a tenth as long, and a ball from the
capture's noise would be several times its length: the prior could turn it anywhere. The misfit s² shows that the
noise is smaller. With f degrees of freedom f s² / v is χ², so v ≤ f s² / χ²_f(0.1 %) in all but a thousandth of the
pixels, and v is limited to that.

The ball is convex and does not move, the descent starts inside it, and each step is the exact minimizer over it: the
cost cannot rise. With the multiplier ν of the constraint the step is the model's own, with the weight w + ν and the
pull q + ν m, so it works for every model. ν solves the secular equation 1/|n(ν) − m| = 1/radius, which is
nearly linear in ν (J. J. Moré, D. C. Sorensen, Computing a trust region step, SIAM J. Sci. Stat. Comput. 4(3), 1983,
doi:10.1137/0904038), so a few secant steps suffice.

**Where the model is in doubt.** Within the ball the prior may still remove more detail than noise, so only a share α of its
shift is kept, from Stein's estimate (:mod:`photostereo.solver.shrinkage`). That estimate covers the noise but not the errors
of the model. Where a pixel's misfit s² is larger than noise σ² explains (more than t σ², t = 1 + 2 √(2/(d − 3)) as for χ²),
the model is wrong about the pixel, by more than its residuals show, and the prior gets more weight:

    α_px = α + (1 − α) e / (e + σ²),     e = max(s² − t σ², 0).

**Models whose error is larger than noise.** A model that bends a curve, or removes whatever is not of low rank, responds to
noise in its own way, and it is biased: the noise alone does not determine how much of a shift s to keep. With m the model's
normals and t the truth, the shift removes −(m − t)·s of the error. Least squares u is an unbiased estimate of t wherever
the surface is matte, so

    −(m − t)·s  =  −(m − u)·s − (u − t)·s.

The first term is known, and Stein's lemma gives the mean of the second: add a little noise, like that of the photographs
(:func:`photostereo.diagnosis.noise_fields.more_noise`), and measure how u and s move together. Where least squares does not
explain the photographs, at a pixel or around it, it gives no information on t (as in
:mod:`photostereo.reflectance.learned.matte`, where it is a witness). There the bias of m counts as unknown, and the effect
of noise on m itself replaces both terms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.diagnosis.noise import Noise, chi_square_quantile
from photostereo.diagnosis.noise_fields import more_noise, noise_fields
from photostereo.reflectance.lambertian.model import Lambertian
from photostereo.reflectance.learned.matte import (
    HIDDEN_MISFIT,
    fit_both,
    mean_around,
    misfit_around,
)
from photostereo.reflectance.model import Fit, Model, Unknowns
from photostereo.runtime.arrays import Array, cast, contiguous, is_tensor, like, namespace, to_numpy
from photostereo.runtime.illumination import least_squares
from photostereo.runtime.matte_fits import fit_all

#: The 99.9 % point of χ² with three degrees of freedom.
CONFIDENCE = 16.266
#: Maximum number of secant steps. The equation is nearly linear, so a few suffice.
STEPS = 12
#: Relative error of the radius at which the steps stop.
RADIUS_TOLERANCE = 1e-7
#: ε of a trial with more noise, in standard deviations of the noise.
STEP = 0.3
#: Largest mean misfit of lit pixels beyond noise, in units of its variance, at which a surface counts as matte. Rendered
#: matte scenes (six, with shadows, noise of 0.5 to 5 %) have 0.003 at most, glossy ones 0.06 at least.
MATTE = 0.015
#: Least mean square of the intensities, in units of the same variance (10 dB). With less light, noise hides gloss: at 5 dB
#: two of three glossy scenes would count as matte.
LEAST_LIGHT = 10.0

#: Shares of the coarse and of the fine part of a prior's shift.
Shares = tuple[float, float]


@dataclass(frozen=True, eq=False)
class NormalNoise:
    """Noise of a model's normals and, if measured by trial, their comparison with least squares."""

    noise: Array  #: (N, 3) of the model's own normals, in full
    bias: Array | None = (
        None  #: (N, 3) the model's normals less those of least squares, of the same lengths
    )
    matte_noise: Array | None = None  #: (N, 3) of the latter
    matte: Array | None = (
        None  #: (N,) from 1, where noise explains the least-squares residual, to 0
    )

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
    """Rebuild the model from photographs with more noise."""
    pixels = measured.pixels
    lights = measured.lights
    more = more_noise(pixels, lights, disturbing)
    again = cast(build(pixels + STEP * more).start(SILENT)[0], "float64")
    normals = cast(normals, "float64")
    fit = fit_all(cast(pixels, "float32"), lights)
    longer = _length(normals) / (_length(cast(fit.scaled, "float64")) + 1e-12)
    noise = measured.variances(measured.over_blocks)
    excess = fit.misfit / (noise + 1e-30) - (1.0 + fit.scatter)
    if not measured.has_blocks:  # pixels in the same JPEG block share their noise
        excess = namespace(excess).maximum(excess, misfit_around(fit, noise, measured.mask))
    return NormalNoise(
        noise=(again - normals) / STEP,
        bias=normals - longer * cast(fit.scaled, "float64"),
        matte_noise=longer * least_squares(cast(more, "float64"), lights),
        # the share of noise in the variance that the matte witness would have
        matte=cast(1.0 / (1.0 + HIDDEN_MISFIT * fit.photographs * excess.clip(0.0)), "float64"),
    )


def _length(vectors: Array) -> Array:
    return namespace(vectors).sqrt((vectors * vectors).sum(-1))[..., None]


@dataclass(frozen=True, eq=False)
class NoiseEvidence:
    """Noise of a model as measured on the photographs."""

    sigma: float  #: standard deviation of an intensity, counting only what is noise to the model
    #: the same for all that disturbs the model's normals, including noise that the model bends its curve around
    disturbing: float
    #: the same for noise that may be correlated within blocks of a file format; misfits are compared with it
    common: float
    doubtful: float  #: t, the multiple of that variance above which a misfit shows that the model is wrong
    #: (N, 3) noise pictures of unit power, see :func:`photostereo.diagnosis.noise_fields.noise_fields`
    fields: Array
    #: the largest variance of a pixel's noise as a multiple of its misfit, if its curve scales noise
    most: float = float("inf")
    #: how noise disturbs the model's normals (N, 3), if that requires a trial
    tried: Callable[[Array], NormalNoise] | None = None
    #: whether noise alone explains why the lit photographs are not those of a matte surface
    matte: bool = False

    @classmethod
    def of(cls, model: Model, noise: Noise, build: Callable[[Array], Model]) -> NoiseEvidence:
        """Measure the evidence for a model of pixels with this noise; ``build`` builds the model of other pixels."""
        count = noise.lights.shape[-1]
        disturbing = noise.sigma if model.noise is None else model.noise
        freedom = count - 3
        scales = model.scales_noise and freedom > 0
        return cls(
            sigma=noise_to(model, count, noise.sigma),
            disturbing=disturbing,
            common=noise.over_blocks,
            doubtful=1.0 + 2.0 * float(np.sqrt(2.0 / max(freedom, 1))),
            fields=noise_fields(noise.pixels, noise.lights, noise.sigma),
            most=freedom / chi_square_quantile(freedom, 0.001) if scales else float("inf"),
            tried=partial(try_noise, build, noise, disturbing)
            if model.bends and freedom > 0
            else None,
            matte=is_matte(noise),
        )


def is_matte(noise: Noise) -> bool:
    """Whether noise alone explains the misfit of a matte surface in the photographs that light each pixel, and does not
    explain everything."""
    pixels = cast(noise.pixels, "float32")
    if not float((pixels * pixels).mean()) > LEAST_LIGHT * noise.sigma**2 > 0.0:
        return False
    variance = noise.variances(noise.sigma)
    lit = fit_both(pixels, noise.lights, variance)[1]
    return float(misfit_around(lit, variance, noise.mask).mean()) < MATTE


def noise_to(model: Model, photographs: int, measured: float) -> float:
    """Return the noise of an intensity to a model: its own figure, or the part of ``measured`` that its fit leaves.

    Whatever a model explains is not noise to it. A piecewise-linear curve bends around a few entries that are many times
    too bright; least squares sees them as strong noise, and a prior of that strength would undo the fit.
    """
    if model.noise is not None:
        return model.noise
    if photographs <= 3:
        return 0.0  # no residual: noise cannot be distinguished from texture, and a prior must not guess
    if type(model).misfit is Model.misfit or isinstance(model, Lambertian):
        return (
            measured  # a matte model explains no more than the least squares of the estimate itself
        )
    misfit = model.misfit(*model.start(SILENT))
    if misfit is None:
        return measured
    # The sums of squared residuals over the remaining degrees of freedom; their median is that of a χ² variable.
    freedom = photographs - 3
    middle = float(np.median(to_numpy(misfit)))
    return min(measured, float(np.sqrt(middle * freedom / chi_square_quantile(freedom, 0.5))))


class WithinNoise(Model):
    """A model whose normals stay within the noise around its own answer.

    ``start`` holds the model's own normals (the center of each pixel's ball) and unknowns.
    """

    def __init__(
        self,
        model: Model,
        start: tuple[Array, Unknowns],
        evidence: NoiseEvidence,
        hessian: NDArray[Any] | None = None,
        mask: NDArray[np.bool_] | None = None,
    ) -> None:
        self._model = model
        self._evidence = evidence
        self._mask = mask if evidence.matte else None
        center, unknowns = start
        self._center = cast(center, "float64")
        hessian = model.mean_hessian(unknowns) if hessian is None else hessian
        self.bound = evidence, hessian  # bounds for another model of the same photographs
        self._hessian = hessian
        self._excess = model.excess_variance(unknowns)
        self._stiffness = float(np.trace(hessian)) / 3.0
        self._misfit = model.misfit(center, unknowns)
        variance = evidence.disturbing**2 + 0.0 * self._center[..., 0]
        if self._misfit is not None:
            xp = namespace(variance)
            if evidence.most < float("inf"):
                variance = xp.minimum(variance, evidence.most * self._misfit)
            variance = xp.maximum(variance, self._misfit)
        spread = float(np.trace(np.linalg.inv(hessian))) / 3.0
        self._radius = (CONFIDENCE * spread * variance) ** 0.5

    @cached_property
    def noise_of_normals(self) -> NormalNoise:
        """Return the noise of the model's own normals: from the trial, or from the photographs by the mean Hessian."""
        if self._evidence.tried is not None:
            return self._evidence.tried(self._center)
        root = np.linalg.cholesky(self._excess * np.linalg.inv(self._hessian))
        fields = cast(self._evidence.fields, "float64")
        return NormalNoise(
            self._evidence.disturbing * fields @ like(np.ascontiguousarray(root.T), fields)
        )

    @cached_property
    def _doubt(self) -> Array:
        """Return values (N,) from 0, where noise explains the misfit, to 1, where the model is wrong."""
        nothing = 0.0 * self._radius
        if self._misfit is None or self._model.noise_is_of_normals:
            return nothing
        variance = self._evidence.common**2
        excess = namespace(nothing).maximum(
            self._misfit - self._evidence.doubtful * variance, nothing
        )
        return excess / (excess + variance + 1e-30)

    def product(self, shift: Array, other: Array) -> float:
        """Return the mean product of shifts (N, 3) over the pixels, weighted down where the model is in doubt."""
        return float(((1.0 - self._doubt) * (shift * other).sum(-1)).mean())

    def removed(self, shift: Array, change: Array) -> float:
        """Return the error that a shift removes, in the same mean; ``change`` is that of the shift with full noise."""
        return float(((1.0 - self._doubt) * self.noise_of_normals.removed(shift, change)).mean())

    def parts(self, shift: Array) -> list[Array]:
        """Return the coarse and the fine part of a shift (N, 3) if each has its own share, else all of it."""
        if self._mask is None:
            return [shift]
        coarse = cast(mean_around(shift, self._mask), "float64")
        return [coarse, shift - coarse]

    def tempered(self, normals: Array, shares: Shares) -> Array:
        """Return m + α (n − m), with a larger α where the model is in doubt."""
        coarse, share = shares
        if coarse == share >= 1.0:
            return normals
        moved = normals - self._center
        coarse_part = None if coarse == share else self.parts(moved)[0]
        moved *= (share + (1.0 - share) * self._doubt)[..., None]
        moved += self._center
        if coarse_part is not None:
            moved += ((coarse - share) * (1.0 - self._doubt))[..., None] * coarse_part
        return moved

    def update_normals(self, unknowns: Unknowns, weight: Array, pull: Array) -> Array:
        quadratic = None if is_tensor(pull) or pull.ndim > 2 else self._model.quadratic(unknowns)
        if quadratic is None:
            return self._by_secants(unknowns, weight, pull)
        from photostereo.runtime.algebra import step_within

        hessian, linear = (contiguous(cast(part, "float64")) for part in quadratic)
        normals = np.empty_like(self._center)
        pull = contiguous(cast(pull, "float64"))
        step_within(
            hessian, linear, self._center, self._radius, weight, pull, RADIUS_TOLERANCE, normals
        )
        return normals

    def _by_secants(self, unknowns: Unknowns, weight: Array, pull: Array) -> Array:
        """Compute the same step from the model's own step only, for any model and any kind of array."""
        center = self._center
        radius = self._radius
        xp = namespace(radius)

        def answer(multiplier: Array) -> tuple[Array, Array]:
            normals = self._model.update_normals(
                unknowns, weight + multiplier, pull + multiplier[..., None] * center
            )
            return normals, ((normals - center) ** 2).sum(-1) ** 0.5

        before = 0.0 * radius
        normals, length = answer(before)
        outside = length > radius
        if not bool(outside.any()):
            return normals
        goal = 1.0 / radius.clip(1e-30)
        height = 1.0 / xp.where(outside, length, radius + 1e-30) - goal
        # Exact where the data constrain all directions equally.
        present = xp.where(outside, (weight + self._stiffness) * (length * goal - 1.0), before)
        for _ in range(STEPS):
            normals, length = answer(present)
            now = 1.0 / length.clip(1e-30) - goal
            open_ = outside & (abs(length - radius) > RADIUS_TOLERANCE * radius)
            if not bool(open_.any()):
                break
            rise = now - height
            slope = xp.where(rise == 0.0, 1.0, rise)
            step = xp.where(open_ & (rise != 0.0), now * (present - before) / slope, 0.0)
            before = present
            height = now
            present = (present - step).clip(0.0)
        # Remove the remaining tolerance of the radius: the answer is always inside.
        scale = xp.where(length > radius, radius / length.clip(1e-30), 1.0)
        return center + scale[..., None] * (normals - center)

    def mean_hessian(self, unknowns: Unknowns) -> NDArray[Any]:
        return self._model.mean_hessian(unknowns)

    def alone(self, control: Control) -> Fit:
        return self._model.alone(control)

    def update_unknowns(self, normals: Array, unknowns: Unknowns) -> Unknowns:
        return self._model.update_unknowns(normals, unknowns)

    def cost(self, normals: Array, unknowns: Unknowns) -> Array:
        return self._model.cost(normals, unknowns)
