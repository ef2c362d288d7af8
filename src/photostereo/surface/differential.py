"""Gradients, slope, curvature and contrast of a normal map, without integration.

With x to the right, y up and heights z growing toward the camera, a unit normal n is

    n = (−p, −q, 1) / √(1 + p² + q²) ,        p = ∂z/∂x ,   q = ∂z/∂y .

The Gauss map takes a point of the picture to (n_x, n_y). Its Jacobian J is the shape operator in
disguise: half its trace is the mean curvature H, its determinant the Gaussian curvature K,

    H = ½ (∂n_x/∂x + ∂n_y/∂y) ,        K = ∂n_x/∂x ∂n_y/∂y − ∂n_x/∂y ∂n_y/∂x ,

so nothing is divided by n_z, and steep slopes are no special case. A ball of radius R that bulges
toward the camera has H = 1/R and K = 1/R² everywhere; hollows have negative H.

Derivatives are those of a plane fitted to the components of the normals around a pixel, by least
squares with Gaussian weights. The fit uses only pixels inside the mask with a normal, so that it is
exact for a ball up to its edge. What the plane leaves of the normals, their *contrast*, is the fine
relief: scratches, dents and texture, whatever their color.

References
----------
M. P. do Carmo, "Differential Geometry of Curves and Surfaces", 1976, section 3-3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from photostereo.core.conventions import BoolArray, Float64, row_bands
from photostereo.core.errors import ParameterError
from photostereo.surface.slopes import FACING_FLOOR, SHORTEST, prepare_mask

#: Standard deviation of the weights for derivatives, in pixels. Larger values average more noise
#: away, and more detail: a wave of λ pixels keeps about exp(−½ (2π sigma / λ)²) of its curvature.
DERIVATIVE_SIGMA = 1.0
#: Standard deviation of the weights for contrast, in pixels.
CONTRAST_SIGMA = 5.0
#: Weights end at this many standard deviations, where they have fallen to 1 %.
REACH = 3.0
#: A plane is not determined if the spread of its pixels along one direction is below this share of
#: the other: they lie on one line.
THINNEST = 1e-6


@dataclass(frozen=True, eq=False)
class Curvature:
    """Curvatures of a surface, positive where it bulges toward the camera; NaN where unknown."""

    mean: Float64  #: (H, W), the mean curvature H
    gaussian: Float64  #: (H, W), the Gaussian curvature K
    unit: str = "1/pixel"  #: of the mean curvature; the Gaussian curvature has its square

    @property
    def largest(self) -> Float64:
        """The larger principal curvature (H, W)."""
        return self.mean + self._half_difference

    @property
    def smallest(self) -> Float64:
        """The smaller principal curvature (H, W)."""
        return self.mean - self._half_difference

    @property
    def _half_difference(self) -> Float64:
        return np.sqrt(np.maximum(self.mean**2 - self.gaussian, 0.0))


def gradients(normals: ArrayLike, mask: ArrayLike | None = None) -> Float64:
    """Return the gradients (H, W, 2) of a surface: ∂z/∂x (x to the right) and ∂z/∂y (y up).

    They have no unit. Slopes above 20 are clipped; unknown pixels are NaN.

    Parameters
    ----------
    normals : (H, W, 3) array
        x right, y up, z toward the camera; need not be unit.
    mask : (H, W) array, optional
        The object; by default, all pixels with a normal.

    Examples
    --------
    >>> gradients(np.full((2, 2, 3), [-0.6, 0.4, 0.8]))[0, 0].round(9).tolist()
    [0.75, -0.5]
    """
    n = _unit_normals(normals, mask)
    return -n[..., :2] / np.maximum(n[..., 2:], FACING_FLOOR)


def slope(normals: ArrayLike, mask: ArrayLike | None = None) -> Float64:
    """Return the angle (H, W) between normal and viewing direction in degrees; NaN if unknown.

    Parameters
    ----------
    normals : (H, W, 3) array
        x right, y up, z toward the camera; need not be unit.
    mask : (H, W) array, optional
        The object; by default, all pixels with a normal.
    """
    n = _unit_normals(normals, mask)
    return np.degrees(np.arctan2(np.hypot(n[..., 0], n[..., 1]), n[..., 2]))


def curvature(
    normals: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    sigma: float = DERIVATIVE_SIGMA,
    pixel_size: float | None = None,
) -> Curvature:
    """Return mean and Gaussian curvature of a surface, as an orthographic camera sees it.

    Parameters
    ----------
    normals : (H, W, 3) array
        x right, y up, z toward the camera; need not be unit.
    mask : (H, W) array, optional
        The object; by default, all pixels with a normal.
    sigma : float
        Standard deviation of the weights around a pixel, in pixels: more suppresses noise, and
        detail.
    pixel_size : float, optional
        Width of a pixel in millimeters; curvatures are then in 1/mm and 1/mm².

    Notes
    -----
    Where one object hides another, or a surface tears, normals jump: the curvature there is that of
    the jump.

    Examples
    --------
    A ball with a radius of 50 pixels:

    >>> y, x = np.mgrid[30:-31:-1, -30:31] / 50.0
    >>> ball = curvature(np.dstack([x, y, np.sqrt(1.0 - x**2 - y**2)]))
    >>> float(ball.mean[0, 0].round(9)), float(ball.gaussian[0, 0].round(9))
    (0.02, 0.0004)
    """
    n = _unit_normals(normals, mask)
    mean = np.full(n.shape[:2], np.nan)
    gaussian = np.full(n.shape[:2], np.nan)
    for band in _bands(n, sigma):
        # Rows run down, y runs up.
        xx, xy, _ = band.plane(band.normals[..., 0])
        yx, yy, _ = band.plane(band.normals[..., 1])
        mean[band.rows] = 0.5 * (xx - yy)[band.core]
        gaussian[band.rows] = (xy * yx - xx * yy)[band.core]
    if pixel_size is None:
        return Curvature(mean, gaussian)
    return Curvature(mean / pixel_size, gaussian / pixel_size**2, "1/mm")


def contrast(
    normals: ArrayLike, mask: ArrayLike | None = None, *, sigma: float = CONTRAST_SIGMA
) -> Float64:
    """Return the local contrast (H, W) of a surface in degrees, free of its color.

    It is the root mean square angle of the normals around a pixel from their linear trend: zero for
    a plane and small for a smooth curve, large for scratches, dents and grain.

    Parameters
    ----------
    normals : (H, W, 3) array
        x right, y up, z toward the camera; need not be unit.
    mask : (H, W) array, optional
        The object; by default, all pixels with a normal.
    sigma : float
        Standard deviation of the weights around a pixel, in pixels: the size of what counts as
        local.
    """
    n = _unit_normals(normals, mask)
    result = np.full(n.shape[:2], np.nan)
    for band in _bands(n, sigma):
        variance = sum(band.plane(band.normals[..., axis])[2] for axis in range(3))
        result[band.rows] = np.degrees(np.sqrt(np.maximum(variance, 0.0)))[band.core]
    return result


def _unit_normals(normals: ArrayLike, mask: ArrayLike | None) -> Float64:
    """Return unit normals (H, W, 3), NaN where unknown or outside the mask."""
    # A copy in double precision: differences of neighbors in single precision would show as rings.
    n = np.array(normals, dtype=np.float64)
    inside = prepare_mask(n, mask)
    length = np.sqrt(np.einsum("ijk,ijk->ij", n, n))
    usable = inside & np.isfinite(length) & (length > SHORTEST)
    n /= np.where(usable, length, np.nan)[..., None]
    return n


@dataclass(frozen=True, eq=False)
class _Band:
    """Some rows of a normal map, with the rows around them that a fit needs."""

    normals: Float64  #: zero where unknown
    usable: BoolArray
    rows: slice  #: the rows of the map
    core: slice  #: the same rows within this band
    kernels: tuple[Float64, Float64, Float64]  #: weights, times the distance, times its square

    def plane(self, values: Float64) -> tuple[Float64, Float64, Float64]:
        """Fit a plane to values around every pixel.

        Returns
        -------
        along_col, along_row : arrays
            The derivatives of the plane; NaN where it is not determined.
        variance : array
            Weighted mean of the squared deviations from it.
        """
        total, mean_col, mean_row, var_col, var_row, covariance = self._moments
        mean = self._sum(values, 0, 0) / total
        with_col = self._sum(values, 1, 0) / total - mean_col * mean
        with_row = self._sum(values, 0, 1) / total - mean_row * mean
        determinant = var_col * var_row - covariance**2
        along_col = (var_row * with_col - covariance * with_row) / determinant
        along_row = (var_col * with_row - covariance * with_col) / determinant
        variance = self._sum(values**2, 0, 0) / total - mean**2
        variance -= along_col * with_col + along_row * with_row
        return along_col, along_row, variance

    @cached_property
    def _moments(self) -> tuple[Float64, ...]:
        """Sum, means and variances of the columns and rows around a pixel.

        They are NaN if there are too few. All components of the normals share them.
        """
        weights = self.usable.astype(np.float64)
        # Moments about the pixel itself, then about the mean: distances are small, so that nothing
        # cancels.
        total = self._sum(weights, 0, 0)
        total[~self.usable] = np.nan
        mean_col = self._sum(weights, 1, 0) / total
        mean_row = self._sum(weights, 0, 1) / total
        var_col = self._sum(weights, 2, 0) / total - mean_col**2
        var_row = self._sum(weights, 0, 2) / total - mean_row**2
        covariance = self._sum(weights, 1, 1) / total - mean_col * mean_row
        determinant = var_col * var_row - covariance**2
        total[~(determinant > THINNEST * (var_col + var_row) ** 2)] = np.nan
        return total, mean_col, mean_row, var_col, var_row, covariance

    def _sum(self, values: Float64, col_power: int, row_power: int) -> Float64:
        """Sum around every pixel, weighted by powers of the distance along columns and rows."""
        return np.asarray(
            cv2.sepFilter2D(
                values,
                cv2.CV_64F,
                self.kernels[col_power],
                self.kernels[row_power],
                borderType=cv2.BORDER_CONSTANT,
            )
        )


def _bands(normals: Float64, sigma: float) -> Iterator[_Band]:
    """Yield bands of a normal map, so that temporary pictures stay small."""
    if not 0.3 <= sigma <= 100:
        raise ParameterError(
            f"sigma must lie between 0.3 and 100 pixels; it is {sigma}.", code="bad-sigma"
        )
    radius = int(np.ceil(REACH * sigma))
    distance = np.arange(-radius, radius + 1, dtype=np.float64)
    weight = np.exp(-0.5 * (distance / sigma) ** 2)
    kernels = (weight, weight * distance, weight * distance**2)
    height, width = normals.shape[:2]
    for rows in row_bands(height, width):
        first = max(0, rows.start - radius)
        last = min(height, rows.stop + radius)
        part = normals[first:last]
        usable: NDArray[np.bool_] = np.isfinite(part[..., 2])
        yield _Band(
            normals=np.where(usable[..., None], part, 0.0),
            usable=usable,
            rows=rows,
            core=slice(rows.start - first, rows.stop - first),
            kernels=kernels,
        )
