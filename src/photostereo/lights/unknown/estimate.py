"""Estimate lights from photographs and mask alone: directions, relative strengths, and expected errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import FloatArray
from photostereo.core.errors import CaptureError
from photostereo.io.network_weights import Weights
from photostereo.lights.unknown.crops import SYMMETRIES, Thumbnails
from photostereo.lights.unknown.network import LightNetwork, Look, shipped_weights
from photostereo.lights.unknown.verdict import Verdict, judge

Float32 = NDArray[np.float32]

#: Minimum number of photographs; fewer did not occur in training.
LEAST_PHOTOGRAPHS = 4
#: Approximate number of photographs times symmetries to process: five seconds on two cores.
MOST_VIEWS = 400
#: Ratio of the expected error to the network's own figure, which is right for captures like those of its training; real
#: ones vary more. Over 291 rendered captures, with half of the weight on some with light from the ground, shake, spotlights
#: and the like, the likeliest factor is 1.16 (90 % between 1.05 and 1.28); it scales nothing else. See
#: benchmarks/README.md.
EVERYDAY = 1.15


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
    #: (h, w, 3), the coarse normals behind the estimate, zero outside the object. For checks, not for
    #: results.
    normals: Float32


def estimate_lights(
    thumbnails: Thumbnails,
    *,
    known: ArrayLike | None = None,
    weights: Weights | None = None,
    most_views: int = MOST_VIEWS,
    control: Control = SILENT,
) -> UnknownLights:
    """Estimate the light of every photograph; ``known`` directions (d, 3) are kept, and rows of NaN are estimated.

    It averages over symmetries of the square, as many as ``most_views`` photographs allow; the mean is more accurate.
    """
    images = thumbnails.images
    if len(images) < LEAST_PHOTOGRAPHS:
        raise CaptureError(
            f"Lights can be estimated from {LEAST_PHOTOGRAPHS} photographs or more; there are {len(images)}.",
            code="too-few-photographs",
            found=len(images),
            least=LEAST_PHOTOGRAPHS,
        )
    if not float(images.max()) > 0:
        raise CaptureError("The object is black in every photograph.", code="black-photographs")
    lights = np.full((len(images), 3), np.nan) if known is None else np.asarray(known, dtype=np.float64)
    if lights.shape != (len(images), 3):
        raise CaptureError(
            f"There are {len(images)} photographs, but the known directions have the shape {lights.shape}.",
            code="lights-count",
            found=lights.shape,
        )
    views = SYMMETRIES[: next((count for count in (8, 4, 2) if count * len(images) <= most_views), 1)]
    network = LightNetwork(shipped_weights() if weights is None else weights, thumbnails, lights)
    control.stage("estimating lights", total=2 * len(views))
    first: list[Look] = []
    for view in views:
        first.append(network.first_look(view))
        control.advance()
    begin = network.keep_known(_mean_direction([look.lights for look in first]))
    logs = np.mean([look.logs for look in first], axis=0)
    second: list[Look] = []
    for look, view in zip(first, views, strict=True):
        second.append(network.second_look(look, begin, logs, view))
        control.advance()
    directions = network.keep_known(_mean_direction([look.lights for look in second])).astype(np.float64)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    log_errors = np.mean([look.log_errors for look in second], axis=0, dtype=np.float64)
    expected = np.where(network.is_known, 0.0, EVERYDAY * np.degrees(np.exp(log_errors)))
    overall = 0.0 if network.is_known.all() else float(expected[~network.is_known].mean())
    normals = _mean_direction([look.normals for look in second]) * network.coarse_mask[..., None]
    strengths = np.exp(np.mean([look.logs for look in second], axis=0, dtype=np.float64))
    return UnknownLights(
        directions=directions,
        strengths=strengths,
        expected_error_degrees=expected,
        expected_error=overall,
        verdict=judge(thumbnails, directions, strengths, overall, normals),
        normals=normals,
    )


def _mean_direction(several: list[Any]) -> Float32:
    total = np.mean(several, axis=0)
    length = np.maximum(np.linalg.norm(total, axis=-1, keepdims=True), 1e-12)
    return np.asarray(total / length, dtype=np.float32)
