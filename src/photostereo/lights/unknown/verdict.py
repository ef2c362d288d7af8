"""Judge whether estimated lights are usable, and what flat objects leave undetermined.

Photographs alone do not determine how deep the relief of a flat object is: steeper relief under lights closer to the
camera gives the same pictures. The network then relies on its training data, in which, among other things, light
strengths are equal or nearly so and the surface faces the camera on average.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import FloatArray
from photostereo.lights.unknown.crops import Thumbnails
from photostereo.lights.unknown.shading import Frames, frames_of, half_frames, matte_normals

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


def judge(
    thumbnails: Thumbnails,
    directions: FloatArray,
    strengths: FloatArray,
    expected_error: float,
    normals: NDArray[np.float32],
) -> Verdict:
    """Judge an estimate with this expected error in degrees and these coarse normals (h, w, 3)."""
    half = half_frames(frames_of(thumbnails.images, thumbnails.mask))
    reasons = []
    if share_of_change(half) < ALIKE or spread_of(directions) < ONE_LIGHT:
        reasons.append("all-alike")
    elif expected_error > DOUBTFUL_ERROR and typical_misfit(half, directions, strengths) > FOREIGN_MISFIT:
        reasons.append("not-one-object")
    usable = not reasons and expected_error <= UNUSABLE_ERROR
    if expected_error > DOUBTFUL_ERROR:
        reasons.append("large-error")
    is_flat = outline_tilt(normals) < FLAT_TILT
    return Verdict(usable, tuple(reasons), is_flat, depth_factor(directions, expected_error))


def share_of_change(frames: Frames) -> float:
    """Return the share of the light that differs between photographs, each scaled to the same energy."""
    values = half_frames(frames).gray[:, half_frames(frames).cover > 0].astype(np.float64)
    values /= np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)
    energy = np.linalg.eigvalsh(values @ values.T)
    return 1 - float(energy[-1]) / max(float(energy.sum()), 1e-12)


def spread_of(directions: FloatArray) -> float:
    """Return the average distance of directions from their mean, in degrees."""
    mean = directions.mean(axis=0)
    cosines = directions @ mean / max(float(np.linalg.norm(mean)), 1e-12)
    return float(np.degrees(np.arccos(np.clip(cosines, -1, 1))).mean())


def typical_misfit(frames: Frames, directions: FloatArray, strengths: FloatArray) -> float:
    """Return the median misfit of a matte fit over the pixels, as a share of the brightness."""
    fit = matte_normals(frames.gray, directions.astype(np.float32), strengths.astype(np.float32))
    return float(np.median(fit.misfit[frames.cover > 0]))


def outline_tilt(normals: NDArray[np.float32]) -> float:
    """Return the mean angle in degrees between the camera and the normals of the cells along the outline."""
    inside = np.linalg.norm(normals, axis=-1) > 0
    padded = np.pad(inside, 1)
    neighbors = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    edge = inside & ~neighbors
    if not edge.any():
        return 0.0
    return float(np.degrees(np.arccos(np.clip(normals[edge][:, 2], -1, 1))).mean())


def depth_factor(directions: FloatArray, expected_error: float) -> float:
    """Return the factor by which slopes are off if all lights are too high or too low by the expected error."""
    angle = float(np.degrees(np.arccos(np.clip(directions[:, 2], -1, 1))).mean())
    low, high = np.clip([angle, angle + expected_error], 5.0, 80.0)
    return float(np.tan(np.radians(high)) / np.tan(np.radians(low)))
