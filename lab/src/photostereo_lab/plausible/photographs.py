"""Photographs of a subject under lamps: shading, gloss, cast shadows, room light, and what the camera makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray, Float32
from photostereo_lab.plausible.lamps import Lamps
from photostereo_lab.plausible.subjects import Subject
from photostereo_lab.scenes.brdf import Ggx, OrenNayar
from photostereo_lab.scenes.jets import Array
from photostereo_lab.scenes.shadows import cast_shadow

Rng = np.random.Generator


@dataclass(frozen=True)
class Camera:
    """What lies between the light and the numbers in a file."""

    exposure: float = (
        0.9  #: the value of the 99.5th percentile of all photographs; above 1 they are clipped
    )
    noise: float = 0.004  #: standard deviation of the noise at full intensity, as a share of it
    vignetting: float = 0.0  #: light lost in the corners, as a share
    room: float = 0.0  #: light of the room, as a share of the lamps' mean light
    color: bool = True
    bits: int = 8
    jpeg: int | None = None  #: quality of the JPEG files; None for PNG

    @property
    def suffix(self) -> str:
        """Suffix of the files."""
        return ".png" if self.jpeg is None else ".jpg"

    @property
    def has_curve(self) -> bool:
        """Whether the files have the sRGB curve, as JPEG files have."""
        return self.jpeg is not None


@dataclass(frozen=True, eq=False)
class Ball:
    """A ball beside the subject, seen from above."""

    finish: str  #: ``"chrome"``, ``"black"`` or ``"matte"``
    x: float  #: column of the center
    y: float  #: row of the center
    radius: float  #: in pixels

    def disc(self, size: tuple[int, int]) -> BoolArray:
        """(H, W), True on the ball."""
        rows, columns = np.mgrid[: size[0], : size[1]]
        return np.asarray(np.hypot(rows - self.y, columns - self.x) < self.radius)


#: Samples along a side of a pixel of a ball.
FINE = 3
#: Half the angle under which a lamp is seen, in radians.
LAMP = 0.06
#: How much brighter than white the reflection of a lamp is.
GLARE = 40.0


def photograph(
    subject: Subject, lamps: Lamps, camera: Camera, balls: tuple[Ball, ...], rng: Rng
) -> list[Float32]:
    """Photograph a subject under each lamp.

    Parameters
    ----------
    subject : Subject
        What is photographed.
    lamps : Lamps
        One photograph per lamp.
    camera : Camera
        Exposure, noise and file format.
    balls : tuple of Ball
        Balls beside the subject.
    rng : Generator
        Source of the noise.

    Returns
    -------
    list of (H, W, 3) float32 arrays
        Linear intensities; 1 is white. Values above 1 are clipped when they are stored.
    """
    size = subject.height.shape
    normals = subject.normals
    pictures = []
    for direction, strength in zip(lamps.directions, lamps.strengths, strict=True):
        toward, fall_off = _at_each_pixel(direction, lamps.distance, size)
        picture = _shaded(subject, normals, toward)
        picture *= (strength * fall_off * _lit(subject, direction))[..., None]
        pictures.append(picture)
    mean = float(np.mean([picture.mean() for picture in pictures]))
    room = _room_light(subject, normals, camera.room * mean)
    vignette = _vignette(size, camera.vignetting)[..., None]
    for number, picture in enumerate(pictures):
        picture += room
        for ball in balls:
            _paint(picture, ball, lamps.directions[number], lamps.strengths[number])
        picture *= vignette
    white = float(np.percentile(np.stack([picture[::4, ::4] for picture in pictures]), 99.5))
    return [_exposed(picture, camera, white, rng) for picture in pictures]


def stored(picture: Float32, camera: Camera) -> NDArray[Any]:
    """The numbers in the file: RGB, with the sRGB curve for JPEG, rounded to the camera's bits."""
    values = np.clip(picture, 0.0, 1.0).astype(np.float64)
    if not camera.color:
        values = values @ np.array([0.2126, 0.7152, 0.0722])
    if camera.has_curve:
        low = 12.92 * values
        values = np.where(values <= 0.0031308, low, 1.055 * values ** (1 / 2.4) - 0.055)
    top = 2**camera.bits - 1
    kind = np.uint8 if camera.bits == 8 else np.uint16
    return np.asarray(np.rint(top * values), kind)


def _at_each_pixel(
    direction: Array, distance: float | None, size: tuple[int, ...]
) -> tuple[Array, Array]:
    """Unit direction to the lamp and its fall-off, (H, W, 3) and (H, W), or one for all pixels."""
    if distance is None:
        return direction, np.ones(1)
    height, width = size
    rows, columns = np.mgrid[:height, :width]
    across = columns - 0.5 * (width - 1)
    up = 0.5 * (height - 1) - rows
    lamp = distance * width * direction
    toward = lamp - np.stack([across, up, np.zeros(size)], axis=-1)
    far = np.linalg.norm(toward, axis=-1)
    return toward / far[..., None], (distance * width / far) ** 2


def _shaded(subject: Subject, normals: Array, toward: Array) -> Array:
    """Intensity without shadows: a matte base under a coat."""
    nl = np.maximum((normals * toward).sum(axis=-1), 0.0)
    nv = np.maximum(normals[..., 2], 1e-6)
    lv = np.broadcast_to(toward[..., 2], nl.shape)
    base, _ = OrenNayar(subject.facets).terms(nl, nv, lv)
    picture = subject.color * (base * nl)[..., None]
    if subject.gloss.any():
        _, coat = Ggx(subject.roughness, reflectance=1.0).terms(np.maximum(nl, 1e-6), nv, lv)
        picture += (subject.gloss * coat * nl)[..., None]
    return np.asarray(picture)


def _lit(subject: Subject, direction: Array) -> Array:
    """1 where the lamp reaches, 0 in cast shadow, with a border as soft as a pixel."""
    everywhere = np.ones(subject.height.shape, bool)
    shadow = cast_shadow(subject.height, everywhere, direction)
    return np.asarray(1.0 - cv2.GaussianBlur(shadow.astype(np.float64), (0, 0), 0.7))


def _room_light(subject: Subject, normals: Array, level: float) -> Array:
    """Light from everywhere above, the same in all photographs."""
    sky = 0.5 + 0.5 * normals[..., 2]
    mean = float((subject.color * sky[..., None]).mean())
    light: Array = subject.color * (sky * level / max(mean, 1e-9))[..., None]
    return light


def _vignette(size: tuple[int, ...], loss: float) -> Array:
    rows, columns = np.mgrid[: size[0], : size[1]]
    across = (columns - 0.5 * size[1]) / (0.5 * size[1])
    up = (rows - 0.5 * size[0]) / (0.5 * size[0])
    return np.asarray(1.0 - loss * 0.5 * (across**2 + up**2))


def _exposed(picture: Array, camera: Camera, white: float, rng: Rng) -> Float32:
    values = picture * (camera.exposure / max(white, 1e-9))
    noise = camera.noise * np.sqrt(np.clip(values, 0.01, None))
    noisy: Float32 = (values + noise * rng.standard_normal(values.shape)).astype(np.float32)
    return noisy


def _paint(picture: Array, ball: Ball, direction: Array, strength: float) -> None:
    """Paint a ball over a photograph, sampled several times in each pixel."""
    height, width = picture.shape[:2]
    reach = ball.radius + 2
    rows = np.arange(max(int(ball.y - reach), 0), min(int(ball.y + reach) + 1, height))
    columns = np.arange(max(int(ball.x - reach), 0), min(int(ball.x + reach) + 1, width))
    if not (rows.size and columns.size):
        return
    steps = (np.arange(FINE) + 0.5) / FINE - 0.5
    y = (ball.y - (rows[:, None] + steps).ravel())[:, None] / ball.radius
    x = ((columns[:, None] + steps).ravel() - ball.x)[None, :] / ball.radius
    inside = x**2 + y**2 < 1
    z = np.sqrt(np.maximum(1 - x**2 - y**2, 0.0))
    normals = np.stack(np.broadcast_arrays(x, y, z), axis=-1)
    values = np.where(inside, strength * _seen_on_ball(ball.finish, normals, direction), 0.0)
    shape = (rows.size, FINE, columns.size, FINE)
    light = values.reshape(shape).mean(axis=(1, 3))
    cover = inside.reshape(shape).mean(axis=(1, 3))
    part = picture[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    part[:] = part * (1 - cover[..., None]) + light[..., None]


def _seen_on_ball(finish: str, normals: Array, direction: Array) -> Array:
    """Radiance of a ball: its shading, or the room and the lamp that it mirrors."""
    nl = normals @ direction
    if finish == "matte":
        return np.asarray(0.6 * np.maximum(nl, 0.0))
    mirrored = 2 * normals[..., 2:] * normals - np.array([0.0, 0.0, 1.0])
    lamp = mirrored @ direction > np.cos(LAMP)
    ceiling = 0.25 * (mirrored[..., 1] > 0.3) + 0.06
    share = np.full(lamp.shape, 0.7)
    if finish == "black":
        share = 0.04 + 0.96 * (1 - np.clip(normals[..., 2], 0, 1)) ** 5
    return np.asarray(share * (ceiling + GLARE * lamp))
