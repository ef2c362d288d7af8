"""Slope equations of a normal map: one weighted equation per pixel and axis.

A surface with height ``z`` (growing toward the camera) and unit normal ``n`` satisfies

    n_z · ∂z/∂col = −n_x        n_z · ∂z/∂row = +n_y .

In this form, unlike ``∂z/∂col = −n_x/n_z``, a grazing normal, whose slope explodes, has little
weight.

For a pinhole camera, the point of pixel (col, row) at distance ``Z`` is ``Z d`` with the viewing
ray ``d = ((col − c_x)/f_x, −(row − c_y)/f_y, −1)``. Both tangents are orthogonal to n, so with the
log-height ``ζ = −f log(Z/f)``, ``f = √(f_x f_y)`` and ``m = −n·d``,

    m · ∂ζ/∂col = −(f/f_x) n_x        m · ∂ζ/∂row = +(f/f_y) n_y ,

which are the orthographic equations with ``m`` in place of ``n_z``: one solver serves both. The
height is ``−Z = −f exp(−ζ/f)``; near the mean distance, which is set to f, one unit is one pixel,
as for orthography.

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

from photostereo.core.conventions import BoolArray, Float32, Float64, row_bands
from photostereo.core.errors import EMPTY_MASK, ParameterError
from photostereo.surface.integrated import Camera

#: Lower limit of n_z (or m) in an equation: slopes above 20 are clipped. Such normals are at 87°
#: and have weight 1/400.
FACING_FLOOR = 0.05
#: Weight of an unknown normal (zero, NaN) relative to a known one: enough to fill small holes
#: smoothly. Not tuned.
UNKNOWN_CONFIDENCE = 1e-4
#: Normals shorter than this are unknown.
SHORTEST = 1e-6
#: Pixels converted to equations at a time, to keep temporaries small.
BAND = 1 << 16

#: The message if there is nothing to integrate.
NO_NORMALS = "Every normal inside the mask is zero or not finite: there is nothing to integrate."


@dataclass(frozen=True)
class SlopeField:
    """Slope equations ``facing · ∂z = tilt`` of every pixel.

    The pictures are zero outside the mask.
    """

    facing: Float64  #: (H, W), the coefficient of both slopes: n_z, or m with a camera.
    tilt_col: Float64  #: (H, W), the right-hand side along columns.
    tilt_row: Float64  #: (H, W), the right-hand side along rows.
    confidence: Float32  #: (H, W), multiplies the squared residual; positive inside the mask.

    @property
    def mask(self) -> BoolArray:
        """Pixels that have an equation."""
        return self.confidence > 0


def prepare_mask(normals: NDArray[Any], mask: ArrayLike | None) -> BoolArray:
    """Return the boolean mask (H, W) of an integration; by default, all pixels with a normal."""
    if normals.ndim != 3 or normals.shape[2] != 3:
        raise ParameterError(
            f"Normals must have the shape (H, W, 3); these have {normals.shape}.",
            code="normals-shape",
            shape=normals.shape,
        )
    if mask is None:
        usable = np.isfinite(normals).all(axis=-1) & (normals != 0).any(axis=-1)
        if not usable.any():
            raise ParameterError(NO_NORMALS, code="no-normals")
        return np.asarray(usable)
    chosen = np.asarray(mask) > 0
    if chosen.shape != normals.shape[:2]:
        frame = normals.shape[:2]
        raise ParameterError(
            f"The mask has {chosen.shape} pixels, but the normal map has {frame}.",
            code="mask-shape",
            mask=chosen.shape,
            normals=frame,
        )
    if not chosen.any():
        raise ParameterError(
            f"The mask of the normals {EMPTY_MASK}", code="empty-mask", name="the normals"
        )
    return chosen


class SlopeSource:
    """Slope equations of a normal map, computed from its rows on demand.

    A zero or non-finite normal (counted in ``unknown``) gives an equation of slope zero with a
    weight of 1e-4, so that its neighbors fill it. A normal that faces ``away`` is clipped to a
    grazing one; if most do, the map uses another convention, which is an error.

    Parameters
    ----------
    normals, mask, weights, camera
        As for :func:`.integrate`, the mask prepared by :func:`prepare_mask`.
    """

    def __init__(
        self,
        normals: NDArray[Any],
        mask: BoolArray,
        *,
        weights: ArrayLike | None = None,
        camera: Camera | None = None,
    ) -> None:
        self.normals = normals
        self.mask = mask
        self.camera = camera
        #: Row and column of the top left pixel in the whole picture.
        self._corner = (0, 0)
        self._weights: NDArray[Any] | None = None
        self._largest_weight = 1.0
        if weights is not None:
            self._weights = np.asarray(weights)
            if self._weights.shape != mask.shape:
                raise ParameterError(
                    f"The weights have {self._weights.shape} pixels, but the mask has "
                    f"{mask.shape}.",
                    code="weights-shape",
                    weights=self._weights.shape,
                    mask=mask.shape,
                )
            inside = np.asarray(self._weights[mask], dtype=np.float64)
            if not np.isfinite(inside).all() or (inside < 0).any() or not (inside > 0).any():
                raise ParameterError(
                    "Weights must be finite, not negative, and positive somewhere inside the mask.",
                    code="bad-weights",
                )
            self._largest_weight = float(inside.max())
        count = 0
        away = 0
        for rows in row_bands(mask.shape[0], mask.shape[1], BAND):
            n, usable = self._unit_normals(rows, mask[rows])
            count += int(np.count_nonzero(usable))
            away += int(np.count_nonzero(usable & (self._facing(n, rows) <= 0)))
        if count == 0:
            raise ParameterError(NO_NORMALS, code="no-normals")
        if 2 * away > count:
            raise ParameterError(
                f"{away} of {count} normals face away from the camera (z ≤ 0). Normals must point "
                "out of the surface, z toward the camera. Change the sign of normals from tools "
                "with another convention.",
                code="normals-face-away",
                away=away,
                known=count,
            )
        self.unknown = int(np.count_nonzero(mask)) - count
        self.away = away

    def crop(self, box: tuple[slice, slice]) -> SlopeSource:
        """Return the same equations for a part of the picture, without a copy."""
        part = copy(self)
        part.normals = self.normals[box]
        part.mask = self.mask[box]
        if self._weights is not None:
            part._weights = self._weights[box]
        part._corner = (self._corner[0] + box[0].start, self._corner[1] + box[1].start)
        return part

    def equations(self, rows: slice, inside: BoolArray) -> SlopeField:
        """Return the equations of the pixels of ``inside``, a mask of these rows."""
        n, usable = self._unit_normals(rows, inside)
        facing = np.maximum(np.where(usable, self._facing(n, rows), 1.0), FACING_FLOOR) * inside
        col_scale = 1.0
        row_scale = 1.0
        if self.camera is not None:
            col_scale = self.camera.focal / self.camera.fx
            row_scale = self.camera.focal / self.camera.fy
        confidence = np.where(usable, 1.0, UNKNOWN_CONFIDENCE) * inside
        if self._weights is not None:
            weights = np.where(inside, self._weights[rows], 0.0) / self._largest_weight
            confidence *= np.maximum(weights, UNKNOWN_CONFIDENCE)
        return SlopeField(
            facing=facing,
            tilt_col=-col_scale * n[..., 0],
            tilt_row=row_scale * n[..., 1],
            confidence=confidence.astype(np.float32),
        )

    def field(self, inside: BoolArray) -> SlopeField:
        """Return the equations of the pixels of ``inside``, a mask of the whole picture."""
        whole = SlopeField(
            facing=np.empty(inside.shape),
            tilt_col=np.empty(inside.shape),
            tilt_row=np.empty(inside.shape),
            confidence=np.empty(inside.shape, dtype=np.float32),
        )
        for rows in row_bands(inside.shape[0], inside.shape[1], BAND):
            band = self.equations(rows, inside[rows])
            whole.facing[rows] = band.facing
            whole.tilt_col[rows] = band.tilt_col
            whole.tilt_row[rows] = band.tilt_row
            whole.confidence[rows] = band.confidence
        return whole

    def _unit_normals(self, rows: slice, inside: BoolArray) -> tuple[Float64, BoolArray]:
        """Return unit normals of these rows, and whether each is known; zero if not, or outside."""
        n = np.array(self.normals[rows], dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            length = np.sqrt(n[..., 0] ** 2 + n[..., 1] ** 2 + n[..., 2] ** 2)
        usable = inside & np.isfinite(length) & (length > SHORTEST)
        n /= np.where(usable, length, 1.0)[..., None]
        n[~usable] = 0.0
        return n, usable

    def _facing(self, n: Float64, rows: slice) -> Float64:
        """Return how directly the normals of these rows face the camera; zero is edge-on."""
        if self.camera is None:
            return n[..., 2]
        row = np.arange(n.shape[0])[:, None] + self._corner[0] + rows.start
        col = np.arange(n.shape[1]) + self._corner[1]
        rays = self.camera.rays(*np.broadcast_arrays(row, col))
        return np.asarray(-np.einsum("ijk,ijk->ij", n, rays))
