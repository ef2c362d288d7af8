"""Convert the numbers stored in a file to linear intensities.

For a photograph with stored values v (full scale M) under a light of strength s_c in channel c, the gray
intensity is

    I = Σ_c  w_c / (M s_c) · v_c

so full scale, light strength and luma weights are one vector of three numbers, applied in one pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.conventions import GRAY_WEIGHTS, Float32, FloatArray, linear_from_srgb


def develop_into(
    target: Float32,
    stored: NDArray[Any],
    strength: NDArray[Any],
    srgb: bool,
    gray_limit: float | None,
) -> None:
    """Write stored values as intensities; see the module docstring."""
    values, top = (decoded_srgb(stored), 1.0) if srgb else (stored, full_scale(stored))
    weights = np.asarray(GRAY_WEIGHTS)
    if stored.ndim == 2:
        # A gray photograph was weighted by the camera; the light's strength gets the same weights.
        np.multiply(values, np.float32(1.0 / (top * float(weights @ strength))), out=target)
    elif target.ndim == 2:
        cv2.transform(
            values.astype(np.float32, copy=False),
            (weights / (top * strength)).astype(np.float32)[None],
            dst=target,
        )
    else:
        np.multiply(values, (1.0 / (top * strength)).astype(np.float32), out=target)
    if gray_limit is None:
        return
    if target.ndim == 2:
        np.minimum(target, np.float32(gray_limit), out=target)
    else:
        gray = cv2.transform(target, weights.astype(np.float32)[None])
        above = gray > gray_limit
        target[above] *= (gray_limit / gray[above])[:, None]


def upright(values: NDArray[Any], orientation: int) -> NDArray[Any]:
    """A picture as viewers show it, from its EXIF orientation (1 to 8)."""
    if orientation in (2, 3, 7, 8):
        values = values[:, ::-1]
    if orientation in (3, 4, 6, 7):
        values = values[::-1]
    if orientation in (5, 6, 7, 8):
        values = values.swapaxes(0, 1)
    return np.ascontiguousarray(values)


def full_scale(stored: NDArray[Any]) -> float:
    """The largest value of an integer type; 1 for a floating-point type."""
    if stored.dtype.kind == "f":
        return 1.0
    return float(np.iinfo(stored.dtype).max)


def linear_part(stored: NDArray[Any], *, srgb: bool) -> Float32:
    """Stored values with full scale 1, the sRGB curve undone if they carry it."""
    if srgb:
        return decoded_srgb(stored)
    return stored.astype(np.float32) / np.float32(full_scale(stored))


def decoded_srgb(stored: NDArray[Any]) -> Float32:
    """Stored values that carry the sRGB curve, without it; full scale 1."""
    if stored.dtype in (np.uint8, np.uint16):
        return np.asarray(np.take(_srgb_table(stored.dtype.str), stored))
    return np.asarray(linear_from_srgb(linear_part(stored, srgb=False)))


@lru_cache(maxsize=2)
def _srgb_table(dtype: str) -> Float32:
    top = np.iinfo(np.dtype(dtype)).max
    return np.asarray(linear_from_srgb(np.arange(top + 1) / top), dtype=np.float32)


def as_rgb(strengths: ArrayLike) -> FloatArray:
    """Strengths (d,) or (d, 3) as (d, 3)."""
    values = np.asarray(strengths, np.float64)
    if values.ndim == 1:
        return np.repeat(values[:, None], 3, axis=1)
    return values


#: Strengths include the exposure if dividing by it leaves less than this share of its variation (in logarithms).
#: Independent strengths leave more than 1, measured ones that include it less than 0.1.
_LEFT = 0.35


def include_exposure(strengths: NDArray[Any], exposed: Sequence[float]) -> bool:
    """Whether strengths (d,) or (d, 3) follow the exposures: dividing by both would count the exposure twice."""
    exposure = np.log(np.asarray(exposed))
    rest = np.log(as_rgb(strengths).mean(axis=1)) - exposure
    return bool(np.std(rest) < _LEFT * np.std(exposure))
