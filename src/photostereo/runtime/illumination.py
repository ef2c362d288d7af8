"""Products with lights: one (3, d) matrix that all pixels share, or (N, 3, d), one of each pixel; arrays of either kind.

Distant lights are the same everywhere. Near lights differ from pixel to pixel, and so does everything in the frame of a
pixel whose z axis is its own viewing ray. Models write these products once, for both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.runtime.arrays import Array, cast, contiguous, is_tensor, like


def shading(normals: Array, lights: Array) -> Array:
    """n·l of every pixel and light, (N, d), of (N, 3) vectors, or of several sets of them, (..., N, 3).

    >>> L = np.array([[0.0, 0.6], [0.0, 0.0], [1.0, 0.8]])
    >>> shading(np.array([[0.0, 0.0, 2.0]]), L), shading(np.array([[0.0, 0.0, 2.0]]), L[None])
    (array([[2. , 1.6]]), array([[2. , 1.6]]))
    """
    if lights.ndim == 2:
        return normals @ lights
    normals, lights = _alike(normals, lights)
    return (normals[..., None, :] @ lights)[..., 0, :]


def projected(values: Array, lights: Array) -> Array:
    """``L y`` of every pixel, (N, 3), of (N, d) values."""
    if lights.ndim == 2:
        return values @ lights.T
    values, lights = _alike(values, lights)
    return (lights @ values[:, :, None])[:, :, 0]


def gram_of(lights: NDArray[Any]) -> NDArray[Any]:
    """``L Lᵀ``: (3, 3), or (N, 3, 3) in double precision."""
    if lights.ndim == 2:
        return np.asarray(lights @ lights.T)
    return np.asarray(np.einsum("nij,nkj->nik", lights, lights, dtype=np.float64))


def pseudo_inverse(lights: NDArray[Any]) -> NDArray[Any]:
    """``Lᵀ(L Lᵀ)⁻¹``: (d, 3), or (N, d, 3)."""
    if lights.ndim == 2:
        return np.linalg.pinv(lights)
    return np.asarray(np.linalg.solve(gram_of(lights), lights).swapaxes(1, 2))


def least_squares(values: Array, lights: NDArray[Any]) -> Array:
    """The n of each pixel for which Lᵀn is closest to its values, (N, 3)."""
    return shading(values, like(pseudo_inverse(lights), values))


def without_matte(values: Array, lights: NDArray[Any]) -> Array:
    """What the closest matte surface leaves of (N, d) values."""
    return values - shading(least_squares(values, lights), like(lights, values))


def some_lights(lights: Array, which: Any) -> Array:
    """Those of some of the pixels."""
    return lights if lights.ndim == 2 else lights[which]


def mean_lights(lights: NDArray[Any]) -> NDArray[Any]:
    """(3, d): the mean over the pixels."""
    return lights if lights.ndim == 2 else lights.mean(axis=0, dtype=np.float64)


def _alike(one: Array, other: Array) -> tuple[Array, Array]:
    """Both in the higher precision of the two, as NumPy does by itself."""
    if not is_tensor(one) or one.dtype == other.dtype:
        return one, other
    return cast(one, "float64"), cast(other, "float64")


def for_loops(lights: Array) -> Array:
    """(1, 3, d) in double precision or (N, 3, d) as they are, contiguous: a compiled loop takes row min(i, len - 1)."""
    return contiguous(lights if lights.ndim == 3 else cast(lights, "float64")[None])
