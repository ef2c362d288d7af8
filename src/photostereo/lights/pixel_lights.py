"""Lights as pixels see them: what models are built from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import FloatArray
from photostereo.runtime.arrays import Array, like
from photostereo.runtime.illumination import projected, shading


class PixelLights(NamedTuple):
    """Lights as N pixels see them."""

    #: (3, d), or (N, 3, d) for near lights: unit columns, in a frame whose z axis points to the camera
    matrix: NDArray[Any]
    #: (N, d) brightness relative to where the strengths hold; None for distant lights
    fall_off: NDArray[np.float32] | None = None
    #: (N, 3, 3) from the camera's frame to that of each pixel; None if all look the same way
    turn: NDArray[np.float32] | None = None

    def even(self, values: Array) -> Array:
        """Divide intensities (N, d) or (N, d, 3) by the fall-off, in place."""
        if self.fall_off is not None:
            values /= like(self.fall_off if values.ndim == 2 else self.fall_off[..., None], values)
        return values

    @property
    def amplified(self) -> NDArray[np.float32] | None:
        """(N,) how much more noise, as a variance, the pixels have once :meth:`even` is done; None for distant lights."""
        return None if self.fall_off is None else (1.0 / np.square(self.fall_off)).mean(1)

    def in_camera(self, normals: Array) -> Array:
        """Normals (N, 3) of the pixels' frames in that of the camera."""
        return normals if self.turn is None else shading(normals, like(self.turn, normals))

    def in_view(self, normals: Array) -> Array:
        """Normals (N, 3) of the camera's frame in those of the pixels."""
        return normals if self.turn is None else projected(normals, like(self.turn, normals))


def turns_to_z(vectors: FloatArray) -> NDArray[np.float32]:
    """The smallest rotations (N, 3, 3) that bring vectors (N, 3) with z > 0 to (0, 0, 1).

    >>> toward = np.array([[3.0, -1.0, 2.0]])
    >>> (turns_to_z(toward)[0] @ (toward[0] / np.linalg.norm(toward))).round(6) + 0.0
    array([0., 0., 1.])
    """
    x, y, z = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).T
    share = 1.0 / (1.0 + z)
    rows = [[1.0 - share * x * x, -share * x * y, -x], [-share * x * y, 1.0 - share * y * y, -y], [x, y, z]]
    return np.moveaxis(np.array(rows), -1, 0).astype(np.float32)
