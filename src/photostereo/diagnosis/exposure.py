"""Shadows, saturation and fit of the photographs, pixel by pixel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, FloatArray, gray_from_rgb
from photostereo.runtime.illumination import PixelLights, least_squares
from photostereo.runtime.threads import in_turn, processors

#: A photograph counts as dark at a pixel below this share of the pixel's mean over all photographs ...
DARK_SHARE_OF_MEAN = 0.1
#: ... or below this share of the capture's brightness.
DARK_SHARE_OF_SCALE = 0.005
#: A photograph is dim below this share of the brightest one's brightness. On 72 rendered captures, changing these three
#: by 30 % changes no finding.
DIM_SHARE = 0.1
# A photograph is saturated if many pixels lie at its maximum, more than just below it. The numbers in parentheses count
# the captures, of 180 rendered ones, clipped or not, on which a change of 30 % changes whether saturation is reported.
#: Pixels above this share of the maximum are at the maximum (2, for 30 % of the distance from 1).
AT_TOP = 0.999
#: Pixels between this share and the maximum are just below it (9, likewise).
JUST_BELOW = 0.975
#: Fewest pixels at the maximum (none).
FEWEST = 8
#: Pixels at the maximum for each pixel just below it (10).
PEAK = 0.5
#: Number of pixels for measuring the brightness of a photograph, up to twice as many.
SAMPLED = 5_000
#: Pixels whose photographs fit in the cache together.
BLOCK = 1024
#: Pixels per thread and turn.
TOGETHER = 1 << 16


def dark_counts(images: FloatArray, mask: BoolArray, scale: float) -> NDArray[np.int32]:
    """Count the gray photographs (d, H, W) in which each mask pixel is dark; -1 outside the mask.

    Shadow is relative to the pixel's mean, so that dark paint in full light does not count as shadow.
    """
    mean = np.mean(images, axis=0, dtype=np.float32)
    threshold = np.maximum(DARK_SHARE_OF_MEAN * mean, np.float32(DARK_SHARE_OF_SCALE * scale))
    count = np.zeros(mask.shape, dtype=np.int32)
    for image in images:
        count += image <= threshold
    count[~mask] = -1
    return count


def dim_photographs(images: FloatArray, mask: BoolArray) -> tuple[int, ...]:
    """Numbers, from 1, of the photographs whose brightest parts are below a tenth of the brightest photograph's.

    A light that failed, or an exposure that was too short, shows here; :func:`dark_counts` misses pixels that are dark in
    most photographs.
    """
    index = np.flatnonzero(mask)
    index = index[:: max(1, len(index) // SAMPLED)]
    bright = np.percentile(images.reshape(len(images), -1)[:, index], 99, axis=1)
    return tuple(int(number) + 1 for number in np.flatnonzero(bright < DIM_SHARE * bright.max()))


def saturation_share(images: FloatArray, mask: BoolArray) -> tuple[float, FloatArray]:
    """Share of saturated values inside the mask, overall and per photograph.

    The ceiling of the sensor is unknown (photographs are divided by strengths), but saturation leaves a mark: many pixels
    at the photograph's maximum, and few just below. A completely uniform photograph (a plane) is not counted.
    """
    index = None if mask.all() else np.flatnonzero(mask)

    def share(number: int) -> float:
        inside = images[number].ravel() if index is None else np.take(images[number], index)
        top = float(inside.max())
        if top <= 0:
            return 0.0
        at_top = np.count_nonzero(inside >= AT_TOP * top)
        below = np.count_nonzero(inside >= JUST_BELOW * top) - at_top
        if at_top < FEWEST or at_top <= PEAK * below or at_top >= 0.5 * inside.size:
            return 0.0
        return at_top / inside.size

    shares = np.array(list(in_turn(share, len(images), processors())))
    return float(shares.mean()), shares


@dataclass(frozen=True, eq=False)
class MatteFit:
    """A matte surface fitted to each mask pixel."""

    amplitude: FloatArray  #: (N,) the best factor between shading and photographs
    brightness: FloatArray  #: (N,) root mean square of the pixel over the photographs
    residual: FloatArray  #: (N,) unexplained share of the brightness, in [0, 1]


def matte_fit(
    images: FloatArray,
    normals: FloatArray,
    lights: PixelLights,
    mask: BoolArray,
    control: Control = SILENT,
) -> MatteFit:
    """Fit a matte surface with given normals to the photographs, gray or in color, of each mask pixel.

    Minimizes ``Σ_j (y_j − a s_j)²`` over ``a``, with ``s_j = max(n·l_j, 0)``: ``a = Σ y s / Σ s²``, and the residual
    is ``sqrt( Σ (y − a s)² / Σ y² )``: 0 is a perfect fit, 1 is none at all.
    """
    lights = lights._replace(matrix=lights.matrix.astype(np.float32))
    index = np.flatnonzero(mask)
    channels = images.shape[1 + mask.ndim :]
    flat = images.reshape(len(images), mask.size, *channels)
    facing = normals.reshape(-1, 3)
    amplitude, brightness, residual = (np.empty(len(index), np.float32) for _ in range(3))

    def fit(part: slice) -> None:
        # np.take gives the same memory order as the shading; indexing would not.
        values = flat[:, part] if len(index) == mask.size else np.take(flat, index[part], axis=1)
        values = gray_from_rgb(values) if values.ndim == 3 else values
        pixels = facing[index[part]].astype(np.float32)
        shading = np.maximum(lights.some(part).shading(pixels).T, 0, order="C")
        squares = np.einsum("jn,jn->n", values, values)
        shading_squares = np.einsum("jn,jn->n", shading, shading)
        products = np.einsum("jn,jn->n", values, shading)
        lit = shading_squares > 0
        bright = squares > 0
        factor = np.divide(products, shading_squares, out=np.zeros_like(products), where=lit)
        share = 1.0 - np.divide(factor * products, squares, out=np.ones_like(squares), where=bright)
        amplitude[part] = factor
        brightness[part] = np.sqrt(squares / len(images))
        residual[part] = np.sqrt(np.clip(share, 0, 1))

    def fit_blocks(number: int) -> None:
        for first in range(number * TOGETHER, min((number + 1) * TOGETHER, len(index)), BLOCK):
            fit(slice(first, first + BLOCK))

    for _ in in_turn(fit_blocks, -(-len(index) // TOGETHER), processors(), control):
        control.check()
    return MatteFit(amplitude, brightness, residual)


def least_squares_normals(images: FloatArray, lights: PixelLights, mask: BoolArray) -> FloatArray:
    """Unnormalized least-squares normals (H, W, 3) of the mask pixels under these lights."""
    values = images.reshape(len(images), -1).T
    normals = np.zeros((mask.size, 3), np.float32)
    # Avoids a copy of the photographs if all pixels have the same lights.
    where = slice(None) if lights.matrix.ndim == 2 else np.flatnonzero(mask)
    normals[where] = lights.in_camera(least_squares(values[where], lights.matrix))
    return normals.reshape(*mask.shape, 3)


def typical_residual(normals: FloatArray, capture: Capture) -> float:
    """Median, over an even sample of pixels, of the share of the brightness that a matte surface leaves unexplained."""
    capture = capture.evened()
    index = np.flatnonzero(capture.mask)
    index = index[:: max(1, len(index) // 15_000)]
    images = capture.images.reshape(len(capture), -1, *capture.images.shape[3:])[:, index]
    facing = normals.reshape(-1, 3)[index]
    everything = np.ones(len(index), dtype=bool)
    return float(
        np.median(matte_fit(images, facing, capture.lights_at(index), everything).residual)
    )
