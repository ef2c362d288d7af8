"""The noise of inliers, from the residuals of a robust fit."""

from __future__ import annotations

import numpy as np

from photostereo.runtime.arrays import Array, to_numpy
from photostereo.runtime.illumination import shading

#: Minimum number of pixels for the noise estimate; up to twice as many are used.
RESIDUALS_FROM = 20_000
#: Quantile of the residuals for the noise estimate, and its value for |x| of a standard Gaussian.
INLIER_SHARE, INLIER_QUANTILE = 2 / 3, 0.9674
#: The same for lit entries; and the residual below which an entry counts as fitted exactly.
LIT_SHARE, LIT_QUANTILE, FITTED = 1 / 3, 0.4307, 1e-6


def residual_step(count: int) -> int:
    """Return n such that every n-th of ``count`` pixels suffices for :func:`noise_of_residuals`."""
    return max(1, count // RESIDUALS_FROM)


def noise_of_residuals(pixels: Array, lights: Array, normals: Array) -> float:
    """Estimate the standard deviation of the noise of inliers over the capture, from the residuals of a robust
    (least-absolute) fit.

    Outliers do not disturb a robust model and must not count as noise. There are two estimates from |r|, each scaled as
    for Gaussian noise. Each is too large if it fails, so the smaller one is used: the 2/3 quantile, which outliers and
    model errors inflate; and the 1/3 quantile of the lit entries, which is inflated if photons are so few that most
    entries saw none. (The median over all entries would then see no noise at all.) A least-absolute fit leaves three
    residuals of every pixel at zero; they are excluded.

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
