"""Light directions and strengths, measured from balls or estimated, with expected errors and warnings.

Shiny balls give directions, matte balls directions and strengths. Balls may disagree with each other. The object itself
is a witness: its normals follow from all other photographs, and its shading in this one then gives the direction of the
light. That replaces a missing highlight, and detects one that is another reflection.

Several shiny balls also give positions. A ball at c sees the light from its highlight c + r n along a direction l. Two
balls or more give lines that meet at the light, by least squares: Σ_k |(1 - l_k l_kᵀ)(P - p_k)|² is minimal at the solution
of a 3 × 3 system. The balls stand on one table that faces the camera, so their centers are one radius above it. With the
base b between them and an error e of the directions, the relative error of the distance D is about e D / b. If this is
above a half, or if the directions differ by no more than their errors, the light is treated as infinitely far away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding, distinct, sentences
from photostereo.core.wording import listed
from photostereo.lights.ball.geometry import VIEW, Camera, Circle, unknown_perspective
from photostereo.lights.ball.picture import Picture, calibration_picture
from photostereo.lights.ball.search import FoundBall, ball_at, find_balls
from photostereo.lights.geometry import angles_between, unit
from photostereo.lights.lights import Lights
from photostereo.lights.source import LightSource, SourceKind, joined
from photostereo.lights.strengths import (
    as_gray,
    sample_pixels,
    solid_normals,
    strengths_from_card,
    strengths_of_scene,
)
from photostereo.lights.unknown.shading import fit_lights

#: Expected errors above this, in degrees, cause a warning.
_VAGUE = 1.0
#: So do errors above this from an unknown perspective, where the outline of a small ball cannot rule out 6°.
_TURNED = 8.0
#: So do directions that change by more than this from the middle of the frame to its edge, in degrees.
_BENT = 3.0
#: Strengths of the lights of one capture differ by a smaller factor (measured: at most 4); more is an error.
_BELIEVABLE = 20.0
#: Strengths from these are believed even if they differ by more.
_MEASURED = (SourceKind.MATTE_BALL, SourceKind.CARD)
#: A direction is suspect if it is this many degrees from other evidence, ...
_DISAGREES = 8.0
#: ... and this many times the usual difference.
_UNUSUAL = 4.0
#: Error of a matte ball's shading in degrees, in addition to its scatter: nothing is quite matte.
_SHADING = 0.5
#: Like _DISAGREES between two balls, which determine a light more accurately than an object does.
_BALLS_DISAGREE = 4.0
#: Directions from two balls differ if they are this many standard errors apart.
_SURE = 3.0


@dataclass(frozen=True, eq=False)
class Calibration:
    """Lights of a capture, one per photograph, measured from balls or estimated from the photographs."""

    files: tuple[str, ...]  #: names of the photographs, in the order of the lights
    lights: Lights  #: with positions if several balls determine them; gray strengths
    #: the balls, in pixels of the photographs that show them; none if the lights are estimated
    balls: tuple[FoundBall, ...]
    frame: tuple[int, int]  #: height and width of those photographs
    warnings: tuple[Finding, ...] = ()  #: what is doubtful
    #: whether the balls are in the photographs of the object, not in a separate series
    in_frame: bool = False
    #: (h, w, 3) RGB: outlines, highlights and the hemisphere of directions
    picture: Picture = field(default_factory=lambda: np.zeros((1, 1, 3), np.uint8))
    #: if the lights are estimated, the relief may be too flat or too deep by this factor
    relief_factor: float | None = None

    @property
    def suspects(self) -> tuple[int, ...]:
        """Numbers of the photographs with warnings."""
        return tuple(
            sorted({number for said in self.warnings for number in said.values.get("numbers", ())})
        )

    def facts(self) -> dict[str, Any]:
        """Return the entries on the lights for ``summary.json``."""
        facts: dict[str, Any] = {
            "found_from": sorted(set(self.lights.source)),
            "strengths_from": self.lights.strengths_source,
            "expected_error_degrees": round(float(np.nanmean(self.lights.expected_error)), 2),
            "warnings": sentences(self.warnings),
            "warning_codes": [warning.code for warning in self.warnings],
        }
        if self.relief_factor is not None:
            facts["relief_factor"] = round(self.relief_factor, 2)
        return facts

    def seen_in(self, folder: str) -> Calibration:
        """Return the same calibration, with the folder of the balls added to the sources of the directions."""
        sources = [source.seen_in(folder) for source in self.lights.sources]
        return replace(self, lights=self.lights.changed(source=sources))

    def balls_mask(self) -> BoolArray:
        """Return the pixels of the balls, with a margin."""
        return np.asarray(
            np.logical_or.reduce([b.circle.with_margin(self.frame) for b in self.balls])
        )


def calibrate_lights(
    images: FloatArray,
    *,
    files: Sequence[str] | None = None,
    scene: FloatArray | None = None,
    mask: BoolArray | None = None,
    circles: Sequence[Circle] = (),
    focal: float | None = None,
    card: Sequence[int] | None = None,
    control: Control = SILENT,
) -> Calibration:
    """Measure directions and strengths of the lights from photographs (d, H, W) of balls, which are detected unless their
    ``circles`` are given.

    ``scene`` contains photographs of the object under the same lights, if it is not in ``images``; the object's
    ``mask`` and a gray ``card`` that faces the camera (left, top, right, bottom) refer to it. ``focal`` is in
    pixels.
    """
    images = np.asarray(images, dtype=np.float32)
    if files is not None:
        names = tuple(files)
    else:
        names = tuple(f"photograph {i + 1}" for i in range(len(images)))
    frame = (int(images.shape[1]), int(images.shape[2]))
    camera = None if focal is None else Camera.of_frame(focal, frame)
    balls = [_given_ball(images, circle, camera) for circle in circles]
    balls = balls or find_balls(images, camera=camera, control=control)
    if not balls:
        raise CaptureError(
            "No ball was found in the photographs: nothing round shows a small highlight that "
            "moves with the light, or the shading of a matte ball.",
            code="no-ball",
            remedy="give-ball",
        )
    if scene is None:
        scene = images
        mask = np.ones(frame, dtype=bool) if mask is None else mask.copy()
        for ball in balls:
            mask &= ~ball.circle.inside(frame, share=1.05)
    seen = sample_pixels(scene, mask)
    pixels = seen if len(seen) >= 300 and len(scene) >= 6 else None  # None if there are only balls
    found = combine_balls(balls, names)
    found.complete(pixels)
    doubts = found.doubts
    residual = found.residual
    positions = light_positions(balls, frame)
    # As seen from the middle of the frame, not from the balls.
    directions = found.directions if positions is None else unit(positions)
    strengths, strengths_from = _strengths(scene, mask, balls, directions, card, pixels)
    factor = float(strengths.max() / strengths.min())
    if factor > _BELIEVABLE and strengths_from.kind not in _MEASURED:
        doubts.append(Finding("strengths-implausible", source=str(strengths_from), factor=factor))
        strengths = np.ones(len(strengths))
        strengths_from = LightSource(SourceKind.ASSUMED_EQUAL)
    if not circles and float(np.median(residual)) > _VAGUE:
        doubts.append(Finding("faint-ball", degrees=float(np.median(residual))))
    if camera is None:
        trusted = [ball for ball in balls if ball.kind == "shiny"] or balls
        turned = np.hypot(
            *np.mean([unknown_perspective(ball.circle, frame) for ball in trusted], axis=0)
        )
        residual = np.hypot(residual, turned)
        if turned > _TURNED:
            doubts.append(Finding("focal-length-unknown", degrees=float(np.median(residual))))
    lights = Lights(
        directions,
        positions=positions,
        strengths=strengths,
        expected_error=residual,
        source=found.sources,
        strengths_source=strengths_from,
    )
    if (bend := lights.turn_over(frame)) > _BENT:
        doubts.append(Finding("near-lights", degrees=bend))
    calibration = Calibration(names, lights, tuple(balls), frame, tuple(doubts))
    picture = calibration_picture(images, balls, lights, calibration.suspects)
    return replace(calibration, picture=picture)


def _given_ball(images: FloatArray, circle: Circle, camera: Camera | None) -> FoundBall:
    height, width = images.shape[1:]
    numbers = (circle.x, circle.y, circle.radius)
    words = "x {:g}, y {:g}, radius {:g}".format(*numbers)
    # Written so that NaN is rejected.
    if not 4 <= circle.radius <= 2 * max(height, width) or not circle.inside((height, width)).any():
        raise CaptureError(
            f"The circle ({words}) is not in the photographs, which are {width} × {height} (width "
            "× height). Give column, row and radius in pixels.",
            code="circle-outside",
            circle=numbers,
            words=words,
            width=width,
            height=height,
        )
    ball = ball_at(images, circle, camera=camera, certain=True)
    if ball is None or not np.isfinite(ball.directions).any():
        raise CaptureError(
            f"The circle ({words}) shows neither a moving highlight nor the shading of a ball. "
            "Check the circle: column, row and radius in pixels, from the top left corner.",
            code="circle-without-ball",
            circle=numbers,
            words=words,
        )
    return ball


def _strengths(
    scene: FloatArray,
    mask: BoolArray | None,
    balls: Sequence[FoundBall],
    directions: FloatArray,
    card: Sequence[int] | None,
    pixels: FloatArray | None,
) -> tuple[FloatArray, LightSource]:
    if card is not None:
        return strengths_from_card(scene, directions, card), LightSource(SourceKind.CARD)
    matte = [np.log(ball.strengths) for ball in balls if ball.strengths is not None]
    if matte:
        return np.exp(np.mean(matte, axis=0)), LightSource(SourceKind.MATTE_BALL)
    return strengths_of_scene(scene, mask, directions, pixels)


def merge_calibrations(parts: Sequence[Calibration]) -> Calibration:
    """Merge the calibrations of several series of balls under the same lights.

    Directions are averaged over those found from shiny balls (over all, if there are none), weighted by their
    uncertainties; their disagreement adds to the uncertainty. Strengths come from the series with the best source.
    Picture and balls are those of the first.
    """
    if len(parts) == 1:
        return parts[0]
    shiny = [part for part in parts if part.balls[0].kind == "shiny"] or list(parts)
    weight = np.stack([1.0 / np.maximum(part.lights.expected_error, 0.05) ** 2 for part in shiny])
    stack = np.stack([part.lights.directions for part in shiny])
    mean = unit(np.einsum("kd,kdc->dc", weight, stack))
    apart = angles_between(stack, mean[None])
    scatter = np.sqrt((weight * apart**2).sum(axis=0) / weight.sum(axis=0))
    error = np.maximum(scatter, 1.0 / np.sqrt(weight.sum(axis=0)))
    sources = [joined(each) for each in zip(*(part.lights.sources for part in shiny), strict=True)]
    found = Evidence(parts[0].files, mean, error, sources)
    worst = apart.max(axis=0)
    unlike = np.flatnonzero(worst > _BALLS_DISAGREE)
    if len(unlike):
        typical = 2 * float(np.median(worst[unlike]))
        found.doubt("balls-disagree", unlike.tolist(), "check-ball", degrees=typical)
    best = min(
        (part.lights for part in parts), key=lambda lights: lights.strengths_from.rank_of_strengths
    )
    merged = shiny[0].lights.changed(
        directions=mean,
        expected_error=error,
        strengths=best.strengths,
        strengths_source=best.strengths_from,
        source=sources,
    )
    doubts = distinct([*found.doubts, *(doubt for part in parts for doubt in part.warnings)])
    return replace(shiny[0], lights=merged, warnings=doubts)


@dataclass(eq=False)
class Evidence:
    """Directions of the lights, and what is doubtful about them."""

    names: Sequence[str]  #: of the photographs
    directions: FloatArray  #: (d, 3) unit, NaN if missing
    residual: FloatArray  #: (d,) expected errors in degrees
    sources: list[LightSource]  #: (d,)
    doubts: list[Finding] = field(default_factory=list)

    def doubt(
        self, code: str, numbers: Sequence[int], remedy: str | None = None, **values: Any
    ) -> None:
        """Add a finding about some photographs, by their numbers."""
        names = listed(self.names[number] for number in numbers)
        self.doubts.append(
            Finding(code, remedy=remedy, numbers=list(numbers), names=names, **values)
        )

    def complete(self, pixels: FloatArray | None) -> None:
        """Fill missing directions from the object's shading (n, d), and report photographs that it contradicts."""
        missing = np.asarray(~np.isfinite(self.directions).all(axis=1))
        numbers = np.flatnonzero(missing).tolist()
        shaded = None
        if pixels is not None and (~missing).sum() >= 5:
            shaded = directions_from_shading(pixels, self.directions)
        if shaded is None and numbers:
            photographs = [self.names[n] for n in numbers]
            raise CaptureError(
                f"The ball shows no highlight in {listed(photographs)}. If the light was off "
                "there on purpose, rename that photograph to ambient.* to have it subtracted; if "
                "it was hidden or behind the ball, or the photograph is blurred, leave it out.",
                code="no-highlight",
                photographs=photographs,
                names=listed(photographs),
            )
        if shaded is None:
            return
        apart = angles_between(shaded, self.directions)
        usual = float(np.median(apart[~missing]))
        if numbers:
            self.directions = np.where(missing[:, None], shaded, self.directions)
            self.residual = np.where(missing, max(usual, 1.0), self.residual)
            for number in numbers:
                self.sources[number] = LightSource(SourceKind.SHADING)
            self.doubt("light-from-shading", numbers)
        for number in np.flatnonzero(apart > max(_DISAGREES, _UNUSUAL * usual)).tolist():
            self.doubt(
                "shading-disagrees",
                [number],
                "check-ball",
                degrees=float(apart[number]),
                usual=usual,
            )


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
    source = joined(tuple(ball.source for ball in trusted))
    found = Evidence(names, directions, residual, [source] * len(directions))
    sharp = shiny if shiny.any() else ~shiny
    if sharp.sum() > 1:
        apart = angles_between(stack, directions[None])[sharp]
        worst = np.nanmax(np.where(known[sharp], apart, np.nan), axis=0, initial=0.0)
        # With near lights, balls differ a little in every photograph; a much larger difference is a wrong highlight.
        limit = max(_BALLS_DISAGREE, _UNUSUAL * float(np.median(worst)))
        for number in np.flatnonzero(worst > limit).tolist():
            found.doubt("balls-disagree", [number], "check-ball", degrees=2 * float(worst[number]))
    double = np.any(
        [ball.highlights.two_lights for ball in trusted if ball.highlights is not None], axis=0
    )
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
    centers = np.array(
        [[b.circle.x - middle[0], middle[1] - b.circle.y, b.circle.radius] for b in shiny]
    )
    directions = np.stack([ball.directions for ball in shiny], axis=1)  # (d, k, 3)
    half = directions + VIEW
    half /= np.linalg.norm(
        half, axis=2, keepdims=True
    )  # the normals that mirror the view to the lights
    positions = meeting_points(centers + centers[:, 2:] * half, directions)
    distance = float(np.median(np.linalg.norm(positions, axis=1)))
    error = np.radians(float(np.nanmedian([np.nanmedian(ball.residual) for ball in shiny])))
    base = float(max(np.linalg.norm(a - b) for a in centers for b in centers))
    if (positions[:, 2] > 0).all() and error * distance / base <= 0.5:
        return positions
    return None


def _differ(one: FoundBall, other: FoundBall) -> bool:
    """Return whether two balls see the lights in directions that differ by more than their errors."""
    apart = np.degrees(np.linalg.norm(one.directions - other.directions, axis=1))
    off = np.hypot(one.residual, other.residual)
    return float(np.nanmedian(apart / np.maximum(off, 1e-6))) > _SURE


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
    gray = as_gray(pixels)
    equal = np.ones(len(directions), np.float32)
    return fit_lights(normals, gray, np.ones(gray.shape[1:], np.float32), start, equal)[
        :, :3
    ].astype(float)
