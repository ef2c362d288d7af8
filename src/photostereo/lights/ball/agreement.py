"""Combine all evidence into one direction per photograph, and report photographs on which it disagrees.

Balls may disagree with each other. The object itself is a witness: its normals follow from all other photographs, and
its shading in this one then gives the direction of the light. That replaces a missing highlight, and detects one that
is another reflection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from photostereo.core.conventions import FloatArray
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding, listed
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
_BALLS_DISAGREE = 4.0


@dataclass(eq=False)
class Evidence:
    """Directions of the lights, and what is doubtful about them."""

    names: Sequence[str]  #: of the photographs
    directions: FloatArray  #: (d, 3) unit, NaN if missing
    residual: FloatArray  #: (d,) expected errors in degrees
    sources: list[str]  #: (d,)
    doubts: list[Finding]

    def complete(self, pixels: FloatArray | None) -> None:
        """Fill missing directions from the object's shading (n, d), and report photographs that it contradicts."""
        missing = np.asarray(~np.isfinite(self.directions).all(axis=1))
        numbers = np.flatnonzero(missing).tolist()
        shaded = None
        if pixels is not None and (~missing).sum() >= 5:
            shaded = directions_from_shading(pixels, self.directions)
        if shaded is None:
            if numbers:
                names = listed(self.names[n] for n in numbers)
                photographs = [self.names[n] for n in numbers]
                raise CaptureError(code="no-highlight", photographs=photographs, names=names)
            return
        apart = angles_between(shaded, self.directions)
        usual = float(np.median(apart[~missing]))
        if numbers:
            self.directions = np.where(missing[:, None], shaded, self.directions)
            self.residual = np.where(missing, max(usual, 1.0), self.residual)
            self.sources = [
                "shading of the object" if m else s for m, s in zip(missing, self.sources, strict=True)
            ]
            self.doubts.append(_doubt("light-from-shading", self.names, numbers))
        for number in np.flatnonzero(apart > max(_DISAGREES, _UNUSUAL * usual)).tolist():
            facts = {"degrees": float(apart[number]), "usual": usual}
            self.doubts.append(_doubt("shading-disagrees", self.names, [number], **facts))


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
    found = Evidence(names, directions, residual, [" and ".join(places)] * len(directions), [])
    sharp = shiny if shiny.any() else ~shiny
    if sharp.sum() > 1:
        apart = angles_between(stack, directions[None])[sharp]
        worst = np.nanmax(np.where(known[sharp], apart, np.nan), axis=0, initial=0.0)
        # With near lights, balls differ a little in every photograph; a much larger difference is a wrong highlight.
        limit = max(_BALLS_DISAGREE, _UNUSUAL * float(np.median(worst)))
        for number in np.flatnonzero(worst > limit).tolist():
            degrees = 2 * float(worst[number])
            found.doubts.append(_doubt("balls-disagree", names, [number], degrees=degrees))
    double = np.any([ball.highlights.two_lights for ball in trusted if ball.highlights is not None], axis=0)
    if np.any(double):
        found.doubts.append(_doubt("two-lights-at-once", names, np.flatnonzero(double).tolist()))
    return found


def series_disagree(apart: FloatArray, names: Sequence[str]) -> list[Finding]:
    """Return a doubt about the photographs in which balls of several series are this many degrees (d,) from their mean."""
    unlike = np.flatnonzero(apart > _BALLS_DISAGREE)
    if not len(unlike):
        return []
    return [_doubt("balls-disagree", names, unlike.tolist(), degrees=2 * float(np.median(apart[unlike])))]


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


def _doubt(code: str, names: Sequence[str], numbers: Sequence[int], **values: Any) -> Finding:
    """Return a finding about some photographs, by their numbers."""
    return Finding(code, numbers=list(numbers), names=listed(names[number] for number in numbers), **values)
