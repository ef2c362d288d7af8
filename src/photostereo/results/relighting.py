"""A result as a relightable picture: per pixel, a color and a function of the light direction.

RTI viewers approximate the luminance of a pixel under a light of direction (u, v, w), ‖·‖ = 1, by

    L(u, v) = Σ_k c_k b_k(u, v)

over a few functions and show L times the color of the pixel. ``ptm`` has the six monomials 1, u, v,
u², uv, v², ``hsh`` the first nine hemispherical harmonics. The coefficients are the least-squares
fit to the pictures of the result, albedo · max(0, n · l), under lights spread evenly over the disk
of (u, v). Viewers show the numbers unchanged, so the fit is to sRGB-encoded pictures;
``linear=True`` fits intensities. Viewers clip below zero, so a pixel that faces away gets a
negative luminance: this distorts the function less than a floor at zero, and costs nothing.

Symbols: n normal, a albedo over its 99th percentile, s = n · l, g the sRGB curve.

References
----------
T. Malzbender, D. Gelb, H. Wolters, "Polynomial Texture Maps", SIGGRAPH 2001,
doi:10.1145/383259.383320.
P. Gautron et al., "A Novel Hemispherical Basis for Accurate and Efficient Rendering", EGSR 2004,
doi:10.2312/EGWR/EGSR04/321-330.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.conventions import (
    BoolArray,
    Float32,
    Float64,
    FloatArray,
    gray_from_rgb,
    srgb_curve,
)
from photostereo.core.shading import relative_albedo
from photostereo.core.shading import relight as relight
from photostereo.runtime.illumination import shading

#: Number of lights in the fit.
LIGHTS = 144
#: The lowest elevation of these lights above the image plane, in degrees.
LOWEST = 20.0
#: Albedos are clipped to this multiple of white.
BRIGHTEST = 2.0
#: Pixels fitted at once.
CHUNK = 1 << 16


@dataclass(frozen=True, eq=False)
class LightModel:
    """Luminance as a function of the light direction, times a color."""

    basis: str  #: ``"ptm"`` or ``"hsh"``
    coefficients: Float32  #: (H, W, k) float32; luminance 1 shows the color itself
    color: NDArray[np.uint8]  #: (H, W, 3) uint8
    mask: BoolArray  #: (H, W) bool


def spread_lights(count: int = LIGHTS, lowest: float = LOWEST) -> Float64:
    """Return unit directions (count, 3) whose (u, v) cover the disk evenly.

    None is lower than ``lowest`` degrees above the image plane.
    """
    number = np.arange(count) + 0.5
    radius = np.cos(np.radians(lowest)) * np.sqrt(number / count)
    turn = np.pi * (3.0 - np.sqrt(5.0)) * number  # the golden angle: no two lights align
    u = radius * np.cos(turn)
    v = radius * np.sin(turn)
    return np.stack([u, v, np.sqrt(1.0 - u**2 - v**2)], axis=1)


def ptm_basis(lights: Float64) -> Float64:
    """Evaluate 1, u, v, u², uv, v² for directions (m, 3): (m, 6)."""
    u = lights[:, 0]
    v = lights[:, 1]
    return np.stack([np.ones_like(u), u, v, u * u, u * v, v * v], axis=1)


def hsh_basis(lights: Float64) -> Float64:
    """Evaluate the hemispherical harmonics up to degree 2 for directions (m, 3).

    Returns (m, 9), in relight's order.
    """
    turn = np.arctan2(lights[:, 1], lights[:, 0])
    c = np.clip(lights[:, 2], 0.0, 1.0)
    root = np.sqrt(c - c * c)
    degree_1 = np.sqrt(6 / np.pi)
    degree_2 = np.sqrt(30 / np.pi)
    return np.stack(
        [
            np.full_like(c, 1 / np.sqrt(2 * np.pi)),
            degree_1 * np.cos(turn) * root,
            np.sqrt(3 / (2 * np.pi)) * (2 * c - 1),
            degree_1 * np.sin(turn) * root,
            degree_2 * np.cos(2 * turn) * (c * c - c),
            degree_2 * np.cos(turn) * (2 * c - 1) * root,
            np.sqrt(5 / (2 * np.pi)) * (6 * c * c - 6 * c + 1),
            degree_2 * np.sin(turn) * (2 * c - 1) * root,
            degree_2 * np.sin(2 * turn) * (c * c - c),
        ],
        axis=1,
    )


#: The functions b_k by the name of their basis.
BASES: dict[str, Callable[[Float64], Float64]] = {"ptm": ptm_basis, "hsh": hsh_basis}


def fit_lights(
    normals: ArrayLike,
    albedo: ArrayLike,
    mask: BoolArray,
    *,
    basis: str = "ptm",
    linear: bool = False,
) -> LightModel:
    """Fit the light model of a result.

    Parameters
    ----------
    normals : (H, W, 3) array
        Normals of the result.
    albedo : (H, W) or (H, W, 3) array
        Linear.
    mask : (H, W) array
        The object.
    basis : {"ptm", "hsh"}
        Polynomials or hemispherical harmonics.
    linear : bool
        Fit linear intensities instead of sRGB values.
    """
    lights = spread_lights()
    solve = np.linalg.pinv(BASES[basis](lights))
    n = np.asarray(normals, dtype=np.float64)[mask]
    a = np.minimum(relative_albedo(albedo, mask)[mask], BRIGHTEST)
    # Above white, the color is white and the luminance above 1, so a dim light shows the pixel
    # unclipped.
    boost = np.maximum(1.0, a.max(axis=1))
    # The luminance multiplies the color, so that what is fitted is relative to the gray in full
    # light.
    gray = np.maximum(np.asarray(gray_from_rgb(a)), 1e-4)
    curve = np.asarray if linear else srgb_curve
    coefficients = np.zeros((*mask.shape, len(solve)), dtype=np.float32)
    inside = np.empty((len(n), len(solve)), dtype=np.float32)
    for start in range(0, len(n), CHUNK):
        part = slice(start, start + CHUNK)
        s = shading(n[part], lights.T)
        lit = curve(gray[part, None] * np.maximum(s, 0.0)) / curve(gray[part])[:, None]
        inside[part] = np.where(s > 0, lit, s) * curve(boost[part])[:, None] @ solve.T
    coefficients[mask] = inside
    color = np.zeros((*mask.shape, 3), dtype=np.uint8)
    color[mask] = np.rint(255.0 * np.clip(curve(a) / curve(boost)[:, None], 0.0, 1.0))
    return LightModel(basis, coefficients, color, mask)


def quantize(
    coefficients: FloatArray, mask: BoolArray
) -> tuple[NDArray[np.uint8], Float64, NDArray[np.int64]]:
    """Quantize coefficients to bytes, ``c = (byte − bias) · scale``.

    Parameters
    ----------
    coefficients : (H, W, k) array
        The coefficients.
    mask : (H, W) array
        The object; elsewhere the coefficients become zero.

    Returns
    -------
    picture : (H, W, k) array
        The bytes.
    scale, bias : (k,) arrays
        One per coefficient; the biases are whole numbers.
    """
    inside = coefficients[mask].astype(np.float64)
    low = np.minimum(inside.min(axis=0), 0.0)
    high = np.maximum(inside.max(axis=0), 0.0)
    scale = np.maximum(high - low, 1e-6) / 254.0
    bias = np.rint(-low / scale).astype(np.int64)
    picture = np.broadcast_to(bias, coefficients.shape).astype(np.uint8)
    picture[mask] = np.clip(np.rint(inside / scale + bias), 0, 255)
    return picture, scale, bias


def encoding_in_words(linear: bool) -> str:
    """Return what a relightable picture stores, for its description."""
    return "linear intensities" if linear else "sRGB, as viewers show it"
