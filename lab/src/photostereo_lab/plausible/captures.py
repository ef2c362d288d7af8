"""Draw a whole capture from a seed, and write it as a person would have it on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from photostereo.core.conventions import BoolArray, Float32
from photostereo_lab.plausible.lamps import Lamps, place_lamps
from photostereo_lab.plausible.photographs import Ball, Camera, photograph, stored
from photostereo_lab.plausible.subjects import Subject, make_subject, subject_kinds
from photostereo_lab.scenes.jets import Array

Rng = np.random.Generator

#: Numbers of photographs, from the least that can be solved to a dome.
COUNTS = (3, 4, 5, 6, 8, 8, 10, 12, 12, 16, 20, 24, 36, 48, 80, 120)
#: Width over height of the frame, from a square to a panorama.
ASPECTS = (1.0, 1.33, 1.5, 0.75, 2.5)
#: How the lights are described: a light file of one kind, a ball, or nothing.
DESCRIPTIONS = ("csv", "lp", "csv and ball", "ball in the frame", "folder of a ball", "nothing")
SHARES = (0.35, 0.15, 0.1, 0.15, 0.1, 0.15)
#: Names of folders that hold photographs of a ball.
BALL_FOLDERS = ("ball", "chrome", "Kugel", "sphere1")


@dataclass(frozen=True, eq=False)
class Plausible:
    """A capture as somebody could have made it."""

    seed: int
    subject: Subject
    lamps: Lamps
    camera: Camera
    description: str  #: how the lights are described, one of :data:`DESCRIPTIONS`
    balls: tuple[Ball, ...]
    ball_folder: str | None

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the photographs."""
        height, width = self.subject.height.shape
        return height, width

    @property
    def has_ball(self) -> bool:
        """Whether a ball was photographed, with the subject or alone."""
        return bool(self.balls) or self.ball_folder is not None

    @property
    def mask(self) -> BoolArray:
        """The ground truth of the mask: the subject without the balls that lie on it."""
        mask = self.subject.mask.copy()
        for ball in self.balls:
            mask &= ~ball.disc(self.size)
        return mask

    @property
    def facts(self) -> dict[str, Any]:
        """What the capture is, for a table."""
        return {
            "seed": self.seed,
            "kind": self.subject.kind,
            "fills": self.subject.fills_the_frame,
            "megapixels": round(self.size[0] * self.size[1] / 1e6, 2),
            "photographs": len(self.lamps),
            "lamps": self.lamps.arrangement,
            "distance": self.lamps.distance,
            "described by": self.description,
            "room": round(self.camera.room, 2),
        }

    def pictures(self) -> list[Float32]:
        """Render the photographs, linear, in the order of the lamps."""
        rng = np.random.default_rng([self.seed, 1])
        return photograph(self.subject, self.lamps, self.camera, self.balls, rng)


def draw_capture(seed: int, *, least: float = 0.02, most: float = 0.15) -> Plausible:
    """Draw a capture.

    Parameters
    ----------
    seed : int
        Determines everything.
    least, most : float
        Size of the photographs in megapixels; drawn evenly on a logarithmic scale.

    Returns
    -------
    Plausible

    Examples
    --------
    >>> capture = draw_capture(3, most=0.02)
    >>> capture.subject.kind in subject_kinds()
    True
    """
    rng = np.random.default_rng([seed, 0])
    size = _draw_size(rng, least, most)
    kind = str(rng.choice(subject_kinds()))
    subject = make_subject(kind, size, rng)
    lamps = place_lamps(int(rng.choice(COUNTS)), rng)
    description = str(rng.choice(DESCRIPTIONS, p=SHARES))
    balls: tuple[Ball, ...] = ()
    if description in ("csv and ball", "ball in the frame"):
        balls = (_draw_ball(size, rng, may_be_cut=rng.random() < 0.15),)
    folder = None
    if description == "folder of a ball":
        folder = str(rng.choice(BALL_FOLDERS))
    return Plausible(
        seed=seed,
        subject=subject,
        lamps=lamps,
        camera=_draw_camera(rng),
        description=description,
        balls=balls,
        ball_folder=folder,
    )


def write_capture(capture: Plausible, folder: Path) -> None:
    """Write the photographs and the light file or the photographs of the ball into a new folder."""
    folder.mkdir(parents=True)
    names = [
        f"IMG_{number:04d}{capture.camera.suffix}" for number in range(1, len(capture.lamps) + 1)
    ]
    _write_pictures(folder, names, capture.pictures(), capture.camera)
    rng = np.random.default_rng([capture.seed, 2])
    measured = _measured(capture.lamps.directions, rng)
    if capture.description.startswith("csv"):
        _write_csv(folder / "lights.csv", names, measured)
    if capture.description == "lp":
        _write_lp(folder / "lights.lp", names, measured)
    if capture.ball_folder is not None:
        beside = folder / capture.ball_folder
        beside.mkdir()
        pictures = _pictures_of_ball(capture)
        _write_pictures(beside, names, pictures, capture.camera)


def _draw_size(rng: Rng, least: float, most: float) -> tuple[int, int]:
    area = 1e6 * np.exp(rng.uniform(np.log(least), np.log(most)))
    aspect = float(rng.choice(ASPECTS))
    height = int(np.sqrt(area / aspect))
    return height, int(height * aspect)


def _draw_camera(rng: Rng) -> Camera:
    jpeg = None
    if rng.random() < 0.55:
        jpeg = int(rng.choice([30, 55, 75, 85, 95]))
    bits = 8
    if jpeg is None and rng.random() < 0.6:
        bits = 16
    room = 0.0
    if rng.random() < 0.3:
        room = float(rng.uniform(0.02, 0.3))
    vignetting = 0.0
    if rng.random() < 0.3:
        vignetting = float(rng.uniform(0.05, 0.3))
    return Camera(
        exposure=float(rng.choice([0.08, 0.4, 0.8, 0.95, 1.15], p=[0.05, 0.2, 0.4, 0.25, 0.1])),
        noise=float(rng.choice([0.002, 0.006, 0.02])),
        vignetting=vignetting,
        room=room,
        color=bool(rng.random() < 0.75),
        bits=bits,
        jpeg=jpeg,
    )


def _draw_ball(size: tuple[int, int], rng: Rng, *, may_be_cut: bool) -> Ball:
    """A ball in a corner, as one puts it; cut by the edge if it may."""
    radius = max(min(size) * float(rng.uniform(0.06, 0.1)), 6.0)
    inset = radius + 2 if not may_be_cut else 0.6 * radius
    x = float(rng.choice([inset, size[1] - 1 - inset]))
    y = float(rng.choice([inset, size[0] - 1 - inset]))
    return Ball(str(rng.choice(["chrome", "black", "matte"])), x, y, radius)


def _pictures_of_ball(capture: Plausible) -> list[Float32]:
    """The ball alone, in the middle of the frame, under the same lamps."""
    size = capture.size
    ground = Subject(
        kind="dark cloth",
        height=np.zeros(size),
        mask=np.ones(size, bool),
        color=np.full((*size, 3), 0.02),
        gloss=np.zeros(size),
    )
    ball = Ball("chrome", 0.5 * size[1], 0.5 * size[0], 0.3 * min(size))
    rng = np.random.default_rng([capture.seed, 3])
    return photograph(ground, capture.lamps, capture.camera, (ball,), rng)


def _measured(directions: Array, rng: Rng) -> Array:
    """Directions as somebody has measured them, to about a degree."""
    moved = directions + np.deg2rad(0.7) * rng.standard_normal(directions.shape)
    moved[:, 2] = np.maximum(moved[:, 2], 0.02)
    return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True))


def _write_pictures(
    folder: Path, names: Sequence[str], pictures: Sequence[Float32], camera: Camera
) -> None:
    options: list[int] = []
    if camera.jpeg is not None:
        options = [cv2.IMWRITE_JPEG_QUALITY, camera.jpeg]
    for name, picture in zip(names, pictures, strict=True):
        values = stored(picture, camera)
        if values.ndim == 3:
            values = values[..., ::-1]
        encoded = cv2.imencode(camera.suffix, np.ascontiguousarray(values), options)[1]
        (folder / name).write_bytes(encoded.tobytes())


def _write_csv(file: Path, names: Sequence[str], directions: Array) -> None:
    rows = [
        f"{name},{x:.5f},{y:.5f},{z:.5f}" for name, (x, y, z) in zip(names, directions, strict=True)
    ]
    file.write_text("\n".join(["file,x,y,z", *rows]) + "\n")


def _write_lp(file: Path, names: Sequence[str], directions: Array) -> None:
    rows = [
        f"{name} {x:.5f} {y:.5f} {z:.5f}" for name, (x, y, z) in zip(names, directions, strict=True)
    ]
    file.write_text("\n".join([str(len(names)), *rows]) + "\n")
