"""Photographs under near lights, converted to those that distant lights would have given.

Methods use one direction per photograph. Near lights (:mod:`photostereo.lights.lights`) change direction and strength
over the frame, but slowly, so both are taken as constant within small tiles. In a tile of half diagonal h at the distance
D from a light the direction is wrong by at most asin(h / D), and the fall-off by a factor of at most (1 - h / D)⁻²: for
tiles of a fiftieth of the distance 0.8° and 3 % in the corners, and half of that on average.

In each tile the normals follow from least squares with the tile's own directions; each value is multiplied by
(n·l_far) / (n·l_tile) and divided by the fall-off. An error e of these normals enters the result only as e times the
angle between the two directions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, FloatArray, gray_from_rgb
from photostereo.lights.lights import Lights
from photostereo.lights.strength import weighted_normals

#: A light whose direction changes by more than this from the middle of the frame to its edge is near. Below it the
#: error of assuming a distant light is smaller than that of most calibrations.
NEAR_DEGREES = 3.0
#: The largest change of direction within a tile. Half of it halves the error of the correction and costs four times
#: as many tiles.
_TILE_DEGREES = 0.5
#: Ratios of shading beyond this are noise of nearly dark pixels.
_MOST = 3.0


@dataclass(frozen=True, eq=False)
class NearField:
    """Directions and fall-off of near lights over the frame, tile by tile.

    Attributes
    ----------
    tile : side of a tile in pixels
    directions : (rows, cols, d, 3) unit, to the lights
    falloff : (rows, cols, d) brightness relative to where their strengths hold
    bound : largest error of a direction within a tile, in degrees
    """

    tile: int
    directions: FloatArray
    falloff: FloatArray
    bound: float


def turn_over_frame(lights: Lights, frame: tuple[int, int]) -> float:
    """Degrees by which the direction of the nearest light changes from the middle of the frame to the end of its
    longer side; 0 for distant lights.

    >>> round(turn_over_frame(Lights(positions=[[0, 0, 500.0]]), (100, 100)), 1)
    5.7
    """
    if lights.positions is None:
        return 0.0
    return float(np.degrees(np.arctan2(0.5 * max(frame), np.linalg.norm(lights.positions, axis=1).min())))


def near_field(lights: Lights, frame: tuple[int, int], *, tile: int | None = None) -> NearField:
    """Directions and fall-off of near lights over a frame.

    By default the side of the tiles is chosen so that a direction is wrong by at most half a degree.

    Examples
    --------
    >>> field = near_field(Lights(positions=[[0, 0, 500.0]]), (64, 96), tile=32)
    >>> field.directions.shape, round(field.bound, 2)
    ((2, 3, 1, 3), 2.51)
    """
    positions = lights.positions
    assert positions is not None
    if tile is None:
        edge = 0.5 * np.array([frame[1], frame[0]])
        beside = positions[:, :2] - np.clip(positions[:, :2], -edge, edge)
        nearest = float(np.sqrt((beside**2).sum(axis=1) + positions[:, 2] ** 2).min())
        tile = int(np.clip(1 + np.sqrt(2) * nearest * np.sin(np.deg2rad(_TILE_DEGREES)), 4, max(frame)))
    rows, cols = -(-frame[0] // tile), -(-frame[1] // tile)
    y = 0.5 * (frame[0] - 1) - np.minimum(tile * np.arange(rows) + 0.5 * (tile - 1), frame[0] - 1)
    x = np.minimum(tile * np.arange(cols) + 0.5 * (tile - 1), frame[1] - 1) - 0.5 * (frame[1] - 1)
    points = np.stack(np.broadcast_arrays(x[None, :], y[:, None]), axis=-1).reshape(-1, 2)
    middle = np.column_stack([points, np.zeros(len(points))])
    nearest = float(np.linalg.norm(positions[None] - middle[:, None], axis=-1).min())
    half = (tile - 1) / np.sqrt(2)
    bound = float(np.degrees(np.arcsin(min(half / nearest, 1.0))))
    directions = lights.at(points).reshape(rows, cols, len(lights), 3)
    return NearField(tile, directions, lights.fall_off_at(points).reshape(rows, cols, -1), bound)


def as_if_distant(
    images: FloatArray, mask: BoolArray, lights: Lights, *, tile: int | None = None, control: Control = SILENT
) -> FloatArray:
    """Photographs (d, H, W) as distant lights would have given them, in the directions from the middle of the frame.

    Parameters
    ----------
    images : linear intensities, strengths divided out; (d, H, W, 3) in color, whose channels are corrected alike
    mask : the object; outside it only the fall-off is corrected
    lights : with positions in pixels from the middle of the frame
    tile : side of the tiles in pixels
    """
    frame = (int(images.shape[1]), int(images.shape[2]))
    field = near_field(lights, frame, tile=tile)
    far = lights.as_distant(from_positions=True).directions
    result = np.array(images, dtype=np.float32)
    for row in range(field.directions.shape[0]):
        control.check()
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
    return result


def _ratio(values: FloatArray, near: FloatArray, far: FloatArray) -> FloatArray:
    """Shading under the distant lights over that under the near ones, (n, d), from least-squares normals."""
    lit = (values > 0.1 * values.max(axis=1, keepdims=True)).astype(np.float64)
    surface = weighted_normals(values, near, lit)
    shading, distant = surface @ near.T, surface @ far.T
    floor = 0.05 * np.maximum(np.linalg.norm(surface, axis=1, keepdims=True), 1e-12)
    ratio = np.where(shading > floor, np.maximum(distant, 0) / np.maximum(shading, floor), 1.0)
    return np.asarray(np.clip(ratio, 1 / _MOST, _MOST))
