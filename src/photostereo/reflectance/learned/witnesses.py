"""What a pixel's normal is known from, and how well: the network, the matte fit, the outline of the mask.

Each witness is a unit normal with a variance (mean squared angle, radians²). They are averaged by inverse variance, so none
is switched on or off: where the matte model explains the photographs within their noise its variance is far
below the network's, and where it does not the misfit counts as an error shared by all d photographs:

    v = 2 (σ² + c d max(s² − t σ², 0)) g / albedo²,     s² = |residual|² / (d − 3),  g = trace((L Lᵀ)⁻¹) / 3,

with t σ² what s² stays below where there is nothing but noise, t = 1 + 2 √(2 / (d − 3)), and c > 1 because a
misfit hides partly in the fit itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.backend import Array, like, namespace

#: c, how much larger the error of a matte fit is than its misfit shows.
HIDDEN_MISFIT = 10.0
#: Normals on an occluding contour: how steep a pixel there is on average, and how well the outline tells (radians).
RIM_TILT, RIM_ERROR = 0.25, 0.26
#: A rim witness further than this from the others is no occluding contour.
RIM_DISAGREEMENT = np.cos(np.deg2rad(60.0))


@dataclass(frozen=True)
class Witness:
    """Unit normals (N, 3) and their variances (N,) in radians²; an infinite variance says nothing."""

    normals: Array
    variance: Array


def matte_witness(
    pixels: Array, lights: NDArray[Any], noise: Array, hidden: float = HIDDEN_MISFIT
) -> Witness:
    """Least squares on (N, d) intensities under (3, d) lights, with noise of variance σ² (N,)."""
    xp = namespace(pixels)
    d = lights.shape[1]
    inverse = np.linalg.inv(lights @ lights.T)
    fit = like((inverse @ lights).T.astype(np.float32), pixels)
    scaled = pixels @ fit
    residual = pixels - scaled @ like(lights.astype(np.float32), pixels)
    squared = (scaled * scaled).sum(-1)
    misfit = (residual * residual).sum(-1) / max(d - 3, 1)
    excess = misfit - noise * (1.0 + 2.0 * float(np.sqrt(2.0 / max(d - 3, 1))))
    excess = excess * (excess > 0)
    g = float(np.trace(inverse)) / 3.0
    variance = 2.0 * (noise + hidden * d * excess + 1e-10) * g / (squared + 1e-12)
    normals = scaled / xp.sqrt(squared + 1e-30)[:, None]
    # Behind the camera's horizon there is no visible surface: such a fit says nothing.
    return Witness(normals, variance + 1e6 * (scaled[:, 2] <= 0))


def rim_of(mask: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Mask pixels on the outline, as numbers in the order of the mask, and their outward normals (R, 3).

    The frame's own border is no outline.

    >>> mask = np.zeros((20, 20), bool); mask[5:15, 5:15] = True
    >>> index, normals = rim_of(mask)
    >>> len(index), np.round(np.abs(normals[4]), 1).tolist()
    (36, [0.0, 1.0, 0.2])
    """
    from scipy.ndimage import binary_erosion, gaussian_filter

    inner = binary_erosion(mask, border_value=1)
    smooth = gaussian_filter(mask.astype(np.float64), 2.0, mode="nearest")
    down, right = np.gradient(smooth)
    rim = mask & ~inner
    outward = np.stack([-right[rim], down[rim]], -1)  # rows count downwards, y upwards
    length = np.linalg.norm(outward, axis=1, keepdims=True)
    outward = np.sqrt(1.0 - RIM_TILT**2) * outward / np.maximum(length, 1e-9)
    numbers = np.cumsum(mask.ravel())[np.flatnonzero(rim.ravel())] - 1
    keep = length[:, 0] > 1e-3
    return numbers[keep], np.column_stack([outward, np.full(len(outward), RIM_TILT)])[keep]


def with_rim(found: Witness, mask: NDArray[np.bool_]) -> Witness:
    """The witnesses so far, and on the outline one more, where it does not contradict them."""
    index, outward = rim_of(mask)
    if not len(index):
        return found
    xp = namespace(found.variance)
    chosen, rim = like(index, found.variance), like(outward.astype(np.float32), found.variance)
    agrees = (found.normals[chosen] * rim).sum(-1) > RIM_DISAGREEMENT
    variance = xp.full_like(found.variance, np.inf)
    variance[chosen[agrees]] = RIM_ERROR**2
    normals = found.normals * 1.0
    normals[chosen] = rim
    return combine(found, Witness(normals, variance))


def combine(*witnesses: Witness) -> Witness:
    """The average by inverse variance, as a unit normal with the variance that is left."""
    xp = namespace(witnesses[0].variance)
    precision: Array = 0.0
    total: Array = 0.0
    for witness in witnesses:
        precision = precision + 1.0 / witness.variance
        total = total + witness.normals / witness.variance[:, None]
    length = xp.sqrt((total * total).sum(-1))
    return Witness(total / (length + 1e-30)[:, None], 1.0 / precision)
