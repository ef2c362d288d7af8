"""Combine all evidence into one direction per photograph, and report photographs on which it disagrees.

Balls may disagree with each other. The object itself is a witness: its normals follow from all other photographs, and
its shading in this one then gives the direction of the light. That replaces a missing highlight, and detects one that
is another reflection.

Several shiny balls also give positions. A ball at c sees the light from its highlight c + r n along a direction l. Two
balls or more give lines that meet at the light, by least squares: Σ_k |(1 - l_k l_kᵀ)(P - p_k)|² is minimal at the solution
of a 3 × 3 system. The balls stand on one table that faces the camera, so their centers are one radius above it. With the
base b between them and an error e of the directions, the relative error of the distance D is about e D / b. If this is
above a half, or if the directions differ by no more than their errors, the light is treated as infinitely far away.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from photostereo.core.conventions import FloatArray
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding, listed
from photostereo.lights.ball.geometry import VIEW
from photostereo.lights.ball.search import FoundBall
from photostereo.lights.geometry import angles_between
from photostereo.lights.unknown.shading import fit_lights, matte_normals

#: A direction is suspect if it is this many degrees, and this many times the usual difference, from other evidence.
_DISAGREES, _UNUSUAL = 8.0, 4.0
#: Minimum ratio of singular values of an object's normals for it to be a witness.
_SOLID = 0.15
#: Error of a matte ball's shading in degrees, in addition to its scatter: nothing is quite matte.
_SHADING = 0.5
#: Like _DISAGREES between two balls, which determine a light more accurately than an object does.
BALLS_DISAGREE = 4.0
#: Directions from two balls differ if they are this many standard errors apart.
_SURE = 3.0


@dataclass(eq=False)
class Evidence:
    """Directions of the lights, and what is doubtful about them."""

    names: Sequence[str]  #: of the photographs
    directions: FloatArray  #: (d, 3) unit, NaN if missing
    residual: FloatArray  #: (d,) expected errors in degrees
    sources: list[str]  #: (d,)
    doubts: list[Finding] = field(default_factory=list)

    def doubt(self, code: str, numbers: Sequence[int], **values: Any) -> None:
        """Add a finding about some photographs, by their numbers."""
        names = listed(self.names[number] for number in numbers)
        self.doubts.append(Finding(code, numbers=list(numbers), names=names, **values))

    def complete(self, pixels: FloatArray | None) -> None:
        """Fill missing directions from the object's shading (n, d), and report photographs that it contradicts."""
        missing = np.asarray(~np.isfinite(self.directions).all(axis=1))
        numbers = np.flatnonzero(missing).tolist()
        shaded = None
        if pixels is not None and (~missing).sum() >= 5:
            shaded = directions_from_shading(pixels, self.directions)
        if shaded is None and numbers:
            photographs = [self.names[n] for n in numbers]
            raise CaptureError(code="no-highlight", photographs=photographs, names=listed(photographs))
        if shaded is None:
            return
        apart = angles_between(shaded, self.directions)
        usual = float(np.median(apart[~missing]))
        if numbers:
            self.directions = np.where(missing[:, None], shaded, self.directions)
            self.residual = np.where(missing, max(usual, 1.0), self.residual)
            for number in numbers:
                self.sources[number] = "shading of the object"
            self.doubt("light-from-shading", numbers)
        for number in np.flatnonzero(apart > max(_DISAGREES, _UNUSUAL * usual)).tolist():
            self.doubt("shading-disagrees", [number], degrees=float(apart[number]), usual=usual)


def suspects_of(doubts: Iterable[Finding]) -> tuple[int, ...]:
    """Return the numbers of the photographs that findings are about."""
    return tuple(sorted({number for doubt in doubts for number in doubt.values.get("numbers", ())}))


def combine_balls(balls: Sequence[FoundBall], names: Sequence[str]) -> Evidence:
    """Return one direction per photograph from all balls, with doubts about those that disagree or show two lights."""
    trusted = sorted(balls, key=lambda ball: ball.kind != "shiny")
    shiny = np.array([ball.kind == "shiny" for ball in trusted])
    stack = np.stack([ball.directions for ball in trusted])
    sure = np.stack([ball.residual for ball in trusted])
    if shiny.any():  # a mirror is more accurate than shading
        sure[~shiny] = np.hypot(sure[~shiny], _SHADING)
    known = np.isfinite(stack).all(axis=2) & np.isfinite(sure)
    weight = np.where(known, 1.0 / np.maximum(np.where(known, sure, 1.0), 0.05) ** 2, 0.0)
    total = weight.sum(axis=0)
    mean = (np.nan_to_num(stack) * weight[..., None]).sum(axis=0)
    length = np.linalg.norm(mean, axis=1, keepdims=True)
    directions = np.where(total[:, None] > 0, mean / np.maximum(length, 1e-12), np.nan)
    residual = np.where(total > 0, 1.0 / np.sqrt(np.maximum(total, 1e-12)), np.nan)
    places = [f"{ball.kind} ball at {ball.circle.x:.0f},{ball.circle.y:.0f}" for ball in trusted]
    found = Evidence(names, directions, residual, [" and ".join(places)] * len(directions))
    sharp = shiny if shiny.any() else ~shiny
    if sharp.sum() > 1:
        apart = angles_between(stack, directions[None])[sharp]
        worst = np.nanmax(np.where(known[sharp], apart, np.nan), axis=0, initial=0.0)
        # With near lights, balls differ a little in every photograph; a much larger difference is a wrong highlight.
        limit = max(BALLS_DISAGREE, _UNUSUAL * float(np.median(worst)))
        for number in np.flatnonzero(worst > limit).tolist():
            found.doubt("balls-disagree", [number], degrees=2 * float(worst[number]))
    double = np.any([ball.highlights.two_lights for ball in trusted if ball.highlights is not None], axis=0)
    if np.any(double):
        found.doubt("two-lights-at-once", np.flatnonzero(double).tolist())
    return found


def meeting_points(points: FloatArray, directions: FloatArray) -> FloatArray:
    """Return the points (d, 3) closest to lines through points (d, k, 3) along unit directions (d, k, 3).

    NaN lines are left out; with fewer than two lines the result is NaN.
    """
    project = np.eye(3) - directions[..., :, None] * directions[..., None, :]
    moment = np.nansum(project, axis=1) + 1e-12 * np.eye(3)
    right = np.nansum(project @ points[..., None], axis=1)
    found = np.linalg.solve(moment, right)[..., 0]
    return np.where(np.isfinite(directions).all(axis=2).sum(axis=1)[:, None] >= 2, found, np.nan)


def light_positions(balls: Sequence[FoundBall], frame: tuple[int, int]) -> FloatArray | None:
    """Return positions (d, 3) of the lights in pixels from the middle of the frame on the table; None if there are fewer
    than two shiny balls, or the lights are too far away."""
    shiny = [ball for ball in balls if ball.kind == "shiny"]
    if len(shiny) < 2 or not any(_differ(*pair) for pair in combinations(shiny, 2)):
        return None
    middle = np.array([0.5 * (frame[1] - 1), 0.5 * (frame[0] - 1)])
    centers = np.array([[b.circle.x - middle[0], middle[1] - b.circle.y, b.circle.radius] for b in shiny])
    directions = np.stack([ball.directions for ball in shiny], axis=1)  # (d, k, 3)
    half = directions + VIEW
    half /= np.linalg.norm(half, axis=2, keepdims=True)  # the normals that mirror the view to the lights
    positions = meeting_points(centers + centers[:, 2:] * half, directions)
    distance = float(np.median(np.linalg.norm(positions, axis=1)))
    error = np.radians(float(np.nanmedian([np.nanmedian(ball.residual) for ball in shiny])))
    base = float(max(np.linalg.norm(a - b) for a in centers for b in centers))
    return positions if (positions[:, 2] > 0).all() and error * distance / base <= 0.5 else None


def _differ(one: FoundBall, other: FoundBall) -> bool:
    """Return whether two balls see the lights in directions that differ by more than their errors."""
    apart = np.degrees(np.linalg.norm(one.directions - other.directions, axis=1))
    off = np.hypot(one.residual, other.residual)
    return float(np.nanmedian(apart / np.maximum(off, 1e-6))) > _SURE


def solid_normals(gray: FloatArray, directions: FloatArray) -> FloatArray | None:
    """Return normals (1, n, 3) of an object in values (d, 1, n), or None if it is flat, which does not determine a light."""
    equal = np.ones(len(directions), np.float32)
    normals = matte_normals(gray, directions.astype(np.float32), equal).normals
    spread = np.linalg.svd(normals[0], compute_uv=False)
    return normals if spread[2] > _SOLID * spread[0] else None


def as_gray(pixels: FloatArray) -> FloatArray:
    """Return pixels (n, d) as small photographs (d, 1, n) of mean brightness 1."""
    return np.asarray(pixels.T[:, None] / pixels.mean(), np.float32)


def directions_from_shading(pixels: FloatArray, directions: FloatArray) -> FloatArray | None:
    """Estimate unit light directions (d, 3) from the shading of an object (n, d) and the other lights.

    Robust least squares gives the normals from all photographs whose direction is known (not NaN), and each light from
    the normals; None if the object is flat. Lights of unequal strength are allowed.
    """
    known = np.asarray(np.isfinite(directions).all(axis=1))
    normals = solid_normals(as_gray(pixels[:, known]), directions[known])
    if normals is None:
        return None
    start = np.where(known[:, None], directions, directions[known].mean(axis=0)).astype(np.float32)
    gray, equal = as_gray(pixels), np.ones(len(directions), np.float32)
    return fit_lights(normals, gray, np.ones(gray.shape[1:], np.float32), start, equal)[:, :3].astype(float)
