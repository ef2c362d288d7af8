"""Soft choice between the two sides of a pixel: its energy, its shares, and the resulting torn links.

    e(p, m) = −(1/k) log( ½ exp(−k p) + ½ exp(−k m) ) = min_w  w p + (1 − w) m + (1/k) KL(w ‖ ½)

with ``p = r₊²`` and ``m = r₋²`` the squared residuals of the forward and the backward slope equation of a
pixel along an axis, ``r_± = facing · ∂_± z − tilt``. The minimum is attained at the *share* ``w = 1 / (1 +
exp(−k (m − p)))``. A pixel with a neighbor on one side only has nothing to choose from: its share is ½ and
its energy ``½ r²``.
"""

from __future__ import annotations

import numpy as np

from photostereo.core.control import Control
from photostereo.core.conventions import BoolArray, Float32, Float64
from photostereo.runtime.loops import njit, prange
from photostereo.surface.lattice import NO_PULL, Lattice, strips
from photostereo.surface.slopes import SlopeField

#: Forward shares along columns and rows, as pictures.
Shares = tuple[Float32, Float32]

#: Lower limit of a share, so that the height of a piece cut off on all sides is still determined.
SHARE_FLOOR = 1e-6
#: A link is torn if both of its ends give it less than this share. Not tuned.
TORN_SHARE = 0.25
#: Slopes steeper than this are not used to move a pixel across a tear.
STEEPEST_SHIFT = 2.0
#: A pixel is shifted only if the mean energy of its surroundings falls by more than this, which exceeds rounding errors.
LEAST_GAIN = 1e-6


def soft_choice(field: SlopeField, values: Float64, sharpness: float) -> tuple[Shares, Float32]:
    """Return the forward shares for these heights, and the energy of every pixel."""
    columns, rows, energy = (np.zeros_like(field.confidence) for _ in range(3))
    soft_sweep(*vars(field).values(), values, sharpness, columns, rows, energy)
    return (columns, rows), energy


def soft_energy(field: SlopeField, values: Float64, sharpness: float) -> float:
    """Return the energy of all pixels."""
    return float(
        soft_sweep(*vars(field).values(), values, sharpness, NO_PULL, NO_PULL, NO_PULL).sum()
    )


def weighted_problem(
    field: SlopeField, shares: Shares, values: Float64, control: Control
) -> tuple[Lattice, Float64]:
    """Return the least-squares problem for these shares, and the residual ``b − A values`` of its normal equations.

    A link carries the forward equation of its first pixel and the backward one of its second; the sum of two weighted
    squares of the same difference is one weighted square (and a constant).
    """
    lattice, residual = Lattice.empty(values.shape), np.zeros(values.shape)
    for rows, ends in strips(values.shape[0]):
        control.check()
        part = SlopeField(*(picture[rows] for picture in vars(field).values()))
        for axis, (near, far) in enumerate(ends):
            tilt, share = (part.tilt_col, part.tilt_row)[axis], shares[axis][rows]
            linked = (part.confidence[near] > 0) & (part.confidence[far] > 0)
            a = linked * share[near] * part.confidence[near] * part.facing[near]
            b = linked * (1.0 - share[far]) * part.confidence[far] * part.facing[far]
            weight = a * part.facing[near] + b * part.facing[far]
            force = (
                a * tilt[near] + b * tilt[far] - weight * (values[rows][far] - values[rows][near])
            )
            (lattice.right, lattice.down)[axis][rows][near] = weight
            residual[rows][far] += force
            residual[rows][near] -= force
    return lattice, residual


def torn_links(mask: BoolArray, shares: Shares) -> tuple[BoolArray, BoolArray]:
    """Return the links to the right and down that both of their ends reject."""
    right, down = np.zeros_like(mask), np.zeros_like(mask)
    for torn, share, near, far in (
        (right, shares[0], np.s_[:, :-1], np.s_[:, 1:]),
        (down, shares[1], np.s_[:-1], np.s_[1:]),
    ):
        turned_away = np.maximum(share[near], 1.0 - share[far]) < TORN_SHARE
        torn[near] = turned_away & mask[near] & mask[far]
    return right, down


def shift_tears(field: SlopeField, values: Float64, sharpness: float, control: Control) -> Float64:
    """Move pixels next to tears to the other side if that lowers the energy.

    A tear that is off by one pixel is a local minimum: each pixel of the strip in between would leave its neighbors. So all
    pixels on one side of all tears are moved at once, and the move is kept where the energy of the surroundings (5 × 5
    pixels) falls, if the total energy also falls.
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
        first, second = (row, col), (row + axis, col + 1 - axis)
        for mover, other, sign in ((first, second, -1.0), (second, first, 1.0)):
            slope = np.clip(tilt[mover] / field.facing[mover], -STEEPEST_SHIFT, STEEPEST_SHIFT)
            control.check()
            moved = values.copy()
            moved[mover] = values[other] + sign * slope
            gain = before - soft_choice(field, moved, sharpness)[1]
            control.check()
            around = cv2.blur(gain, (5, 5), borderType=cv2.BORDER_CONSTANT)
            np.copyto(moved, values, where=~(around > LEAST_GAIN))
            after = soft_energy(field, moved, sharpness)
            control.check()
            if after < least:
                values, least = moved, after
                before = soft_choice(field, values, sharpness)[1]
    return values


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def _choose(plus: float, minus: float, sharpness: float) -> tuple[float, float]:
    """Return the forward share and the energy of two squared residuals; a negative value means a missing one."""
    if plus < 0.0 or minus < 0.0:
        return 0.5, 0.5 * max(plus, minus, 0.0)
    gap = minus - plus
    decay = np.exp(-sharpness * abs(gap))
    larger = 1.0 / (1.0 + decay)
    share = larger if gap >= 0.0 else decay * larger
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
    """Write the forward shares and the energy of every pixel, unless their arrays are empty; return the energy of every
    row. Pixels outside the mask have confidence zero."""
    height, width = confidence.shape
    by_row = np.empty(height)
    for row in prange(height):
        total = 0.0
        for col in range(width):
            if confidence[row, col] > 0:
                own, steep = values[row, col], facing[row, col]
                right = left = up = down = -1.0
                if col + 1 < width and confidence[row, col + 1] > 0:
                    right = (steep * (values[row, col + 1] - own) - tilt_col[row, col]) ** 2
                if col > 0 and confidence[row, col - 1] > 0:
                    left = (steep * (own - values[row, col - 1]) - tilt_col[row, col]) ** 2
                if row + 1 < height and confidence[row + 1, col] > 0:
                    down = (steep * (values[row + 1, col] - own) - tilt_row[row, col]) ** 2
                if row > 0 and confidence[row - 1, col] > 0:
                    up = (steep * (own - values[row - 1, col]) - tilt_row[row, col]) ** 2
                along_col, first = _choose(right, left, sharpness)
                along_row, second = _choose(down, up, sharpness)
                cost = confidence[row, col] * (first + second)
                total += cost
                if share_col.size > 0:
                    share_col[row, col] = min(max(along_col, SHARE_FLOOR), 1.0 - SHARE_FLOOR)
                    share_row[row, col] = min(max(along_row, SHARE_FLOOR), 1.0 - SHARE_FLOOR)
                if energy.size > 0:
                    energy[row, col] = cost
        by_row[row] = total
    return by_row
