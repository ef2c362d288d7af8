"""Measure heights: leveling, areal filters, height parameters by ISO 25178-2, and profiles.

Heights of an integrated surface have an arbitrary zero and a slow error: the errors of the normals
add up over long distances. So texture is measured after a form is removed and long waves are
filtered:

1. *F-operation*: subtract a plane, fitted to the region or through chosen points.
2. *S-filter* (optional): an areal Gaussian filter removes waves shorter than its nesting index.
3. *L-filter* (optional): another removes waves longer than its nesting index.
4. The parameters describe the heights of the region from their mean.

The Gaussian filter is that of ISO 16610-61: its weight at the distance r is exp(−π (r / (α λ))²)
with α = √(ln 2 / π), so that a wave of the nesting index λ keeps half its amplitude. Pixels outside
the object have no weight, and the others are weighted more in turn.

References
----------
ISO 25178-2:2021, Geometrical product specifications, Surface texture: Areal, Part 2.
ISO 16610-61:2015, Filtration, Linear areal filters: Gaussian filters.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from photostereo.core.conventions import BoolArray, Float64
from photostereo.core.errors import ParameterError

#: Standard deviation of the Gaussian filter, as a share of its nesting index.
SIGMA_SHARE = float(np.sqrt(np.log(2.0) / 2.0) / np.pi)
#: The filter ends at this many standard deviations, where its weight has fallen to 0.03 %.
FILTER_REACH = 4.0
#: A point for leveling has the mean height of a square with this many pixels on each side of it.
POINT_REACH = 1

#: A position in the picture: column (to the right) and row (down), in pixels.
Point = tuple[float, float]


@dataclass(frozen=True)
class HeightStatistics:
    """Height parameters of a region by ISO 25178-2, and how they were obtained."""

    sa: float  #: arithmetical mean height: the mean absolute height
    sq: float  #: root mean square height
    sz: float  #: maximum height: from the lowest to the highest pixel
    sp: float  #: maximum peak height above the mean
    sv: float  #: maximum pit depth below the mean
    ssk: float  #: skewness, without a unit: negative if pits dominate
    sku: float  #: kurtosis, without a unit: 3 for a normal distribution
    unit: str  #: of the heights: ``"mm"``, or ``"pixel"`` if the pixel size is unknown
    pixels: int  #: number of pixels
    filter: str  #: what was removed: form, and nesting indices of the filters

    def as_dict(self) -> dict[str, Any]:
        """All values by name."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"Sa {self.sa:.4g}, Sq {self.sq:.4g}, Sz {self.sz:.4g} {self.unit} "
            f"({self.pixels} pixels; {self.filter})"
        )


@dataclass(frozen=True, eq=False)
class Profile:
    """Heights along a line, in the unit of the heights; NaN outside the object."""

    distance: Float64  #: (n,) from the start
    height: Float64  #: (n,)
    col: Float64  #: (n,) position in the picture, to the right
    row: Float64  #: (n,) position in the picture, down
    unit: str  #: of distance and height

    def to_csv(self) -> str:
        """Return a table with a line per pixel: distance, height, column, row."""
        text = io.StringIO()
        text.write(f"distance_{self.unit},height_{self.unit},col_pixel,row_pixel\n")
        table = np.stack([self.distance, self.height, self.col, self.row], axis=1)
        np.savetxt(text, table, delimiter=",", fmt=("%.9g", "%.9g", "%.9g", "%.9g"))
        return text.getvalue()


def level(
    depth: ArrayLike, mask: ArrayLike | None = None, *, points: Sequence[Point] | None = None
) -> Float64:
    """Subtract a plane from heights.

    Parameters
    ----------
    depth : (H, W) array
        Heights; NaN outside the object.
    mask : (H, W) array, optional
        The pixels to which the plane is fitted by least squares; by default the object.
    points : sequence of (column, row), optional
        Fit the plane to the heights at three or more points instead, each the mean of 3 × 3 pixels.

    Returns
    -------
    (H, W) array
        Heights above the plane.

    Examples
    --------
    >>> row, col = np.mgrid[:5, :6]
    >>> float(np.abs(level(0.1 * col - 0.3 * row + 7.0)).max() < 1e-12)
    1.0
    """
    z = np.array(depth, dtype=np.float64)
    if points is not None:
        cols, rows, heights = _heights_at(z, points).T
    else:
        inside = np.isfinite(z)
        if mask is not None:
            inside &= np.asarray(mask) > 0
        rows, cols = np.nonzero(inside)
        heights = z[inside]
    # Centered columns and rows: the sums of squares stay accurate.
    middle_col = cols.mean() if len(cols) else 0.0
    middle_row = rows.mean() if len(rows) else 0.0
    terms = np.stack([np.ones(len(cols)), cols - middle_col, rows - middle_row], axis=1)
    matrix = terms.T @ terms
    if len(cols) < 3 or np.linalg.cond(matrix) > 1e12:
        raise ParameterError(
            "A plane needs three points of the object that do not lie on one line.",
            code="no-plane",
        )
    offset, along_col, along_row = np.linalg.solve(matrix, terms.T @ heights)
    # The plane is evaluated everywhere, also outside the pixels that it was fitted to.
    z -= offset + along_col * (np.arange(z.shape[1]) - middle_col)
    z -= along_row * (np.arange(z.shape[0]) - middle_row)[:, None]
    return z


def smooth(depth: ArrayLike, nesting_index: float) -> Float64:
    """Apply the areal Gaussian filter of ISO 16610-61: only waves longer than an index are kept.

    Parameters
    ----------
    depth : (H, W) array
        Heights; NaN outside the object, where they stay NaN.
    nesting_index : float
        The wavelength, in pixels, that keeps half its amplitude.
    """
    from scipy.ndimage import gaussian_filter

    z = np.asarray(depth, dtype=np.float64)
    inside = np.isfinite(z)
    sigma = SIGMA_SHARE * nesting_index
    weight = gaussian_filter(
        inside.astype(np.float64), sigma, mode="constant", truncate=FILTER_REACH
    )
    total = gaussian_filter(np.where(inside, z, 0.0), sigma, mode="constant", truncate=FILTER_REACH)
    return np.where(inside, total / np.maximum(weight, 1e-300), np.nan)


def height_statistics(
    depth: ArrayLike,
    region: ArrayLike | tuple[int, int, int, int] | None = None,
    *,
    points: Sequence[Point] | None = None,
    leveled: bool = True,
    s_filter: float | None = None,
    l_filter: float | None = None,
    pixel_size: float | None = None,
) -> HeightStatistics:
    """Return the height parameters of a region by ISO 25178-2.

    Parameters
    ----------
    depth : (H, W) array
        Heights in pixels; NaN outside the object.
    region : (H, W) array or (left, top, width, height), optional
        The pixels to measure; by default the whole object.
    points : sequence of (column, row), optional
        Level by the plane through three or more points; by default by that of the region.
    leveled : bool
        False measures the heights as they are.
    s_filter, l_filter : float, optional
        Nesting indices: remove waves shorter than the first and longer than the second, in
        millimeters if the pixel size is given, otherwise in pixels.
    pixel_size : float, optional
        Width of a pixel in millimeters; heights are then in millimeters.

    Raises
    ------
    ParameterError
        If the region holds nothing of the object, or a filter is not positive.

    Examples
    --------
    A wave with an amplitude of 2 pixels:

    >>> wave = 2.0 * np.sin(2 * np.pi * np.arange(200) / 20) * np.ones((50, 1))
    >>> print(height_statistics(wave, leveled=False))
    Sa 1.263, Sq 1.414, Sz 4 pixel (10000 pixels; no form removed, no S-filter, no L-filter)
    """
    z = np.array(depth, dtype=np.float64)
    inside = np.isfinite(z) & region_mask(region, z.shape)
    if not inside.any():
        raise ParameterError("The region holds nothing of the object.", code="empty-region")
    unit = "pixel" if pixel_size is None else "mm"
    scale = 1.0 if pixel_size is None else pixel_size
    steps = []
    if not leveled:
        steps.append("no form removed")
    else:
        steps.append("plane removed" if points is None else "plane through points removed")
        z = level(z, inside, points=points)
    # Filters see the surroundings of the region: its edge has no edge effect.
    for name, index in (("S", s_filter), ("L", l_filter)):
        if index is None:
            steps.append(f"no {name}-filter")
            continue
        if not index > 0:
            raise ParameterError(
                f"The nesting index of the {name}-filter must be positive; it is {index}.",
                code="bad-filter",
            )
        low = smooth(z, index / scale)
        # The S-filter keeps the long waves, the L-filter what they leave.
        z = low if name == "S" else z - low
        steps.append(f"{name}-filter {index:g} {unit}")
    return _statistics(z[inside] * scale, unit, ", ".join(steps))


def _statistics(heights: Float64, unit: str, removed: str) -> HeightStatistics:
    heights = heights - heights.mean()
    sq = float(np.sqrt(np.mean(heights**2)))
    # A plane has neither skewness nor kurtosis.
    divisor = sq if sq > 0 else 1.0
    return HeightStatistics(
        sa=float(np.abs(heights).mean()),
        sq=sq,
        sz=float(np.ptp(heights)),
        sp=float(heights.max()),
        sv=float(-heights.min()),
        ssk=float(np.mean((heights / divisor) ** 3)),
        sku=float(np.mean((heights / divisor) ** 4)),
        unit=unit,
        pixels=heights.size,
        filter=removed,
    )


def region_mask(
    region: ArrayLike | tuple[int, int, int, int] | None, shape: tuple[int, ...]
) -> BoolArray:
    """Return a region as a mask (H, W).

    Parameters
    ----------
    region : (H, W) array or (left, top, width, height), optional
        A mask or a rectangle in pixels; by default everything.
    shape : tuple of int
        Height and width of the picture.
    """
    if region is None:
        return np.ones(shape, dtype=bool)
    values = np.asarray(region)
    if values.shape == tuple(shape):
        return values > 0
    if values.shape != (4,) or not (values[2:] > 0).all():
        raise ParameterError(
            "A region is a mask of the same size, or left, top, width and height in pixels.",
            code="bad-region",
        )
    left, top, width, height = (int(value) for value in values)
    mask = np.zeros(shape, dtype=bool)
    mask[max(0, top) : max(0, top + height), max(0, left) : max(0, left + width)] = True
    return mask


def profile(
    depth: ArrayLike, start: Point, end: Point, *, pixel_size: float | None = None
) -> Profile:
    """Return the heights along a line, one sample per pixel, interpolated between pixels.

    Parameters
    ----------
    depth : (H, W) array
        Heights in pixels; NaN outside the object.
    start, end : (column, row)
        Ends of the line, in pixels.
    pixel_size : float, optional
        Width of a pixel in millimeters; the profile is then in millimeters.
    """
    z = np.asarray(depth, dtype=np.float64)
    for col, row in (start, end):
        if not (0 <= col <= z.shape[1] - 1 and 0 <= row <= z.shape[0] - 1):
            raise ParameterError(
                f"The profile ends at column {col:g}, row {row:g}, outside the picture "
                f"of {z.shape[1]} × {z.shape[0]} pixels.",
                code="profile-outside",
            )
    length = float(np.hypot(end[0] - start[0], end[1] - start[1]))
    share = np.linspace(0.0, 1.0, max(2, 1 + round(length)))
    cols = start[0] + share * (end[0] - start[0])
    rows = start[1] + share * (end[1] - start[1])
    scale = 1.0 if pixel_size is None else pixel_size
    return Profile(
        distance=share * length * scale,
        height=_interpolated(z, cols, rows) * scale,
        col=cols,
        row=rows,
        unit="pixel" if pixel_size is None else "mm",
    )


def _interpolated(z: Float64, cols: Float64, rows: Float64) -> Float64:
    """Interpolate between four pixels; NaN if one that counts is unknown."""
    left = np.minimum(np.floor(cols).astype(int), max(0, z.shape[1] - 2))
    top = np.minimum(np.floor(rows).astype(int), max(0, z.shape[0] - 2))
    right = np.minimum(left + 1, z.shape[1] - 1)
    bottom = np.minimum(top + 1, z.shape[0] - 1)
    across = cols - left
    down = rows - top
    total = np.zeros(len(cols))
    for row, row_weight in ((top, 1.0 - down), (bottom, down)):
        for col, col_weight in ((left, 1.0 - across), (right, across)):
            weight = row_weight * col_weight
            # A pixel without weight (but for rounding) does not count, even if it is unknown.
            total += np.where(weight > 1e-9, weight * z[row, col], 0.0)
    return total


def _heights_at(z: Float64, points: Sequence[Point]) -> Float64:
    """Return column, row and mean height (n, 3) at points of the object."""
    table = []
    for col, row in points:
        top = max(0, round(row) - POINT_REACH)
        left = max(0, round(col) - POINT_REACH)
        square = z[top : round(row) + POINT_REACH + 1, left : round(col) + POINT_REACH + 1]
        rows, cols = np.nonzero(np.isfinite(square))
        if rows.size == 0:
            raise ParameterError(
                f"The point at column {col:g}, row {row:g} lies outside the object.",
                code="point-outside",
            )
        # The mean position of the pixels that count: at the edge of the object, not the point
        # itself.
        table.append((left + cols.mean(), top + rows.mean(), square[rows, cols].mean()))
    return np.array(table, dtype=np.float64).reshape(-1, 3)
