"""An object on a textured table with a black ball, as a phone photographs it: cast shadows, sensor noise, sRGB, JPEG."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.capture import Capture
from photostereo_lab.scenes import dome_lights, render_scene

Float32 = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class PhoneCapture:
    """Photographs and their truth.

    Attributes
    ----------
    files : (d,) bytes of JPEG files
    images : (d, H, W, 3) linear, as decoded from them
    lights : (d, 3) unit
    mask : (H, W) the object
    normals : (H, W, 3) true, zero outside the mask
    ball : (H, W) the ball, with a margin
    """

    files: tuple[bytes, ...]
    images: Float32
    lights: NDArray[np.float64]
    mask: NDArray[np.bool_]
    normals: Float32
    ball: NDArray[np.bool_]


def photograph_table(
    scene: Capture,
    *,
    frame: tuple[int, int] = (300, 450),
    level: float = 0.4,
    contrast: float = 0.6,
    quality: int = 92,
    gains: NDArray[np.float64] | None = None,
    ambient: float = 0.0,
    room_only: bool = False,
    rng: int = 0,
) -> PhoneCapture:
    """Put an object of twice the resolution on a table.

    Parameters
    ----------
    scene : in color, with heights, square, its side at most twice the frame's height
    level, contrast : brightness of the table and contrast of its texture
    gains : (d,) exposure of each photograph
    ambient : light of the room, as a share of a typical photograph
    room_only : with the lights off
    """
    random = np.random.default_rng(rng)
    (height, width), side = frame, scene.frame[0] // 2
    assert scene.truth is not None and scene.truth_depth is not None
    cover, top, left = _half(scene.mask.astype(np.float32)), (height - side) // 2, height // 12
    box = (slice(top, top + side), slice(left, left + side))
    alpha, tall, normals = (np.zeros((*frame, *rest), np.float32) for rest in ((), (), (3,)))
    heights = np.nan_to_num(scene.truth_depth - np.nanmin(scene.truth_depth)) * scene.mask
    alpha[box], tall[box], normals[box] = (
        cover,
        0.5 * _half(heights),
        _half(np.nan_to_num(scene.truth)),
    )
    rows, columns = np.mgrid[:height, :width].astype(np.float32)
    radius, x, y = 0.09 * height, 0.5 * (left + side + width), 0.45 * height
    distance = np.hypot(columns - x, rows - y)
    bulge = np.sqrt(np.maximum(1 - (distance / radius) ** 2, 0))
    facing = np.stack([(columns - x) / radius, (y - rows) / radius, bulge], axis=-1)
    ball = np.clip(radius - distance + 0.5, 0, 1)[..., None]
    tall = np.maximum(tall, np.where(distance < radius, radius * (1 + bulge), 0)).astype(np.float32)

    def cloud(size: float) -> Float32:
        soft = cv2.GaussianBlur(random.random(frame).astype(np.float32), (0, 0), size)
        return np.asarray((soft - soft.min()) / np.ptp(soft))

    grain = 1 - contrast + contrast * (0.6 * cloud(1.5) + 0.4 * cloud(height / 30))
    wood = 1 + 0.25 * contrast * np.sin(rows / (height / 120) + 6 * cloud(height / 18))
    table = (level * grain * wood)[..., None] * random.uniform(0.6, 1, 3)
    bright = 0.8 / float(np.percentile(scene.images, 99)) * random.uniform(0.6, 1, 3)
    linear = []
    for image, light in zip(scene.images, scene.lights.directions, strict=True):
        falls = 1 + 0.3 * (light[0] * (columns / width - 0.5) - light[1] * (rows / height - 0.5))
        seen = table * (light[2] * _lit(tall, light) * falls)[..., None]
        seen[box] += cover[..., None] * (
            bright * _half(image * scene.mask[..., None]) / np.maximum(cover, 1e-3)[..., None]
            - seen[box]
        )
        half = light + np.array([0.0, 0.0, 1.0])
        glint = 3 * np.clip(facing @ (half / np.linalg.norm(half)), 0, 1) ** 900
        seen += ball * ((glint + 0.02 + 0.03 * (1 - bulge) ** 3)[..., None] - seen)
        linear.append(cv2.GaussianBlur(seen.astype(np.float32), (0, 0), 0.6))
    room = ambient * np.mean(linear, axis=0)
    files, images = [], []
    for seen, gain in zip(linear, np.ones(len(linear)) if gains is None else gains, strict=True):
        seen = gain * (room if room_only else seen + room)
        seen = seen + random.normal(0, 1, seen.shape) * np.sqrt(
            0.003**2 + 0.01**2 * np.maximum(seen, 0)
        )
        curved = np.rint(255 * _srgb(np.clip(seen, 0, 1))).astype(np.uint8)[..., ::-1]
        packed = cv2.imencode(".jpg", curved, [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
        files.append(packed.tobytes())
        images.append(_linear(cv2.imdecode(packed, cv2.IMREAD_COLOR)[..., ::-1] / np.float32(255)))
    mask = alpha > 0.5
    normals /= np.maximum(np.linalg.norm(normals, axis=-1, keepdims=True), 1e-6)
    return PhoneCapture(
        tuple(files),
        np.stack(images),
        scene.lights.directions,
        mask,
        normals * mask[..., None],
        distance < 1.04 * radius,
    )


def phone_scene(
    shape: str, *, size: int = 480, count: int = 14, rng: int = 0, **looks: str
) -> Capture:
    """A colored object for :func:`photograph_table`."""
    return render_scene(
        shape, size=size, lights=dome_lights(count, max_angle=58), color=True, rng=rng, **looks
    )


def _half(values: NDArray[np.floating]) -> Float32:
    small = cv2.resize(
        np.ascontiguousarray(values, np.float32), None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA
    )
    return np.asarray(small)


def _lit(tall: Float32, light: NDArray[np.float64], steps: int = 40) -> Float32:
    """Where the table is not in the shadow of what is this tall, with a soft edge."""
    lit = np.ones_like(tall)
    for height in np.linspace(1, float(tall.max()), steps):
        shift = -light[:2] / light[2] * height
        move = np.array([[1, 0, shift[0]], [0, 1, -shift[1]]], np.float32)
        shadow = cv2.warpAffine((tall >= height).astype(np.float32), move, tall.shape[::-1])
        lit = np.minimum(lit, 1 - shadow)
    return np.asarray(0.03 + 0.97 * cv2.GaussianBlur(lit, (0, 0), 1.2))


def _srgb(values: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.where(
        values <= 0.0031308, 12.92 * values, 1.055 * np.maximum(values, 1e-9) ** (1 / 2.4) - 0.055
    )


def _linear(values: Float32) -> Float32:
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4).astype(
        np.float32
    )
