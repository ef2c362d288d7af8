"""The result of an integration: heights, connected parts, tears, and the camera."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.conventions import BoolArray, Float64
from photostereo.core.display import Displayed
from photostereo.core.errors import ParameterError

if TYPE_CHECKING:
    from photostereo.surface.topography import HeightStatistics, Point, Profile

#: Strengths of pulls (H, W), and the heights that they pull toward (H, W): those of anchors, and
#: the flat zero of a high pass.
Pulls = tuple[Float64, Float64]


@dataclass(frozen=True)
class Camera:
    """A pinhole camera without skew, in pixels; pixel centers have whole coordinates."""

    fx: float  #: focal length along columns
    fy: float  #: focal length along rows
    cx: float  #: column of the principal point
    cy: float  #: row of the principal point

    @property
    def focal(self) -> float:
        """Mean focal length in pixels; surfaces are placed at this mean distance."""
        return float(np.sqrt(self.fx * self.fy))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Camera:
        """Create a camera from a 3 × 3 camera matrix, which is checked."""
        k = np.asarray(matrix, dtype=np.float64)
        if k.shape != (3, 3) or not np.isfinite(k).all():
            raise _bad_camera(k)
        if k[2, 2] != 0:
            k = k / k[2, 2]
        lower = (k[1, 0], k[2, 0], k[2, 1])
        if k[0, 0] <= 0 or k[1, 1] <= 0 or any(lower) or abs(k[0, 1]) > 1e-6 * k[0, 0]:
            raise _bad_camera(k)
        return cls(float(k[0, 0]), float(k[1, 1]), float(k[0, 2]), float(k[1, 2]))

    def rays(self, rows: NDArray[Any], cols: NDArray[Any]) -> Float64:
        """Return viewing rays (n, 3) of pixels, scaled so that their z component is −1."""
        x = (np.asarray(cols, np.float64) - self.cx) / self.fx
        y = -(np.asarray(rows, np.float64) - self.cy) / self.fy
        return np.stack([x, y, np.full_like(x, -1.0)], axis=-1)

    def depth_from_log(self, log_height: Float64) -> Float64:
        """Return the height −Z from ζ, the log-height of :mod:`~photostereo.surface.slopes`."""
        return -self.focal * np.exp(-log_height / self.focal)

    def log_from_depth(self, depth: Float64) -> Float64:
        """Return ζ from the height −Z; NaN where Z is not positive."""
        with np.errstate(invalid="ignore", divide="ignore"):
            log_height = -self.focal * np.log(-depth / self.focal)
        return np.where(np.isfinite(log_height), log_height, np.nan)


@dataclass(frozen=True)
class Heights:
    """Heights (H, W) of some parts, and solver information; see :class:`Surface`."""

    values: Float64
    iterations: int
    residual: float
    converged: bool
    torn: tuple[BoolArray, BoolArray] | None = None
    energy: tuple[float, ...] = ()


@dataclass(frozen=True)
class Surface(Displayed):
    """An integrated surface. Its arrays are read-only."""

    #: (H, W) height in pixels, growing toward the camera; NaN outside the mask. With a camera it is
    #: −Z, the negative distance along the optical axis, on a scale where the mean distance is the
    #: focal length (in pixels).
    depth: Float64
    mask: BoolArray  #: (H, W)
    #: (H, W) the connected part of each pixel, 1, 2, …; zero outside. Each part has mean height
    #: zero, so heights of different parts are unrelated, unless anchors fix them.
    labels: NDArray[np.int32]
    torn_right: BoolArray  #: (H, W) whether the link to the right neighbor is cut
    torn_down: BoolArray  #: (H, W) whether the link to the neighbor below is cut
    method: str
    status: str  #: ``"converged"``, ``"max_iter"``, or ``"direct"`` for ``simchony``
    #: of the outer loop (robust) or of the conjugate gradients; the most over all parts
    iterations: int
    #: largest ``‖b − A z‖ / ‖b‖`` of the linear systems; for ``robust``, the share of the gradient
    #: that the last solve did not remove
    residual: float
    #: for ``robust``, the energy before every iteration of the largest part
    energy: tuple[float, ...] = ()
    camera: Camera | None = None
    unknown: int = 0  #: normals that were zero or not finite
    away: int = 0  #: normals that faced away from the camera
    depth_range: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        inside = self.depth[self.mask]
        object.__setattr__(self, "depth_range", (float(inside.min()), float(inside.max())))
        for array in (self.depth, self.mask, self.labels, self.torn_right, self.torn_down):
            array.flags.writeable = False

    @property
    def parts(self) -> int:
        """Number of connected parts."""
        return int(self.labels.max())

    @property
    def tears(self) -> int:
        """Number of links that are cut."""
        return int(np.count_nonzero(self.torn_right) + np.count_nonzero(self.torn_down))

    def statistics(
        self,
        region: ArrayLike | tuple[int, int, int, int] | None = None,
        *,
        points: Sequence[Point] | None = None,
        leveled: bool = True,
        s_filter: float | None = None,
        l_filter: float | None = None,
        pixel_size: float | None = None,
    ) -> HeightStatistics:
        """Return the height parameters Sa, Sq, Sz, … of a region by ISO 25178-2.

        Parameters are those of :func:`photostereo.surface.height_statistics`.

        Examples
        --------
        >>> from photostereo.surface import integrate
        >>> tilted = integrate(np.full((20, 30, 3), [-0.6, 0.0, 0.8]))
        >>> tilted.statistics((5, 5, 10, 10)).sz < 1e-9
        True
        """
        from photostereo.surface.topography import height_statistics

        return height_statistics(
            self.depth,
            region,
            points=points,
            leveled=leveled,
            s_filter=s_filter,
            l_filter=l_filter,
            pixel_size=pixel_size,
        )

    def profile(self, start: Point, end: Point, *, pixel_size: float | None = None) -> Profile:
        """Return the heights along a line between two points (column, row).

        Parameters are those of :func:`photostereo.surface.profile`.
        """
        from photostereo.surface.topography import profile

        return profile(self.depth, start, end, pixel_size=pixel_size)


def _bad_camera(matrix: NDArray[Any]) -> ParameterError:
    return ParameterError(
        "The camera matrix must read [[f_x, 0, c_x], [0, f_y, c_y], [0, 0, 1]] in pixels, with "
        f"positive focal lengths and no skew; it reads {matrix.tolist()}. Undistort the "
        "photographs first.",
        code="bad-camera",
        matrix=matrix.tolist(),
    )
