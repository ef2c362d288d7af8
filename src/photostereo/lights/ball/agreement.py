"""One direction per photograph from everything that speaks of it, and the photographs on which it disagrees.

Balls may disagree with each other; and the object itself is a witness: its normals follow from all other photographs,
and then its shading in this one says where the light was. That mends a highlight that is not there, and names one that
is another reflection.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.errors import CaptureError
from photostereo.lights.ball.search import FoundBall
from photostereo.lights.strength import weighted_normals

#: A direction that differs by more degrees from what the other evidence says, and by this factor from what is usual.
_DISAGREES, _UNUSUAL = 8.0, 4.0
#: The least ratio of singular values of an object's normals for it to be a witness.
_SOLID = 0.15
#: Degrees by which the shading of a matte ball may be off beside its scatter: nothing is quite matte.
_SHADING = 0.5
#: The same between two balls, which see a light more sharply than an object does.
_BALLS_DISAGREE = 4.0


def combine_balls(
    balls: Sequence[FoundBall], names: Sequence[str]
) -> tuple[FloatArray, FloatArray, tuple[str, ...], list[str]]:
    """One direction per photograph from all balls, and sentences about those that disagree or show two lights."""
    trusted = [ball for ball in balls if ball.kind == "shiny"] or list(balls)
    trusted += [ball for ball in balls if ball not in trusted]
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
    warnings = []
    sharp = shiny if shiny.any() else ~shiny
    if sharp.sum() > 1:
        apart = angles_between(stack, directions[None])[sharp]
        worst = np.nanmax(np.where(known[sharp], apart, np.nan), axis=0, initial=0.0)
        # Near lights make balls differ a little in every photograph; one that differs much more is a wrong highlight.
        limit = max(_BALLS_DISAGREE, _UNUSUAL * float(np.median(worst)))
        for number in np.flatnonzero(worst > limit).tolist():
            warnings.append(
                f"{names[number]}: the balls disagree about the light by {2 * worst[number]:.0f}°: one of the "
                "highlights is another reflection. Look at the picture of the calibration"
            )
    double = np.any([ball.highlights.two_lights for ball in trusted if ball.highlights is not None], axis=0)
    if np.any(double):
        listed = _listed([names[i] for i in np.flatnonzero(double).tolist()])
        warnings.append(
            f"two highlights that move in {listed}: two lights at once? The stronger one is used; photometric stereo "
            "needs one light at a time"
        )
    places = [f"{ball.kind} ball at {ball.circle.x:.0f},{ball.circle.y:.0f}" for ball in trusted]
    return directions, residual, (" and ".join(places),) * len(directions), warnings


def mend_and_check(
    directions: FloatArray,
    residual: FloatArray,
    words: tuple[str, ...],
    pixels: FloatArray | None,
    names: Sequence[str],
) -> tuple[FloatArray, FloatArray, tuple[str, ...], list[str]]:
    """Missing directions from the object's shading; and the photographs whose direction it contradicts."""
    missing = np.asarray(~np.isfinite(directions).all(axis=1))
    warnings: list[str] = []
    if missing.all():
        raise CaptureError(
            "The ball shows no highlight in any photograph. Check that the light is on and reaches the ball.",
            code="no-highlight",
        )
    shaded = None
    if pixels is not None and (~missing).sum() >= 5 and is_solid(pixels[:, ~missing], directions[~missing]):
        shaded = directions_from_shading(pixels, directions)
    if missing.any():
        listed = _listed([names[i] for i in np.flatnonzero(missing).tolist()])
        if shaded is None:
            raise CaptureError(
                f"The ball shows no highlight in {listed}. If the light was off there on purpose, rename that photograph "
                "to ambient.* to have it subtracted; if it was hidden or behind the ball, or the photograph is blurred, "
                "leave it out.",
                code="no-highlight",
                photographs=[name for name, lost in zip(names, missing, strict=True) if lost],
            )
        directions, residual = directions.copy(), residual.copy()
        directions[missing] = shaded[missing]
        apart = angles_between(shaded, directions)[~missing]
        residual[missing] = max(float(np.median(apart)), 1.0)
        words = tuple(
            "shading of the object" if gone else word for word, gone in zip(words, missing, strict=True)
        )
        warnings.append(f"no highlight in {listed}: the direction was found from the shading of the object")
    if shaded is not None:
        apart = angles_between(shaded, directions)
        usual = float(np.median(apart[~missing]))
        limit = max(_DISAGREES, _UNUSUAL * usual)
        for number in np.flatnonzero((apart > limit) & ~missing).tolist():
            warnings.append(
                f"{names[number]}: the ball says another direction than the shading of the object, by "
                f"{apart[number]:.0f}° (usual: {usual:.0f}°). Look at the picture of the calibration"
            )
    return directions, residual, words, warnings


def is_solid(pixels: FloatArray, directions: FloatArray) -> bool:
    """Whether the object turns towards all sides: a flat thing says nothing about where a light was."""
    lit = pixels > 0.1 * pixels.max(axis=1, keepdims=True)
    surface = _normals(pixels, directions, lit)
    surface = surface / np.maximum(np.linalg.norm(surface, axis=1, keepdims=True), 1e-12)
    spread = np.linalg.svd(surface, compute_uv=False)
    return bool(spread[2] > _SOLID * spread[0])


def directions_from_shading(pixels: FloatArray, directions: FloatArray) -> FloatArray:
    """Where each light was, from the shading of an object (n, d) and the other lights; (d, 3) unit.

    The normals follow from all other photographs by robust least squares, each light from the normals. Lights of unequal
    strength are allowed; directions that are NaN are ignored.
    """
    known = np.asarray(np.isfinite(directions).all(axis=1))
    pixels = pixels / np.maximum(np.linalg.norm(pixels, axis=1, keepdims=True), 1e-12)
    result = np.full(directions.shape, np.nan)
    for number in range(len(directions)):
        others = known.copy()
        others[number] = False
        if others.sum() < 4:
            continue
        lit = pixels[:, others] > 0.1 * pixels[:, others].max(axis=1, keepdims=True)
        surface = _normals(pixels[:, others], directions[others], lit)
        values = pixels[:, number]
        vector = np.linalg.lstsq(surface, values, rcond=None)[0]
        for _ in range(8):
            shade = surface @ vector
            good = (shade > 0.1 * np.percentile(shade, 95)) & (values > 0.05 * np.percentile(values, 95))
            if good.sum() < 30:
                break
            miss = values - shade
            scale = max(1.4826 * float(np.median(np.abs(miss[good]))), 1e-9)
            weight = np.where(good, np.clip(1 - (miss / (4.685 * scale)) ** 2, 0, 1) ** 2, 0.0)
            moment = surface.T @ (weight[:, None] * surface) + 1e-12 * np.eye(3)
            vector = np.linalg.solve(moment, surface.T @ (weight * values))
        result[number] = vector / max(float(np.linalg.norm(vector)), 1e-12)
    return result


def _normals(values: FloatArray, directions: FloatArray, lit: BoolArray) -> FloatArray:
    weight = lit.astype(np.float64)
    surface = weighted_normals(values, directions, weight)
    for _ in range(3):
        miss = values - surface @ directions.T
        scale = max(1.4826 * float(np.median(np.abs(miss[lit]))), 1e-9)
        weight = np.where(lit, np.clip(1 - (miss / (4.685 * scale)) ** 2, 0, 1) ** 2, 0.0)
        surface = weighted_normals(values, directions, weight)
    return surface


def angles_between(a: FloatArray, b: FloatArray) -> FloatArray:
    """Degrees between unit vectors along the last axis."""
    cross = np.linalg.norm(np.cross(a, b), axis=-1)
    return np.asarray(np.degrees(np.arctan2(cross, (a * b).sum(axis=-1))))


def _listed(names: Sequence[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
