"""Soft choice between the two sides of a pixel: energy, shares, torn links.

    e(p, m) = −(1/k) log( ½ exp(−k p) + ½ exp(−k m) ) = min_w  w p + (1 − w) m + (1/k) KL(w ‖ ½)

with ``p = r₊²`` and ``m = r₋²`` the squared residuals of the forward and the backward slope
equation of a pixel along an axis, ``r_± = facing · ∂_± z − tilt``. The minimum is attained at the
*share* ``w = 1 / (1 + exp(−k (m − p)))``. A pixel with a neighbor on one side only has nothing to
choose from: its share is ½ and its energy ``½ r²``.
"""

from __future__ import annotations

import numpy as np

from photostereo.core.control import Control
from photostereo.core.conventions import BoolArray, Float32, Float64
from photostereo.runtime.loops import njit, prange
from photostereo.surface.lattice import Lattice, strips
from photostereo.surface.slopes import SlopeField

#: Forward shares along columns and rows, as pictures.
Shares = tuple[Float32, Float32]

#: An output that :func:`soft_sweep` does not write.
NOT_WRITTEN = np.zeros((0, 0), dtype=np.float32)
#: Lower limit of a share, so that the height of a piece cut off on all sides is still determined.
SHARE_FLOOR = 1e-6
#: A link is torn if both of its ends give it less than this share. Not tuned.
TORN_SHARE = 0.25
#: Slopes steeper than this are not used to move a pixel across a tear.
STEEPEST_SHIFT = 2.0
#: A pixel is shifted only if the mean energy of its surroundings falls by more than this, which
#: exceeds rounding errors.
LEAST_GAIN = 1e-6


def soft_choice(field: SlopeField, values: Float64, sharpness: float) -> tuple[Shares, Float32]:
    """Return the best forward shares, and the energy of every pixel.

    Parameters
    ----------
    field : SlopeField
        The slope equations.
    values : (H, W) array
        Heights.
    sharpness : float
        How sharply a pixel chooses, k.
    """
    columns = np.zeros_like(field.confidence)
    rows = np.zeros_like(field.confidence)
    energy = np.zeros_like(field.confidence)
    soft_sweep(
        field.facing,
        field.tilt_col,
        field.tilt_row,
        field.confidence,
        values,
        sharpness,
        columns,
        rows,
        energy,
    )
    return (columns, rows), energy


def soft_energy(field: SlopeField, values: Float64, sharpness: float) -> float:
    """Return the energy of all pixels for heights (H, W)."""
    by_row = soft_sweep(
        field.facing,
        field.tilt_col,
        field.tilt_row,
        field.confidence,
        values,
        sharpness,
        NOT_WRITTEN,
        NOT_WRITTEN,
        NOT_WRITTEN,
    )
    return float(by_row.sum())


def weighted_problem(
    field: SlopeField, shares: Shares, values: Float64, control: Control
) -> tuple[Lattice, Float64]:
    """Return the least-squares problem for these shares.

    A link carries the forward equation of its first pixel and the backward one of its second; the
    sum of two weighted squares of the same difference is one weighted square (and a constant).

    Parameters
    ----------
    field : SlopeField
        The slope equations.
    shares : pair of (H, W) arrays
        Forward shares along columns and rows.
    values : (H, W) array
        Heights.
    control : Control
        Can cancel the work.

    Returns
    -------
    lattice : Lattice
        The matrix A of the normal equations.
    residual : (H, W) array
        ``b − A values``.
    """
    lattice = Lattice.empty(values.shape)
    links = (lattice.right, lattice.down)
    tilts = (field.tilt_col, field.tilt_row)
    residual = np.zeros(values.shape)
    for rows, ends in strips(values.shape[0]):
        control.check()
        confidence = field.confidence[rows]
        facing = field.facing[rows]
        heights = values[rows]
        for axis, (near, far) in enumerate(ends):
            tilt = tilts[axis][rows]
            share = shares[axis][rows]
            linked = (confidence[near] > 0) & (confidence[far] > 0)
            a = linked * share[near] * confidence[near] * facing[near]
            b = linked * (1.0 - share[far]) * confidence[far] * facing[far]
            weight = a * facing[near] + b * facing[far]
            force = a * tilt[near] + b * tilt[far] - weight * (heights[far] - heights[near])
            links[axis][rows][near] = weight
            residual[rows][far] += force
            residual[rows][near] -= force
    return lattice, residual


def torn_links(mask: BoolArray, shares: Shares) -> tuple[BoolArray, BoolArray]:
    """Return the links to the right and down that both of their ends reject."""
    return (
        _torn_along(mask, shares[0], np.s_[:, :-1], np.s_[:, 1:]),
        _torn_along(mask, shares[1], np.s_[:-1, :], np.s_[1:, :]),
    )


def _torn_along(
    mask: BoolArray, share: Float32, near: tuple[slice, slice], far: tuple[slice, slice]
) -> BoolArray:
    torn = np.zeros_like(mask)
    turned_away = np.maximum(share[near], 1.0 - share[far]) < TORN_SHARE
    torn[near] = turned_away & mask[near] & mask[far]
    return torn


def shift_tears(field: SlopeField, values: Float64, sharpness: float, control: Control) -> Float64:
    """Move pixels next to tears to the other side if that lowers the energy.

    A tear that is off by one pixel is a local minimum: each pixel of the strip in between would
    leave its neighbors. So all pixels on one side of all tears are moved at once, and the move is
    kept where the energy of the surroundings (5 × 5 pixels) falls, if the total energy also falls.

    Parameters
    ----------
    field : SlopeField
        The slope equations.
    values : (H, W) array
        Heights.
    sharpness : float
        How sharply a pixel chooses, k.
    control : Control
        Can cancel the work.

    Returns
    -------
    (H, W) array
        The new heights; ``values`` itself if nothing was moved.
    """
    import cv2

    shares, before = soft_choice(field, values, sharpness)
    control.check()
    torn = torn_links(field.mask, shares)
    del shares
    least = soft_energy(field, values, sharpness)
    for axis, tilt in enumerate((field.tilt_col, field.tilt_row)):
        row, col = np.nonzero(torn[axis])
        if row.size == 0:
            continue
        first = (row, col)
        second = (row + axis, col + 1 - axis)
        for mover, neighbor, sign in ((first, second, -1.0), (second, first, 1.0)):
            slope = np.clip(tilt[mover] / field.facing[mover], -STEEPEST_SHIFT, STEEPEST_SHIFT)
            control.check()
            trial = values.copy()
            trial[mover] = values[neighbor] + sign * slope
            gain = before - soft_choice(field, trial, sharpness)[1]
            control.check()
            around = cv2.blur(gain, (5, 5), borderType=cv2.BORDER_CONSTANT)
            np.copyto(trial, values, where=~(around > LEAST_GAIN))
            energy = soft_energy(field, trial, sharpness)
            control.check()
            if energy < least:
                values = trial
                least = energy
                before = soft_choice(field, values, sharpness)[1]
    return values


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def _choose(plus: float, minus: float, sharpness: float) -> tuple[float, float]:
    """Return the forward share and the energy of two squared residuals.

    A missing one is negative.
    """
    if plus < 0.0 or minus < 0.0:
        return 0.5, 0.5 * max(plus, minus, 0.0)
    gap = minus - plus
    decay = np.exp(-sharpness * abs(gap))
    larger = 1.0 / (1.0 + decay)
    share = larger
    if gap < 0.0:
        share = decay * larger
    return share, min(plus, minus) + np.log(2.0 * larger) / sharpness


@njit(cache=True, parallel=True)  # type: ignore[untyped-decorator]
def soft_sweep(
    facing: Float64,
    tilt_col: Float64,
    tilt_row: Float64,
    confidence: Float32,
    values: Float64,
    sharpness: float,
    share_col: Float32,
    share_row: Float32,
    energy: Float32,
) -> Float64:
    """Write the forward shares and the energy of every pixel, and return the energy of every row.

    Parameters
    ----------
    facing, tilt_col, tilt_row, confidence : (H, W) arrays
        The slope equations; the confidence is zero outside the mask.
    values : (H, W) array
        Heights.
    sharpness : float
        How sharply a pixel chooses, k.
    share_col, share_row, energy : (H, W) arrays
        Outputs; an empty array is not written.
    """
    height, width = confidence.shape
    by_row = np.empty(height)
    for row in prange(height):
        total = 0.0
        for col in range(width):
            if confidence[row, col] > 0:
                z = values[row, col]
                scale = facing[row, col]
                # Squared residuals; negative: no such neighbor.
                east = -1.0
                west = -1.0
                south = -1.0
                north = -1.0
                if col + 1 < width and confidence[row, col + 1] > 0:
                    east = (scale * (values[row, col + 1] - z) - tilt_col[row, col]) ** 2
                if col > 0 and confidence[row, col - 1] > 0:
                    west = (scale * (z - values[row, col - 1]) - tilt_col[row, col]) ** 2
                if row + 1 < height and confidence[row + 1, col] > 0:
                    south = (scale * (values[row + 1, col] - z) - tilt_row[row, col]) ** 2
                if row > 0 and confidence[row - 1, col] > 0:
                    north = (scale * (z - values[row - 1, col]) - tilt_row[row, col]) ** 2
                along_col, energy_col = _choose(east, west, sharpness)
                along_row, energy_row = _choose(south, north, sharpness)
                cost = confidence[row, col] * (energy_col + energy_row)
                total += cost
                if share_col.size > 0:
                    share_col[row, col] = min(max(along_col, SHARE_FLOOR), 1.0 - SHARE_FLOOR)
                    share_row[row, col] = min(max(along_row, SHARE_FLOOR), 1.0 - SHARE_FLOOR)
                if energy.size > 0:
                    energy[row, col] = cost
        by_row[row] = total
    return by_row
