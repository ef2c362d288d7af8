"""Pictures of the photographs' own noise, with the correlation that it has in space.

Noise of a sensor is white. What JPEG leaves of it, and what it adds, hangs together over 8 × 8 pixels; so does the
noise of a picture that was made smaller or larger. A prior looks at patches, so it matters. It need not be guessed:
d photographs have d − 3 combinations in which a matte surface cancels. Each is a picture of nothing but noise and
misfit, as it really is in space.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.runtime.arrays import Array, like, to_numpy
from photostereo.runtime.illumination import mean_lights, without_matte, without_shading
from photostereo.runtime.order import MAD_TO_SIGMA

#: Standard deviations at which entries of a field are cut off: shadows and highlights.
WIDEST = 3.0
#: Pixels that are mixed at a time.
BLOCK = 4096


def noise_fields(pixels: Array, lights: NDArray[Any], noise: float, seed: int = 0) -> Array:
    """(N, 3) three fields of noise of unit power, from (N, d) intensities under (3, d) lights.

    ``noise`` is their standard deviation, measured over neighbors. Where the fields have more power, smooth misfits
    are in them, and their fine part is what has unit power.

    Combinations of photographs that cancel a matte surface, orthogonal where there are six photographs or more; with
    three photographs, which have none, white noise.
    """
    rng = np.random.default_rng(seed)
    pixels, lights = _shared(pixels, lights)
    rest = without_shading(lights)
    if not len(rest):
        return like(rng.standard_normal((len(pixels), 3)), pixels)
    # The same light keeps its part, in whatever order the photographs come.
    mixture = rest.T @ (rest @ rng.standard_normal((lights.shape[1], 3))[np.argsort(np.lexsort(lights))])
    if len(rest) >= 3:  # by Cholesky: the signs of a QR would go by the order
        mixture = np.linalg.solve(np.linalg.cholesky(mixture.T @ mixture), mixture.T).T
    else:
        mixture = mixture / np.linalg.norm(mixture, axis=0)
    intensities = to_numpy(pixels)
    fields = np.empty((len(intensities), 3))
    for first in range(0, len(fields), BLOCK):  # in double precision, a part that stays in the cache
        fields[first : first + BLOCK] = intensities[first : first + BLOCK] @ mixture
    return like(_of_unit_power(fields, noise), pixels)


def more_noise(pixels: Array, lights: NDArray[Any], noise: float, seed: int = 0) -> Array:
    """(N, d) as much noise as the (N, d) intensities have, of the same kind but not the same: to be added to them.

    What a matte surface leaves of the photographs, turned by a rotation drawn at random, so that each of d photographs gets
    some of all; ``noise`` is its standard deviation.
    """
    rng = np.random.default_rng(seed)
    pixels, lights = _shared(pixels, lights)
    count = lights.shape[1]
    rest = without_shading(lights)
    if not len(rest):
        return like((noise * rng.standard_normal(pixels.shape)).astype(np.float32), pixels)
    order = np.argsort(np.lexsort(lights))  # the same light keeps its part, in whatever order they come
    turned = rng.standard_normal((count, count))
    turned = np.linalg.solve(np.linalg.cholesky(turned @ turned.T), turned)  # its rows are orthonormal
    mixture = rest.T @ (rest @ turned[order][:, order])
    fields = (to_numpy(pixels) @ mixture.astype(np.float32)) * np.float32(np.sqrt(count / len(rest)))
    return like((noise * _of_unit_power(fields, noise)).astype(np.float32), pixels)


def _shared(pixels: Array, lights: NDArray[Any]) -> tuple[Array, NDArray[Any]]:
    """Pixels and (3, d) lights; if each pixel has lights of its own, what they leave, and the mean lights."""
    return (pixels, lights) if lights.ndim == 2 else (without_matte(pixels, lights), mean_lights(lights))


def _of_unit_power(fields: NDArray[Any], noise: float) -> NDArray[Any]:
    """Fields (N, k) without their widest entries, their fine part of unit power."""
    widest = WIDEST * MAD_TO_SIGMA * np.median(np.abs(fields), axis=0)
    fields = np.clip(fields, -widest, widest)
    size = np.minimum(np.sqrt(np.mean(fields * fields, axis=0)), noise)
    return np.asarray(fields / np.where(size > 0, size, 1.0))
