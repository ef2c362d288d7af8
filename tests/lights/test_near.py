"""Near lamps, against the exact light of every pixel."""

from __future__ import annotations

import numpy as np

from photostereo.lights.lights import Lights
from photostereo.lights.near import as_if_distant, near_field
from photostereo.scenes import dome_lights

FRAME = (121, 161)


def exact(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Directions (d, H, W, 3) and fall-off (d, H, W) at every pixel of the table."""
    rows, cols = np.mgrid[: FRAME[0], : FRAME[1]].astype(float)
    points = np.stack([cols - 80, 60 - rows, 0 * rows], axis=-1)
    towards = positions[:, None, None] - points
    distance = np.linalg.norm(towards, axis=-1)
    return towards / distance[..., None], (np.linalg.norm(positions, axis=1)[:, None, None] / distance) ** 2


def test_tiles_keep_to_their_bound() -> None:
    positions = dome_lights(6) * 400.0
    directions, falloff = exact(positions)
    for tile in (8, 20, 33):
        field = near_field(Lights(positions=positions), FRAME, tile=tile)
        rows, cols = np.arange(FRAME[0]) // tile, np.arange(FRAME[1]) // tile
        of_pixels = field.directions[rows][:, cols].transpose(2, 0, 1, 3)
        cosine = np.clip((of_pixels * directions).sum(axis=-1), -1, 1)
        worst = np.degrees(np.arccos(cosine)).max()
        assert 0.3 * field.bound < worst <= field.bound + 1e-6
        share = field.falloff[rows][:, cols].transpose(2, 0, 1) / falloff
        limit = (1 - np.sin(np.radians(field.bound))) ** -2
        assert share.max() < limit and share.min() > 1 / limit
    assert near_field(Lights(positions=positions), FRAME).bound < 0.52


def test_photographs_become_those_of_distant_lamps() -> None:
    positions = dome_lights(12, max_angle=45) * 400.0
    directions, falloff = exact(positions)
    rows, cols = np.mgrid[: FRAME[0], : FRAME[1]].astype(float)
    slope = np.stack([0.5 * np.sin(cols / 9), 0.5 * np.cos(rows / 11), np.ones(FRAME)], axis=-1)
    normals = slope / np.linalg.norm(slope, axis=-1, keepdims=True)
    images = np.maximum(np.einsum("dhwc,hwc->dhw", directions, normals), 0) * falloff
    mask = np.ones(FRAME, dtype=bool)

    def error(stack: np.ndarray, lights: np.ndarray) -> float:
        found = np.einsum("cd,dhw->hwc", np.linalg.pinv(lights), stack)
        found /= np.linalg.norm(found, axis=-1, keepdims=True)
        return float(np.degrees(np.arccos(np.clip((found * normals).sum(-1), -1, 1))).mean())

    far = positions / np.linalg.norm(positions, axis=1, keepdims=True)
    assert error(images, far) > 3.0  # taken as distant: wrong by degrees
    corrected = as_if_distant(images, mask, Lights(positions=positions))
    assert error(corrected, far) < 0.7
