"""A pinhole camera."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.errors import ParameterError

Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class Camera:
    """A pinhole camera without skew: focal lengths and principal point, in pixels."""

    fx: float
    fy: float
    cx: float
    cy: float

    @property
    def focal(self) -> float:
        """The mean focal length; also the mean distance, in pixels, that a surface is given."""
        return float(np.sqrt(self.fx * self.fy))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Camera:
        """From a checked 3 × 3 camera matrix."""
        k = np.asarray(matrix, dtype=np.float64)
        if k.shape != (3, 3) or not np.isfinite(k).all():
            raise ParameterError(
                f"The camera matrix must be 3 × 3 and finite; it has the shape {k.shape}.",
                code="bad-camera",
                shape=k.shape,
            )
        k = k / k[2, 2] if k[2, 2] != 0 else k
        lower = (k[1, 0], k[2, 0], k[2, 1])
        if k[0, 0] <= 0 or k[1, 1] <= 0 or any(lower) or abs(k[0, 1]) > 1e-6 * k[0, 0]:
            raise ParameterError(
                "The camera matrix must read [[f_x, 0, c_x], [0, f_y, c_y], [0, 0, 1]] in pixels, with "
                f"positive focal lengths and no skew; it reads {k.tolist()}. Undistort the photographs first.",
                code="bad-camera",
                matrix=k.tolist(),
            )
        return cls(float(k[0, 0]), float(k[1, 1]), float(k[0, 2]), float(k[1, 2]))

    def rays(self, rows: NDArray[Any], cols: NDArray[Any]) -> Float64:
        """Viewing rays (n, 3) of pixels, scaled so that their z component is −1."""
        x = (np.asarray(cols, np.float64) - self.cx) / self.fx
        y = -(np.asarray(rows, np.float64) - self.cy) / self.fy
        return np.stack([x, y, np.full_like(x, -1.0)], axis=-1)

    def depth_from_log(self, log_height: Float64) -> Float64:
        """Height −Z from ζ."""
        return -self.focal * np.exp(-log_height / self.focal)

    def log_from_depth(self, depth: Float64) -> Float64:
        """ζ from the height −Z; NaN where Z is not positive."""
        with np.errstate(invalid="ignore", divide="ignore"):
            log_height = -self.focal * np.log(-depth / self.focal)
        return np.where(np.isfinite(log_height), log_height, np.nan)
