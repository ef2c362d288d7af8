"""Products with lights: one (3, d) matrix shared by all pixels, or (N, 3, d), one per pixel; arrays of either kind.

Distant lights are the same everywhere. Near lights differ from pixel to pixel, and so does everything in a per-pixel
frame whose z axis is the viewing ray. These functions handle both cases, so that models need not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import Float32, FloatArray
from photostereo.runtime.arrays import (
    Array,
    cast,
    contiguous,
    empty,
    is_tensor,
    like,
    tensor_batches,
)


def shading(normals: Array, lights: Array) -> Array:
    """Return n·l of every pixel and light, (N, d), for vectors (N, 3) or several sets of them (..., N, 3)."""
    normals, lights = _alike(normals, lights)
    if lights.ndim == 2:
        return normals @ lights
    return (normals[..., None, :] @ lights)[..., 0, :]


def projected(values: Array, lights: Array) -> Array:
    """Return ``L y`` of every pixel, (N, 3), for values (N, d)."""
    values, lights = _alike(values, lights)
    if lights.ndim == 2:
        return values @ lights.T
    return (lights @ values[:, :, None])[:, :, 0]


def project(pixels: Array, lights: Array) -> Array:
    """Return ``L y`` of every pixel, (N, 3) in double precision.

    NumPy multiplies in the precision of the photographs, which is fast; a GPU in double precision, which also avoids TF32.
    """
    if not is_tensor(pixels):
        return projected(pixels, lights.astype(pixels.dtype)).astype(np.float64)
    directions = like(np.asarray(lights, dtype=np.float64), pixels)
    out = empty((len(pixels), 3), pixels)
    for part in tensor_batches(pixels):
        out[part] = projected(cast(pixels[part], "float64"), some_lights(directions, part))
    return out


def squared_lengths(pixels: Array) -> Array:
    """Return ``|y|²`` of every pixel, (N,) in double precision."""
    if not is_tensor(pixels):
        return np.einsum("ij,ij->i", pixels, pixels).astype(np.float64)
    out = empty((len(pixels),), pixels)
    for part in tensor_batches(pixels):
        values = cast(pixels[part], "float64")
        out[part] = (values * values).sum(1)
    return out


def gram_of(lights: NDArray[Any]) -> NDArray[Any]:
    """Return ``L Lᵀ``: (3, 3), or (N, 3, 3) in double precision."""
    if lights.ndim == 2:
        return np.asarray(lights @ lights.T)
    return np.asarray(np.einsum("nij,nkj->nik", lights, lights, dtype=np.float64))


def pseudo_inverse(lights: NDArray[Any]) -> NDArray[Any]:
    """Return ``Lᵀ(L Lᵀ)⁻¹``: (d, 3), or (N, d, 3)."""
    if lights.ndim == 2:
        return np.linalg.pinv(lights)
    return np.asarray(np.linalg.solve(gram_of(lights), lights).swapaxes(1, 2))


def least_squares(values: Array, lights: NDArray[Any]) -> Array:
    """Return the n (N, 3) of each pixel for which Lᵀn is closest to its values, in their precision."""
    inverse = like(pseudo_inverse(lights), values)
    return shading(values, cast(inverse, str(values.dtype).removeprefix("torch.")))


def weighted_least_squares(
    values: FloatArray, lights: FloatArray, weight: FloatArray
) -> FloatArray:
    """Return the n (N, 3) for which Lᵀn is closest to weighted values, for NumPy arrays.

    Parameters
    ----------
    values : (N, d) array
        Intensities.
    lights : (3, d) or (N, 3, d) array
        L
    weight : (N, d) array
        The weight of each squared residual.
    """
    # L_i L_jᵀ for each light, nine numbers.
    products = lights[..., :, None, :] * lights[..., None, :, :]
    products = products.reshape(*lights.shape[:-2], 9, -1)
    moment = projected(weight, products).reshape(-1, 3, 3)
    # Small enough to matter only for pixels that the weights leave undetermined.
    moment += 1e-9 * np.eye(3) * np.maximum(np.trace(moment, axis1=1, axis2=2), 1e-9)[:, None, None]
    right = projected(weight * values, lights)
    return np.asarray(np.linalg.solve(moment, right[..., None])[..., 0])


def without_matte(values: Array, lights: NDArray[Any], chosen: Any = slice(None)) -> Array:
    """Return the residuals of values from the closest matte surface.

    Parameters
    ----------
    values : (N, d) array
        Intensities.
    lights : (3, d) or (N, 3, d) array
        Their lights.
    chosen : index
        Photographs whose residuals are returned; all are used in the fit.
    """
    normals = least_squares(values, lights)
    return values[:, chosen] - shading(normals, like(lights[..., chosen], values))


def some_lights(lights: Array, which: Any) -> Array:
    """Return the lights of some of the pixels."""
    if lights.ndim == 2:
        return lights
    return lights[which]


def mean_lights(lights: NDArray[Any]) -> NDArray[Any]:
    """Return the mean over the pixels, (3, d)."""
    if lights.ndim == 2:
        return lights
    return np.asarray(lights.mean(axis=0, dtype=np.float64))


def _alike(one: Array, other: Array) -> tuple[Array, Array]:
    """Return both arrays in the higher of the two precisions, as NumPy does automatically."""
    if not is_tensor(one) or one.dtype == other.dtype:
        return one, other
    return cast(one, "float64"), cast(other, "float64")


def for_loops(lights: Array) -> Array:
    """Return (1, 3, d) in double precision or (N, 3, d) unchanged, contiguous: compiled loops use row min(i, len - 1)."""
    if lights.ndim == 2:
        lights = cast(lights, "float64")[None]
    return contiguous(lights)


class PixelLights(NamedTuple):
    """Lights as seen from N pixels."""

    #: (3, d), or (N, 3, d) for near lights: unit columns, in a frame whose z axis points to the camera
    matrix: NDArray[Any]
    #: (N, d) brightness relative to the distance at which the strengths hold; None for distant lights
    fall_off: Float32 | None = None
    #: (N, 3, 3) from the camera's frame to that of each pixel; None if all view rays are parallel
    turn: Float32 | None = None

    def some(self, which: Any) -> PixelLights:
        """Return the lights of some of the pixels."""
        if self.matrix.ndim == 2:
            return self
        return PixelLights(*(None if part is None else part[which] for part in self))  # type: ignore[arg-type]

    def shading(self, normals: Array) -> Array:
        """Return n·l (N, d) of normals (N, 3) in the camera's frame."""
        return shading(self.in_view(normals), like(self.matrix, normals))

    def even(self, values: Array) -> Array:
        """Divide intensities (N, d) or (N, d, 3) by the fall-off, in place."""
        if self.fall_off is None:
            return values
        fall_off = self.fall_off if values.ndim == 2 else self.fall_off[..., None]
        values /= like(fall_off, values)
        return values

    @property
    def amplified(self) -> Float32 | None:
        """Return the factor (N,) by which :meth:`even` increases the noise variance; None for distant lights."""
        if self.fall_off is None:
            return None
        return np.asarray((1.0 / np.square(self.fall_off)).mean(1), np.float32)

    def in_camera(self, normals: Array) -> Array:
        """Convert normals (N, 3) from the pixels' frames to the camera's frame."""
        if self.turn is None:
            return normals
        return shading(normals, like(self.turn, normals))

    def in_view(self, normals: Array) -> Array:
        """Convert normals (N, 3) from the camera's frame to the pixels' frames."""
        if self.turn is None:
            return normals
        return projected(normals, like(self.turn, normals))


def turns_to_z(vectors: FloatArray) -> Float32:
    """Return the smallest rotations (N, 3, 3) that turn vectors (N, 3) with z > 0 to (0, 0, 1)."""
    x, y, z = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).T
    share = 1.0 / (1.0 + z)
    rows = [
        [1.0 - share * x * x, -share * x * y, -x],
        [-share * x * y, 1.0 - share * y * y, -y],
        [x, y, z],
    ]
    return np.moveaxis(np.array(rows), -1, 0).astype(np.float32)
