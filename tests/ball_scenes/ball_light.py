"""What a ball sends to the camera: its visible points, their shading, and what they mirror."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import FloatArray

from .studio import WINDOW, Ball, Lamp, Studio, unit


def lamp_is_near(
    normals: FloatArray, views: FloatArray, center: FloatArray, ball: Ball, lamp: Lamp, room: Studio
) -> NDArray[np.bool_]:
    """Pixels in which some of the lamp's reflection may lie: a pixel further than its own middle tells."""
    facing = (normals * views).sum(axis=-1, keepdims=True)
    towards, _ = lamp.seen_from(center + ball.radius * np.nan_to_num(normals))
    cosine = np.clip(((2 * facing * normals - views) * towards).sum(axis=-1), -1, 1)
    per_pixel = 2.0 / (ball.radius * np.maximum(facing[..., 0], 0.05))
    reach = np.deg2rad(max(0.5 * room.lamp_width, 5.0 * room.haze)) + per_pixel
    with np.errstate(invalid="ignore"):
        return np.asarray(np.arccos(cosine) < reach)


def visible_normals(
    ball: Ball, x: FloatArray, y: FloatArray, middle: tuple[float, float], focal: float | None
) -> tuple[FloatArray, FloatArray]:
    """Normals at the ball's visible points (NaN beside it), and unit vectors from there to the camera."""
    if focal is None:
        nx, ny = (x - ball.x) / ball.radius, (ball.y - y) / ball.radius
        nx, ny = np.broadcast_arrays(nx, ny)
        square = 1 - nx**2 - ny**2
        nz = np.sqrt(np.where(square >= 0, square, np.nan))
        return np.stack([nx, ny, nz], axis=-1), np.broadcast_to([0.0, 0.0, 1.0], (*nx.shape, 3))
    # A sphere of this radius whose center is seen at (x, y), at the distance where a pixel is a pixel.
    center = np.array([ball.x - middle[0], middle[1] - ball.y, -focal])
    rays = np.stack(np.broadcast_arrays(x - middle[0], middle[1] - y, np.array(-focal)), axis=-1)
    rays = rays / np.linalg.norm(rays, axis=-1, keepdims=True)
    along = rays @ center
    square = along**2 - (center @ center - ball.radius**2)
    distance = along - np.sqrt(np.where(square >= 0, square, np.nan))
    return np.asarray((rays * distance[..., None] - center) / ball.radius), -rays


def radiance(
    ball: Ball,
    normals: FloatArray,
    views: FloatArray,
    points: FloatArray,
    lamps: Sequence[tuple[float, Lamp]],
    room: Studio,
) -> FloatArray:
    """What the points of a ball send to the camera."""
    facing = np.clip((normals * views).sum(axis=-1), 0, 1)
    result = np.zeros(len(normals))
    mirrored = 2 * facing[:, None] * normals - views
    for strength, lamp in lamps:
        towards, fall = lamp.seen_from(points)
        diffuse = {"mirror": 0.0, "black": 0.004, "matte": 0.7}[ball.kind]
        result += diffuse * strength * fall * np.maximum((normals * towards).sum(axis=-1), 0)
        if ball.kind != "matte":
            below = mirrored[:, 2] < 0
            light = np.where(below, room.table * strength * max(float(lamp.direction[2]), 0.0), 0.0)
            result += _mirror_share(ball.kind, facing) * light
    if ball.kind != "matte" and room.window:
        side, up = unit(np.cross(WINDOW, [0, 1, 0])), np.array([0.0, 1.0, 0.0])
        inside = (np.abs(mirrored @ side) < 0.12) & (np.abs((mirrored - WINDOW) @ up) < 0.2)
        inside &= mirrored @ WINDOW > 0
        result += _mirror_share(ball.kind, facing) * np.where(inside, room.window, 0.0)
    return result


def lamp_radiance(
    ball: Ball,
    normals: FloatArray,
    views: FloatArray,
    points: FloatArray,
    lamp: tuple[float, Lamp],
    room: Studio,
) -> FloatArray:
    """What the points of a shiny ball mirror of one lamp's face."""
    strength, source = lamp
    facing = np.clip((normals * views).sum(axis=-1), 0, 1)
    towards, _ = source.seen_from(points)
    cosine = ((2 * facing[:, None] * normals - views) * towards).sum(axis=-1)
    return np.asarray(
        _mirror_share(ball.kind, facing) * room.radiance * strength * _lamp_face(cosine, room)
    )


def _lamp_face(cosine: FloatArray, room: Studio) -> FloatArray:
    """The lamp's disc as a mirror shows it; hazy ones spread the same light over a lobe."""
    if not room.haze:
        return np.asarray((cosine > np.cos(np.deg2rad(0.5 * room.lamp_width))).astype(np.float64))
    away = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
    return np.asarray(
        0.125 * (room.lamp_width / room.haze) ** 2 * np.exp(-0.5 * (away / room.haze) ** 2)
    )


def _mirror_share(kind: str, facing: FloatArray) -> FloatArray:
    if kind == "mirror":
        return np.asarray(0.7 + 0.3 * (1 - facing) ** 5)
    return np.asarray(0.04 + 0.96 * (1 - facing) ** 5)  # Schlick's form of Fresnel's law
