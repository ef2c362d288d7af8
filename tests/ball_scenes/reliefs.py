"""Glossy reliefs full of round things that are no balls: rings, domes, scrolls and the rims of coins."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import Float32, FloatArray
from photostereo_lab.scenes.brdf import Ggx
from photostereo_lab.scenes.shadows import cast_shadow

#: Height and width of the frame.
FRAME = (200, 280)


def round_relief(shape: str, rng: int, *, count: int = 4) -> FloatArray:
    """Return the height in pixels of round things at random places; some are cut by the edge of the frame.

    Parameters
    ----------
    shape : str
        ``"rings"``, ``"domes"``, ``"scrolls"`` or ``"coins"``.
    rng : int
        Seed of places and sizes.
    count : int
        Number of things.
    """
    generator = np.random.default_rng(rng)
    rows, columns = np.mgrid[: FRAME[0], : FRAME[1]]
    height = np.zeros(FRAME)
    for _ in range(count):
        radius = generator.uniform(18, 60)
        x = generator.uniform(0, FRAME[1])
        y = generator.uniform(0, FRAME[0])
        away = np.hypot(columns - x, rows - y) / radius
        turn = np.arctan2(rows - y, columns - x)
        inside = away < 1
        thing = {
            "rings": 0.2 * np.exp(-(((away - 1) / 0.12) ** 2)) + 0.2 * np.maximum(1 - away, 0),
            "domes": np.sqrt(np.maximum(1.3**2 - away**2, 0)) - np.sqrt(1.3**2 - 1),
            "scrolls": (0.3 + 0.25 * (1 + np.cos(8 * away + turn))) * inside,
            "coins": (0.06 + 0.03 * np.cos(9 * away)) * inside,
        }[shape]
        height = np.maximum(height, radius * np.maximum(thing, 0))
    skin = cv2.GaussianBlur(generator.normal(size=FRAME), (0, 0), 8.0)
    return np.asarray(cv2.GaussianBlur(height, (0, 0), 1.0) + 8.0 * skin)


def photograph_relief(
    height: FloatArray, lights: NDArray[np.float64], *, gloss: float, matte: float, rng: int = 0
) -> Float32:
    """Render photographs (d, H, W) of a relief, with cast shadows and noise.

    Parameters
    ----------
    height : (H, W) array
        In pixels.
    lights : (d, 3) array
        Unit directions.
    gloss : float
        Reflectance of the coat at normal incidence.
    matte : float
        Albedo below it.
    rng : int
        Seed of the noise.
    """
    down, right = np.gradient(height)
    normals = np.stack([-right, down, np.ones_like(height)], axis=-1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    everywhere = np.ones(height.shape, bool)
    images = []
    for light in lights:
        cosine = np.maximum(normals @ light, 0)
        toward = np.broadcast_to(light[2], cosine.shape)
        _, coat = Ggx(0.12, reflectance=1.0).terms(
            np.maximum(cosine, 1e-6), np.maximum(normals[..., 2], 1e-6), toward
        )
        image = (matte + gloss * coat) * cosine
        image[cast_shadow(height, everywhere, light)] = 0
        images.append(image)
    stack = np.stack(images)
    stack *= 0.9 / np.percentile(stack, 99.5)
    stack += 0.003 * np.random.default_rng(rng).normal(size=stack.shape)
    return np.clip(stack, 0, 1).astype(np.float32)
