"""Where people put their lights: domes, rings at one height, arcs on one side, torches moved by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from photostereo_lab.scenes.jets import Array
from photostereo_lab.scenes.lights import dome_lights, ring_lights

Rng = np.random.Generator

#: Distances of near lamps from the middle of the frame, in widths of the frame.
NEAR = (3.0, 8.0)


@dataclass(frozen=True, eq=False)
class Lamps:
    """The lights of a capture."""

    arrangement: str
    directions: Array  #: (d, 3) unit, from the middle of the frame
    strengths: Array  #: (d,) with mean 1
    distance: float | None  #: in widths of the frame; None if the lamps are far away

    def __len__(self) -> int:
        return len(self.directions)


def place_lamps(count: int, rng: Rng) -> Lamps:
    """Draw an arrangement of lamps.

    Parameters
    ----------
    count : int
        The number of photographs.
    rng : Generator
        Source of all randomness.
    """
    arrangement = str(rng.choice(list(ARRANGEMENTS)))
    directions = ARRANGEMENTS[arrangement](count, rng)
    directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    strengths = np.ones(count)
    if rng.random() < 0.3:
        strengths = np.exp(rng.normal(0.0, 0.12, count))
    distance = None
    if rng.random() < 0.25:
        distance = float(rng.choice(NEAR))
    return Lamps(arrangement, directions, strengths / strengths.mean(), distance)


def dome(count: int, rng: Rng) -> Array:
    """A fixed dome."""
    return dome_lights(count, max_angle=float(rng.uniform(50, 70)))


def one_ring(count: int, rng: Rng) -> Array:
    """A ring at one height, as a turntable or a set of eight lamps gives."""
    return ring_lights(count, elevation=float(rng.uniform(25, 60)))


def two_rings(count: int, rng: Rng) -> Array:
    """A low and a high ring, and a lamp beside the camera."""
    low = ring_lights((count - 1) // 2, elevation=float(rng.uniform(15, 30)))
    high = ring_lights(count - 1 - len(low), elevation=float(rng.uniform(45, 65)))
    return np.concatenate([low, high, [[0.05, 0.05, 1.0]]])


def arc(count: int, rng: Rng) -> Array:
    """Lamps on one side only, at changing heights."""
    start = rng.uniform(0, 2 * np.pi)
    azimuth = start + np.linspace(0, np.deg2rad(rng.uniform(120, 200)), count)
    elevation = np.deg2rad(rng.uniform(20, 70, count))
    return _from_angles(azimuth, elevation)


def by_hand(count: int, rng: Rng) -> Array:
    """A torch walked around the object: a smooth, uneven path."""
    turns = rng.uniform(1.0, 2.5)
    azimuth = rng.uniform(0, 6) + 2 * np.pi * turns * np.linspace(0, 1, count)
    height = 40 + 18 * np.sin(np.linspace(0, rng.uniform(3, 9), count) + rng.uniform(0, 6))
    azimuth = azimuth + rng.normal(0, 0.08, count)
    elevation = np.deg2rad(height + rng.normal(0, 3, count))
    return _from_angles(azimuth, elevation)


def raking(count: int, rng: Rng) -> Array:
    """A steep ring and one or two raking lights."""
    low = ring_lights(1 if count < 6 else 2, elevation=float(rng.uniform(10, 20)))
    return np.concatenate([ring_lights(count - len(low), elevation=60.0), low])


def _from_angles(azimuth: Array, elevation: Array) -> Array:
    flat = np.cos(elevation)
    return np.stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)], axis=1)


ARRANGEMENTS: dict[str, Callable[[int, Rng], Array]] = {
    "dome": dome,
    "one ring": one_ring,
    "two rings": two_rings,
    "arc": arc,
    "by hand": by_hand,
    "raking": raking,
}
