"""A matte surface under a light."""

import numpy as np
from numpy.typing import ArrayLike

from photostereo.core.conventions import BoolArray, Float64, FloatArray, srgb_curve


def relight(
    normals: ArrayLike,
    albedo: ArrayLike,
    mask: BoolArray,
    light: ArrayLike,
    *,
    linear: bool = False,
) -> Float64:
    """Render a result under a light: a picture (H, W, 3) with values in [0, 1].

    Albedo over its 99th percentile times max(0, n · l), sRGB-encoded unless ``linear``; black outside the mask.

    Parameters
    ----------
    normals, albedo, mask : arrays
        Maps of the result.
    light : (3,) array
        The direction to the light, a unit vector.
    linear : bool
        Return linear intensities, as a camera measures them.

    Examples
    --------
    >>> up = np.zeros((1, 1, 3)) + [0.0, 0.0, 1.0]
    >>> relight(up, np.ones((1, 1)), np.ones((1, 1), bool), [0.6, 0.0, 0.8], linear=True)[0, 0].tolist()
    [0.8, 0.8, 0.8]
    """
    n = np.asarray(normals, dtype=np.float64)
    shade = np.maximum(n @ np.asarray(light, dtype=np.float64), 0.0)[..., None]
    picture: FloatArray = relative_albedo(albedo, mask) * shade
    if not linear:
        picture = srgb_curve(picture)
    return np.asarray(np.where(mask[..., None], np.clip(picture, 0.0, 1.0), 0.0))


def relative_albedo(albedo: ArrayLike, mask: BoolArray) -> Float64:
    """Albedo in three channels, divided by its 99th percentile."""
    values = np.nan_to_num(np.maximum(np.asarray(albedo, dtype=np.float64), 0.0), posinf=0.0)
    if values.ndim == 2:
        values = np.repeat(values[..., None], 3, axis=2)
    if not mask.any():
        return values
    white = float(np.percentile(values[mask], 99.0))
    return values / (white or 1.0)
