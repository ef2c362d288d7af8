"""Draw a picture for checking lights at a glance: circles, highlights and the hemisphere."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import FloatArray, srgb_from_linear
from photostereo.lights.ball.search import FoundBall
from photostereo.lights.lights import Lights

Picture = NDArray[np.uint8]

#: Height of the picture below its title, in pixels.
_SIDE = 640
#: Height of the title, in pixels.
_TITLE = 44
# Colors (RGB) of the background, of text, and of lines in the background.
_PAPER = (250, 249, 246)
_INK = (40, 40, 44)
_FAINT = (205, 203, 198)
# Colors of an outline, of a highlight, and of one that is doubtful.
_CIRCLE = (255, 138, 30)
_MARK = (0, 190, 255)
_WRONG = (226, 40, 60)
_FONT = cv2.FONT_HERSHEY_SIMPLEX
#: Scale of the font.
_SIZE = 0.5
#: Possible offsets of a label from its mark, in pixels, the best first.
_BESIDE = [(reach * x, reach * y) for reach in (1, 1.8, 2.8) for x, y in
           ((13, -11), (13, 14), (-13, -11), (-13, 14), (17, 3), (-17, 3), (0, -15), (0, 20))]  # fmt: skip
Color = tuple[int, int, int]


def calibration_picture(
    images: FloatArray, balls: Sequence[FoundBall], lights: Lights, suspects: Sequence[int]
) -> Picture:
    """Draw two titled panels side by side, RGB: the ball with its highlights, and the lights, ``suspects`` in red."""
    titled = _titled(
        "Outline, and the highlight of each photograph", _ball_panel(images, balls, suspects)
    )
    return np.hstack([titled, dome_picture(lights, suspects)])


def dome_picture(lights: Lights, suspects: Sequence[int]) -> Picture:
    """Draw the lights on the hemisphere above the object, RGB: center = camera, rim = image plane, area = strength, with
    circles that show their expected errors."""
    panel: Picture = np.full((_SIDE, _SIDE, 3), _PAPER, np.uint8)
    middle = _SIDE / 2
    radius = 0.44 * _SIDE
    for tilt in (30, 60, 90):
        ring = round(radius * tilt / 90 * 16)
        cv2.circle(panel, (round(middle * 16), round(middle * 16)), ring, _FAINT, 1, cv2.LINE_AA, 4)
        down = int(middle + radius * tilt / 90)
        cv2.putText(
            panel, f"{90 - tilt}", (int(middle) - 8, down - 5), _FONT, 0.42, _INK, 1, cv2.LINE_AA
        )
    cv2.drawMarker(panel, (int(middle), int(middle)), _FAINT, cv2.MARKER_CROSS, 14, 1, cv2.LINE_AA)
    marks: list[tuple[tuple[int, int], str, Color]] = []
    for number, (x, y, z) in enumerate(lights.directions):
        tilt = np.degrees(np.arccos(np.clip(z, -1, 1))) / 90 * radius
        length = max(float(np.hypot(x, y)), 1e-9)
        place = round((middle + tilt * x / length) * 16), round((middle - tilt * y / length) * 16)
        color = _WRONG if number in suspects else _CIRCLE
        size = round(7 * 16 * float(np.sqrt(lights.strengths[number])))
        cv2.circle(panel, place, size, color, -1, cv2.LINE_AA, 4)
        if np.isfinite(error := lights.expected_error[number]):
            cv2.circle(panel, place, round(error / 90 * radius * 16), color, 1, cv2.LINE_AA, 4)
        marks.append((place, str(number + 1), _INK))
    _label(panel, marks, halo=_PAPER)
    return _titled("Lights: the camera in the middle, degrees above the image plane", panel)


def _ball_panel(images: FloatArray, balls: Sequence[FoundBall], suspects: Sequence[int]) -> Picture:
    """Draw the brightest value of every pixel around the balls, with outlines and the highlight of each photograph."""
    centers = np.array([[ball.circle.x, ball.circle.y] for ball in balls])
    reach = 1.15 * np.array([[ball.circle.radius] for ball in balls])
    low = (centers - reach).min(axis=0)
    high = (centers + reach).max(axis=0)
    side = float((high - low).max())
    # Centered, but no farther beyond the frame than necessary.
    beyond = np.maximum(np.array(images.shape[:0:-1]) - side, 0)
    left, top = np.minimum(np.clip(0.5 * (low + high - side), 0, beyond), low).tolist()
    zoom = _SIDE / side
    brightest = np.asarray(images.max(axis=0), np.float32)
    move = np.array([[zoom, 0, (0.5 - left) * zoom - 0.5], [0, zoom, (0.5 - top) * zoom - 0.5]])
    shrink = cv2.INTER_AREA if zoom < 1 else cv2.INTER_LINEAR
    view = cv2.warpAffine(brightest, move, (_SIDE, _SIDE), flags=shrink, borderValue=0)
    outside = cv2.warpAffine(np.zeros_like(brightest), move, (_SIDE, _SIDE), borderValue=1) > 0.5
    gray = srgb_from_linear(
        np.asarray(view / max(float(np.percentile(view, 99.5)), 1e-6), np.float32)
    )
    panel: Picture = np.repeat((gray * 255).astype(np.uint8)[..., None], 3, axis=2)
    panel[outside] = _PAPER

    def at(x: float, y: float) -> tuple[int, int]:
        return round(((x - left + 0.5) * zoom - 0.5) * 16), round(
            ((y - top + 0.5) * zoom - 0.5) * 16
        )

    marks: list[tuple[tuple[int, int], str, Color]] = []
    for ball in balls:
        radius = round(ball.circle.radius * zoom * 16)
        cv2.circle(panel, at(ball.circle.x, ball.circle.y), radius, _CIRCLE, 1, cv2.LINE_AA, 4)
        if ball.highlights is None:
            continue
        for number, (x, y) in enumerate(zip(ball.highlights.x, ball.highlights.y, strict=True)):
            if np.isfinite(x):
                color = _WRONG if number in suspects else _MARK
                cv2.circle(panel, at(x, y), 6 * 16, color, 1, cv2.LINE_AA, 4)
                marks.append((at(x, y), str(number + 1), color))
    _label(panel, marks, halo=(0, 0, 0))
    return panel


def _titled(words: str, panel: Picture) -> Picture:
    strip: Picture = np.full((_TITLE, _SIDE, 3), _PAPER, np.uint8)
    cv2.putText(strip, words, (16, 28), _FONT, 0.55, _INK, 1, cv2.LINE_AA)
    return np.vstack([strip, panel])


def _label(
    panel: Picture, marks: Sequence[tuple[tuple[int, int], str, Color]], *, halo: Color
) -> None:
    """Write each mark's text next to it, where it covers the least of the other marks and texts."""
    taken = np.zeros(panel.shape[:2], np.float32)
    for (x, y), _, _ in marks:
        cv2.circle(taken, (x // 16, y // 16), 8, 1.0, -1)
    for (x, y), text, color in marks:
        (width, height), _ = cv2.getTextSize(text, _FONT, _SIZE, 1)
        corners = [
            (int(x / 16 + dx - width / 2), int(y / 16 + dy + height / 2)) for dx, dy in _BESIDE
        ]
        edges = [np.maximum([b - height - 2, b + 2, a - 2, a + width + 2], 0) for a, b in corners]
        # Prefer places close to the mark.
        covered = [float(taken[up:down, left:right].sum()) for up, down, left, right in edges]
        best = int(np.argmin(np.add(covered, 0.5 * np.hypot(*np.transpose(_BESIDE)))))
        up, down, left, right = edges[best]
        taken[up:down, left:right] = 1.0
        for shade, width in ((halo, 3), (color, 1)):
            cv2.putText(panel, text, corners[best], _FONT, _SIZE, shade, width, cv2.LINE_AA)
