"""Noise of each pixel by its brightness: the noise of photons grows with the light.

The residuals of least squares hold no texture. Their second difference over 2 × 2 pixels
(:func:`photostereo.diagnosis.noise.second_differences`) is zero on anything smooth and keeps white noise at its standard
deviation. The median of its absolute value over pixels of similar brightness and all photographs is that noise; edges of
shadows and highlights, a few entries of each pixel, do not move it. If the photographs have few levels, no noise is
smaller than that of their steps, step²/12.

JPEG leaves errors that are correlated over 8 × 8 pixels. They escape a difference of neighbors, yet are no misfit of a
model: if blocks are detected (:func:`photostereo.diagnosis.blocks.has_blocks`), the noise is also measured from block to
block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.diagnosis.blocks import JPEG_SIDE, has_blocks
from photostereo.diagnosis.noise import second_differences, step_of_levels
from photostereo.runtime.arrays import Array, cast, like, namespace, to_numpy
from photostereo.runtime.order import interpolate, quantiles, row_quantiles

#: Median absolute deviation to standard deviation.
MAD_TO_SIGMA = 1.482602218505602
#: Classes of brightness, and the number of blocks and pixels that the estimate uses.
CLASSES, BLOCKS, LEVELS_FROM = 8, 20_000, 20_000

#: Mean intensities of pixels, growing, and the noise variance of an intensity of such a pixel.
NoiseTable = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Noise:
    """The noise of a capture, measured once and used by light strengths, models and priors.

    >>> rng = np.random.default_rng(0)
    >>> lights = np.array([[0.0, 0.5, 0.0, -0.5, 0.0], [0.0, 0.0, 0.5, 0.0, -0.5], [1.0, 0.9, 0.9, 0.9, 0.9]])
    >>> noisy = np.full((2500, 5), 0.5) * lights[2] + rng.normal(0, 0.05, (2500, 5))
    >>> noise = Noise.measure(noisy, lights, np.ones((50, 50), bool))
    >>> round(float(np.sqrt(noise.variance(noisy).mean())), 2), noise.coarse
    (0.05, None)
    """

    #: noise between neighboring pixels, by brightness; None if it cannot be measured
    fine: NoiseTable | None = None
    #: noise from one block of a JPEG file to the next, by brightness; None without such blocks
    coarse: NoiseTable | None = None

    @classmethod
    def measure(
        cls, pixels: Any, lights: NDArray[Any], mask: NDArray[np.bool_], *, blocks: bool = True
    ) -> Noise:
        """The noise of (N, d) intensities of the mask's pixels under (3, d) lights; also over ``blocks`` if asked for."""
        coarse = None
        if blocks and lights.shape[-1] > 3 and has_blocks(pixels, lights, mask):
            coarse = noise_table(pixels, lights, mask, JPEG_SIDE)
        return cls(noise_table(pixels, lights, mask), coarse)

    def variance(self, pixels: Array) -> Array:
        """(N,) the variance of one intensity of each pixel from fine noise; zero if that was not measured."""
        return _looked_up(self.fine, pixels)

    def at(self, pixels: Array) -> PixelNoise:
        """The noise of (N, d) intensities as the camera recorded them."""
        return PixelNoise(
            self.variance(pixels), None if self.coarse is None else _looked_up(self.coarse, pixels)
        )


@dataclass(frozen=True, eq=False)
class PixelNoise:
    """The variance (N,) of one intensity of each pixel from fine noise, and from block to block if there are blocks."""

    fine: Array
    coarse: Array | None = None


def _looked_up(table: NoiseTable | None, pixels: Array) -> Array:
    if table is None:
        return namespace(pixels).zeros_like(pixels[:, 0])
    return cast(interpolate(_brightness(pixels), *table), "float32")


def _brightness(pixels: Array) -> Array:
    return pixels.clip(0.0).mean(1)


def noise_table(
    pixels: Any, lights: NDArray[Any], mask: NDArray[np.bool_], distance: int = 1
) -> NoiseTable | None:
    """Noise by brightness; None if three photographs leave no residual or the mask holds no block.

    ``distance`` is that between the pixels of a difference: 1, or 8 from block to block.
    """
    count = lights.shape[-1]
    a, detail = second_differences(pixels, lights, mask, distance=distance, most=BLOCKS)
    if count <= 3 or not len(detail):
        return None
    detail = abs(detail) / np.sqrt(1.0 - 3.0 / count)
    brightness = _brightness(pixels[like(a, detail)])
    edges = quantiles(brightness, np.linspace(0, 1, CLASSES + 1).tolist())
    middle = 0.5 * (edges[1:] + edges[:-1])
    medians, filled = [], []
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        inside = detail[(brightness >= low) & (brightness <= high)]
        filled.append(len(inside) > 0)  # with fewer blocks than classes some are empty
        if filled[-1]:
            medians.append(row_quantiles(inside.reshape(1, -1), 0.5)[0, 0])
    found = (MAD_TO_SIGMA * to_numpy(namespace(detail).stack(medians))) ** 2  # copied from a GPU once
    sample = pixels[:: max(1, len(pixels) // LEVELS_FROM)]
    steps = step_of_levels(sample) ** 2 / 12.0
    return np.asarray(middle[filled], np.float64), np.maximum(found, steps)
