"""Cast shadows on a height field: which pixels cannot see a distant light.

A pixel is in shadow if the straight line from it to the light passes below the surface. The line is
followed in steps of one row or one column (whichever it crosses more of), where the height between
two neighboring pixels is interpolated linearly. Outside the mask there is nothing that could cast a
shadow; below the visible surface everything is solid.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray
from photostereo_lab.scenes.jets import Array

#: A height so low that no ray passes below it, yet finite: a weight of zero times it is zero.
NOTHING = -1e9


def cast_shadow(
    depth: Array, mask: BoolArray, light: NDArray[Any], *, bias: float = 0.05
) -> BoolArray:
    """Return the pixels of the mask that another part of the surface hides from the light.

    Attached shadows (n·l ≤ 0) are not included.

    Parameters
    ----------
    depth : (H, W) array
        Heights in pixels.
    mask : (H, W) array
        The object.
    light : (3,) array
        Direction to the light.
    bias : float
        The ray passes so many pixels above its true path, so that a surface does not shadow itself
        through interpolation error; this shortens a shadow by bias / tan(elevation).

    Examples
    --------
    Under a light at 45 degrees from the right, a wall 5 pixels high hides everything less than 5
    pixels away:

    >>> depth = np.zeros((4, 20))
    >>> depth[:, 10:] = 5.0
    >>> shadow = cast_shadow(depth, np.ones((4, 20), bool), np.array([1.0, 0.0, 1.0]))
    >>> shadow[0].astype(int)
    array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    """
    from photostereo_lab.scenes.shadow_march import march

    heights, inside, transposed, sign, drift, rise = oriented(depth, mask, light)
    if rise is None:
        return np.zeros(mask.shape, dtype=bool)
    rows, columns = heights.shape
    shadow = np.zeros((rows, columns - 1), dtype=bool)
    march(heights, inside, sign, drift, rise, bias, shadow)
    if transposed:
        return np.ascontiguousarray(shadow.T)
    return shadow


def oriented(
    depth: Array, mask: BoolArray, light: NDArray[Any]
) -> tuple[Array, BoolArray, bool, int, float, float | None]:
    """Transpose the field so that the march runs along rows.

    Returns heights (with a spare column), mask, whether they are transposed, the sign of the march,
    drift, and rise, None if the light is on the camera's axis.
    """
    across = float(light[0])
    down = -float(light[1])
    up = float(light[2])
    transposed = abs(across) > abs(down)
    heights = np.where(mask, depth, NOTHING).astype(np.float64)
    inside = mask
    if transposed:
        heights, inside, across, down = heights.T, mask.T, down, across
    heights = np.concatenate([heights, np.full((len(heights), 1), NOTHING)], axis=1)
    inside = np.ascontiguousarray(inside)
    if abs(down) < 1e-9 * max(up, 1e-300):
        return heights, inside, transposed, 1, 0.0, None  # the light is on the camera's axis
    return heights, inside, transposed, int(np.sign(down)), across / abs(down), up / abs(down)
