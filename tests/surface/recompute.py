"""The normals of a depth map: how well a surface honors the normals that it was made from.

Measure
    Per pixel and axis, the slope is the mean of the one-sided differences to the neighbors inside the
    mask: the central difference where there are two, the one-sided one at the border, zero where there is
    none. The normal ``(−∂z/∂col, ∂z/∂row, 1)``, normalized, is compared with the input by its angle.

    With tears, links that the surface says are cut do not count, as long as the pixel has another link
    along that axis. Without, the whole step counts as slope: the two figures bracket what a viewer sees.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.surface.integrated import Surface

Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]


def normals_from_depth(
    depth: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    torn_right: Bool | None = None,
    torn_down: Bool | None = None,
) -> Float64:
    """Unit normals (H, W, 3) of an orthographic depth map, zero outside the mask.

    Parameters
    ----------
    depth : (H, W) array
        Growing towards the camera, in pixels.
    mask : (H, W) array, optional
        Without one, wherever the depth is finite.
    torn_right, torn_down : (H, W) bool, optional
        Links that do not count, unless they are the only ones of a pixel along that axis.

    Examples
    --------
    >>> z = 0.75 * np.arange(4.0) + np.zeros((3, 1))
    >>> np.round(normals_from_depth(z)[1, 1], 12).tolist()
    [-0.6, 0.0, 0.8]
    """
    z = np.asarray(depth, dtype=np.float64)
    inside = np.isfinite(z) if mask is None else np.asarray(mask) > 0
    slope_col = _mean_slope(z, inside, torn_right)
    slope_row = _mean_slope(z.T, inside.T, None if torn_down is None else torn_down.T).T
    normals = np.stack([-slope_col, slope_row, np.ones_like(z)], axis=-1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    normals[~inside] = 0.0
    return normals


def _mean_slope(z: Float64, inside: Bool, torn: Bool | None) -> Float64:
    """Mean one-sided difference along the columns."""
    link = inside[:, :-1] & inside[:, 1:]
    step = np.where(link, np.diff(z, axis=1), 0.0)

    def mean(use: Bool) -> tuple[Float64, Float64]:
        total, count = np.zeros(z.shape), np.zeros(z.shape)
        for side in (np.s_[:, :-1], np.s_[:, 1:]):
            total[side] += np.where(use, step, 0.0)
            count[side] += use
        return total / np.maximum(count, 1), count

    slope, _ = mean(link)
    if torn is not None:
        held, count = mean(link & ~torn[:, :-1])
        slope = np.where(count > 0, held, slope)
    return slope


def recomputed_error(surface: Surface, normals: ArrayLike, *, keep_tears: bool = True) -> Float64:
    """Angle in degrees, per mask pixel with a known normal, between the surface's and the given normal."""
    given = np.asarray(normals, dtype=np.float64)
    tears = {"torn_right": surface.torn_right, "torn_down": surface.torn_down} if keep_tears else {}
    made = normals_from_depth(surface.depth, surface.mask, **tears)
    known = surface.mask & (np.linalg.norm(np.nan_to_num(given), axis=-1) > 1e-6)
    a, b = made[known], given[known]
    return np.asarray(
        np.degrees(np.arctan2(np.linalg.norm(np.cross(a, b), axis=1), np.sum(a * b, axis=1)))
    )
