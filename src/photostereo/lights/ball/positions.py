"""Estimate the positions of lights from several balls, by intersecting lines from the balls.

A shiny ball at c sees the light from its highlight c + r n along a direction l. Two balls or more give lines that
meet at the light, by least squares: Σ_k |(1 - l_k l_kᵀ)(P - p_k)|² is minimal at the solution of a 3 × 3 system. The balls
stand on one table that faces the camera, so their centers are one radius above it. The accuracy of the distance
depends on how far the balls are apart: with the base b and an error e of the directions, the relative error of the
distance D is about e D / b. If this is above a half, the light is treated as infinitely far away. The same holds if the
directions from the balls differ by no more than their errors: lines that are nearly parallel meet
somewhere, but not at the light.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from photostereo.core.conventions import FloatArray
from photostereo.core.findings import Finding
from photostereo.lights.ball.geometry import VIEW
from photostereo.lights.ball.search import FoundBall

#: Directions differ if they are this many standard errors apart.
_SURE = 3.0


def meeting_points(points: FloatArray, directions: FloatArray) -> FloatArray:
    """Return the points (d, 3) closest to lines through points (d, k, 3) along unit directions (d, k, 3).

    NaN lines are left out; with fewer than two lines the result is NaN.
    """
    project = np.eye(3) - directions[..., :, None] * directions[..., None, :]
    moment = np.nansum(project, axis=1) + 1e-12 * np.eye(3)
    right = np.nansum(project @ points[..., None], axis=1)
    found = np.linalg.solve(moment, right)[..., 0]
    return np.where(np.isfinite(directions).all(axis=2).sum(axis=1)[:, None] >= 2, found, np.nan)


def light_positions(
    balls: Sequence[FoundBall], frame: tuple[int, int]
) -> tuple[FloatArray | None, Finding | None]:
    """Return positions (d, 3) of the lights in pixels from the middle of the frame on the table, and a finding if near.

    None if there are fewer than two balls, or the lights are too far away.
    """
    shiny = [ball for ball in balls if ball.kind == "shiny"]
    if len(shiny) < 2 or not any(_differ(*pair) for pair in combinations(shiny, 2)):
        return None, None
    middle = np.array([0.5 * (frame[1] - 1), 0.5 * (frame[0] - 1)])
    centers = np.array([[b.circle.x - middle[0], middle[1] - b.circle.y, b.circle.radius] for b in shiny])
    directions = np.stack([ball.directions for ball in shiny], axis=1)  # (d, k, 3)
    half = directions + VIEW
    half /= np.linalg.norm(half, axis=2, keepdims=True)  # the normals that mirror the view to the lights
    positions = meeting_points(centers + centers[:, 2:] * half, directions)
    if not (positions[:, 2] > 0).all():
        return None, None
    distance = float(np.median(np.linalg.norm(positions, axis=1)))
    error = np.radians(float(np.nanmedian([np.nanmedian(ball.residual) for ball in shiny])))
    base = float(max(np.linalg.norm(a - b) for a in centers for b in centers))
    if error * distance / base > 0.5:
        return None, None
    width = float(max(frame))
    bend = np.degrees(np.arctan2(0.5 * width, distance))
    near = Finding("near-lights", widths=distance / width, degrees=float(bend))
    return positions, near if bend > 3 else None


def _differ(one: FoundBall, other: FoundBall) -> bool:
    """Return whether two balls see the lights in directions that differ by more than their errors."""
    apart = np.degrees(np.linalg.norm(one.directions - other.directions, axis=1))
    off = np.hypot(one.residual, other.residual)
    return float(np.nanmedian(apart / np.maximum(off, 1e-6))) > _SURE
