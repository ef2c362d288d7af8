"""λ and μ from the photographs themselves, for people who have no ground truth to tune on.

Noise makes neighbouring normals differ at random; shape, texture and the errors of a reflectance model do so only at edges.
So the spread τ of a high-pass filter over the model's own normal map, taken robustly, is the noise of n. Atoms have unit
norm, so τ is also the noise of one code:

* μ = κ τ: a code below it is probably noise. κ is below the universal threshold √(2 ln m) ≈ 3.2 of Donoho and Johnstone,
  because many overlapping patches and the photographs themselves vote on each normal, and lost detail costs more than
  remaining noise.
* λ such that the prior weighs ρ times as much as the photographs: λ c = ρ × (mean curvature of the data cost). The noise that
  the prior removes and the detail that it loses are both proportional to τ, so their best balance does not depend on τ.

On a clean capture τ, and with it μ, is small, nearly every detail survives, and the prior leaves the normals alone. κ and ρ are
the same for every model and every capture; ``docs/dictionary.md`` shows what they were chosen on.

References
----------
D. L. Donoho, I. M. Johnstone, Ideal spatial adaptation by wavelet shrinkage, Biometrika 81(3), 1994,
doi:10.1093/biomet/81.3.425.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: κ = μ / τ.
THRESHOLD_IN_NOISE = 1.5
#: ρ = λ c / mean curvature of the data cost.
PRIOR_TO_DATA = 6.0
#: μ never below this share of the brightness scale: finer codes only cost time.
SMALLEST_MU = 0.005


def noise_of_normals(normals: NDArray[Any], mask: NDArray[np.bool_]) -> float:
    """τ, the noise of one component of the scaled normals (N, 3): robust spread of the diagonal 2 × 2 difference.

    The filter (a − b − c + d) / 2 has unit gain for white noise and is zero on anything linear in a row or a column.
    Returns 0 where the mask holds no 2 × 2 block.

    >>> rng = np.random.default_rng(0)
    >>> mask = np.ones((200, 200), bool)
    >>> round(noise_of_normals(rng.normal(0, 0.1, (40000, 3)), mask), 2)
    0.1
    """
    picture = np.zeros((*mask.shape, 3))
    picture[mask] = normals
    inside = mask[:-1, :-1] & mask[1:, :-1] & mask[:-1, 1:] & mask[1:, 1:]
    if not inside.any():
        return 0.0
    diagonal = 0.5 * (picture[:-1, :-1] - picture[1:, :-1] - picture[:-1, 1:] + picture[1:, 1:])[inside]
    spread = np.median(np.abs(diagonal), axis=0) / 0.6745
    return float(np.sqrt(np.mean(spread**2)))


def choose_strength(
    normals: NDArray[Any], mask: NDArray[np.bool_], *, curvature: float, cover: float
) -> tuple[float, float]:
    """(λ, μ) for a model's own scaled normals (N, 3).

    Parameters
    ----------
    normals, mask : what the model gives without a prior, and where
    curvature : mean curvature of its data cost, the mean over pixels of trace(H) / 3
    cover : mean number of patches that cover a pixel
    """
    noise = noise_of_normals(normals, mask)
    return PRIOR_TO_DATA * curvature / cover, max(THRESHOLD_IN_NOISE * noise, SMALLEST_MU)
