"""Check the lights of a file against a ball in the photographs."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from photostereo.capture.examine import Opened
from photostereo.capture.options import ReadOptions
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, Float32, FloatArray
from photostereo.core.findings import Finding
from photostereo.core.wording import listed
from photostereo.lights.ball.geometry import Camera
from photostereo.lights.ball.search import FoundBall, ball_at, scene_misfit
from photostereo.lights.geometry import angles_between
from photostereo.lights.lights import Lights

#: Do not search for a ball if the background is darker than this share of the object's brightness.
BLACK = 0.02
#: Largest share of a ball that may lie inside the mask.
INSIDE = 0.1
#: Largest share of the frame that a ball covers if the mask is the full frame.
LARGEST = 0.15
#: The ball's directions may leave at most this many times as much of the object's shading unexplained as the file's.
#: Round things that are not balls leave at least twice as much.
AS_GOOD = 1.3
#: Assumed accuracy, in degrees, of a light file that does not state one: measured files are within 3° of a ball.
USUAL = 2.0
#: Times that accuracy beyond which a file is doubted: files with other axes or a rotated rig differ by at least 15°.
BEYOND = 3.0
#: A single light is doubted if its difference is this many times that of the others.
UNUSUAL = 4.0
#: Focal lengths, in frame widths, to try if it is unknown: a ball at the side is seen at an angle.
FOCALS = (0.8, 1.2, 2.0)
#: Largest number of lights to name in a message.
NAMED = 4


@dataclass(frozen=True, eq=False)
class BallCheck:
    """Lights from a file compared with those from a ball."""

    apart: (
        FloatArray  #: (d,) degrees between the two directions; NaN if the ball shows no highlight
    )
    limit: FloatArray  #: (d,) largest difference in agreement, in degrees, from the errors stated by both
    files: tuple[str, ...]  #: names of the photographs

    @property
    def usual(self) -> float:
        """Median difference in degrees."""
        return float(np.nanmedian(self.apart))

    @property
    def suspects(self) -> tuple[int, ...]:
        """Lights that differ much more than the rest."""
        unlike = self.apart > np.maximum(self.limit, UNUSUAL * self.usual)
        return tuple(np.flatnonzero(unlike).tolist())

    @property
    def agrees(self) -> bool:
        """Whether most lights agree."""
        return self.usual <= float(np.nanmedian(self.limit))

    def errors(self, claimed: FloatArray) -> FloatArray:
        """Fill in missing (NaN) expected errors of the file's lights from the differences from the ball."""
        known = np.where(np.isin(np.arange(len(self.apart)), self.suspects), self.apart, self.usual)
        return np.where(np.isfinite(claimed), claimed, known)

    @property
    def finding(self) -> Finding:
        """The result as a finding."""
        if self.agrees and not self.suspects:
            return Finding("ball-confirms-lights", degrees=max(self.usual, 0.1))
        return Finding(
            "ball-doubts-some-lights" if self.agrees else "ball-doubts-lights",
            "problem",
            effect=float(np.nanmean(self.apart)),
            degrees=self.usual,
            names=listed(
                (f"{self.files[k]} by {self.apart[k]:.0f}°" for k in self.suspects), NAMED
            ),
        )


def check_lights(
    opened: Opened, lights: Lights, options: ReadOptions, mask: BoolArray, control: Control = SILENT
) -> BallCheck | None:
    """Compare the lights of a file with a ball in the photographs; return None if there is no ball.

    The search uses small copies. A ball counts only if it lies beside the object and its directions explain the object's
    shading as well as those of the file do; this rules out other shiny things. Positions and mask are in pixels of the
    whole frame.
    """
    small = opened.small
    frame = (int(small.shape[1]), int(small.shape[2]))
    inside = np.asarray(
        cv2.resize(mask.astype(np.uint8), frame[::-1], interpolation=cv2.INTER_NEAREST) > 0
    )
    if _is_on_black(small, inside):
        return None
    control.stage("lights")
    factor = frame[0] / mask.shape[0]
    cameras = _cameras(opened.source.focal(options, mask.shape), factor, frame)
    claimed = np.where(np.isfinite(lights.expected_error), lights.expected_error, USUAL)
    files = tuple(file.name for file in opened.source.files)
    for ball in opened.balls(None if inside.all() else inside, control):
        if not _is_beside(ball, inside) or not _explains_object(ball, small, inside, lights):
            continue
        given = lights.directions
        if (
            lights.positions is not None and lights.position_unit == "pixels"
        ):  # directions at the ball
            x = ball.circle.x / factor - 0.5 * mask.shape[1]
            y = 0.5 * mask.shape[0] - ball.circle.y / factor
            given = np.asarray(lights.at([[x, y]])[0])
        checks = []
        for camera in cameras:
            seen = ball_at(small, ball.circle, camera=camera, certain=True)
            if seen is not None:
                limit = BEYOND * np.hypot(claimed, np.nan_to_num(seen.residual))
                checks.append(BallCheck(angles_between(seen.directions, given), limit, files))
        return min(checks, key=lambda check: check.usual)
    return None


def _is_on_black(small: Float32, inside: BoolArray) -> bool:
    """Whether the ground around the object is black, so that a ball beside it would not be seen."""
    if inside.all():
        return False
    around = cv2.dilate(inside.astype(np.uint8), np.ones((7, 7), np.uint8)) == 0
    bright = small.max(axis=0)
    limit = BLACK * np.percentile(bright[inside], 90)
    return not around.any() or bool(np.percentile(bright[around], 99) < limit)


def _cameras(focal: float | None, factor: float, frame: tuple[int, int]) -> list[Camera | None]:
    """Return the camera of the small photographs; if the focal length is unknown, several, and parallel rays."""
    if focal is not None:
        return [Camera.of_frame(focal * factor, frame)]
    return [*(Camera.of_frame(share * max(frame), frame) for share in FOCALS), None]


def _is_beside(ball: FoundBall, inside: BoolArray) -> bool:
    disc = ball.circle.inside(inside.shape)
    return bool(disc.mean() < LARGEST if inside.all() else inside[disc].mean() < INSIDE)


def _explains_object(ball: FoundBall, small: Float32, inside: BoolArray, lights: Lights) -> bool:
    witness = inside & ~ball.circle.inside(inside.shape, share=1.1)
    by_ball, by_file = (
        scene_misfit(small, one, witness) for one in (ball.directions, lights.directions)
    )
    return (
        not by_ball > AS_GOOD * by_file
    )  # not a number if nothing is visible: nothing speaks against it
