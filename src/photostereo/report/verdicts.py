"""What a method made of every pixel of every photograph: trusted or not, brighter or darker than it should be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from photostereo.core.conventions import FloatArray, gray_from_rgb
from photostereo.diagnosis.exposure import matte_fit
from photostereo.report import pictures
from photostereo.report.pictures import Frame

if TYPE_CHECKING:
    from photostereo.capture import Capture
    from photostereo.solver.reconstruction import Reconstruction

#: Names under which robust methods keep their weights, one for a pixel that fits and zero for an outlier.
WEIGHT_MAPS = ("inliers",)


@dataclass(frozen=True)
class Verdicts:
    """Maps of the photographs on one scale."""

    title: str  #: what the maps show
    ends: tuple[str, str]  #: words for the two ends of the scale
    #: low, high: its range
    low: float
    high: float
    maps: Sequence[FloatArray]  #: a small map for each photograph shown; NaN outside the object


def find_verdicts(
    result: Reconstruction,
    capture: Capture,
    chosen: Sequence[int],
    photographs: Sequence[FloatArray],
    frame: Frame,
) -> Verdicts:
    """The method's own weights or errors; for others, the photographs minus a matte surface with their normals.

    The ``photographs`` are those with the ``chosen`` numbers, cut to the frame and at least as large as its
    pictures, linear.
    """
    weights = next((result.maps[name] for name in WEIGHT_MAPS if name in result.maps), None)
    if weights is not None and weights.shape[-1] == len(capture):
        maps = [pictures.shrink_map(weights[..., j], capture.mask, frame) for j in chosen]
        return Verdicts("Weight of each pixel", ("0: an outlier", "1: trusted"), 0.0, 1.0, maps)
    errors = result.maps.get("errors")
    if errors is not None and errors.shape[-1] == len(capture):
        maps = [pictures.shrink_map(errors[..., j], capture.mask, frame) for j in chosen]
        return Verdicts("What the method took away", ("a shadow", "a highlight"), -0.5, 0.5, maps)
    gray = np.stack([_small_gray(photograph, frame) for photograph in photographs])
    words = ("darker than a matte surface", "brighter")
    maps = matte_differences(gray, result, capture.lights.directions[list(chosen)], frame)
    return Verdicts("Difference from the model", words, -0.75, 0.75, maps)


def matte_differences(
    images: FloatArray, result: Reconstruction, lights: FloatArray, frame: Frame
) -> list[FloatArray]:
    """Small gray photographs (d, h, w) minus the matte surface that fits them best, relative to each pixel's brightness."""
    normals, known = pictures.shrink_normals(result.normals, result.mask, frame)
    # Pixels that are partly background cannot be compared.
    known &= pictures.resize(frame.cut(result.mask).astype(np.float32), frame.height, frame.width) > 0.99
    fit = matte_fit(images, normals, lights, known)
    level = np.where(fit.brightness > 0, fit.brightness, 1.0)
    maps = []
    for image, light in zip(images, lights, strict=True):
        shading = np.maximum(normals[known] @ light, 0)
        difference = np.full(known.shape, np.nan, dtype=np.float32)
        difference[known] = (image[known] - fit.amplitude * shading) / level
        maps.append(difference)
    return maps


def _small_gray(photograph: FloatArray, frame: Frame) -> FloatArray:
    small = pictures.resize(photograph, frame.height, frame.width)
    return gray_from_rgb(small) if small.ndim == 3 else small
