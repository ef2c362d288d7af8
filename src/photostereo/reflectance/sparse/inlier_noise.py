"""The noise of inliers, from the residuals of a robust fit."""

from __future__ import annotations

import numpy as np

from photostereo.runtime.arrays import Array, to_numpy
from photostereo.runtime.illumination import shading

#: Pixels whose residuals the noise is read from, up to twice as many.
RESIDUALS_FROM = 20_000
#: The share of the residuals that the noise is read from, and where that quantile of |x| lies for a Gaussian.
INLIER_SHARE, INLIER_QUANTILE = 2 / 3, 0.9674
#: The same for the entries that saw light; and the residual below which an entry was fitted exactly.
LIT_SHARE, LIT_QUANTILE, FITTED = 1 / 3, 0.4307, 1e-6


def residual_step(count: int) -> int:
    """Every n-th of this many pixels suffices for :func:`noise_of_residuals`."""
    return max(1, count // RESIDUALS_FROM)


def noise_of_residuals(pixels: Array, lights: Array, normals: Array) -> float:
    """Standard deviation of an inlier's noise over the capture, from the residuals of a robust (least-absolute)
    fit.

    What is an outlier does not disturb a robust model and must not count as noise. Two readings of |r|, each
    scaled as for Gaussian noise, and each too large where it fails, so the smaller one counts: the value that two
    thirds of them do not exceed, which outliers and the errors of the model inflate; and the value that a third of
    the entries that saw light do not exceed, which is inflated where photons are so few that most entries saw
    none. (The median over all entries would then see no noise at all.) A least-absolute fit leaves three residuals
    of every pixel at zero; they are left out.

    >>> from photostereo.core.control import Control
    >>> from photostereo.reflectance.sparse.model import LeastAbsolute
    >>> rng = np.random.default_rng(0)
    >>> L = rng.normal(size=(3, 20))
    >>> y = rng.normal(0, 0.05, (2000, 20))
    >>> round(noise_of_residuals(y, L, LeastAbsolute(y, L).alone(Control()).normals), 2)
    0.05
    """
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
