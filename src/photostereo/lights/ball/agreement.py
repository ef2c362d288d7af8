"""Combine all evidence into one direction per photograph, and report photographs on which it disagrees.

Balls may disagree with each other. The object itself is a witness: its normals follow from all other photographs, and
its shading in this one then gives the direction of the light. That replaces a missing highlight, and detects one that
is another reflection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from photostereo.core.conventions import FloatArray
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding, listed
from photostereo.lights.ball.search import FoundBall
from photostereo.lights.geometry import angles_between
from photostereo.lights.unknown.shading import Matte, fit_lights, matte_normals

#: A direction is suspect if it is this many degrees, and this many times the usual difference, from other evidence.
_DISAGREES, _UNUSUAL = 8.0, 4.0
#: Minimum ratio of singular values of an object's normals for it to be a witness.
_SOLID = 0.15
#: Error of a matte ball's shading in degrees, in addition to its scatter: nothing is quite matte.
_SHADING = 0.5
#: The same between two balls, which determine a light more accurately than an object does.
_BALLS_DISAGREE = 4.0


def combine_balls(
    balls: Sequence[FoundBall], names: Sequence[str]
) -> tuple[FloatArray, FloatArray, tuple[str, ...], list[Finding]]:
    """Return one direction per photograph from all balls, and doubts about those that disagree or show two lights."""
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
    doubts: list[Finding] = []
    sharp = shiny if shiny.any() else ~shiny
    if sharp.sum() > 1:
        apart = angles_between(stack, directions[None])[sharp]
        worst = np.nanmax(np.where(known[sharp], apart, np.nan), axis=0, initial=0.0)
        # With near lights, balls differ a little in every photograph; a much larger difference is a wrong highlight.
        limit = max(_BALLS_DISAGREE, _UNUSUAL * float(np.median(worst)))
        for number in np.flatnonzero(worst > limit).tolist():
            doubts.append(_doubt("balls-disagree", names, [number], degrees=2 * float(worst[number])))
    double = np.any([ball.highlights.two_lights for ball in trusted if ball.highlights is not None], axis=0)
    if np.any(double):
        doubts.append(_doubt("two-lights-at-once", names, np.flatnonzero(double).tolist()))
    places = [f"{ball.kind} ball at {ball.circle.x:.0f},{ball.circle.y:.0f}" for ball in trusted]
    return directions, residual, (" and ".join(places),) * len(directions), doubts


def series_disagree(apart: FloatArray, names: Sequence[str]) -> list[Finding]:
    """Return a doubt about the photographs in which balls of several series are this many degrees (d,) from their mean."""
    unlike = np.flatnonzero(apart > _BALLS_DISAGREE)
    if not len(unlike):
        return []
    return [_doubt("balls-disagree", names, unlike.tolist(), degrees=2 * float(np.median(apart[unlike])))]


def mend_and_check(
    directions: FloatArray,
    residual: FloatArray,
    words: tuple[str, ...],
    pixels: FloatArray | None,
    names: Sequence[str],
) -> tuple[FloatArray, FloatArray, tuple[str, ...], list[Finding]]:
    """Fill missing directions from the object's shading, and report photographs whose direction it contradicts."""
    missing = np.asarray(~np.isfinite(directions).all(axis=1))
    doubts: list[Finding] = []
    if missing.all():
        raise CaptureError(
            "The ball shows no highlight in any photograph. Check that the light is on and reaches the ball.",
            code="no-highlight",
        )
    shaded = None
    if pixels is not None and (~missing).sum() >= 5 and is_solid(pixels[:, ~missing], directions[~missing]):
        shaded = directions_from_shading(pixels, directions)
    if missing.any():
        numbers = np.flatnonzero(missing).tolist()
        if shaded is None:
            raise CaptureError(
                code="no-highlight",
                photographs=[names[number] for number in numbers],
                names=listed(names[n] for n in numbers),
            )
        directions, residual = directions.copy(), residual.copy()
        directions[missing] = shaded[missing]
        apart = angles_between(shaded, directions)[~missing]
        residual[missing] = max(float(np.median(apart)), 1.0)
        words = tuple(
            "shading of the object" if gone else word for word, gone in zip(words, missing, strict=True)
        )
        doubts.append(_doubt("light-from-shading", names, numbers))
    if shaded is not None:
        apart = angles_between(shaded, directions)
        usual = float(np.median(apart[~missing]))
        limit = max(_DISAGREES, _UNUSUAL * usual)
        for number in np.flatnonzero((apart > limit) & ~missing).tolist():
            facts = {"degrees": float(apart[number]), "usual": usual}
            doubts.append(_doubt("shading-disagrees", names, [number], **facts))
    return directions, residual, words, doubts


def is_solid(pixels: FloatArray, directions: FloatArray) -> bool:
    """Return whether the object has normals in all directions: a flat object does not determine a light."""
    spread = np.linalg.svd(_matte(pixels, directions).normals[0], compute_uv=False)
    return bool(spread[2] > _SOLID * spread[0])


def directions_from_shading(pixels: FloatArray, directions: FloatArray) -> FloatArray:
    """Estimate unit light directions (d, 3) from the shading of an object (n, d) and the other lights.

    Robust least squares gives the normals from all photographs whose direction is known (not NaN), and each light from
    the normals. Lights of unequal strength are allowed.
    """
    known = np.asarray(np.isfinite(directions).all(axis=1))
    normals = _matte(pixels[:, known], directions[known]).normals
    start = np.where(known[:, None], directions, directions[known].mean(axis=0)).astype(np.float32)
    gray = np.asarray(pixels.T[:, None] / pixels.mean(), np.float32)
    equal = np.ones(len(directions), np.float32)
    return fit_lights(normals, gray, np.ones(gray.shape[1:], np.float32), start, equal)[:, :3].astype(float)


def _matte(pixels: FloatArray, directions: FloatArray) -> Matte:
    gray = np.asarray(pixels.T[:, None] / pixels.mean(), np.float32)
    return matte_normals(gray, directions.astype(np.float32), np.ones(len(directions), np.float32))


def _doubt(code: str, names: Sequence[str], numbers: list[int], **values: Any) -> Finding:
    """Return a finding about some photographs, by their numbers."""
    return Finding(code, numbers=numbers, names=listed(names[number] for number in numbers), **values)
