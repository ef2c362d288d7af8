"""λ and μ from the photographs themselves, for people who have no ground truth to tune on.

**The noise.** With more than three photographs, the residuals of least squares hold no shape and no
texture, only noise and the errors of the Lambertian model: shadows, highlights. Those errors change slowly
from pixel to pixel except at edges, noise does not. So the spread of a high-pass filter over the residuals
is the noise σ of one intensity. It is taken robustly over the pixels, because of the edges, but not over
the photographs: a normal is fitted to all of them, and an entry that was lost disturbs it as much as noise
of the same variance does. So the squares are summed over the photographs, and the median is that of the
sums. A model whose data cost has the mean Hessian H turns σ into noise τ of one component of n,
τ² = σ² trace(H⁻¹) / 3. Atoms have unit norm, so τ is also the noise of one code.

**μ = κ τ**: a code below it is probably noise. κ is below the universal threshold √(2 ln m) ≈ 3.2 of Donoho
and Johnstone, because many overlapping patches and the photographs themselves vote on each normal, and lost
detail costs more than remaining noise.

**λ c = ρ trace(H) / 3**: the prior weighs ρ times as much as the photographs. The noise that the prior
removes and the detail that it loses are both proportional to τ, so their best balance does not depend on τ.

On a clean capture τ, and with it μ, is small, nearly every detail survives, and the prior leaves the
normals alone. κ and ρ are the same for every model and every capture; ``docs/dictionary.md`` shows what
they were chosen on.

References
----------
D. L. Donoho, I. M. Johnstone, Ideal spatial adaptation by wavelet shrinkage, Biometrika 81(3), 1994,
doi:10.1093/biomet/81.3.425.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.backend import Array, cast, like, namespace

#: κ = μ / τ.
THRESHOLD_IN_NOISE = 1.5
#: ρ = λ c / mean curvature of the data cost.
PRIOR_TO_DATA = 4.0
#: μ never below this share of the brightness scale: finer codes only cost time.
SMALLEST_MU = 0.005
#: The noise is estimated on so many 2 × 2 blocks, up to twice as many, evenly spread.
BLOCKS = 10_000


def noise_of_intensities(pixels: Array, lights: NDArray[Any], mask: NDArray[np.bool_]) -> float:
    """σ, the noise of one intensity: spread of the diagonal 2 × 2 differences of the least-squares residuals.

    The filter (a − b − c + d) / 2 has unit gain for white noise and is zero on anything linear along a row
    or a column. Its squares, summed over the photographs, are σ² times a χ² variable; their median over the
    blocks leaves out those at the edge of a shadow or a highlight. Three photographs leave no residual; then
    the intensities themselves are filtered, and fine texture counts as noise. Returns 0 where the mask holds
    no 2 × 2 block.

    Parameters
    ----------
    pixels : (N, d) intensities of the mask pixels in row-major order
    lights : (3, d) unit columns
    mask : (H, W) bool

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> lights = np.array([[0.0, 0.5, 0.0, -0.5, 0.0], [0.0, 0.0, 0.5, 0.0, -0.5], [1.0, 0.9, 0.9, 0.9, 0.9]])
    >>> texture = rng.uniform(0.2, 1.0, (2500, 1)) * np.array([[0.1, 0.2, 0.9]])
    >>> noisy = texture @ lights + rng.normal(0, 0.05, (2500, 5))
    >>> round(noise_of_intensities(noisy, lights, np.ones((50, 50), bool)), 2)
    0.05
    """
    from scipy.special import gammaincinv

    index = np.full(mask.shape, -1)
    index[mask] = np.arange(len(pixels))
    corners = (index[:-1, :-1], index[:-1, 1:], index[1:, :-1], index[1:, 1:])
    blocks = np.stack([corner.ravel() for corner in corners])
    blocks = blocks[:, (blocks >= 0).all(axis=0)]
    if not blocks.size:
        return 0.0
    a, b, c, d = like(blocks[:, :: max(1, blocks.shape[1] // BLOCKS)], pixels)
    diagonal = cast(0.5 * (pixels[a] - pixels[b] - pixels[c] + pixels[d]), "float64")
    # Filtering and taking residuals commute: both are linear, one over the pixels, the other over the
    # photographs.
    freedom = lights.shape[1]
    if freedom > 3:
        fit, shading = (
            like(np.asarray(m, dtype=np.float64), pixels) for m in (np.linalg.pinv(lights), lights)
        )
        diagonal = diagonal - (diagonal @ fit) @ shading
        freedom -= 3
    middle = float(namespace(pixels).quantile((diagonal * diagonal).sum(1), 0.5))
    # 2 gammaincinv(k / 2, 1/2) is the median of χ² with k degrees of freedom.
    return float(np.sqrt(middle / (2.0 * gammaincinv(freedom / 2.0, 0.5))))


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
