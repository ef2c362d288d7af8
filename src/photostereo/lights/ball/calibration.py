"""Light directions and strengths, measured from balls or estimated, with expected errors and warnings.

Shiny balls give directions, matte balls directions and strengths. The shading of the object replaces a missing highlight
and checks every other one: its normals follow from the other photographs, and its shading in this one then
gives the direction of the light.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.errors import CaptureError
from photostereo.core.findings import Finding
from photostereo.lights.ball.agreement import (
    BALLS_DISAGREE,
    Evidence,
    as_gray,
    combine_balls,
    light_positions,
    solid_normals,
    suspects_of,
)
from photostereo.lights.ball.geometry import Camera, Circle, unknown_perspective
from photostereo.lights.ball.picture import Picture, calibration_picture
from photostereo.lights.ball.search import FoundBall, ball_at, find_balls
from photostereo.lights.geometry import angles_between, unit
from photostereo.lights.lights import Lights
from photostereo.lights.strengths import (
    equal_strengths_suffice,
    sample_pixels,
    strengths_from_card,
    strengths_from_flat,
    strengths_from_shading,
)

#: Expected errors above the first value, in degrees, cause a warning. The second applies to errors from an unknown
#: perspective, where the outline of a small ball cannot rule out 6°.
_VAGUE, _TURNED = 1.0, 8.0
#: So do directions that change by more than this from the middle of the frame to its edge, in degrees.
_BENT = 3.0
#: Strengths of the lights of one capture differ by a smaller factor (measured: at most 4); more is an error.
_BELIEVABLE = 20.0


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
    picture: Picture | None = None  #: (h, w, 3) RGB: outlines, highlights and the hemisphere of directions
    #: if the lights are estimated, the relief may be too flat or too deep by this factor
    relief_factor: float | None = None

    @property
    def suspects(self) -> tuple[int, ...]:
        """Numbers of the photographs with warnings."""
        return suspects_of(self.warnings)

    def facts(self) -> dict[str, Any]:
        """Return the entries on the lights for ``summary.json``."""
        facts: dict[str, Any] = {
            "found_from": sorted(set(self.lights.source)),
            "strengths_from": self.lights.strengths_source,
            "expected_error_degrees": round(float(np.nanmean(self.lights.expected_error)), 2),
            "warnings": list(self.warnings),
            "warning_codes": [warning.code for warning in self.warnings],
        }
        if self.relief_factor is not None:
            facts["relief_factor"] = round(self.relief_factor, 2)
        return facts

    def seen_in(self, folder: str) -> Calibration:
        """Return the same calibration, with the folder of the balls added to the sources of the directions."""
        words = [f"{word} in {folder}" if "ball at" in word else word for word in self.lights.source]
        return replace(self, lights=self.lights.changed(source=words))

    def balls_mask(self) -> BoolArray:
        """Return the pixels of the balls, with a margin."""
        return np.asarray(np.logical_or.reduce([b.circle.with_margin(self.frame) for b in self.balls]))


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
    names = tuple(files) if files is not None else tuple(f"photograph {i + 1}" for i in range(len(images)))
    frame = (int(images.shape[1]), int(images.shape[2]))
    camera = None if focal is None else Camera.of_frame(focal, frame)
    balls = [_given_ball(images, circle, camera) for circle in circles]
    balls = balls or find_balls(images, camera=camera, control=control)
    if not balls:
        raise CaptureError(code="no-ball", remedy="give-ball")
    if scene is None:
        scene, mask = images, np.ones(frame, dtype=bool) if mask is None else mask.copy()
        for ball in balls:
            mask &= ~ball.circle.inside(frame, share=1.05)
    seen = sample_pixels(scene, mask)
    pixels = seen if len(seen) >= 300 and len(scene) >= 6 else None  # None if there are only balls
    found = combine_balls(balls, names)
    found.complete(pixels)
    doubts, residual = found.doubts, found.residual
    positions = light_positions(balls, frame)
    # As seen from the middle of the frame, not from the balls.
    directions = found.directions if positions is None else unit(positions)
    strengths, strengths_from = _strengths(scene, mask, balls, directions, card, pixels)
    factor = float(strengths.max() / strengths.min())
    if factor > _BELIEVABLE and strengths_from not in ("matte ball", "gray card"):
        doubts.append(Finding("strengths-implausible", source=strengths_from, factor=factor))
        strengths, strengths_from = np.ones(len(strengths)), "assumed to be equal"
    if positions is not None:
        distance = float(np.median(np.linalg.norm(positions, axis=1)))
        bend = float(np.degrees(np.arctan2(0.5 * max(frame), distance)))
        doubts += [Finding("near-lights", degrees=bend)] if bend > _BENT else []
    if not circles and float(np.median(residual)) > _VAGUE:
        doubts.append(Finding("faint-ball", degrees=float(np.median(residual))))
    if camera is None:
        trusted = [ball for ball in balls if ball.kind == "shiny"] or balls
        turned = np.hypot(*np.mean([unknown_perspective(ball.circle, frame) for ball in trusted], axis=0))
        residual = np.hypot(residual, turned)
        if turned > _TURNED:
            doubts.append(Finding("focal-length-unknown", degrees=float(np.median(residual))))
    return Calibration(
        files=names,
        lights=Lights(
            directions,
            positions=positions,
            strengths=strengths,
            expected_error=residual,
            source=found.sources,
            strengths_source=strengths_from,
        ),
        balls=tuple(balls),
        frame=frame,
        warnings=tuple(doubts),
        picture=calibration_picture(images, balls, directions, strengths, suspects_of(doubts)),
    )


def _given_ball(images: FloatArray, circle: Circle, camera: Camera | None) -> FoundBall:
    height, width = images.shape[1:]
    numbers = (circle.x, circle.y, circle.radius)
    words = "x {:g}, y {:g}, radius {:g}".format(*numbers)
    # Written so that NaN is rejected.
    if not 4 <= circle.radius <= 2 * max(height, width) or not circle.inside((height, width)).any():
        raise CaptureError(code="circle-outside", circle=numbers, words=words, width=width, height=height)
    ball = ball_at(images, circle, camera=camera, certain=True)
    if ball is None or not np.isfinite(ball.directions).any():
        raise CaptureError(code="circle-without-ball", circle=numbers, words=words)
    return ball


def _strengths(
    scene: FloatArray,
    mask: BoolArray | None,
    balls: Sequence[FoundBall],
    directions: FloatArray,
    card: Sequence[int] | None,
    pixels: FloatArray | None,
) -> tuple[FloatArray, str]:
    if card is not None:
        return strengths_from_card(scene, directions, card), "gray card"
    matte = [np.log(ball.strengths) for ball in balls if ball.strengths is not None]
    if matte:
        return np.exp(np.mean(matte, axis=0)), "matte ball"
    return strengths_of_scene(scene, mask, directions, pixels)


def strengths_of_scene(
    images: FloatArray, mask: BoolArray | None, directions: FloatArray, pixels: FloatArray | None
) -> tuple[FloatArray, str]:
    """Return strengths from the object in photographs (d, H, W), and their source.

    ``pixels`` are its :func:`.sample_pixels`, or None if too few of them are well exposed.
    """
    equal = np.ones(len(directions))
    if len(directions) < 6:
        return equal, "assumed to be equal"
    if pixels is None:
        # Each pixel is used in the photographs in which it is not white.
        pixels = sample_pixels(images, mask, overexposed=True)
        if len(pixels) < 300 or np.isfinite(pixels).sum(axis=0).min() < 100:
            return equal, "assumed to be equal"
        words = "brightness of the overexposed object, assumed to face the camera"
        return strengths_from_flat(pixels, directions), words
    if equal_strengths_suffice(pixels, directions):
        return equal, "equal (the shading of the object fits)"
    if solid_normals(as_gray(pixels), directions) is None:
        return strengths_from_flat(pixels, directions), "brightness of flat parts, assumed to face the camera"
    return strengths_from_shading(pixels, directions), "shading of the object"


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
    sources = [" and ".join(words) for words in zip(*(part.lights.source for part in shiny), strict=True)]
    found = Evidence(parts[0].files, mean, error, sources)
    worst = apart.max(axis=0)
    unlike = np.flatnonzero(worst > BALLS_DISAGREE)
    if len(unlike):
        found.doubt("balls-disagree", unlike.tolist(), degrees=2 * float(np.median(worst[unlike])))
    order = ("gray card", "matte ball", "shading of the object")
    every = [part.lights for part in parts]
    best = min(every, key=lambda lights: (*order, lights.strengths_source).index(lights.strengths_source))
    merged = shiny[0].lights.changed(
        directions=mean,
        expected_error=error,
        strengths=best.strengths,
        strengths_source=best.strengths_source,
        source=sources,
    )
    doubts = dict.fromkeys([*found.doubts, *(doubt for part in parts for doubt in part.warnings)])
    return replace(shiny[0], lights=merged, warnings=tuple(doubts))
