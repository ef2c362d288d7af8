"""Noise fields taken from the photographs, with their actual spatial correlation.

Sensor noise is white. JPEG removes some of it and adds errors that are correlated over 8 × 8 pixels; resized pictures
have correlated noise, too. A prior works on patches, so the correlation matters. It need not be guessed:
d photographs have d − 3 combinations in which a matte surface cancels. Each shows only noise and
misfit, with the actual spatial correlation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import FloatArray, Indices
from photostereo.runtime.arrays import Array, like, to_numpy
from photostereo.runtime.illumination import mean_lights, without_matte
from photostereo.runtime.quantiles import MAD_TO_SIGMA

#: Standard deviations at which entries of a field are clipped: shadows and highlights.
WIDEST = 3.0
#: Pixels to mix at a time.
BLOCK = 4096


def noise_fields(pixels: Array, lights: NDArray[Any], noise: float) -> Array:
    """Three noise fields of unit power (N, 3), from (N, d) intensities under (3, d) lights.

    ``noise`` is their standard deviation, measured between neighbors. If the fields have more power, they contain smooth
    misfits; then only their fine part has unit power.

    The fields are combinations of photographs that cancel a matte surface, orthogonal for six photographs or more. Three
    photographs have none; the fields are then white noise.
    """
    rng = np.random.default_rng(0)
    pixels, lights, rest, order = _shared(pixels, lights)
    if not len(rest):
        return like(rng.standard_normal((len(pixels), 3)), pixels)
    mixture = rest.T @ (rest @ rng.standard_normal((lights.shape[1], 3))[order])
    if len(rest) >= 3:  # Cholesky: the signs of a QR depend on the order
        mixture = np.linalg.solve(np.linalg.cholesky(mixture.T @ mixture), mixture.T).T
    else:
        mixture = mixture / np.linalg.norm(mixture, axis=0)
    intensities = to_numpy(pixels)
    fields = np.empty((len(intensities), 3))
    for first in range(0, len(fields), BLOCK):  # double precision, in parts that fit in the cache
        fields[first : first + BLOCK] = intensities[first : first + BLOCK] @ mixture
    return like(_of_unit_power(fields, noise), pixels)


def more_noise(pixels: Array, lights: NDArray[Any], noise: float) -> Array:
    """Return (N, d) more noise of the same kind and power as the (N, d) intensities have, to be added to them.

    The residuals of a matte fit are mixed by a random rotation, so that each of the d photographs gets
    a part of all; ``noise`` is their standard deviation.
    """
    rng = np.random.default_rng(0)
    pixels, lights, rest, order = _shared(pixels, lights)
    count = lights.shape[1]
    if not len(rest):
        return like((noise * rng.standard_normal(pixels.shape)).astype(np.float32), pixels)
    turned = rng.standard_normal((count, count))
    turned = np.linalg.solve(
        np.linalg.cholesky(turned @ turned.T), turned
    )  # its rows are orthonormal
    mixture = rest.T @ (rest @ turned[order][:, order])
    fields = (to_numpy(pixels) @ mixture.astype(np.float32)) * np.float32(
        np.sqrt(count / len(rest))
    )
    return like((noise * _of_unit_power(fields, noise)).astype(np.float32), pixels)


def _shared(pixels: Array, lights: NDArray[Any]) -> tuple[Array, NDArray[Any], FloatArray, Indices]:
    """Pixels, (3, d) lights, the combinations (d - 3, d) in which a matte surface cancels, and a fixed order of the lights.

    If lights differ between pixels, these are their matte residuals and the mean lights. With the order, each light keeps
    its random coefficients, whatever the order of the photographs.
    """
    if lights.ndim > 2:
        pixels = without_matte(pixels, lights)
        lights = mean_lights(lights)
    rest = np.linalg.svd(np.asarray(lights, dtype=np.float64))[2][3:]  # orthonormal rows
    return pixels, lights, rest, np.argsort(np.lexsort(lights))


def _of_unit_power(fields: NDArray[Any], noise: float) -> NDArray[Any]:
    """Clip the fields (N, k) and scale their fine part to unit power."""
    widest = WIDEST * MAD_TO_SIGMA * np.median(np.abs(fields), axis=0)
    fields = np.clip(fields, -widest, widest)
    size = np.minimum(np.sqrt(np.mean(fields * fields, axis=0)), noise)
    return np.asarray(fields / np.where(size > 0, size, 1.0))
