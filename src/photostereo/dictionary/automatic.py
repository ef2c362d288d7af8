"""λ and μ from the photographs themselves, for people who have no ground truth to tune on.

What noise does to the least-squares normals differs from one pixel to the next; shape, texture and the errors of a
reflectance model do not, or only at edges. So the spread τ of a high-pass filter over the normal map, taken robustly, is the
noise of n. Atoms have unit norm, so τ is also the noise of a code:

* μ = κ τ with κ near √(2 ln m), the universal threshold of Donoho and Johnstone for m coefficients: below it a code is
  probably noise;
* λ such that the prior weighs a fixed number of times as much as the photographs: both the noise that the prior removes and
  the detail that it loses are proportional to τ, so their best balance does not depend on it.

On a clean capture τ, and with it μ, is small, every code survives, and the prior leaves the normals alone.

References
----------
D. L. Donoho, I. M. Johnstone, Ideal spatial adaptation by wavelet shrinkage, Biometrika 81(3), 1994,
doi:10.1093/biomet/81.3.425.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: μ / τ.
THRESHOLD_IN_NOISE = 1.75
#: λ c / mean eigenvalue of L Lᵀ, for the usual cover c = 4.
PRIOR_TO_DATA = 6.0
#: μ never below this share of the brightness scale: finer codes than this only cost time.
SMALLEST_MU = 0.01


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
    pixels: NDArray[Any], lights: NDArray[Any], mask: NDArray[np.bool_], *, cover: float = 4.0
) -> tuple[float, float]:
    """(λ, μ) for intensities (N, d) of order one and lights (d, 3), from the noise of their least-squares normals."""
    normals = pixels @ np.linalg.pinv(lights.T).astype(pixels.dtype)
    noise = noise_of_normals(normals, mask)
    strength = len(lights) / 3.0  # the mean eigenvalue of L Lᵀ for unit lights
    lam = PRIOR_TO_DATA * strength / cover
    return lam, max(THRESHOLD_IN_NOISE * noise, SMALLEST_MU)
