"""The eight symmetries of the square: what each makes of pictures and of vectors (x right, y up, z to the camera)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]


@dataclass(frozen=True)
class Symmetry:
    """Mirror left to right or not, then turn counterclockwise by right angles.

    >>> turn = Symmetry(1, False)
    >>> turn.of_vectors(np.array([[1, 0, 0]], np.float32)).tolist()  # what pointed right points up
    [[0.0, 1.0, 0.0]]
    >>> turn.of_pictures(np.array([[[0, 1], [0, 0]]]))[0].tolist()  # the upper right corner becomes the upper left
    [[1, 0], [0, 0]]
    """

    turns: int
    mirrored: bool

    @property
    def matrix(self) -> Float32:
        turn = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]], dtype=np.float32)
        mirror = np.diag([-1 if self.mirrored else 1, 1, 1]).astype(np.float32)
        return np.asarray(np.linalg.matrix_power(turn, self.turns) @ mirror, dtype=np.float32)

    def of_vectors(self, vectors: Float32) -> Float32:
        """Vectors (..., 3)."""
        return vectors @ self.matrix.T

    def undo_vectors(self, vectors: Float32) -> Float32:
        return vectors @ self.matrix

    def of_pictures(self, pictures: Float32) -> Float32:
        """Pictures (d, h, w) or (d, h, w, channels), row 0 at the top."""
        flipped = pictures[:, :, ::-1] if self.mirrored else pictures
        return np.ascontiguousarray(np.rot90(flipped, self.turns, (1, 2)))

    def undo_pictures(self, pictures: Float32) -> Float32:
        back = np.rot90(pictures, -self.turns, (1, 2))
        return np.ascontiguousarray(back[:, :, ::-1] if self.mirrored else back)


#: All eight; the first four are turns, the first two keep rows rows.
SYMMETRIES = tuple(Symmetry(turns, mirrored) for mirrored in (False, True) for turns in (0, 2, 1, 3))
