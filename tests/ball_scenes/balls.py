"""A table with an object and balls on it, under one lamp at a time: captures whose lights are to be found.

The camera looks straight down. Lamps are discs, far away or at given positions, and a shiny ball mirrors them
together with what stays: a window, a second lamp that is always on, and the table. A mirror reflects 70 per cent, a
black glossy ball what Fresnel's law gives (4 per cent in front, all of it at the rim), a matte ball shows its shading.
Everything is exact up to the supersampling of the balls: truth for directions, strengths and circles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.capture import Capture
from photostereo.core.conventions import FloatArray
from photostereo_lab.scenes.lights import dome_lights
from photostereo_lab.scenes.render import render_scene
from photostereo_lab.scenes.textures import turbulence

from .ball_light import lamp_is_near, lamp_radiance, radiance, visible_normals
from .studio import SECOND, Ball, Lamp, Studio, unit

_FINE = 4  # supersampling of the balls, along a side
_FINEST = 12  # and of the reflections of lamps
_Radiance = Callable[..., FloatArray]


@dataclass(frozen=True, eq=False)
class Shoot:
    """Photographs of a table with balls, and the truth.

    Attributes
    ----------
    images : (d, H, W) float32 in [0, 1], as a camera stores them: strengths, noise and clipping included
    lights : (d, 3) unit directions to the lamps (from the middle of the frame where they are near)
    strengths : (d,) with geometric mean 1
    balls : what stands on the table
    capture : the object alone in the same frame, without balls, table or noise, all strengths 1; None without
    positions : (d, 3) of near lamps in pixels from the middle of the frame (x right, y up, z to the camera), or
        None
    """

    images: NDArray[np.float32]
    lights: FloatArray
    strengths: FloatArray
    balls: tuple[Ball, ...]
    capture: Capture | None
    positions: FloatArray | None = None


def shoot_table(
    balls: Sequence[Ball],
    *,
    size: tuple[int, int] = (240, 360),
    scene: str | None = "figure",
    lights: ArrayLike | None = None,
    strengths: ArrayLike | None = None,
    positions: ArrayLike | None = None,
    focal: float | None = None,
    studio: Studio | None = None,
    rng: int | np.random.Generator = 0,
) -> Shoot:
    """Photograph an object and balls on a table.

    Parameters
    ----------
    balls : on the table; they may reach beyond the frame, but not over the object
    size : height and width of the frame; the object takes the square at its left
    scene : a name of :func:`photostereo_lab.scenes.scene_names`, or None for balls alone
    lights : (d, 3) directions, by default ``dome_lights(20, max_angle=55)``
    strengths : (d,) of the lamps, by default all equal
    positions : (d, 3) of near lamps; directions and fall-off then vary over the balls and the table (the object
        keeps the directions of the middle)
    focal : focal length in pixels of a perspective camera; it bends the view of the balls only
    studio : the room
    rng : of the table's texture and the noise

    Examples
    --------
    >>> shoot = shoot_table([Ball("mirror", 75, 25, 15)], size=(50, 100), scene=None, lights=dome_lights(5))
    >>> shoot.images.shape, float(shoot.images.max())
    ((5, 50, 100), 1.0)
    """
    room = studio or Studio()
    generator = np.random.default_rng(rng)
    places = None if positions is None else np.array(positions, dtype=np.float64)
    directions = np.array(
        dome_lights(20, max_angle=55) if lights is None else lights, dtype=np.float64
    )
    if places is not None:
        directions = places
    directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    power = np.ones(len(directions)) if strengths is None else np.array(strengths, dtype=np.float64)
    power = power / np.exp(np.mean(np.log(power)))
    # The lamp that is always on is photographed last, and added to all others.
    lamps = [
        Lamp(direction, None if places is None else places[number])
        for number, direction in enumerate(directions)
    ] + [Lamp(unit(SECOND), None)]
    capture = (
        None
        if scene is None
        else _object_in_frame(scene, size, np.vstack([directions, unit(SECOND)]))
    )
    pattern = np.maximum(1.0 + 2.0 * room.texture * _pattern(size, generator), 0.05)
    shades = [
        _table(lamp, pattern, room, size, capture, number) for number, lamp in enumerate(lamps)
    ]
    images = np.empty((len(directions), *size), dtype=np.float32)
    for number, image in enumerate(images):
        image[:] = power[number] * shades[number] + room.second * shades[-1]
        glints = np.zeros_like(image)
        for ball in balls:
            lit_by = ((power[number], lamps[number]), (room.second, lamps[-1]))
            _paint(image, glints, ball, lit_by, focal, room)
        if room.blur:  # what is brighter than white is clipped by the sensor, not by the lens
            image[:] = cv2.GaussianBlur(image, (0, 0), room.blur)
        image += glints
        if room.glare:
            image += room.glare * _streaks(np.maximum(image - 1.0, 0))
        deviation = np.sqrt(room.read_noise**2 + room.shot_noise**2 * np.maximum(image, 0))
        image += (deviation * generator.standard_normal(size)).astype(np.float32)
        np.clip(image, 0, 1, out=image)
        if room.bits:
            top = 2**room.bits - 1
            image[:] = np.rint(image * top) / top
    alone = None if capture is None else capture.take(np.arange(len(directions)))
    return Shoot(images, directions, power, tuple(balls), alone, places)


def _streaks(excess: NDArray[np.float32], length: float = 6.0) -> NDArray[np.float32]:
    """Light above white that runs down the columns and fades over ``length`` rows."""
    result = np.zeros_like(excess)
    carried = np.zeros_like(excess[0])
    fade = np.float32(np.exp(-1.0 / length))
    for row, above in enumerate(excess):
        result[row] = carried
        carried = fade * carried + (1 - fade) * above
    return result


def _object_in_frame(scene: str, size: tuple[int, int], lights: FloatArray) -> Capture:
    """The object at the left of a frame of this size."""
    side = min(size)
    small = render_scene(scene, size=side, lights=lights)
    top = (size[0] - side) // 2
    box = (slice(top, top + side), slice(0, side))
    images = np.zeros((len(lights), *size), np.float32)
    images[:, box[0], box[1]] = small.images
    mask = np.zeros(size, dtype=bool)
    mask[box] = small.mask
    truth = np.zeros((*size, 3), np.float32)
    assert small.truth is not None
    truth[box] = small.truth
    return Capture(images=images, lights=lights, mask=mask, truth=truth, name=scene)


def _pattern(size: tuple[int, int], generator: np.random.Generator) -> FloatArray:
    rows, cols = np.mgrid[: size[0], : size[1]] / 24.0
    return turbulence(
        np.stack([cols, rows, 0.5 + 0 * rows], axis=-1).reshape(-1, 3), generator
    ).reshape(size)


def _table(
    lamp: Lamp,
    pattern: FloatArray,
    room: Studio,
    size: tuple[int, int],
    capture: Capture | None,
    number: int,
) -> FloatArray:
    rows, cols = np.mgrid[: size[0], : size[1]].astype(np.float64)
    points = np.stack([cols - 0.5 * (size[1] - 1), 0.5 * (size[0] - 1) - rows, 0 * rows], axis=-1)
    towards, fall = lamp.seen_from(points)
    image = room.table * pattern * np.maximum(towards[..., 2], 0) * fall
    if capture is not None:
        image[capture.mask] = capture.images[number][capture.mask]
    return np.asarray(image)


def _paint(
    image: NDArray[np.float32],
    glints: NDArray[np.float32],
    ball: Ball,
    lamps: Sequence[tuple[float, Lamp]],
    focal: float | None,
    room: Studio,
) -> None:
    """One ball into one photograph, supersampled; pixels at its rim are mixed with what is behind.

    The lamps' own reflections may be smaller than a pixel: they are sampled more finely, and the lens blurs them before
    the pixels gather their light (into ``glints``).
    """
    height, width = image.shape
    reach = 1.3 * ball.radius + 2  # perspective stretches it
    rows = np.arange(max(int(ball.y - reach), 0), min(int(ball.y + reach) + 2, height))
    cols = np.arange(max(int(ball.x - reach), 0), min(int(ball.x + reach) + 2, width))
    middle = (0.5 * (width - 1), 0.5 * (height - 1))
    center = np.array([ball.x - middle[0], middle[1] - ball.y, ball.radius])

    def sampled(
        y: FloatArray, x: FloatArray, sent: _Radiance, fine: int
    ) -> tuple[FloatArray, FloatArray]:
        """Mean radiance of pixels whose samples are at rows y and columns x, and the share that the ball covers."""
        normals, views = visible_normals(ball, x, y, middle, focal)
        hit = np.isfinite(normals[..., 2])
        n, v = normals[hit], views[hit]
        values = np.zeros(hit.shape)
        values[hit] = sent(ball, n, v, center + ball.radius * n, lamps, room)
        shape = (hit.shape[0] // fine, fine, hit.shape[1] // fine, fine)
        return values.reshape(shape).mean(axis=(1, 3)), hit.reshape(shape).mean(axis=(1, 3))

    seen, share = sampled(
        _samples(rows, _FINE)[:, None], _samples(cols, _FINE)[None, :], radiance, _FINE
    )
    part = image[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]
    part[:] = part * (1 - share) + seen
    if ball.kind == "matte":
        return
    normals, views = visible_normals(
        ball, cols[None, :].astype(float), rows[:, None].astype(float), middle, focal
    )
    margin = int(4 * room.blur) + 1
    for lamp in lamps:
        near = lamp_is_near(normals, views, center, ball, lamp[1], room)
        if not (near.any() and lamp[0] > 0):
            continue
        y0, y1, x0, x1 = _bounds(near)
        spot_rows = np.arange(max(rows[y0] - margin, 0), min(rows[y1 - 1] + margin + 1, height))
        spot_cols = np.arange(max(cols[x0] - margin, 0), min(cols[x1 - 1] + margin + 1, width))

        def face(
            ball: Ball, n: FloatArray, v: FloatArray, points: FloatArray, *_: Any, lamp: Any = lamp
        ) -> FloatArray:
            return lamp_radiance(ball, n, v, points, lamp, room)

        light, _ = sampled(
            _samples(spot_rows, _FINEST)[:, None], _samples(spot_cols, _FINEST)[None, :], face, 1
        )
        if room.blur:
            light = cv2.GaussianBlur(
                light, (0, 0), room.blur * _FINEST, borderType=cv2.BORDER_CONSTANT
            )
        shape = (len(spot_rows), _FINEST, len(spot_cols), _FINEST)
        box = (slice(spot_rows[0], spot_rows[-1] + 1), slice(spot_cols[0], spot_cols[-1] + 1))
        glints[box] += light.reshape(shape).mean(axis=(1, 3)).astype(np.float32)


def _samples(places: NDArray[np.intp], fine: int) -> FloatArray:
    """Where pixels are sampled along one side."""
    return np.asarray((places[:, None] + (np.arange(fine) + 0.5) / fine - 0.5).reshape(-1))


def _bounds(where: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """First and last (not included) row and column of what is true."""
    y, x = np.flatnonzero(where.any(axis=1)), np.flatnonzero(where.any(axis=0))
    return int(y[0]), int(y[-1]) + 1, int(x[0]), int(x[-1]) + 1
