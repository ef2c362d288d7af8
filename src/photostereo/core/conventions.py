"""Axes, color and normal-map encodings: every conversion between conventions is here.

Axes
    A right-handed frame seen from the camera: x to the right, y **up**, z toward the camera. Image rows run
    down, so ``y = -row``. A light direction points from the object **to** the light. A normal points out of
    the surface. Depth (height) grows toward the camera: ``dz/dcol = -n_x / n_z`` and ``dz/drow = +n_y /
    n_z``.

Normal maps in pictures
    ``value = (n + 1) / 2`` in the channels R, G, B = x, y, z. OpenGL has green up (our y), DirectX green
    down.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating[Any]]
BoolArray = NDArray[np.bool_]
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Indices = NDArray[np.intp]

#: The luma weights of the published DiLiGenT figures (ITU-R BT.601, as MATLAB's ``rgb2gray`` rounds them).
GRAY_WEIGHTS = (0.298936, 0.587043, 0.114021)


def gray_from_rgb(rgb: FloatArray) -> FloatArray:
    """Luma of linear RGB values, channels last."""
    weights = np.asarray(GRAY_WEIGHTS, dtype=rgb.dtype)
    return np.asarray(rgb @ weights)


def linear_from_srgb(encoded: FloatArray) -> FloatArray:
    """Undo the sRGB transfer curve (IEC 61966-2-1) on values in [0, 1]."""
    # The curve is linear near black, and a power beyond.
    low = encoded / 12.92
    with np.errstate(over="ignore"):  # infinite values are reported when the photograph is read
        high = ((np.maximum(encoded, 0.0) + 0.055) / 1.055) ** 2.4
    return np.where(encoded <= 0.04045, low, high).astype(encoded.dtype, copy=False)


def row_bands(height: int, width: int, pixels: int = 1 << 18) -> Iterator[slice]:
    """Bands of rows of about this many pixels, to process a large picture without a second one in memory."""
    step = max(1, pixels // max(width, 1))
    for first in range(0, height, step):
        yield slice(first, min(first + step, height))


def srgb_curve(value: FloatArray) -> FloatArray:
    """The sRGB transfer curve, extended below zero and above one."""
    root = np.maximum(value, 0.0031308) ** (1 / 2.4)
    return np.where(value <= 0.0031308, 12.92 * value, 1.055 * root - 0.055).astype(
        value.dtype, copy=False
    )


def srgb_from_linear(linear: FloatArray) -> FloatArray:
    """Apply the sRGB transfer curve to linear values, clipped to [0, 1], for viewing."""
    return srgb_curve(np.clip(linear, 0.0, 1.0))


def encode_normals(
    normals: FloatArray, mask: BoolArray, *, flip_y: bool = False, bits: int = 16
) -> NDArray[Any]:
    """Return normals as an RGB picture, black outside the mask.

    Parameters
    ----------
    normals : (H, W, 3) array
        Unit normals.
    mask : (H, W) array of bool
        The object.
    flip_y : bool
        Green points down (DirectX) instead of up (OpenGL).
    bits : {8, 16}
        Bits per channel.
    """
    top = 2**bits - 1
    sign = np.ones(3, dtype=np.float32)
    if flip_y:
        sign[1] = -1.0
    encoded: NDArray[Any] = np.empty(normals.shape, np.uint16 if bits == 16 else np.uint8)
    for rows in row_bands(*normals.shape[:2]):
        picture = np.rint((np.asarray(normals[rows], np.float32) * sign + 1.0) * (0.5 * top))
        picture[~mask[rows]] = 0
        encoded[rows] = np.clip(picture, 0, top)
    return encoded


def decode_normals(picture: NDArray[Any], *, flip_y: bool = False) -> FloatArray:
    """Unit normals (float32) from an RGB picture of 8 or 16 bits; black pixels give the zero vector."""
    top = float(np.iinfo(picture.dtype).max)
    normals = picture.astype(np.float32) * (2.0 / top) - 1.0
    if flip_y:
        normals[..., 1] *= -1
    length = np.linalg.norm(normals, axis=-1, keepdims=True)
    normals /= np.maximum(length, 1e-12)
    normals[(picture == 0).all(axis=-1)] = 0
    return normals
