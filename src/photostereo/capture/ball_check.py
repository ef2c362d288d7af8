"""A light file beside a ball that the photographs show: do they agree about where the lights were?

The ball is searched in small copies. It counts only if it lies beside the object, and if its directions explain the
object's shading as well as those of the file do: what merely glitters does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from photostereo.capture.lighting import focal_of
from photostereo.capture.opening import Opened
from photostereo.capture.options import ReadOptions
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.findings import Finding, listed
from photostereo.lights.ball.geometry import Camera
from photostereo.lights.ball.search import ball_at, scene_misfit
from photostereo.lights.geometry import angles_between
from photostereo.lights.lights import Lights

#: Beside an object on ground darker than this share of it nothing is searched.
BLACK = 0.02
#: A ball beside the object lies outside its mask but for this share, and has at most this share of the frame.
INSIDE, LARGEST = 0.1, 0.15
#: The ball's directions may leave this many times what the file's leave of the object unexplained. Those of something
#: round that is no ball leave twice as much and more.
AS_GOOD = 1.3
#: Degrees to which a light file is taken to be accurate that does not say, and the factor beyond which it is doubted:
#: measured files are within 3° of a ball, files with other axes or a turned rig differ by 15° and more.
USUAL, BEYOND = 2.0, 3.0
#: A single light is doubted if it differs this many times more than the others.
UNUSUAL = 4.0
#: Focal lengths, in widths of the frame, that are tried if it is not known: a ball at the side is seen under an angle.
FOCALS = (0.8, 1.2, 2.0)
#: Lights that are named.
NAMED = 4


@dataclass(frozen=True, eq=False)
class BallCheck:
    """Lights of a file beside those of a ball."""

    apart: FloatArray  #: (d,) degrees between both; NaN if the ball shows no highlight
    limit: FloatArray  #: (d,) degrees up to which they agree, from what both claim
    files: tuple[str, ...]  #: names of the photographs

    @property
    def usual(self) -> float:
        """Median difference in degrees."""
        return float(np.nanmedian(self.apart))

    @property
    def suspects(self) -> tuple[int, ...]:
        """Lights that differ much more than the others."""
        unlike = self.apart > np.maximum(self.limit, UNUSUAL * self.usual)
        return tuple(np.flatnonzero(unlike).tolist())

    @property
    def agrees(self) -> bool:
        """Whether most lights do."""
        return self.usual <= float(np.nanmedian(self.limit))

    def errors(self, claimed: FloatArray) -> FloatArray:
        """Expected error of each light of a file that says nothing of it (NaN): as far as the ball confirms it."""
        known = np.where(np.isin(np.arange(len(self.apart)), self.suspects), self.apart, self.usual)
        return np.where(np.isfinite(claimed), claimed, known)

    @property
    def finding(self) -> Finding:
        """What it means."""
        if self.agrees and not self.suspects:
            return Finding("ball-confirms-lights", degrees=max(self.usual, 0.1))
        return Finding(
            "ball-doubts-some-lights" if self.agrees else "ball-doubts-lights",
            "problem",
            effect=float(np.nanmean(self.apart)),
            is_mistake=True,
            degrees=self.usual,
            names=listed((f"{self.files[k]} by {self.apart[k]:.0f}°" for k in self.suspects), NAMED),
        )


def check_lights(
    opened: Opened, lights: Lights, options: ReadOptions, mask: BoolArray, control: Control = SILENT
) -> BallCheck | None:
    """Compare lights of a file with a ball in the photographs; None if there is none.

    Positions and mask are in pixels of the whole frame.
    """
    found, small, frame = opened.found, opened.small, opened.small.shape[1:]
    inside = cv2.resize(mask.astype(np.uint8), frame[::-1], interpolation=cv2.INTER_NEAREST) > 0
    bright = small.max(axis=0)
    around = cv2.dilate(inside.astype(np.uint8), np.ones((7, 7), np.uint8)) == 0
    if not inside.all() and (
        not around.any() or np.percentile(bright[around], 99) < BLACK * np.percentile(bright[inside], 90)
    ):
        return None
    control.stage("lights")
    factor = frame[0] / mask.shape[0]
    focal = focal_of(found, found.files, mask.shape, options)
    focals = [share * max(frame) for share in FOCALS] if focal is None else [focal * factor]
    cameras: list[Camera | None] = [Camera.of_frame(f, (int(frame[0]), int(frame[1]))) for f in focals]
    if focal is None:
        cameras.append(None)
    claimed = np.where(np.isfinite(lights.expected_error), lights.expected_error, USUAL)
    for ball in opened.balls(control):
        disc = ball.circle.inside(frame)
        beside = disc.mean() < LARGEST if inside.all() else inside[disc].mean() < INSIDE
        witness = inside & ~ball.circle.inside(frame, share=1.1)
        its, own = (scene_misfit(small, one, witness) for one in (ball.directions, lights.directions))
        if not beside or its > AS_GOOD * own:
            continue
        given = lights.directions
        if lights.positions is not None and lights.position_unit == "pixels":  # as they are where the ball is
            x, y = ball.circle.x / factor - 0.5 * mask.shape[1], 0.5 * mask.shape[0] - ball.circle.y / factor
            given = np.asarray(lights.at([[x, y]])[0])
        checks = [
            BallCheck(
                angles_between(seen.directions, given),
                BEYOND * np.hypot(claimed, np.nan_to_num(seen.residual)),
                tuple(file.name for file in found.files),
            )
            for camera in cameras
            if (seen := ball_at(small, ball.circle, camera=camera, certain=True)) is not None
        ]
        return min(checks, key=lambda check: check.usual)
    return None
