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
from photostereo.conventions import FloatArray
from photostereo.errors import ParameterError
from photostereo.scenes.lights import dome_lights
from photostereo.scenes.render import render_scene
from photostereo.scenes.textures import turbulence

KINDS = ("mirror", "black", "matte")
_FINE = 4  # supersampling of the balls, along a side
_FINEST = 12  # and of the reflections of lamps
_Radiance = Callable[..., FloatArray]
_WINDOW = np.array([-0.62, 0.55, 0.56])  # towards its middle
_SECOND = np.array([0.55, -0.35, 0.76])  # towards the lamp that is always on


@dataclass(frozen=True)
class Ball:
    """A ball on the table: kind (mirror, black or matte), centre (column, row) and radius in pixels."""

    kind: str
    x: float
    y: float
    radius: float

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ParameterError(f'There is no "{self.kind}" ball. Choose one of {", ".join(KINDS)}.')


@dataclass(frozen=True)
class Studio:
    """The room around the table.

    Attributes
    ----------
    lamp_width : degrees across which the lamp is seen from the table
    radiance : brightness of the lamp's face; a sensor's white is 1
    window : brightness of a window that is always there, 0 for none
    second : strength of a second lamp that is always on, as a share of the first; 0 for none
    blur : of the lens, standard deviation in pixels
    glare : share of the light above white that the sensor bleeds into the rows below (one-sided streaks)
    haze : degrees by which a rough coat widens every reflection of the lamp; 0 for a clear one
    table : mean albedo of the table, 0 for black cloth
    texture : contrast of the table's pattern, 0 to 1
    read_noise, shot_noise : standard deviation of a dark pixel, and of a white one
    bits : of the stored values; 0 keeps floats
    """

    lamp_width: float = 3.0
    radiance: float = 60.0
    window: float = 0.8
    second: float = 0.05
    blur: float = 0.7
    glare: float = 0.0
    haze: float = 0.0
    table: float = 0.15
    texture: float = 0.5
    read_noise: float = 0.002
    shot_noise: float = 0.01
    bits: int = 16


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


@dataclass(frozen=True, eq=False)
class _Lamp:
    """A lamp as every point of the table sees it."""

    direction: FloatArray
    position: FloatArray | None

    def seen_from(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Unit directions from points (..., 3) to the lamp, and its fall-off relative to the origin."""
        if self.position is None:
            return np.broadcast_to(self.direction, points.shape), np.ones(points.shape[:-1])
        towards = self.position - points
        distance = np.linalg.norm(towards, axis=-1)
        fall = (np.linalg.norm(self.position) / distance) ** 2
        return np.asarray(towards / distance[..., None]), np.asarray(fall)


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
    scene : a name of :func:`photostereo.scenes.scene_names`, or None for balls alone
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
    directions = np.array(dome_lights(20, max_angle=55) if lights is None else lights, dtype=np.float64)
    if places is not None:
        directions = places
    directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    power = np.ones(len(directions)) if strengths is None else np.array(strengths, dtype=np.float64)
    power = power / np.exp(np.mean(np.log(power)))
    # The lamp that is always on is photographed last, and added to all others.
    lamps = [
        _Lamp(direction, None if places is None else places[number])
        for number, direction in enumerate(directions)
    ] + [_Lamp(_unit(_SECOND), None)]
    capture = (
        None if scene is None else _object_in_frame(scene, size, np.vstack([directions, _unit(_SECOND)]))
    )
    pattern = np.maximum(1.0 + 2.0 * room.texture * _pattern(size, generator), 0.05)
    shades = [_table(lamp, pattern, room, size, capture, number) for number, lamp in enumerate(lamps)]
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


def _unit(vector: FloatArray) -> FloatArray:
    return np.asarray(vector / np.linalg.norm(vector))


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
    return turbulence(np.stack([cols, rows, 0.5 + 0 * rows], axis=-1).reshape(-1, 3), generator).reshape(size)


def _table(
    lamp: _Lamp,
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
    lamps: Sequence[tuple[float, _Lamp]],
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
    centre = np.array([ball.x - middle[0], middle[1] - ball.y, ball.radius])

    def sampled(
        y: FloatArray, x: FloatArray, radiance: _Radiance, fine: int
    ) -> tuple[FloatArray, FloatArray]:
        """Mean radiance of pixels whose samples are at rows y and columns x, and the share that the ball covers."""
        normals, views = _visible_normals(ball, x, y, middle, focal)
        hit = np.isfinite(normals[..., 2])
        n, v = normals[hit], views[hit]
        values = np.zeros(hit.shape)
        values[hit] = radiance(ball, n, v, centre + ball.radius * n, lamps, room)
        shape = (hit.shape[0] // fine, fine, hit.shape[1] // fine, fine)
        return values.reshape(shape).mean(axis=(1, 3)), hit.reshape(shape).mean(axis=(1, 3))

    seen, share = sampled(_samples(rows, _FINE)[:, None], _samples(cols, _FINE)[None, :], _radiance, _FINE)
    part = image[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]
    part[:] = part * (1 - share) + seen
    if ball.kind == "matte":
        return
    normals, views = _visible_normals(
        ball, cols[None, :].astype(float), rows[:, None].astype(float), middle, focal
    )
    margin = int(4 * room.blur) + 1
    for lamp in lamps:
        near = _lamp_is_near(normals, views, centre, ball, lamp[1], room)
        if not (near.any() and lamp[0] > 0):
            continue
        y0, y1, x0, x1 = _bounds(near)
        spot_rows = np.arange(max(rows[y0] - margin, 0), min(rows[y1 - 1] + margin + 1, height))
        spot_cols = np.arange(max(cols[x0] - margin, 0), min(cols[x1 - 1] + margin + 1, width))

        def face(
            ball: Ball, n: FloatArray, v: FloatArray, points: FloatArray, *_: Any, lamp: Any = lamp
        ) -> FloatArray:
            return _lamp_radiance(ball, n, v, points, lamp, room)

        light, _ = sampled(
            _samples(spot_rows, _FINEST)[:, None], _samples(spot_cols, _FINEST)[None, :], face, 1
        )
        if room.blur:
            light = cv2.GaussianBlur(light, (0, 0), room.blur * _FINEST, borderType=cv2.BORDER_CONSTANT)
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


def _lamp_is_near(
    normals: FloatArray, views: FloatArray, centre: FloatArray, ball: Ball, lamp: _Lamp, room: Studio
) -> NDArray[np.bool_]:
    """Pixels in which some of the lamp's reflection may lie: a pixel further than its own middle tells."""
    facing = (normals * views).sum(axis=-1, keepdims=True)
    towards, _ = lamp.seen_from(centre + ball.radius * np.nan_to_num(normals))
    cosine = np.clip(((2 * facing * normals - views) * towards).sum(axis=-1), -1, 1)
    per_pixel = 2.0 / (ball.radius * np.maximum(facing[..., 0], 0.05))
    reach = np.deg2rad(max(0.5 * room.lamp_width, 5.0 * room.haze)) + per_pixel
    with np.errstate(invalid="ignore"):
        return np.asarray(np.arccos(cosine) < reach)


def _visible_normals(
    ball: Ball, x: FloatArray, y: FloatArray, middle: tuple[float, float], focal: float | None
) -> tuple[FloatArray, FloatArray]:
    """Normals at the ball's visible points (NaN beside it), and unit vectors from there to the camera."""
    if focal is None:
        nx, ny = (x - ball.x) / ball.radius, (ball.y - y) / ball.radius
        nx, ny = np.broadcast_arrays(nx, ny)
        square = 1 - nx**2 - ny**2
        nz = np.sqrt(np.where(square >= 0, square, np.nan))
        return np.stack([nx, ny, nz], axis=-1), np.broadcast_to([0.0, 0.0, 1.0], (*nx.shape, 3))
    # A sphere of this radius whose centre is seen at (x, y), at the distance where a pixel is a pixel.
    centre = np.array([ball.x - middle[0], middle[1] - ball.y, -focal])
    rays = np.stack(np.broadcast_arrays(x - middle[0], middle[1] - y, np.array(-focal)), axis=-1)
    rays = rays / np.linalg.norm(rays, axis=-1, keepdims=True)
    along = rays @ centre
    square = along**2 - (centre @ centre - ball.radius**2)
    distance = along - np.sqrt(np.where(square >= 0, square, np.nan))
    return np.asarray((rays * distance[..., None] - centre) / ball.radius), -rays


def _radiance(
    ball: Ball,
    normals: FloatArray,
    views: FloatArray,
    points: FloatArray,
    lamps: Sequence[tuple[float, _Lamp]],
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
        side, up = _unit(np.cross(_WINDOW, [0, 1, 0])), np.array([0.0, 1.0, 0.0])
        inside = (np.abs(mirrored @ side) < 0.12) & (np.abs((mirrored - _WINDOW) @ up) < 0.2)
        inside &= mirrored @ _WINDOW > 0
        result += _mirror_share(ball.kind, facing) * np.where(inside, room.window, 0.0)
    return result


def _lamp_radiance(
    ball: Ball,
    normals: FloatArray,
    views: FloatArray,
    points: FloatArray,
    lamp: tuple[float, _Lamp],
    room: Studio,
) -> FloatArray:
    """What the points of a shiny ball mirror of one lamp's face."""
    strength, source = lamp
    facing = np.clip((normals * views).sum(axis=-1), 0, 1)
    towards, _ = source.seen_from(points)
    cosine = ((2 * facing[:, None] * normals - views) * towards).sum(axis=-1)
    return np.asarray(_mirror_share(ball.kind, facing) * room.radiance * strength * _lamp_face(cosine, room))


def _lamp_face(cosine: FloatArray, room: Studio) -> FloatArray:
    """The lamp's disc as a mirror shows it; hazy ones spread the same light over a lobe."""
    if not room.haze:
        return np.asarray((cosine > np.cos(np.deg2rad(0.5 * room.lamp_width))).astype(np.float64))
    away = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
    return np.asarray(0.125 * (room.lamp_width / room.haze) ** 2 * np.exp(-0.5 * (away / room.haze) ** 2))


def _mirror_share(kind: str, facing: FloatArray) -> FloatArray:
    if kind == "mirror":
        return np.asarray(0.7 + 0.3 * (1 - facing) ** 5)
    return np.asarray(0.04 + 0.96 * (1 - facing) ** 5)  # Schlick's form of Fresnel's law
