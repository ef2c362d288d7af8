"""Common part of the sparse models: the photographs alone decide which of them are wrong.

Symbols: y the d intensities of a pixel, L (3 × d) the lights, n albedo × normal, r = y − Lᵀn the
residual.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.reflectance.model import Facts, Model, Unknowns, pixel_batches
from photostereo.reflectance.sparse import loops
from photostereo.runtime.algebra import quadratic_cost, solve_shifted_3x3
from photostereo.runtime.arrays import (
    Array,
    cast,
    contiguous,
    empty,
    like,
    namespace,
    to_numpy,
)
from photostereo.runtime.illumination import (
    for_loops,
    project,
    pseudo_inverse,
    shading,
    some_lights,
)
from photostereo.runtime.symmetric import mean_symmetric_3x3

#: Least absolute residuals: the minimum |r| in a weight 1/|r|, relative to the brightness of the
#: pixel. It is far below any noise, and the exact descent removes its effect.
FLOOR = 1e-6
#: The step at which reweighting ends, likewise relative.
STEP = 1e-8
#: Reweighting steps before the exact descent: enough to be near the minimizer.
REWEIGHTINGS = 10
#: Residuals below this share of the brightness scale are never outliers.
SMALLEST_NOISE = 1e-3
#: Minimum number of pixels for the noise estimate; up to twice as many are used.
RESIDUALS_FROM = 20_000
#: Quantile of the residuals for the noise estimate: up to a third of the entries may be outliers.
INLIER_SHARE = 2 / 3
#: Its value for |x| of a standard Gaussian.
INLIER_QUANTILE = 0.9674
#: The same quantile for lit entries, among which noise is the smallest third.
LIT_SHARE = 1 / 3
#: Its value for |x| of a standard Gaussian.
LIT_QUANTILE = 0.4307
#: The residual below which an entry counts as fitted exactly: rounding, in single precision.
FITTED = 1e-6


@dataclass(frozen=True)
class SparseFacts(Facts):
    """What the sparse models must know of a whole capture."""

    threshold: float  #: the squared residual above which a photograph counts as an outlier


class Reweighted(Model):
    """Common part of the sparse models with a prior: fixed weights of the photographs.

    The robust cost of a pixel is ``Σ_j min_w (w r_j² + dual(w))`` with weights in (0, 1]. The
    weights are fixed at the optimum for m, the model's own normals without a prior; they reduce the
    photographs to ``gram = L W Lᵀ``, ``moment = L W y`` and one constant. The data cost is this
    quadratic, which touches the robust cost at m and lies above it everywhere else, so every step
    with a prior is exact, and the cost cannot increase.

    Why not use weights for the current normals? A prior that moves n by s adds Lᵀs to every
    residual. Beyond the noise a redescending weight falls as 1/s², so the force with which the
    photographs hold n falls as 1/s: the farther the prior pulls, the less they resist, until good
    photographs are dropped and the prior overrides every detail that it does not know. With the
    residuals at m, the prior cannot create outliers.

    Parameters
    ----------
    pixels : array (N, d)
        Intensities of order one.
    lights : array (3, d) or (N, 3, d)
        Unit lights.
    noise : float, optional
        Variance of the noise relative to the squared brightness of a pixel; by default it is
        measured, as one number for the capture.
    facts : SparseFacts, optional
        About the capture, if these pixels are a part of it.
    """

    #: Whether the weights fall as ``1/r²`` beyond the noise, or as ``1/|r|``.
    redescending: ClassVar[bool]
    #: :meth:`excess_variance` under Gaussian noise.
    excess: ClassVar[float]

    def __init__(
        self,
        pixels: Array,
        lights: Array,
        noise: float | None = None,
        facts: SparseFacts | None = None,
    ) -> None:
        self._pixels = contiguous(pixels)
        precision = np.float64 if lights.ndim == 2 else None
        self._lights = like(np.ascontiguousarray(lights, dtype=precision), pixels)
        self._noise = noise
        self._threshold = None if facts is None else self._everywhere(facts.threshold)
        self._own_normals: Array | None = None
        self._measured: float | None = None

    def least_absolute(
        self, control: Control, max_iter: int = REWEIGHTINGS, every: int = 1
    ) -> tuple[Array, NDArray[Any]]:
        """Minimize ‖y − Lᵀn‖₁ exactly.

        Parameters
        ----------
        control : Control
            Progress and cancellation.
        max_iter : int
            Reweighting steps before the exact descent.
        every : int
            Only every n-th pixel.

        Returns
        -------
        normals : array (N, 3)
        iterations : array of int (N,)
            Steps; negative if the minimum is not proven.
        """
        pixels = self._pixels
        lights = self._lights
        if every > 1:
            pixels = contiguous(pixels[::every])
            lights = some_lights(lights, slice(None, None, every))
        count = len(pixels)
        normals = empty((count, 3), pixels)
        iterations = empty((count,), pixels, "int64")
        # Least squares, in one product for all pixels.
        starts = project(pixels, pseudo_inverse(to_numpy(lights)).swapaxes(-1, -2))
        size = loops.batch_size(pixels)
        for part in pixel_batches(count, control, "least absolute residuals", size=size):
            loops.l1_regression(
                pixels[part],
                for_loops(some_lights(lights, part)),
                starts[part],
                FLOOR,
                STEP,
                max_iter,
                normals[part],
                iterations[part],
            )
        return normals, to_numpy(iterations)

    def measure_noise(self, control: Control = SILENT, normals: Array | None = None) -> None:
        """Set one threshold for the capture, from the residuals of a least absolute fit.

        Parameters
        ----------
        control : Control
            Progress and cancellation.
        normals : array (N, 3), optional
            Of this fit; by default it is made for a sample.
        """
        # A quantile needs no more pixels than this; the exact fit is slow.
        every = max(1, len(self._pixels) // RESIDUALS_FROM)
        if normals is None:
            normals, _ = self.least_absolute(control, every=every)
        else:
            normals = normals[::every]
        lights = some_lights(self._lights, slice(None, None, every))
        self._measured = noise_of_residuals(self._pixels[::every], lights, normals)
        self._threshold = self._everywhere(max(self._measured, SMALLEST_NOISE) ** 2)

    @property
    def has_threshold(self) -> bool:
        """Whether the threshold of the capture is known."""
        return self._threshold is not None

    def thresholds(self) -> Array:
        """Return, per pixel, the squared residual above which a photograph counts as an outlier."""
        if self._threshold is None and self._noise is not None:
            self._threshold = self._noise * self._brightness**2
        if self._threshold is None:
            self.measure_noise()
        assert self._threshold is not None
        return self._threshold

    def facts(self, control: Control) -> SparseFacts | None:
        if self._noise is not None:
            return None
        if self._threshold is None:
            self.measure_noise(control)
        return SparseFacts(float(self.thresholds()[0]))

    @cached_property
    def _brightness(self) -> Array:
        """Largest absolute intensity of each pixel, (N,)."""
        xp = namespace(self._pixels)
        top = xp.amax(self._pixels, 1)
        low = xp.amin(self._pixels, 1)
        return cast(xp.maximum(top, -low), "float64")

    def _everywhere(self, value: float) -> Array:
        """Return the same number for every pixel."""
        array = empty((len(self._pixels),), self._pixels)
        array[:] = value
        return array

    @property
    def noise(self) -> float:
        """Noise of the inliers: outliers do not disturb a robust model and are not noise to it."""
        if self._measured is not None:
            return self._measured
        return math.sqrt(self.thresholds().mean())

    def mean_hessian(self, unknowns: Unknowns) -> NDArray[Any]:
        return mean_symmetric_3x3(unknowns["gram"])

    def excess_variance(self, unknowns: Unknowns) -> float:
        return self.excess

    def update_normals(self, unknowns: Unknowns, weight: Array, pull: Array) -> Array:
        return solve_shifted_3x3(unknowns["gram"], weight, unknowns["moment"] + pull)

    def quadratic(self, unknowns: Unknowns) -> tuple[Array, Array]:
        return unknowns["gram"], unknowns["moment"]

    def weigh(self, normals: Array) -> Unknowns:
        """Weight the photographs by their residuals from the model's own normals (N, 3)."""
        self._own_normals = contiguous(cast(normals, "float64"))
        count = len(normals)
        gram = empty((count, 6), self._pixels)
        moment = empty((count, 3), self._pixels)
        rest = empty((count,), self._pixels)
        loops.reweigh(
            self._pixels,
            for_loops(self._lights),
            self._own_normals,
            self.thresholds(),
            self.redescending,
            gram,
            moment,
            rest,
        )
        return {"gram": gram, "moment": moment, "rest": rest}

    def update_unknowns(self, normals: Array, unknowns: Unknowns) -> Unknowns:
        if unknowns["rest"].ndim == normals.ndim - 1:
            return unknowns
        # Problems solved at once share the weights.
        xp = namespace(normals)
        return {name: xp.broadcast_to(v, (len(normals), *v.shape)) for name, v in unknowns.items()}

    def _costs(self, normals: Array, unknowns: Unknowns) -> Array:
        return quadratic_cost(unknowns["gram"], unknowns["moment"], unknowns["rest"], normals)

    def cost(self, normals: Array, unknowns: Unknowns) -> Array:
        return self._costs(normals, unknowns).sum(-1)

    def misfit(self, normals: Array, unknowns: Unknowns) -> Array:
        return self._costs(normals, unknowns).clip(0.0) / max(self._pixels.shape[1] - 3, 1)


def noise_of_residuals(pixels: Array, lights: Array, normals: Array) -> float:
    """Estimate the standard deviation of the noise of inliers, over the capture.

    Outliers do not disturb a robust model and must not count as noise. There are two estimates from
    |r|, each scaled as for Gaussian noise. Each is too large if it fails, so the smaller one is
    used: the 2/3 quantile, which outliers and model errors inflate; and the 1/3 quantile of the lit
    entries, which is inflated if photons are so few that most entries saw none. (The median over
    all entries would then see no noise at all.) A least-absolute fit leaves three residuals of
    every pixel at zero; they are excluded.

    Parameters
    ----------
    pixels : array (N, d)
        Intensities.
    lights : array (3, d) or (N, 3, d)
        Unit lights.
    normals : array (N, 3)
        Of a robust (least absolute) fit.
    """
    photographs = pixels.shape[1]
    residuals = np.abs(to_numpy(pixels - shading(normals, lights)))
    if residuals.size == 0:
        return 0.0
    # The three residuals at zero come first in order.
    share = min((3 + INLIER_SHARE * (photographs - 3)) / photographs, 1.0)
    noise = float(np.quantile(residuals, share)) / INLIER_QUANTILE
    lit = residuals[(to_numpy(pixels) > 0) & (residuals > FITTED)]
    if lit.size:
        noise = min(noise, float(np.quantile(lit, LIT_SHARE)) / LIT_QUANTILE)
    return noise
