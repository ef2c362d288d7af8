"""Sparse regression: Lambertian shading with errors in a few photographs (shadows, highlights, dead
pixels).

Symbols: y the d intensities of a pixel, L (3 × d) the lights, n albedo × normal, r = y − Lᵀn the
residual, γ_j the variance of the error in photograph j."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.reflectance.model import Facts, Fit, Model, Unknowns, pixel_batches
from photostereo.reflectance.sparse import loops
from photostereo.runtime.algebra import quadratic_cost, solve_shifted_3x3
from photostereo.runtime.arrays import (
    Array,
    cast,
    contiguous,
    empty,
    is_tensor,
    like,
    namespace,
    tensor_batches,
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

#: The weakest prior on n that keeps its covariance finite: variance 1e6 at intensities of order
#: one.
PRIOR_VARIANCE = 1e6
#: Least absolute residuals: the minimum |r| in a weight 1/|r|, and the step at which reweighting
#: ends, both relative to the brightness of the pixel.
FLOOR = 1e-6
STEP = 1e-8
#: A pixel has settled if it moves by less than this share of its brightness in the last iteration;
#: a capture has converged if all but this share of its pixels have settled.
SETTLED = 1e-3
UNSETTLED_SHARE = 0.005
#: Residuals below this share of the brightness scale are never outliers.
SMALLEST_NOISE = 1e-3
#: Under Gaussian noise the normals are less certain than the mean weight of the photographs
#: implies, σ² / E[w]: by (π/2) E[w] for least absolute residuals with Huber's weights, and by E[ψ²]
#: E[w] / E[ψ']², ψ = w r, for weights that fall as 1/r² beyond σ.
EXCESS_OF_LEAST_ABSOLUTE = 1.42
EXCESS_OF_SPARSE_BAYES = 1.17
#: With a prior, the expectation maximization of a pixel ends at this step, relative to its
#: brightness. Compared with 1e-5: 40 % less time (1e-4: 65 %), normals 0.03° away on average (p99
#: 0.15°), errors times 1.002 to 1.004 (1e-4: 1.01).
STEP_WITH_PRIOR = 3e-5
#: Minimum number of pixels for the noise estimate; up to twice as many are used.
RESIDUALS_FROM = 20_000
#: Quantile of the residuals for the noise estimate, and its value for |x| of a standard Gaussian.
INLIER_SHARE = 2 / 3
INLIER_QUANTILE = 0.9674
#: The same for lit entries; and the residual below which an entry counts as fitted exactly.
LIT_SHARE = 1 / 3
LIT_QUANTILE = 0.4307
FITTED = 1e-6


@dataclass(frozen=True)
class SparseFacts(Facts):
    """What the sparse models must know of a whole capture."""

    threshold: float  #: the squared residual above which a photograph counts as an outlier


class _Reweighted(Model):
    """Common part of the sparse models with a prior: the photographs alone decide which of them are
    wrong.

    The robust cost of a pixel is ``Σ_j min_w (w r_j² + dual(w))`` with weights in (0, 1]. The
    weights are fixed at the optimum for m, the model's own normals without a prior; they reduce the
    photographs to ``gram = L W Lᵀ``, ``moment = L W y`` and one constant. The data cost is this
    quadratic, which touches the robust cost at m and lies above it everywhere else, so every step
    with a prior is exact, and the cost cannot increase.

    Why not use weights for the current normals? A prior that moves n by s adds Lᵀs to every
    residual. Beyond the noise a redescending weight falls as 1/s², so the force with which the
    photographs hold n falls as 1/s: the farther the prior pulls, the less they resist, until good
    photographs are dropped and the prior overrides every detail that it does not know. With the
    residuals at m, the prior cannot create outliers."""

    _redescending: bool
    _excess: float

    def __init__(
        self,
        pixels: Array,
        lights: Array,
        noise: float | None = None,
        facts: SparseFacts | None = None,
    ) -> None:
        self._pixels = pixels if is_tensor(pixels) else np.ascontiguousarray(pixels)
        shared = lights.ndim == 2
        self._lights = like(
            np.ascontiguousarray(lights, dtype=np.float64 if shared else None), pixels
        )
        self._noise = (
            noise  # relative to the squared brightness of a pixel; None: measure it on the capture
        )
        self._threshold = None if facts is None else self._everywhere(facts.threshold)
        self._own: Array | None = None
        self._measured: float | None = None

    def _least_absolute(
        self, control: Control, max_iter: int = 10, every: int = 1
    ) -> tuple[Array, Array]:
        """Minimize ‖y − Lᵀn‖₁ exactly for every n-th pixel; also return the steps (negative: not
        proven).
        """
        pixels = self._pixels
        lights = self._lights
        if every > 1:
            pixels = contiguous(pixels[::every])
            lights = some_lights(lights, slice(None, None, every))
        count = len(pixels)
        normals = empty((count, 3), pixels)
        iterations = empty((count,), pixels, "int64")
        starts = project(pixels, pseudo_inverse(to_numpy(lights)).swapaxes(-1, -2))
        for part in pixel_batches(
            count, control, "least absolute residuals", size=loops.batch_size(pixels)
        ):
            there = for_loops(some_lights(lights, part))
            answers = (normals[part], iterations[part])
            loops.l1_regression(pixels[part], there, starts[part], FLOOR, STEP, max_iter, *answers)
        return normals, to_numpy(iterations)

    def _measure_noise(self, control: Control = SILENT, own: Array | None = None) -> None:
        """Set one threshold for the capture, from the residuals of the least absolute fit of a
        sample.
        """
        every = max(1, len(self._pixels) // RESIDUALS_FROM)
        own = self._least_absolute(control, every=every)[0] if own is None else own[::every]
        lights = some_lights(self._lights, slice(None, None, every))
        self._measured = noise_of_residuals(self._pixels[::every], lights, own)
        self._threshold = self._everywhere(max(self._measured, SMALLEST_NOISE) ** 2)

    def _thresholds(self) -> Array:
        """Per pixel, the squared residual above which a photograph counts as an outlier."""
        if self._threshold is None and self._noise is not None:
            self._threshold = self._noise * self._brightness**2
        if self._threshold is None:
            self._measure_noise()
        assert self._threshold is not None
        return self._threshold

    @cached_property
    def _brightness(self) -> Array:
        """Largest absolute intensity of each pixel, (N,)."""
        xp = namespace(self._pixels)
        top = xp.amax(self._pixels, 1)
        low = xp.amin(self._pixels, 1)
        return cast(xp.maximum(top, -low), "float64")

    def facts(self, control: Control) -> SparseFacts | None:
        if self._noise is not None:
            return None
        if self._threshold is None:
            self._measure_noise(control)
        return SparseFacts(float(self._thresholds()[0]))

    def _everywhere(self, value: float) -> Array:
        """The same number for every pixel."""
        array = empty((len(self._pixels),), self._pixels)
        array[:] = value
        return array

    @property
    def noise(self) -> float:
        """Noise of the inliers: outliers do not disturb a robust model and must not count as noise."""
        thresholds = self._thresholds()
        return math.sqrt(thresholds.mean()) if self._measured is None else self._measured

    def mean_hessian(self, unknowns: Unknowns) -> NDArray[Any]:
        return mean_symmetric_3x3(unknowns["gram"])

    def excess_variance(self, unknowns: Unknowns) -> float:
        return self._excess

    def update_normals(self, unknowns: Unknowns, weight: Array, pull: Array) -> Array:
        return solve_shifted_3x3(unknowns["gram"], weight, unknowns["moment"] + pull)

    def quadratic(self, unknowns: Unknowns) -> tuple[Array, Array]:
        return unknowns["gram"], unknowns["moment"]

    def _weighed(self, own: Array) -> Unknowns:
        """Weight the photographs by their residuals from the model's own normals."""
        self._own = contiguous(cast(own, "float64"))
        gram, moment, rest = (
            empty((len(own), *entries), self._pixels) for entries in ((6,), (3,), ())
        )
        how = self._own, self._thresholds(), self._redescending
        loops.reweigh(self._pixels, for_loops(self._lights), *how, gram, moment, rest)
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


class LeastAbsolute(_Reweighted):
    r"""Least absolute residuals (L1): half of the photographs may be wrong by any amount.

    .. math:: \min_n \; \sum_{px} \| y_{px} - L^T n_{px} \|_1

    Each pixel is divided by its maximum and starts from least squares. A few steps of reweighted
    least squares (``w = 1/max(|r|, 1e-6)``, 3 × 3 solves) bring it near the minimizer, where
    reweighting alone would be slow. A descent along the edges of the piecewise linear cost then
    reaches the exact minimizer, with multipliers that prove it.

    With a prior, each photograph has the weight of Huber's cost at that minimizer: 1 below the
    noise σ of the capture (see :func:`.noise_of_residuals`), so that inliers weigh as much as in
    least squares and λ keeps its meaning, and ``σ/|r|`` above.

    References
    ----------
    The descent: I. Barrodale, F. D. K. Roberts, An improved algorithm for discrete l1 linear
    approximation, SIAM Journal on Numerical Analysis 10(5), 1973, doi:10.1137/0710069.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> L = rng.normal(size=(3, 20)) + [[0], [0], [2]]
    >>> L /= np.linalg.norm(L, axis=0)
    >>> n = np.array([[0.1, 0.2, 0.9]])
    >>> y = n @ L
    >>> y[0, [1, 5, 7]] = 0, 2, 1
    >>> bool(np.allclose(LeastAbsolute(y, L).alone(Control()).normals, n))
    True
    """

    _redescending = False
    _excess = EXCESS_OF_LEAST_ABSOLUTE

    def __init__(
        self,
        pixels: Array,
        lights: Array,
        *,
        max_iter: int = 10,
        facts: SparseFacts | None = None,
    ) -> None:
        super().__init__(pixels, lights, facts=facts)
        self._max_iter = max_iter

    def alone(self, control: Control) -> Fit:
        normals, iterations = self._least_absolute(control, self._max_iter)
        return Fit(
            normals, {}, int(np.abs(iterations).max(initial=0)), bool((iterations >= 0).all())
        )

    def start(self, control: Control) -> tuple[Array, Unknowns]:
        normals, _ = self._least_absolute(control, self._max_iter)
        if self._threshold is None:
            self._measure_noise(control, normals)
        return normals, self._weighed(normals)


class SparseBayes(_Reweighted):
    r"""Sparse Bayesian learning (SBL): the evidence decides which photographs are wrong, and by how
    much.

    .. math:: y = L^T n + e + \varepsilon, \quad e_j \sim N(0, \gamma_j), \quad
              \varepsilon \sim N(0, \lambda I), \qquad \max_\gamma \; p(y \,|\, \gamma)

    Without a prior: expectation maximization. With S = γ + λ,

        Cov = (L S⁻¹ Lᵀ + I/σ²)⁻¹,   n = Cov L S⁻¹ y,   γ ← (k r)² + γ λ/S + k² diag(Lᵀ Cov L),   k = γ/S,

    which costs one pass over the d photographs per iteration.

    With a prior, S minimizes ``−log p(y | n, γ) = Σ_j r_j²/S_j + log S_j`` at that n: ``S = max(r²,
    λ)``. The weight of a photograph is ``λ/S``: with the factor λ, an inlier has weight 1 as in
    least squares, and the weight of the prior keeps its meaning.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> L = rng.normal(size=(3, 20)) + [[0], [0], [2]]
    >>> L /= np.linalg.norm(L, axis=0)
    >>> n = np.array([[0.1, 0.2, 0.9]])
    >>> y = n @ L
    >>> y[0, [1, 5, 7]] = 0, 2, 1
    >>> fit = SparseBayes(y, L, noise=1e-6).alone(Control())
    >>> bool(np.allclose(fit.normals, n, atol=1e-3)), np.flatnonzero(fit.unknowns["inliers"][0] < 0.1)
    (True, array([1, 5, 7]))
    """

    maps_photographs = True
    _redescending = True
    _excess = EXCESS_OF_SPARSE_BAYES

    def __init__(
        self,
        pixels: Array,
        lights: Array,
        *,
        noise: float | None = 1e-3,
        max_iter: int = 200,
        tol: float = 1e-5,
        facts: SparseFacts | None = None,
    ) -> None:
        super().__init__(pixels, lights, noise, facts)
        self._max_iter = max_iter
        self._tol = tol

    def alone(self, control: Control) -> Fit:
        return self._expectation_maximization(control, keep_weights=True, tol=self._tol)

    def start(self, control: Control) -> tuple[Array, Unknowns]:
        fit = self._expectation_maximization(
            control, keep_weights=False, tol=max(self._tol, STEP_WITH_PRIOR)
        )
        return fit.normals, self._weighed(fit.normals)

    def _expectation_maximization(self, control: Control, *, keep_weights: bool, tol: float) -> Fit:
        count, photographs = self._pixels.shape
        noise = self._noise
        if noise is not None:
            scale = self._brightness
        else:
            # One variance for the capture, so one scale, too. Only the weights reveal a pixel
            # without light.
            if self._threshold is None:
                self._measure_noise(control)
            noise = float(self._thresholds()[0])
            scale = cast(self._brightness > 0, "float64") if keep_weights else self._everywhere(1.0)
        normals = empty((count, 3), self._pixels)
        iterations = empty((count,), self._pixels, "int64")
        weights = empty((count if keep_weights else 0, photographs), self._pixels, "float32")
        limits = (tol, SETTLED, self._max_iter)
        size = loops.batch_size(self._pixels)
        for part in pixel_batches(count, control, "sparse Bayesian learning", size=size):
            seen = self._pixels[part], for_loops(some_lights(self._lights, part)), scale[part]
            answers = normals[part], iterations[part], weights[part] if keep_weights else weights
            loops.sbl_em(*seen, noise, PRIOR_VARIANCE, *limits, *answers)
        unknowns = {"inliers": weights} if keep_weights else {}
        steps = to_numpy(iterations)
        settled = np.count_nonzero(steps < 0) <= UNSETTLED_SHARE * count
        return Fit(normals, unknowns, int(np.abs(steps).max(initial=0)), bool(settled))

    def maps(self, normals: Array, unknowns: Unknowns) -> dict[str, Array]:
        """``inliers`` (N, d): one where a photograph fits the model, near zero where it is an
        outlier.
        """
        if "inliers" in unknowns:
            return {"inliers": unknowns["inliers"]}
        weights = empty(tuple(self._pixels.shape), self._pixels, "float32")
        own = contiguous(cast(normals, "float64")) if self._own is None else self._own
        xp = namespace(weights)
        thresholds = self._thresholds()
        for part in tensor_batches(weights, copies=3):
            expected = shading(own[part], some_lights(self._lights, part))
            squared = (self._pixels[part] - expected) ** 2
            limit = thresholds[part][:, None]
            outlier = (squared > limit) & (limit > 0)
            share = xp.where(outlier, limit / xp.where(outlier, squared, 1.0), 1.0)
            weights[part] = cast(share, "float32")
        return {"inliers": weights}


def noise_of_residuals(pixels: Array, lights: Array, normals: Array) -> float:
    """Estimate the standard deviation of the noise of inliers over the capture, from the residuals
    of a robust (least-absolute) fit.

    Outliers do not disturb a robust model and must not count as noise. There are two estimates from
    |r|, each scaled as for Gaussian noise. Each is too large if it fails, so the smaller one is
    used: the 2/3 quantile, which outliers and model errors inflate; and the 1/3 quantile of the lit
    entries, which is inflated if photons are so few that most entries saw none. (The median over
    all entries would then see no noise at all.) A least-absolute fit leaves three residuals of
    every pixel at zero; they are excluded."""
    photographs = pixels.shape[1]
    residuals = np.abs(to_numpy(pixels - shading(normals, lights)))
    if residuals.size == 0:
        return 0.0
    share = min((3 + INLIER_SHARE * (photographs - 3)) / photographs, 1.0)
    noise = float(np.quantile(residuals, share)) / INLIER_QUANTILE
    lit = residuals[(to_numpy(pixels) > 0) & (residuals > FITTED)]
    if lit.size:
        noise = min(noise, float(np.quantile(lit, LIT_SHARE)) / LIT_QUANTILE)
    return noise
