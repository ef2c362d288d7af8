"""What a normal map says about the surface: one weighted slope equation per pixel and axis.

A surface with height ``z`` (growing towards the camera) and unit normal ``n`` satisfies

    n_z · ∂z/∂col = −n_x        n_z · ∂z/∂row = +n_y .

Written like this, and not as ``∂z/∂col = −n_x/n_z``, a grazing normal, whose slope explodes, has little say.

Seen by a pinhole camera, the point of pixel (col, row) at distance ``Z`` is ``Z d`` with the viewing ray
``d = ((col − c_x)/f_x, −(row − c_y)/f_y, −1)``. Both tangents are orthogonal to n, so with the log-height
``ζ = −f log(Z/f)``, ``f = √(f_x f_y)`` and ``m = −n·d``,

    m · ∂ζ/∂col = −(f/f_x) n_x        m · ∂ζ/∂row = +(f/f_y) n_y ,

which are the orthographic equations with ``m`` in place of ``n_z``: one solver serves both. The height is
``−Z = −f exp(−ζ/f)``; near the mean distance, which is set to f, one unit is one pixel, as for orthography.

References
----------
X. Cao, H. Santo, B. Shi, F. Okura, Y. Matsushita, "Bilateral Normal Integration", ECCV 2022,
doi:10.1007/978-3-031-19769-7_32.
J.-D. Durou, F. Courteille, "Integration of a Normal Field without Boundary Condition", PACV 2007.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.errors import ParameterError

Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]

#: The smallest n_z (or m) that an equation may have: slopes above 20 are cut.
FACING_FLOOR = 0.05
#: What an unknown normal (zero, NaN) weighs beside a known one: enough to fill small holes smoothly.
UNKNOWN_CONFIDENCE = 1e-4
#: A shorter normal than this is unknown.
SHORTEST = 1e-6
#: Rows of a normal map that are turned into equations at a time: their temporaries must not count.
STRIP = 64


@dataclass(frozen=True)
class SlopeField:
    """The slope equations ``facing · ∂z = tilt`` of every mask pixel, packed in row-major order.

    Attributes
    ----------
    mask : (H, W) bool
        The pixels that have an equation.
    facing, tilt_col, tilt_row : (n,) float64
        The coefficients.
    confidence : (n,) float64, or float32 in a large problem
        Multiplies the squared residual.
    unknown, away : int
        How many normals were zero or not finite, and how many faced away from the camera.
    """

    mask: Bool
    facing: Float64
    tilt_col: Float64
    tilt_row: Float64
    confidence: NDArray[Any]
    unknown: int = 0
    away: int = 0

    @property
    def weight(self) -> Float64:
        """The weight of the equation once divided by ``facing``: confidence · facing²."""
        return self.confidence * self.facing**2


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
        """Check a 3 × 3 camera matrix and take it apart."""
        k = np.asarray(matrix, dtype=np.float64)
        if k.shape != (3, 3) or not np.isfinite(k).all():
            raise ParameterError(f"The camera matrix must be 3 × 3 and finite; it has shape {k.shape}.")
        k = k / k[2, 2] if k[2, 2] != 0 else k
        lower = (k[1, 0], k[2, 0], k[2, 1])
        if k[0, 0] <= 0 or k[1, 1] <= 0 or any(lower) or abs(k[0, 1]) > 1e-6 * k[0, 0]:
            raise ParameterError(
                "The camera matrix must read [[f_x, 0, c_x], [0, f_y, c_y], [0, 0, 1]] in pixels, with "
                f"positive focal lengths and no skew; it reads {k.tolist()}. Undistort the photographs first."
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


def prepare_mask(normals: NDArray[Any], mask: ArrayLike | None) -> Bool:
    """The boolean mask of an integration; without one, every pixel with a usable normal."""
    if normals.ndim != 3 or normals.shape[2] != 3:
        raise ParameterError(f"Normals must have the shape (H, W, 3); these have {normals.shape}.")
    if mask is None:
        found = np.isfinite(normals).all(axis=-1) & (normals != 0).any(axis=-1)
        if not found.any():
            raise ParameterError("No pixel of the normal map holds a normal (all are zero or not finite).")
        return np.asarray(found)
    chosen = np.asarray(mask) > 0
    if chosen.shape != normals.shape[:2]:
        raise ParameterError(f"The mask is {chosen.shape} but the normal map is {normals.shape[:2]} pixels.")
    if not chosen.any():
        raise ParameterError(
            "The mask has no pixel inside, so there is nothing to integrate. Is it inverted?"
        )
    return chosen


class SlopeSource:
    """The slope equations of a normal map, made from its rows when they are asked for.

    Normals need not be unit. A zero or non-finite one gives an equation of slope zero with a weight of
    1e-4, so that its neighbors fill it. One that faces away is cut to a grazing one; if most do, the map
    is in another convention, and that is an error.

    Parameters
    ----------
    normals, mask, weights, camera
        As for :func:`photostereo.surface.integrate`.

    Attributes
    ----------
    unknown, away : int
        How many normals were zero or not finite, and how many faced away from the camera.

    Raises
    ------
    ParameterError
        If no normal is usable, if most face away, or if the weights do not fit.
    """

    def __init__(
        self,
        normals: NDArray[Any],
        mask: Bool,
        *,
        weights: ArrayLike | None = None,
        camera: Camera | None = None,
        floor: float = FACING_FLOOR,
    ) -> None:
        self.normals, self.mask, self.camera, self.floor = normals, mask, camera, floor
        self._corner = (0, 0)
        self._weights: NDArray[Any] | None = None
        self._top = 1.0
        if weights is not None:
            self._weights, self._top = _checked_weights(weights, mask)
        known = away = 0
        for first in range(0, mask.shape[0], STRIP):
            rows = slice(first, min(first + STRIP, mask.shape[0]))
            n, length = self._normals_of(rows, mask[rows])
            found = length > SHORTEST
            known += int(np.count_nonzero(found))
            away += int(np.count_nonzero(found & (self._facing_of(n, rows, mask[rows]) <= 0)))
        if known == 0:
            raise ParameterError(
                "Every normal inside the mask is zero or not finite: there is nothing to integrate."
            )
        if 2 * away > known:
            raise ParameterError(
                f"{away} of {known} normals face away from the camera (z ≤ 0). Normals must "
                "point out of the surface, z towards the camera: those of some other tools must change sign."
            )
        self.unknown, self.away = int(np.count_nonzero(mask)) - known, away

    def crop(self, box: tuple[slice, slice]) -> SlopeSource:
        """The same equations of a part of the picture, without a copy."""
        part = copy(self)
        part.normals, part.mask = self.normals[box], self.mask[box]
        part._weights = None if self._weights is None else self._weights[box]
        part._corner = (self._corner[0] + box[0].start, self._corner[1] + box[1].start)
        return part

    def _normals_of(self, rows: slice, inside: Bool) -> tuple[Float64, Float64]:
        """The normals of the pixels of ``inside``, a mask of these rows, zero where not finite; and their lengths."""
        n = np.asarray(self.normals[rows][inside], dtype=np.float64)
        length = _lengths(n)
        if not np.isfinite(length).all():
            n[~np.isfinite(n).all(axis=1)] = 0.0
            length = _lengths(n)
        return n, length

    def _facing_of(self, n: Float64, rows: slice, inside: Bool) -> Float64:
        """How far those normals face the camera; zero edge-on."""
        if self.camera is None:
            return n[:, 2]
        row, col = np.nonzero(inside)
        row += self._corner[0] + rows.start
        col += self._corner[1]
        return np.asarray(-np.einsum("ij,ij->i", n, self.camera.rays(row, col)))

    def packed_rows(self, rows: slice, inside: Bool) -> tuple[Float64, Float64, Float64, Float64]:
        """Facing, tilt along columns, tilt along rows and confidence of the pixels of ``inside``, a mask of these
        rows, packed in row-major order."""
        n, length = self._normals_of(rows, inside)
        known = length > SHORTEST
        n[~known] = (0.0, 0.0, 1.0)
        n /= np.where(known, length, 1.0)[:, None]
        facing = self._facing_of(n, rows, inside)
        scale = (1.0, 1.0)
        if self.camera is not None:
            scale = self.camera.focal / self.camera.fx, self.camera.focal / self.camera.fy
        confidence = np.where(known, 1.0, UNKNOWN_CONFIDENCE)
        if self._weights is not None:
            given = np.asarray(self._weights[rows][inside], dtype=np.float64)
            confidence *= np.maximum(given / self._top, UNKNOWN_CONFIDENCE)
        tilt_col = np.where(known, -n[:, 0] * scale[0], 0.0)
        tilt_row = np.where(known, n[:, 1] * scale[1], 0.0)
        return np.maximum(facing, self.floor), tilt_col, tilt_row, confidence

    def field(self, inside: Bool, *, large: bool = False) -> SlopeField:
        """The packed equations of the pixels of ``inside``, a mask of the whole picture; of a ``large`` problem with the
        confidence in single precision, which is also that of all that is derived from it."""
        count = int(np.count_nonzero(inside))
        packed = np.empty((3, count)), np.empty((1, count), np.float32 if large else np.float64)
        begin = 0
        for first in range(0, inside.shape[0], STRIP):
            rows = slice(first, min(first + STRIP, inside.shape[0]))
            found = self.packed_rows(rows, inside[rows])
            end = begin + found[0].size
            packed[0][:, begin:end], packed[1][0, begin:end] = found[:3], found[3]
            begin = end
        (facing, tilt_col, tilt_row), (confidence,) = packed
        return SlopeField(inside, facing, tilt_col, tilt_row, confidence, self.unknown, self.away)


def _lengths(n: Float64) -> Float64:
    return np.asarray(
        np.sqrt(n[:, 0] ** 2 + n[:, 1] ** 2 + n[:, 2] ** 2)
    )  # three columns: twice as fast as a norm


def _checked_weights(weights: ArrayLike, mask: Bool) -> tuple[NDArray[Any], float]:
    """The weights and their maximum inside the mask."""
    given = np.asarray(weights)
    if given.shape != mask.shape:
        raise ParameterError(f"The weights are {given.shape} but the mask is {mask.shape} pixels.")
    inside = np.asarray(given[mask], dtype=np.float64)
    if not np.isfinite(inside).all() or (inside < 0).any() or not (inside > 0).any():
        raise ParameterError("Weights must be finite, not negative, and positive somewhere inside the mask.")
    return given, float(inside.max())


def slope_field(
    normals: NDArray[Any],
    mask: Bool,
    *,
    weights: ArrayLike | None = None,
    camera: Camera | None = None,
    floor: float = FACING_FLOOR,
) -> SlopeField:
    """Slope equations of the mask pixels of a normal map; see :class:`SlopeSource`."""
    return SlopeSource(normals, mask, weights=weights, camera=camera, floor=floor).field(mask)
