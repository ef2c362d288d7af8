"""Directions to distant lights in common arrangements: spread over a dome, on a ring, at random.

Every function returns (d, 3) unit vectors that point from the object to the light, with z > 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from photostereo.core.errors import ParameterError, require_known
from photostereo_lab.scenes.jets import Array


def dome_lights(d: int, *, max_angle: float = 60.0) -> Array:
    """d lights spread evenly over the cap within ``max_angle`` degrees of the camera's axis.

    A Fibonacci spiral: equal steps in z, the golden angle between consecutive lights.
    Deterministic.

    References
    ----------
    Á. González, "Measurement of areas on a sphere using Fibonacci and latitude–longitude
    lattices", 2010.
    https://doi.org/10.1007/s11004-009-9257-x

    Examples
    --------
    >>> lights = dome_lights(20)
    >>> lights.shape, bool((lights[:, 2] > 0.5).all())
    ((20, 3), True)
    """
    _check(d, max_angle)
    z = 1.0 - (np.arange(d) + 0.5) / d * (1.0 - np.cos(np.deg2rad(max_angle)))
    azimuth = np.arange(d) * (np.pi * (3.0 - np.sqrt(5.0)))
    return _from_azimuth(azimuth, z)


def ring_lights(d: int, *, elevation: float = 45.0) -> Array:
    """d lights at equal spacing on one ring, ``elevation`` degrees above the image plane.

    >>> np.round(ring_lights(4, elevation=30.0), 3) + 0.0
    array([[ 0.866,  0.   ,  0.5  ],
           [ 0.   ,  0.866,  0.5  ],
           [-0.866,  0.   ,  0.5  ],
           [ 0.   , -0.866,  0.5  ]])
    """
    _check(d, 90.0 - elevation)
    azimuth = 2.0 * np.pi * np.arange(d) / d
    return _from_azimuth(azimuth, np.full(d, np.sin(np.deg2rad(elevation))))


def random_lights(d: int, *, rng: int | np.random.Generator = 0, max_angle: float = 60.0) -> Array:
    """Return d independent lights, uniform by area on a cap around the camera's axis.

    Parameters
    ----------
    d : int
        Number of lights.
    rng : int or Generator
        Seed.
    max_angle : float
        How far the cap reaches from the axis, in degrees.

    Examples
    --------
    >>> bool(np.allclose(np.linalg.norm(random_lights(5, rng=1), axis=1), 1.0))
    True
    """
    _check(d, max_angle)
    generator = np.random.default_rng(rng)
    z = generator.uniform(np.cos(np.deg2rad(max_angle)), 1.0, d)
    return _from_azimuth(generator.uniform(0.0, 2.0 * np.pi, d), z)


def place_lights(kind: str, d: int, *, rng: int | np.random.Generator = 0) -> Array:
    """Return lights by the name of their arrangement.

    Parameters
    ----------
    kind : {"dome", "ring", "random"}
        The arrangement.
    d : int
        Number of lights.
    rng : int or Generator
        Seed of random lights.

    Examples
    --------
    >>> place_lights("ring", 12).shape
    (12, 3)
    """
    placements: dict[str, Callable[[int], Array]] = {
        "dome": dome_lights,
        "ring": ring_lights,
        "random": partial(random_lights, rng=rng),
    }
    require_known(kind, placements, "placement of lights", "unknown-light-placement")
    return placements[kind](d)


def _from_azimuth(azimuth: Array, z: Array) -> Array:
    radius = np.sqrt(np.maximum(0.0, 1.0 - z * z))
    return np.stack([radius * np.cos(azimuth), radius * np.sin(azimuth), z], axis=1)


def _check(d: int, angle: float) -> None:
    if d < 1:
        raise ParameterError(
            f"{d} lights were requested; a scene needs at least 1, photometric stereo at least 3.",
            code="too-few-lights",
            count=d,
        )
    if not 0.0 <= angle < 90.0:
        raise ParameterError(
            f"A light {angle:g} degrees from the camera axis was requested. Lights must be in "
            "front of the object: choose an angle from the axis of at least 0 and below 90 "
            "degrees (an elevation above 0).",
            code="light-behind-object",
            angle=angle,
        )
