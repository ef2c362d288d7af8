"""λ and μ from the photographs themselves, for people who have no ground truth to tune on.

**The noise** σ of one intensity is measured by :mod:`photostereo.diagnosis.noise`. A model whose data cost has the
mean Hessian H turns σ into noise τ of one component of n, τ² = σ² trace(H⁻¹) / 3. Atoms have unit norm, so τ is
also the noise of one code.

**μ = κ τ**: a code below it is probably noise. κ is below the universal threshold √(2 ln m) ≈ 3.2 of Donoho
and Johnstone, because many overlapping patches and the photographs themselves vote on each normal, and lost
detail costs more than remaining noise.

**λ c = ρ trace(H) / 3**: the prior weighs ρ times as much as the photographs. The noise that the prior
removes and the detail that it loses are both proportional to τ, so their best balance does not depend on τ.

The same τ bounds what a prior of automatic strength may do at each pixel, see
:mod:`photostereo.solver.within_noise`. On a clean capture τ, and with it μ, is small, nearly every detail
survives, and the prior leaves the normals alone. κ and ρ are the same for every model and every capture;
``benchmarks/README.md`` shows what they were chosen on.

References
----------
D. L. Donoho, I. M. Johnstone, Ideal spatial adaptation by wavelet shrinkage, Biometrika 81(3), 1994,
doi:10.1093/biomet/81.3.425.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: κ = μ / τ.
THRESHOLD_IN_NOISE = 1.5
#: ρ = λ c / mean curvature of the data cost.
PRIOR_TO_DATA = 4.0
#: μ never below this share of the brightness scale: finer codes only cost time.
SMALLEST_MU = 0.005


def choose_strength(noise: float, hessian: NDArray[Any], *, cover: float) -> tuple[float, float]:
    """(λ, μ) from the noise of an intensity and the mean 3 × 3 Hessian of a model's data cost.

    ``cover`` is the mean number of patches that cover a pixel.

    >>> lam, mu = choose_strength(0.1, np.diag([5.0, 5.0, 20.0]), cover=4.0)
    >>> round(lam, 6), round(mu, 4)
    (10.0, 0.0581)
    """
    noise_of_code = noise * float(np.sqrt(np.trace(np.linalg.inv(hessian)) / 3.0))
    threshold = THRESHOLD_IN_NOISE * noise_of_code
    mu = max(threshold, SMALLEST_MU)
    # What the prior loses is of the size of μ. Where μ is held above the noise's own threshold, the balance of
    # variances asks for less of it.
    lam = PRIOR_TO_DATA * float(np.trace(hessian)) / 3.0 / cover * (threshold / mu) ** 2
    return lam, mu


def with_strengths(
    values: Mapping[str, Any], noise: float, hessian: NDArray[Any], *, cover: float
) -> dict[str, Any]:
    """The parameters with λ and μ chosen from the noise if they are left open (None).

    >>> with_strengths({"lam": 2.0, "mu": None, "q": 9.0}, 0.1, np.diag([5.0, 5.0, 20.0]), cover=4.0)["lam"]
    2.0
    """
    if values["lam"] is not None and values["mu"] is not None:
        return dict(values)
    chosen = dict(zip(("lam", "mu"), choose_strength(noise, hessian, cover=cover), strict=True))
    return {**values, **{name: value for name, value in chosen.items() if values[name] is None}}
