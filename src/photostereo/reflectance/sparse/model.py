"""Sparse regression: Lambertian shading with errors in a few photographs.

The errors are shadows, highlights and dead pixels. Symbols: y the d intensities of a pixel, L (3 ×
d) the lights, n albedo × normal, r = y − Lᵀn the residual, γ_j the variance of the error in
photograph j.
"""

from __future__ import annotations

import numpy as np

from photostereo.core.control import Control
from photostereo.reflectance.model import Fit, Unknowns, pixel_batches
from photostereo.reflectance.sparse import loops
from photostereo.reflectance.sparse.reweighted import REWEIGHTINGS, Reweighted, SparseFacts
from photostereo.runtime.arrays import (
    Array,
    cast,
    contiguous,
    empty,
    namespace,
    tensor_batches,
    to_numpy,
)
from photostereo.runtime.illumination import for_loops, shading, some_lights

#: The weakest prior on n that keeps its covariance finite: variance 1e6 at intensities of order
#: one.
PRIOR_VARIANCE = 1e6
#: A pixel has settled if it moves by less than this share of its brightness in the last iteration.
SETTLED = 1e-3
#: A capture has converged if all but this share of its pixels have settled.
UNSETTLED_SHARE = 0.005
#: Under Gaussian noise the normals are less certain than the mean weight of the photographs
#: implies, σ² / E[w]: for least absolute residuals with Huber's weights by (π/2) E[w].
EXCESS_OF_LEAST_ABSOLUTE = 1.42
#: For weights that fall as 1/r² beyond σ, by E[ψ²] E[w] / E[ψ']², ψ = w r.
EXCESS_OF_SPARSE_BAYES = 1.17
#: With a prior, the expectation maximization of a pixel ends at this step, relative to its
#: brightness. Compared with 1e-5: 40 % less time (1e-4: 65 %), normals 0.03° away on average (p99
#: 0.15°), errors times 1.002 to 1.004 (1e-4: 1.01).
STEP_WITH_PRIOR = 3e-5


class LeastAbsolute(Reweighted):
    r"""Least absolute residuals (L1): half of the photographs may be wrong by any amount.

    .. math:: \min_n \; \sum_{px} \| y_{px} - L^T n_{px} \|_1

    Each pixel is divided by its maximum and starts from least squares. A few steps of reweighted
    least squares (``w = 1/max(|r|, 1e-6)``, 3 × 3 solves) bring it near the minimizer, where
    reweighting alone would be slow. A descent along the edges of the piecewise linear cost then
    reaches the exact minimizer, with multipliers that prove it.

    With a prior, each photograph has the weight of Huber's cost at that minimizer: 1 below the
    noise σ of the capture (see :func:`.noise_of_residuals`), so that inliers weigh as much as in
    least squares and λ keeps its meaning, and ``σ/|r|`` above.

    Parameters
    ----------
    pixels : array (N, d)
        Intensities of order one.
    lights : array (3, d) or (N, 3, d)
        Unit lights.
    max_iter : int
        Reweighting steps before the exact descent.
    facts : SparseFacts, optional
        About the capture, if these pixels are a part of it.

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

    redescending = False
    excess = EXCESS_OF_LEAST_ABSOLUTE

    def __init__(
        self,
        pixels: Array,
        lights: Array,
        *,
        max_iter: int = REWEIGHTINGS,
        facts: SparseFacts | None = None,
    ) -> None:
        super().__init__(pixels, lights, facts=facts)
        self._max_iter = max_iter

    def alone(self, control: Control) -> Fit:
        normals, iterations = self.least_absolute(control, self._max_iter)
        steps = int(np.abs(iterations).max(initial=0))
        return Fit(normals, {}, steps, bool((iterations >= 0).all()))

    def start(self, control: Control) -> tuple[Array, Unknowns]:
        normals, _ = self.least_absolute(control, self._max_iter)
        if not self.has_threshold:
            self.measure_noise(control, normals)
        return normals, self.weigh(normals)


class SparseBayes(Reweighted):
    r"""Sparse Bayesian learning (SBL): the evidence decides which photographs are wrong.

    .. math:: y = L^T n + e + \varepsilon, \quad e_j \sim N(0, \gamma_j), \quad
              \varepsilon \sim N(0, \lambda I), \qquad \max_\gamma \; p(y \,|\, \gamma)

    Without a prior: expectation maximization. With S = γ + λ,

        Cov = (L S⁻¹ Lᵀ + I/σ²)⁻¹,   n = Cov L S⁻¹ y,
        γ ← (k r)² + γ λ/S + k² diag(Lᵀ Cov L),   k = γ/S,

    which costs one pass over the d photographs per iteration.

    With a prior, S minimizes ``−log p(y | n, γ) = Σ_j r_j²/S_j + log S_j`` at that n: ``S = max(r²,
    λ)``. The weight of a photograph is ``λ/S``: with the factor λ, an inlier has weight 1 as in
    least squares, and the weight of the prior keeps its meaning.

    Parameters
    ----------
    pixels : array (N, d)
        Intensities of order one.
    lights : array (3, d) or (N, 3, d)
        Unit lights.
    noise : float, optional
        λ relative to the squared brightness of a pixel; None to measure one λ for the capture.
    max_iter : int
        Iterations of the expectation maximization.
    tol : float
        A pixel stops when its normal changes by less, relative to its brightness.
    facts : SparseFacts, optional
        About the capture, if these pixels are a part of it.

    References
    ----------
    S. Ikehata, D. Wipf, Y. Matsushita, K. Aizawa, Robust photometric stereo using sparse
    regression, CVPR 2012, doi:10.1109/CVPR.2012.6247691.

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
    redescending = True
    excess = EXCESS_OF_SPARSE_BAYES

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
        tol = max(self._tol, STEP_WITH_PRIOR)
        fit = self._expectation_maximization(control, keep_weights=False, tol=tol)
        return fit.normals, self.weigh(fit.normals)

    def _noise_and_scale(self, control: Control, keep_weights: bool) -> tuple[float, Array]:
        """Return λ, and the unit (N,) of each pixel's intensities."""
        if self._noise is not None:
            return self._noise, self._brightness
        # One variance for the capture, so one scale, too.
        if not self.has_threshold:
            self.measure_noise(control)
        noise = float(self.thresholds()[0])
        if keep_weights:  # only they reveal a pixel without light
            return noise, cast(self._brightness > 0, "float64")
        return noise, self._everywhere(1.0)

    def _expectation_maximization(self, control: Control, *, keep_weights: bool, tol: float) -> Fit:
        count, photographs = self._pixels.shape
        noise, scale = self._noise_and_scale(control, keep_weights)
        normals = empty((count, 3), self._pixels)
        iterations = empty((count,), self._pixels, "int64")
        # A kernel skips the weights if their array has no rows.
        rows = count if keep_weights else 0
        weights = empty((rows, photographs), self._pixels, "float32")
        size = loops.batch_size(self._pixels)
        for part in pixel_batches(count, control, "sparse Bayesian learning", size=size):
            loops.sbl_em(
                self._pixels[part],
                for_loops(some_lights(self._lights, part)),
                scale[part],
                noise,
                PRIOR_VARIANCE,
                tol,
                SETTLED,
                self._max_iter,
                normals[part],
                iterations[part],
                weights[part] if keep_weights else weights,
            )
        unknowns = {"inliers": weights} if keep_weights else {}
        steps = to_numpy(iterations)
        # A few pixels never settle, because two explanations are equally good.
        settled = np.count_nonzero(steps < 0) <= UNSETTLED_SHARE * count
        return Fit(normals, unknowns, int(np.abs(steps).max(initial=0)), bool(settled))

    def maps(self, normals: Array, unknowns: Unknowns) -> dict[str, Array]:
        """``inliers`` (N, d): one where a photograph fits the model, near zero for an outlier."""
        if "inliers" in unknowns:
            return {"inliers": unknowns["inliers"]}
        weights = empty(tuple(self._pixels.shape), self._pixels, "float32")
        # With a prior, the weights are those of the descent: fixed at the model's own normals.
        own_normals = self._own_normals
        if own_normals is None:
            own_normals = contiguous(cast(normals, "float64"))
        xp = namespace(weights)
        thresholds = self.thresholds()
        for part in tensor_batches(weights, copies=3):
            expected = shading(own_normals[part], some_lights(self._lights, part))
            squared = (self._pixels[part] - expected) ** 2
            limit = thresholds[part][:, None]
            outlier = (squared > limit) & (limit > 0)
            share = xp.where(outlier, limit / xp.where(outlier, squared, 1.0), 1.0)
            weights[part] = cast(share, "float32")
        return {"inliers": weights}
