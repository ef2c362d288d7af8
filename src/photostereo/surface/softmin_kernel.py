"""The compiled loops of :mod:`photostereo.surface.softmin`: each one sweep over the mask, with nothing in between."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.runtime.loops import njit

Float64 = NDArray[np.float64]
#: Single precision where a problem is large.
Real = NDArray[Any]


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def _chosen(plus: float, minus: float, sharpness: float) -> tuple[float, float]:
    """The forward share and the energy of two squared residuals; a negative one is absent."""
    if plus < 0.0 or minus < 0.0:
        return 0.5, 0.5 * max(plus, minus, 0.0)
    gap = minus - plus
    decay = np.exp(-sharpness * abs(gap))
    larger = 1.0 / (1.0 + decay)
    share = larger if gap >= 0.0 else decay * larger
    return share, min(plus, minus) + np.log(2.0 * larger) / sharpness


@njit(cache=True)  # type: ignore[untyped-decorator]
def soft_sweep(
    mask: NDArray[np.bool_],
    facing: Float64,
    tilt_col: Float64,
    tilt_row: Float64,
    confidence: Real,
    values: Float64,
    sharpness: float,
    floor: float,
    share_col: Real,
    share_row: Real,
    energy: Real,
    by_row: Float64,
) -> Any:
    """The forward shares and the energy of every pixel, and the energy of every row of the picture.

    Shares and energies are left out where their arrays are empty. Pixels are numbered in row-major order: beside number
    i lie i − 1 and i + 1, and those of the rows above and below are counted along.
    """
    height, width = mask.shape
    begin, above_begin = 0, 0  # of this row and the one above
    for row in range(height):
        end = begin
        for col in range(width):
            end += mask[row, col]
        i, above, below = begin, above_begin, end
        total = 0.0
        for col in range(width):
            has_above, has_below = row > 0 and mask[row - 1, col], row + 1 < height and mask[row + 1, col]
            if mask[row, col]:
                here, steep = values[i], facing[i]
                right = left = up = down = -1.0
                if col + 1 < width and mask[row, col + 1]:
                    right = (steep * (values[i + 1] - here) - tilt_col[i]) ** 2
                if col > 0 and mask[row, col - 1]:
                    left = (steep * (here - values[i - 1]) - tilt_col[i]) ** 2
                if has_below:
                    down = (steep * (values[below] - here) - tilt_row[i]) ** 2
                if has_above:
                    up = (steep * (here - values[above]) - tilt_row[i]) ** 2
                along_col, first = _chosen(right, left, sharpness)
                along_row, second = _chosen(down, up, sharpness)
                own = confidence[i] * (first + second)
                total += own
                if share_col.size > 0:
                    share_col[i] = min(max(along_col, floor), 1.0 - floor)
                    share_row[i] = min(max(along_row, floor), 1.0 - floor)
                if energy.size > 0:
                    energy[i] = own
                i += 1
            above += has_above
            below += has_below
        by_row[row] = total
        above_begin, begin = begin, end


@njit(cache=True)  # type: ignore[untyped-decorator]
def torn_pictures(
    mask: NDArray[np.bool_],
    share_col: Real,
    share_row: Real,
    limit: float,
    right: NDArray[np.bool_],
    down: NDArray[np.bool_],
) -> Any:
    """Mark the links to the right and downwards that both of their ends give less than ``limit``; false before."""
    height, width = mask.shape
    following = 0
    for col in range(width):
        following += mask[0, col]
    i = 0
    for row in range(height):
        j = following
        for col in range(width):
            below = row + 1 < height and mask[row + 1, col]
            if mask[row, col]:
                if col + 1 < width and mask[row, col + 1]:
                    right[row, col] = max(share_col[i], 1.0 - share_col[i + 1]) < limit
                if below:
                    down[row, col] = max(share_row[i], 1.0 - share_row[j]) < limit
                i += 1
            if below:
                j += 1
        following = j


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def _link(
    a: int, b: int, facing: Float64, tilt: Float64, confidence: Real, share: Real
) -> tuple[float, float]:
    """Weight and push (weight · target) of the link from pixel a to b: see ``shared_equations``."""
    first = share[a] * confidence[a] * facing[a]
    second = (1.0 - share[b]) * confidence[b] * facing[b]
    return first * facing[a] + second * facing[b], first * tilt[a] + second * tilt[b]


@njit(cache=True)  # type: ignore[untyped-decorator]
def shared_lattice(
    mask: NDArray[np.bool_],
    facing: Float64,
    tilt_col: Float64,
    tilt_row: Float64,
    confidence: Real,
    share_col: Real,
    share_row: Real,
    values: Float64,
    right: Real,
    down: Real,
    residual: Real,
    squares: Float64,
) -> Any:
    """Weights of the links and the residual b − A z as pictures, zero before: ``shared_equations`` and ``place_links``
    at once, without anything in between. ``squares`` receives Σ b² of every row.

    Every sum is made in double precision before it is stored, so pictures in single precision cost no accuracy: they
    are those of a correction to z.
    """
    height, width = mask.shape
    begin, above_begin = 0, 0  # of this row and the one above
    for row in range(height):
        end = begin
        for col in range(width):
            end += mask[row, col]
        i, above, below = begin, above_begin, end
        square = 0.0
        for col in range(width):
            has_above, has_below = row > 0 and mask[row - 1, col], row + 1 < height and mask[row + 1, col]
            if mask[row, col]:
                here, side, force = values[i], 0.0, 0.0
                if col > 0 and mask[row, col - 1]:
                    weight, push = _link(i - 1, i, facing, tilt_col, confidence, share_col)
                    side += push
                    force += push - weight * (here - values[i - 1])
                if col + 1 < width and mask[row, col + 1]:
                    weight, push = _link(i, i + 1, facing, tilt_col, confidence, share_col)
                    right[row, col] = weight
                    side -= push
                    force -= push - weight * (values[i + 1] - here)
                if has_above:
                    weight, push = _link(above, i, facing, tilt_row, confidence, share_row)
                    side += push
                    force += push - weight * (here - values[above])
                if has_below:
                    weight, push = _link(i, below, facing, tilt_row, confidence, share_row)
                    down[row, col] = weight
                    side -= push
                    force -= push - weight * (values[below] - here)
                residual[row, col] = force
                square += side * side
                i += 1
            above += has_above
            below += has_below
        squares[row] = square
        above_begin, begin = begin, end
