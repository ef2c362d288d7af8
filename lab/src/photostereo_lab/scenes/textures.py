"""Albedo painted on a shape: solid procedural textures, functions of the point in space.

A texture maps object coordinates (N, 3) to linear RGB albedo (N, 3) in [0, 1]. All randomness comes
from ``rng``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from photostereo.core.errors import require_known
from photostereo_lab.scenes.jets import Array

Rng: TypeAlias = int | np.random.Generator
Texture: TypeAlias = Callable[[Array, Rng], Array]


def uniform(points: Array, rng: Rng = 0) -> Array:
    """One warm gray everywhere."""
    return np.broadcast_to(np.array([0.78, 0.72, 0.64]), points.shape).copy()


def checker(points: Array, rng: Rng = 0) -> Array:
    """Cubes of two colors, six to the object's height: sharp edges of albedo on smooth geometry."""
    # The offset keeps the faces of the cubes off the planes of symmetry, where rounding would
    # decide.
    parity = np.floor(3.0 * points + 0.137).sum(axis=-1) % 2.0
    return np.where(
        parity[..., None] > 0.5, np.array([0.85, 0.80, 0.70]), np.array([0.20, 0.32, 0.42])
    )


def marble(points: Array, rng: Rng = 0) -> Array:
    """Pale stone with dark veins: planes bent by turbulence."""
    generator = np.random.default_rng(rng)
    bend = turbulence(1.6 * points, generator, octaves=5)
    along = points @ np.array([0.74, 0.57, 0.36])
    broad = 1.0 - np.abs(np.sin(4.2 * along + 3.0 * bend)) ** 0.35
    fine = 1.0 - np.abs(np.sin(11.0 * (points @ np.array([-0.5, 0.8, 0.3])) + 4.0 * bend)) ** 0.25
    dark = np.clip(
        0.9 * broad + 0.6 * fine + 0.12 * turbulence(3.0 * points, generator, octaves=3), 0.0, 1.0
    )
    return _mix(np.array([0.88, 0.85, 0.79]), np.array([0.16, 0.20, 0.22]), dark)


def glaze(points: Array, rng: Rng = 0) -> Array:
    """Pottery: bands of ochre, cream and blue with the mottling of the kiln."""
    mottle = turbulence(6.0 * points, np.random.default_rng(rng), octaves=3)
    height = points[..., 1] + 0.015 * mottle
    cream = np.array([0.82, 0.74, 0.58])
    blue = np.array([0.10, 0.22, 0.45])
    ochre = np.array([0.62, 0.32, 0.12])
    band = np.where((np.abs(height + 0.1) < 0.22)[..., None], cream, ochre)
    wave = (
        np.abs(
            height + 0.1 - 0.07 * np.sin(12.0 * np.arctan2(points[..., 0], points[..., 2] + 1e-9))
        )
        < 0.035
    )
    lines = (
        (np.abs(np.abs(height + 0.1) - 0.24) < 0.02)
        | (np.abs(height - 0.72) < 0.03)
        | (height < -0.84)
    )
    color = np.where((wave | lines)[..., None], blue, band)
    return np.clip(color * (1.0 + 0.18 * mottle[..., None]), 0.02, 1.0)


def stone(points: Array, rng: Rng = 0) -> Array:
    """Sandstone: soft stains and fine speckles."""
    generator = np.random.default_rng(rng)
    stain = turbulence(1.7 * points, generator, octaves=3)
    speckle = turbulence(24.0 * points, generator, octaves=2)
    share = np.clip(0.55 + 0.45 * stain + 0.25 * speckle, 0.0, 1.0)
    return _mix(np.array([0.38, 0.27, 0.18]), np.array([0.82, 0.70, 0.52]), share)


#: Textures by name. ``"painted"``, the object's own colors, is handled in
#: :mod:`photostereo_lab.scenes.render`.
TEXTURES: dict[str, Texture] = {
    "uniform": uniform,
    "checker": checker,
    "marble": marble,
    "glaze": glaze,
    "stone": stone,
}


def texture_named(name: str) -> Texture:
    """A texture by name.

    >>> texture_named("uniform")(np.zeros((1, 3)), 0).tolist()
    [[0.78, 0.72, 0.64]]
    """
    require_known(name, TEXTURES, "texture")
    return TEXTURES[name]


def turbulence(points: Array, rng: Rng, *, octaves: int = 4) -> Array:
    """Fractal gradient noise, roughly in [−1, 1]: each octave is twice as fine and half as strong.

    References
    ----------
    K. Perlin, "Improving noise", 2002. https://doi.org/10.1145/566654.566636
    """
    generator = np.random.default_rng(rng)
    total = np.zeros(points.shape[:-1])
    for octave in range(octaves):
        order = generator.permutation(256)
        shift = generator.uniform(0.0, 256.0, 3)
        total += 0.5**octave * _gradient_noise(points * 2.0**octave + shift, order, generator)
    return 1.4 * total


def _gradient_noise(points: Array, order: np.ndarray, generator: np.random.Generator) -> Array:
    """Perlin's noise: random slopes on the integer lattice, blended with a quintic."""
    slopes = generator.normal(size=(256, 3))
    slopes /= np.linalg.norm(slopes, axis=1, keepdims=True)
    cell = np.floor(points).astype(np.int64)
    offset = points - cell
    blend = offset**3 * (offset * (6.0 * offset - 15.0) + 10.0)
    total = np.zeros(points.shape[:-1])
    for corner in np.ndindex(2, 2, 2):
        i, j, k = ((cell[..., axis] + corner[axis]) & 255 for axis in range(3))
        slope = slopes[order[(order[(order[i] + j) & 255] + k) & 255]]
        weight = np.ones(points.shape[:-1])
        ramp = np.zeros(points.shape[:-1])
        for axis in range(3):
            weight *= blend[..., axis] if corner[axis] else 1.0 - blend[..., axis]
            ramp += slope[..., axis] * (offset[..., axis] - corner[axis])
        total += weight * ramp
    return total


def _mix(first: Array, second: Array, share: Array) -> Array:
    return np.asarray(first + share[..., None] * (second - first))
