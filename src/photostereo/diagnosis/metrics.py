"""Angular error between normal maps, and its summary."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import prod
from typing import Any

import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.runtime.arrays import Array, cast, namespace
from photostereo.runtime.cuda_kernels import are_doubles, launch_per_pixel


def angle_between(a: Array, b: Array) -> Array:
    """Angle in degrees between vectors in the last axis; 90 where either is the zero vector."""
    xp = namespace(a)
    a = cast(a, "float64")
    b = cast(b, "float64")
    if are_doubles(a, b):
        return launch_per_pixel("angle_between", a, (a, b), a.shape[:-1], prod(b.shape[:-1]))
    x = a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1]
    y = a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2]
    z = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    cosine = a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1] + a[..., 2] * b[..., 2]
    # The arc cosine would be inaccurate near 0 and 180 degrees.
    degrees = xp.rad2deg(xp.arctan2(xp.sqrt(x * x + y * y + z * z), cosine))
    # atan2(0, 0) = 0 would reward an unknown normal.
    return xp.where(is_known(a) & is_known(b), degrees, 90.0)


def is_known(vectors: Array) -> Array:
    """Which vectors are nonzero; component by component, since NumPy is slow along a short axis."""
    return (vectors[..., 0] != 0) | (vectors[..., 1] != 0) | (vectors[..., 2] != 0)


def angular_error(
    normals: FloatArray, truth: FloatArray, mask: BoolArray | None = None
) -> FloatArray:
    """Map of the angular error in degrees, NaN outside the mask.

    Mask pixels whose true or estimated normal is the zero vector count as 90 degrees, as in the published figures.

    Parameters
    ----------
    normals, truth : (H, W, 3) array
        Estimated and true normals.
    mask : (H, W) array of bool, optional
        The pixels to compare; by default all.

    Returns
    -------
    (H, W) array

    Examples
    --------
    >>> up, right = np.array([[[0.0, 0.0, 1.0]]]), np.array([[[1.0, 0.0, 1.0]]])
    >>> angular_error(up, right / np.sqrt(2)).round(3)
    array([[45.]])
    """
    error = angle_between(normals, truth)
    if mask is None:
        return error
    return np.where(mask, error, np.nan)


@dataclass(frozen=True)
class ErrorSummary:
    """Angular error over the mask, in degrees."""

    mean: float
    median: float
    #: p90, p95: percentiles
    p90: float
    p95: float
    max: float
    #: within_5deg, within_10deg, within_30deg: shares of the pixels, from 0 to 1, with an error of at most that many
    #: degrees
    within_5deg: float
    within_10deg: float
    within_30deg: float
    pixels: int  #: number of mask pixels
    unknown_truth: (
        int  #: mask pixels without a true normal (the zero vector); they count as 90 degrees
    )
    #: known_mean, known_median: the same without those pixels; None if no truth is known at all
    known_mean: float | None = None
    known_median: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """The figures by name, for JSON."""
        return asdict(self)


def summarize_error(normals: FloatArray, truth: FloatArray, mask: BoolArray) -> ErrorSummary:
    """Summarize the angular error inside the mask.

    Parameters
    ----------
    normals, truth : (H, W, 3) array
        Estimated and true normals.
    mask : (H, W) array of bool
        The pixels to compare.

    Examples
    --------
    >>> up = np.zeros((2, 2, 3))
    >>> up[..., 2] = 1
    >>> tilted = up.copy()
    >>> tilted[0, 0] = 0, 0.6, 0.8
    >>> summary = summarize_error(tilted, up, np.ones((2, 2), dtype=bool))
    >>> round(summary.max, 2), summary.within_10deg
    (36.87, 0.75)
    """
    actual = np.asarray(truth)[mask]
    error = angle_between(np.asarray(normals)[mask], actual)
    known = is_known(actual)
    median, p90, p95 = np.quantile(
        error, (0.5, 0.9, 0.95)
    ).tolist()  # one partial sort for all three
    inside = error[known]
    return ErrorSummary(
        mean=float(error.mean()),
        median=median,
        p90=p90,
        p95=p95,
        max=float(error.max()),
        within_5deg=float((error <= 5).mean()),
        within_10deg=float((error <= 10).mean()),
        within_30deg=float((error <= 30).mean()),
        pixels=len(error),
        unknown_truth=int((~known).sum()),
        known_mean=float(inside.mean()) if len(inside) else None,
        known_median=float(np.quantile(inside, 0.5)) if len(inside) else None,
    )
