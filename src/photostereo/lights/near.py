"""Lamps that are near: direction and fall-off change over the frame.

A lamp at P lights the point X of the table along (P - X) / |P - X| and with 1 / |P - X|², relative to the middle of the
frame |P|² / |P - X|². Both change slowly, so they are taken as constant within small tiles. In a tile of half diagonal h
around a point at the distance D the direction is wrong by at most asin(h / D), and the fall-off by a factor of at most
(1 - h / D)⁻²: with tiles of a fiftieth of the distance by 0.8° and 3 % in the corners, and by half of that on average.

Methods know one direction per photograph. So the photographs are turned into those that distant lamps would have given:
the normals follow tile by tile from least squares with the tile's own lamps, and each value is multiplied by
(n·l_far) / (n·l_tile) and divided by the fall-off. An error e of these normals enters the result by e times the angle
between the two directions only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray, gray_from_rgb
from photostereo.lights.strength import weighted_normals

#: A lamp whose direction turns by more degrees than this, from the middle of the frame to its edge, is near.
NEAR_DEGREES = 3.0
#: Ratios of shading beyond this are noise of nearly dark pixels.
_MOST = 3.0


@dataclass(frozen=True, eq=False)
class NearField:
    """What near lamps do over the frame, tile by tile.

    Attributes
    ----------
    tile : side of a tile in pixels
    directions : (rows, cols, d, 3) unit, to the lamps
    falloff : (rows, cols, d) brightness relative to the middle of the frame
    bound : largest error of a direction within a tile, in degrees
    """

    tile: int
    directions: FloatArray
    falloff: FloatArray
    bound: float


def turn_over_frame(positions: FloatArray, frame: tuple[int, int]) -> float:
    """Degrees by which the nearest lamp's direction turns from the middle of the frame to the end of its longer side.

    >>> round(turn_over_frame(np.array([[0, 0, 500.0]]), (100, 100)), 1)
    5.7
    """
    return float(np.degrees(np.arctan2(0.5 * max(frame), np.linalg.norm(positions, axis=1).min())))


def near_field(positions: FloatArray, frame: tuple[int, int], *, tile: int | None = None) -> NearField:
    """Directions and fall-off of lamps at positions (d, 3), in pixels from the middle of the frame on the table.

    ``tile`` is chosen so that a direction is wrong by half a degree at most, where missing.

    Examples
    --------
    >>> field = near_field(np.array([[0, 0, 500.0]]), (64, 96), tile=32)
    >>> field.directions.shape, round(field.bound, 2)
    ((2, 3, 1, 3), 2.51)
    """
    if tile is None:
        edge = 0.5 * np.array([frame[1], frame[0]])
        beside = positions[:, :2] - np.clip(positions[:, :2], -edge, edge)
        nearest = float(np.sqrt((beside**2).sum(axis=1) + positions[:, 2] ** 2).min())
        tile = int(np.clip(1 + np.sqrt(2) * nearest * np.sin(np.deg2rad(0.5)), 4, max(frame)))
    rows, cols = -(-frame[0] // tile), -(-frame[1] // tile)
    y = 0.5 * (frame[0] - 1) - np.minimum(tile * np.arange(rows) + 0.5 * (tile - 1), frame[0] - 1)
    x = np.minimum(tile * np.arange(cols) + 0.5 * (tile - 1), frame[1] - 1) - 0.5 * (frame[1] - 1)
    middle = np.stack([*np.broadcast_arrays(x[None, :], y[:, None]), np.zeros((rows, cols))], axis=-1)
    towards = positions[None, None] - middle[:, :, None]
    distance = np.linalg.norm(towards, axis=-1)
    falloff = (np.linalg.norm(positions, axis=1) / distance) ** 2
    half = (tile - 1) / np.sqrt(2)
    bound = float(np.degrees(np.arcsin(min(half / float(distance.min()), 1.0))))
    return NearField(tile, towards / distance[..., None], falloff, bound)


def as_if_distant(
    images: FloatArray, mask: BoolArray, positions: FloatArray, *, tile: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Photographs (d, H, W) as distant lamps would have given them, and the directions (d, 3) of those lamps.

    Parameters
    ----------
    images : linear intensities, strengths divided out; (d, H, W, 3) in color, whose channels are corrected alike
    mask : the object; outside it only the fall-off is corrected
    positions : (d, 3) of the lamps, in pixels from the middle of the frame
    tile : side of the tiles in pixels
    """
    frame = (int(images.shape[1]), int(images.shape[2]))
    field = near_field(positions, frame, tile=tile)
    far = positions / np.linalg.norm(positions, axis=1, keepdims=True)
    result = np.array(images, dtype=np.float32)
    for row in range(field.directions.shape[0]):
        for col in range(field.directions.shape[1]):
            box = (
                slice(row * field.tile, (row + 1) * field.tile),
                slice(col * field.tile, (col + 1) * field.tile),
            )
            part = result[:, box[0], box[1]]
            falloff = field.falloff[row, col].astype(np.float32)
            part /= falloff.reshape(-1, *(1,) * (part.ndim - 1))
            inside = mask[box]
            if inside.any():
                values = part[:, inside].astype(np.float64)
                gray = values if values.ndim == 2 else gray_from_rgb(values)
                ratio = _ratio(gray.T, field.directions[row, col], far).T
                part[:, inside] = values * (ratio if values.ndim == 2 else ratio[..., None])
    return result, far


def _ratio(values: FloatArray, near: FloatArray, far: FloatArray) -> FloatArray:
    """Shading under the distant lamps over that under the near ones, (n, d), from normals found on the way."""
    lit = (values > 0.1 * values.max(axis=1, keepdims=True)).astype(np.float64)
    surface = weighted_normals(values, near, lit)
    here, there = surface @ near.T, surface @ far.T
    floor = 0.05 * np.maximum(np.linalg.norm(surface, axis=1, keepdims=True), 1e-12)
    ratio = np.where(here > floor, np.maximum(there, 0) / np.maximum(here, floor), 1.0)
    return np.asarray(np.clip(ratio, 1 / _MOST, _MOST))
