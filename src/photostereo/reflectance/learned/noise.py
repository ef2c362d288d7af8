"""How noisy the photographs of each pixel are: the noise of photons grows with brightness.

The residuals of least squares hold no texture. Their second difference over 2 × 2 pixels
(:func:`photostereo.diagnosis.noise.second_differences`) is zero on anything smooth and keeps white noise at its standard
deviation. The median of its absolute value over pixels of like brightness and all photographs is that noise; edges of
shadows and highlights, a few entries of each pixel, do not move it. Where the photographs have few levels, no noise is
smaller than that of their steps, step²/12.

What JPEG leaves hangs together over 8 × 8 pixels and escapes a difference of neighbors, yet is no misfit of a model: where
blocks are seen (:func:`photostereo.diagnosis.blocks.has_blocks`), the same is measured from block to block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.diagnosis.blocks import JPEG_SIDE, has_blocks
from photostereo.diagnosis.noise import second_differences, step_of_levels
from photostereo.runtime.arrays import Array, cast, like, namespace, to_numpy
from photostereo.runtime.order import interpolate, quantiles, row_quantiles

#: Median absolute deviation to standard deviation.
MAD_TO_SIGMA = 1.482602218505602
#: Classes of brightness, blocks and pixels that the estimate looks at.
CLASSES, BLOCKS, LEVELS_FROM = 8, 20_000, 20_000


#: Mean intensities of pixels, growing, and the noise variance of an intensity of such a pixel.
NoiseTable = tuple[NDArray[np.float64], NDArray[np.float64]]


def noise_variance(pixels: Array, lights: NDArray[Any], mask: NDArray[np.bool_]) -> Array:
    """Variance (N,) of one intensity of each pixel, from (N, d) intensities under (3, d) lights.

    Zero where three photographs leave no residual or the mask holds no 2 × 2 block.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> lights = np.array([[0.0, 0.5, 0.0, -0.5, 0.0], [0.0, 0.0, 0.5, 0.0, -0.5], [1.0, 0.9, 0.9, 0.9, 0.9]])
    >>> noisy = np.full((2500, 5), 0.5) * lights[2] + rng.normal(0, 0.05, (2500, 5))
    >>> round(float(np.sqrt(noise_variance(noisy, lights, np.ones((50, 50), bool)).mean())), 2)
    0.05
    """
    return variance_of(pixels, noise_table(pixels, lights, mask))


def variance_of(pixels: Array, table: NoiseTable | None) -> Array:
    """The variance (N,) that a table gives these pixels; zero without one."""
    if table is None:
        return namespace(pixels).zeros_like(pixels[:, 0])
    return cast(interpolate(_brightness(pixels), *table), "float32")


def _brightness(pixels: Array) -> Array:
    return pixels.clip(0.0).mean(1)


def noise_table(
    pixels: Array, lights: NDArray[Any], mask: NDArray[np.bool_], distance: int = 1
) -> NoiseTable | None:
    """The noise by brightness, as :func:`noise_variance` measures it; None where it cannot be told.

    ``distance`` is that of the pixels of a difference: 1, or 8 from block to block.
    """
    count = lights.shape[1]
    a, detail = second_differences(pixels, lights, mask, distance=distance, most=BLOCKS)
    if count <= 3 or not len(detail):
        return None
    detail = abs(detail) / np.sqrt(1.0 - 3.0 / count)
    brightness = _brightness(pixels)[like(a, pixels)]
    classes = quantiles(brightness, np.linspace(0, 1, CLASSES + 1).tolist())
    middle = 0.5 * (classes[1:] + classes[:-1])
    medians, told = [], []
    for low, high in zip(classes[:-1].tolist(), classes[1:].tolist(), strict=True):
        inside = detail[(brightness >= low) & (brightness <= high)]
        told.append(len(inside) > 0)  # with fewer blocks than classes some have none
        if told[-1]:
            medians.append(row_quantiles(inside.reshape(1, -1), 0.5)[0, 0])
    found = (MAD_TO_SIGMA * to_numpy(namespace(detail).stack(medians))) ** 2  # fetched once
    sample = pixels[:: max(1, len(pixels) // LEVELS_FROM)]
    steps = step_of_levels(sample) ** 2 / 12.0
    return np.asarray(middle[told], np.float64), np.maximum(found, steps)


def block_noise_table(pixels: Array, lights: NDArray[Any], mask: NDArray[np.bool_]) -> NoiseTable | None:
    """The noise by brightness from block to block, where the photographs have the blocks of JPEG; None elsewhere."""
    if lights.shape[1] <= 3 or not has_blocks(pixels, np.asarray(lights, np.float64), mask):
        return None
    return noise_table(pixels, lights, mask, JPEG_SIDE)
