"""Shrink a capture to a few thousand pixels and fit a matte surface to it: enough to check lights."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray, gray_from_rgb
from photostereo.runtime.illumination import weighted_least_squares

#: Pixels along the longer side of the object.
SIDE = 64
#: A pixel whose brightness is below this share of the typical one is not informative.
DIM = 0.05


class Thumbnail(NamedTuple):
    """The mask's bounding box on a coarse grid."""

    values: FloatArray  #: (d, N) mean brightness of the mask pixels in each cell of the mask
    mask: BoolArray  #: (h, w) cells of which at least half is mask


def shrink(images: FloatArray, mask: BoolArray, side: int = SIDE) -> Thumbnail:
    """Average a stack (d, H, W) or (d, H, W, 3) over cells, so that the mask's longer side has ``side`` of them.

    Large photographs are sampled first (three pixels along a cell's side): only the shading matters.
    """
    rows = np.flatnonzero(mask.any(axis=1))
    cols = np.flatnonzero(mask.any(axis=0))
    cell = max(1, -(-max(rows[-1] - rows[0], cols[-1] - cols[0]) // side))
    step = max(1, cell // 3)
    box = (slice(rows[0], rows[-1] + 1, step), slice(cols[0], cols[-1] + 1, step))
    weight = mask[box].astype(np.float32)
    size = tuple(max(1, round(length * step / cell)) for length in weight.shape[::-1])
    share = cv2.resize(weight, size, interpolation=cv2.INTER_AREA)
    inside = np.asarray(share >= 0.5)
    values = np.empty((len(images), int(inside.sum())))
    for target, image in zip(values, images, strict=True):
        gray = gray_from_rgb(image[box]) if image.ndim == 3 else image[box]
        small = cv2.resize(
            np.asarray(gray * weight, np.float32), size, interpolation=cv2.INTER_AREA
        )
        target[:] = small[inside]
    return Thumbnail(values / share[inside], inside)


def matte_fit(
    values: FloatArray, lights: FloatArray, *, top: float = 0.9, bottom: float = 0.12
) -> tuple[FloatArray, FloatArray]:
    """Fit a matte surface to the middle range of each pixel's values; return scaled normals (N, 3) and the misfit (N,).

    Values above the pixel's ``top`` quantile may be highlights, and values below ``bottom`` of that shadows; both
    are left out. The misfit is the share of the variation over the photographs that is unexplained.
    """
    count = len(lights)
    ordered = np.sort(values, axis=0)
    # At least four brightnesses are kept.
    bright = ordered[min(max(int(np.ceil(top * count)) - 1, 3), count - 1)]
    kept = ((values <= bright) & (values > bottom * bright)).astype(np.float64)
    kept[:, kept.sum(axis=0) < 4] = 1
    normals = weighted_least_squares(values.T, lights.T, kept.T)
    left = (kept * (values - lights @ normals.T) ** 2).sum(axis=0)
    mean = (kept * values).sum(axis=0) / kept.sum(axis=0)
    varied = (kept * (values - mean) ** 2).sum(axis=0)
    return normals, left / np.maximum(varied, 1e-9 * np.maximum(mean, 1e-30) ** 2)


def bright_enough(values: FloatArray) -> BoolArray:
    """Return which pixels (N,) are bright enough to be informative; negative values count as no light."""
    size = np.linalg.norm(np.maximum(values, 0), axis=0)
    return np.asarray((size > DIM * np.percentile(size, 95)) & (size > 0))
