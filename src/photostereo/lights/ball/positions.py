"""Where lights stand, from several balls: lines from the balls that meet.

A shiny ball at c sees the light from its highlight c + r n along a direction l. Two balls or more give lines that
meet at the light, in least squares: Σ_k |(1 - l_k l_kᵀ)(P - p_k)|² is least at the solution of a 3 × 3 system. The balls
stand on one table that faces the camera, so their centers are one radius above it. How well the distance is known
follows from how far the balls are apart: with the base b and an error e of the directions, the relative error of the
distance D is about e D / b, and where this is above a half the light is as good as infinitely far. So it is where the
balls see it in directions that differ by no more than what each may be off: lines that are nearly parallel meet
somewhere, but not where the light is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from photostereo.core.conventions import FloatArray
from photostereo.core.findings import Finding
from photostereo.lights.ball.search import FoundBall

#: Directions differ if they are this many standard errors apart.
_SURE = 3.0


def meeting_point(points: FloatArray, directions: FloatArray) -> FloatArray:
    """The point closest to lines through points (k, 3) along unit directions (k, 3).

    >>> meeting_point(np.array([[0, 0, 0], [2.0, 0, 0]]), np.array([[0.6, 0, 0.8], [-0.6, 0, 0.8]])).round(6) + 0.0
    array([1.        , 0.        , 1.333333])
    """
    project = np.eye(3) - directions[:, :, None] * directions[:, None, :]
    moment = project.sum(axis=0) + 1e-12 * np.eye(3)
    return np.asarray(np.linalg.solve(moment, (project @ points[:, :, None]).sum(axis=0)[:, 0]))


def light_positions(
    balls: Sequence[FoundBall], frame: tuple[int, int]
) -> tuple[FloatArray | None, Finding | None]:
    """Positions (d, 3) of the lights in pixels from the middle of the frame on the table, and a finding if they are near.

    None if there are fewer than two balls, or the lights are too far away.
    """
    shiny = [ball for ball in balls if ball.kind == "shiny"]
    if len(shiny) < 2:
        return None, None
    middle = np.array([0.5 * (frame[1] - 1), 0.5 * (frame[0] - 1)])
    centers = np.array([[b.circle.x - middle[0], middle[1] - b.circle.y, b.circle.radius] for b in shiny])
    base = float(max(np.linalg.norm(a - b) for a in centers for b in centers))
    if not _differ(shiny):
        return None, None
    count = len(shiny[0].directions)
    positions = np.full((count, 3), np.nan)
    for number in range(count):
        lines = [
            (center + ball.circle.radius * _half(ball.directions[number]), ball.directions[number])
            for center, ball in zip(centers, shiny, strict=True)
            if np.isfinite(ball.directions[number]).all()
        ]
        if len(lines) >= 2:
            positions[number] = meeting_point(*(np.array(part) for part in zip(*lines, strict=True)))
    known = np.isfinite(positions).all(axis=1) & (positions[:, 2] > 0)
    if known.mean() < 0.8:
        return None, None
    distance = float(np.median(np.linalg.norm(positions[known], axis=1)))
    error = np.radians(float(np.nanmedian([np.nanmedian(ball.residual) for ball in shiny])))
    # One light on an arm: the spread of the distances shows how well they are known, if the base does not.
    if error * distance / base > 0.5 or not known.all():
        return None, None
    width = float(max(frame))
    bend = np.degrees(np.arctan2(0.5 * width, distance))
    near = Finding("near-lights", widths=distance / width, degrees=float(bend))
    return positions, near if bend > 3 else None


def _differ(balls: Sequence[FoundBall]) -> bool:
    """Whether some two balls see the lights in directions that differ by more than what both may be off."""
    for number, one in enumerate(balls):
        for other in balls[:number]:
            apart = np.degrees(np.linalg.norm(one.directions - other.directions, axis=1))
            off = np.hypot(one.residual, other.residual)
            if float(np.nanmedian(apart / np.maximum(off, 1e-6))) > _SURE:
                return True
    return False


def _half(direction: FloatArray) -> FloatArray:
    """The normal that mirrors the view (0, 0, 1) to this direction."""
    half = direction + np.array([0.0, 0.0, 1.0])
    return np.asarray(half / np.linalg.norm(half))
