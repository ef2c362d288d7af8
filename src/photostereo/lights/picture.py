"""The picture that shows at a glance whether a calibration is right: circles, highlights and the hemisphere."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.conventions import FloatArray, srgb_from_linear
from photostereo.lights.balls import FoundBall

Picture = NDArray[np.uint8]

_SIDE = 640
_PAPER, _INK, _FAINT = (250, 249, 246), (40, 40, 44), (205, 203, 198)
_CIRCLE, _MARK, _WRONG = (255, 138, 30), (0, 190, 255), (226, 40, 60)


def calibration_picture(
    images: FloatArray,
    balls: Sequence[FoundBall],
    directions: FloatArray,
    strengths: FloatArray,
    suspects: Sequence[int] = (),
) -> Picture:
    """Two square panels side by side, RGB: the ball with its highlights, and the lamps seen from above.

    Parameters
    ----------
    images : (d, H, W), in which the balls are
    directions, strengths : of the lamps
    suspects : numbers of lamps to be marked in red
    """
    return np.hstack([_ball_panel(images, balls, suspects), _hemisphere(directions, strengths, suspects)])


def _ball_panel(images: FloatArray, balls: Sequence[FoundBall], suspects: Sequence[int]) -> Picture:
    """The brightest value of every pixel around the balls, with outlines and the highlight of each photograph."""
    x0 = min(ball.circle.x - 1.15 * ball.circle.radius for ball in balls)
    x1 = max(ball.circle.x + 1.15 * ball.circle.radius for ball in balls)
    y0 = min(ball.circle.y - 1.15 * ball.circle.radius for ball in balls)
    y1 = max(ball.circle.y + 1.15 * ball.circle.radius for ball in balls)
    side = max(x1 - x0, y1 - y0)
    left, top = 0.5 * (x0 + x1 - side), 0.5 * (y0 + y1 - side)
    zoom = _SIDE / side
    brightest = images[0].astype(np.float32)
    for image in images[1:]:
        brightest = np.maximum(brightest, image)
    move = np.array([[zoom, 0, (0.5 - left) * zoom - 0.5], [0, zoom, (0.5 - top) * zoom - 0.5]])
    shrink = cv2.INTER_AREA if zoom < 1 else cv2.INTER_LINEAR
    view = cv2.warpAffine(brightest, move, (_SIDE, _SIDE), flags=shrink, borderValue=0)
    gray = srgb_from_linear(np.asarray(view / max(float(np.percentile(view, 99.5)), 1e-6), np.float32))
    panel: Picture = np.repeat((gray * 255).astype(np.uint8)[..., None], 3, axis=2)

    def at(x: float, y: float) -> tuple[int, int]:
        return round(((x - left + 0.5) * zoom - 0.5) * 16), round(((y - top + 0.5) * zoom - 0.5) * 16)

    for ball in balls:
        radius = round(ball.circle.radius * zoom * 16)
        cv2.circle(panel, at(ball.circle.x, ball.circle.y), radius, _CIRCLE, 1, cv2.LINE_AA, 4)
        if ball.highlights is None:
            continue
        for number, (x, y) in enumerate(zip(ball.highlights.x, ball.highlights.y, strict=True)):
            if np.isfinite(x):
                colour = _WRONG if number in suspects else _MARK
                cv2.circle(panel, at(x, y), 6 * 16, colour, 1, cv2.LINE_AA, 4)
                _label(panel, at(x, y), str(number + 1), colour)
    return panel


def _hemisphere(directions: FloatArray, strengths: FloatArray, suspects: Sequence[int]) -> Picture:
    """Lamps on the sky above the object: the middle is the camera, the rim the image plane; area shows strength."""
    panel: Picture = np.full((_SIDE, _SIDE, 3), _PAPER, np.uint8)
    middle, radius = _SIDE / 2, 0.44 * _SIDE
    for tilt in (30, 60, 90):
        ring = round(radius * tilt / 90 * 16)
        cv2.circle(panel, (round(middle * 16), round(middle * 16)), ring, _FAINT, 1, cv2.LINE_AA, 4)
        cv2.putText(
            panel,
            f"{90 - tilt}",
            (int(middle + radius * tilt / 90) + 3, int(middle) - 3),
            cv2.FONT_HERSHEY_SIMPLEX,
            0.4,
            _INK,
            1,
            cv2.LINE_AA,
        )
    for number, (x, y, z) in enumerate(directions):
        tilt = np.degrees(np.arccos(np.clip(z, -1, 1))) / 90 * radius
        length = max(float(np.hypot(x, y)), 1e-9)
        place = round((middle + tilt * x / length) * 16), round((middle - tilt * y / length) * 16)
        colour = _WRONG if number in suspects else _CIRCLE
        cv2.circle(
            panel, place, round(7 * 16 * float(np.sqrt(strengths[number]))), colour, -1, cv2.LINE_AA, 4
        )
        _label(panel, place, str(number + 1), _INK)
    return panel


def _label(panel: Picture, place: tuple[int, int], text: str, colour: tuple[int, int, int]) -> None:
    corner = (place[0] // 16 + 8, place[1] // 16 - 5)
    cv2.putText(panel, text, corner, cv2.FONT_HERSHEY_SIMPLEX, 0.42, colour, 1, cv2.LINE_AA)
