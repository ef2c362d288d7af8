"""Estimate lights from photographs and mask alone: directions, relative strengths, expected errors, and a verdict.

Photographs alone do not determine how deep the relief of a flat object is: steeper relief under lights closer to the
camera gives the same pictures. The network then relies on its training data, in which, among other things, light
strengths are equal or nearly so and the surface faces the camera on average.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import ArrayLike

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import Float32, FloatArray
from photostereo.core.errors import CaptureError
from photostereo.lights.lights import wrong_count
from photostereo.lights.unknown.crops import SYMMETRIES, Thumbnails
from photostereo.lights.unknown.network import LightNetwork, Look, shipped_weights, unit_vectors
from photostereo.lights.unknown.shading import TO_CAMERA, Frames, matte_normals

#: Minimum number of photographs; fewer did not occur in training.
LEAST_PHOTOGRAPHS = 4
#: Approximate number of photographs times symmetries to process: five seconds on two cores.
MOST_VIEWS = 400
#: Ratio of the expected error to the network's own figure, which is right for captures like those of its training; real
#: ones vary more. Over 291 rendered captures, with half of the weight on some with light from the ground, shake, spotlights
#: and the like, the likeliest factor is 1.16 (90 % between 1.05 and 1.28); it scales nothing else. See
#: benchmarks/README.md.
EVERYDAY = 1.15
#: Above this expected error, in degrees, lights are not usable. All of 20 rendered boards without relief are above, and 6
#: of 80 ordinary rendered scenes, whose true errors are 17 to 63; between 14 and 21 little changes.
UNUSABLE_ERROR = 17.0
#: Above this one, the user should check them.
DOUBTFUL_ERROR = 11.5
#: If no more than this share of the light differs between photographs, apart from brightness, they are all alike.
#: Rendered reliefs have 0.003 or more; with a light that does not move, three of four captures are below.
ALIKE = 0.002
#: Estimated directions that are spread over less than this, in degrees from their mean, come from one light. Rendered
#: scenes with moving lights are above 7 in 19 of 20 cases, with a single light below 4 in three of four.
ONE_LIGHT = 4.0
#: A matte fit that is off by this share of the brightness at half of the pixels, together with doubtful lights, means
#: photographs of different objects: this holds for most of 28 rendered mixtures, and for 5 of 80 other scenes.
FOREIGN_MISFIT = 0.4
#: Cells at the outline whose normals tilt less than this on average, in degrees, belong to a flat object: the surface
#: of a solid turns away from the camera there. None of 56 rendered solids is below, but 21 of 24 reliefs are.
FLAT_TILT = 35.0
#: A cell and its four neighbors.
CROSS = cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))


#: Why lights cannot be estimated, by code; a part of a sentence.
REASONS = {
    "all-alike": "all photographs look alike, as with a single light or a surface without relief",
    "not-one-object": "the photographs do not seem to show one object from one viewpoint",
    "large-error": "the estimate would be too inaccurate to be useful",
}


@dataclass(frozen=True)
class Verdict:
    """Assessment of estimated lights."""

    usable: bool
    #: Why not: ``"all-alike"`` (one light only, or a surface without relief), ``"not-one-object"``
    #: (photographs that do not belong together), ``"large-error"``. The last alone may also mean doubtful,
    #: but usable.
    reasons: tuple[str, ...]
    #: Whether the object is flat, so that the depth of its relief is assumed rather than seen.
    is_flat: bool
    depth_factor: float  #: The relief may be too flat or too deep by about this factor, 1 or more.


@dataclass(frozen=True, eq=False)
class UnknownLights:
    """Estimated lights and their accuracy."""

    #: (d, 3), unit, from the object to the light at the object's center; x right, y up, z toward the camera.
    directions: FloatArray
    strengths: FloatArray  #: (d,), relative, with geometric mean 1.
    #: (d,), expected error of each direction; 0 for given directions.
    expected_error_degrees: FloatArray
    expected_error: float  #: The mean over the lights that were not given.
    #: Whether the estimate is usable, and whether the object is flat, so that the depth of its relief is
    #: undetermined.
    verdict: Verdict


def estimate_lights(
    thumbnails: Thumbnails,
    *,
    known: ArrayLike | None = None,
    most_views: int = MOST_VIEWS,
    control: Control = SILENT,
) -> UnknownLights:
    """Estimate the light of every photograph; ``known`` directions (d, 3) are kept, and rows of NaN are estimated.

    It averages over symmetries of the square, as many as ``most_views`` photographs allow; the mean is more accurate.
    """
    images = thumbnails.images
    if len(images) < LEAST_PHOTOGRAPHS:
        found = len(images)
        least = LEAST_PHOTOGRAPHS
        words = f"Lights can be estimated from {least} photographs or more; there are {found}."
        raise CaptureError(words, code="too-few-photographs", found=found, least=least)
    if not float(images.max()) > 0:
        raise CaptureError("The object is black in every photograph.", code="black-photographs")
    if known is not None and np.shape(known) != (len(images), 3):
        raise wrong_count("The set", len(images), np.size(known) // 3)
    views = SYMMETRIES[
        : next((count for count in (8, 4, 2) if count * len(images) <= most_views), 1)
    ]
    network = LightNetwork(shipped_weights(), thumbnails, known)
    control.stage("estimating lights", total=2 * len(views))
    first: list[Look] = []
    for view in views:
        first.append(network.first_look(view))
        control.advance()
    begin = network.keep_known(unit_vectors(np.mean([look.lights for look in first], axis=0)))
    logs = np.mean([look.logs for look in first], axis=0)
    second: list[Look] = []
    for look, view in zip(first, views, strict=True):
        second.append(network.second_look(look, begin, logs, view))
        control.advance()
    final = unit_vectors(np.mean([look.lights for look in second], axis=0))
    directions = network.keep_known(final).astype(np.float64)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    log_errors = np.mean([look.log_errors for look in second], axis=0, dtype=np.float64)
    expected = np.where(network.is_known, 0.0, EVERYDAY * np.degrees(np.exp(log_errors)))
    overall = 0.0 if network.is_known.all() else float(expected[~network.is_known].mean())
    normals = unit_vectors(np.mean([look.normals for look in second], axis=0))
    strengths = np.exp(np.mean([look.logs for look in second], axis=0, dtype=np.float64))
    return UnknownLights(
        directions=directions,
        strengths=strengths,
        expected_error_degrees=expected,
        expected_error=overall,
        verdict=judge(
            network, directions, strengths, overall, normals * network.quarter.cover[..., None]
        ),
    )


def judge(
    network: LightNetwork,
    directions: FloatArray,
    strengths: FloatArray,
    expected_error: float,
    normals: Float32,
) -> Verdict:
    """Judge an estimate with this expected error in degrees and these coarse normals (h, w, 3)."""
    reasons = []
    if share_of_change(network.quarter) < ALIKE or spread_of(directions) < ONE_LIGHT:
        reasons.append("all-alike")
    elif expected_error > DOUBTFUL_ERROR:
        fit = matte_normals(
            network.half.gray, directions.astype(np.float32), strengths.astype(np.float32)
        )
        if np.median(fit.misfit[network.half.cover > 0]) > FOREIGN_MISFIT:
            reasons.append("not-one-object")
    usable = not reasons and expected_error <= UNUSABLE_ERROR
    if expected_error > DOUBTFUL_ERROR:
        reasons.append("large-error")
    inside = np.linalg.norm(normals, axis=-1) > 0
    outline = inside & (cv2.erode(inside.astype(np.uint8), CROSS, borderValue=0) == 0)
    is_flat = not outline.any() or _mean_angle(normals[outline], TO_CAMERA) < FLAT_TILT
    return Verdict(usable, tuple(reasons), is_flat, depth_factor(directions, expected_error))


def share_of_change(frames: Frames) -> float:
    """Return the share of the light that differs between photographs, each scaled to the same energy."""
    values = frames.gray[:, frames.cover > 0].astype(np.float64)
    values /= np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)
    energy = np.linalg.eigvalsh(values @ values.T)
    return 1 - float(energy[-1]) / max(float(energy.sum()), 1e-12)


def spread_of(directions: FloatArray) -> float:
    """Return the average distance of directions from their mean, in degrees."""
    mean = directions.mean(axis=0)
    return _mean_angle(directions, mean / max(float(np.linalg.norm(mean)), 1e-12))


def depth_factor(directions: FloatArray, expected_error: float) -> float:
    """Return the factor by which slopes are off if all lights are too high or too low by the expected error."""
    angle = _mean_angle(directions, TO_CAMERA)
    low, high = np.clip([angle, angle + expected_error], 5.0, 80.0)
    return float(np.tan(np.radians(high)) / np.tan(np.radians(low)))


def _mean_angle(vectors: FloatArray, axis: FloatArray) -> float:
    """Return the mean angle, in degrees, between unit vectors (n, 3) and a unit vector."""
    return float(np.degrees(np.arccos(np.clip(vectors @ axis, -1, 1))).mean())
