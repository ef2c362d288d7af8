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
from photostereo.surface.arrays import Bool, Float32, Float64
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
    _sweep(field, values, sharpness, columns, rows, energy)
    return (columns, rows), energy


def soft_energy(field: SlopeField, values: Float64, sharpness: float) -> float:
    """Return the energy of all pixels."""
    return _sweep(field, values, sharpness, NO_PULL, NO_PULL, NO_PULL)


def _sweep(
    field: SlopeField, values: Float64, sharpness: float, columns: Float32, rows: Float32, energy: Float32
) -> float:
    from photostereo.surface.softmin_kernel import soft_sweep

    by_row = np.empty(values.shape[0])
    equations = field.facing, field.tilt_col, field.tilt_row, field.confidence
    soft_sweep(*equations, values, sharpness, SHARE_FLOOR, columns, rows, energy, by_row)
    return float(by_row.sum())


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
        part = field.part(rows)
        for axis, (near, far) in enumerate(ends):
            tilt, share = (part.tilt_col, part.tilt_row)[axis], shares[axis][rows]
            linked = (part.confidence[near] > 0) & (part.confidence[far] > 0)
            a = linked * share[near] * part.confidence[near] * part.facing[near]
            b = linked * (1.0 - share[far]) * part.confidence[far] * part.facing[far]
            weight = a * part.facing[near] + b * part.facing[far]
            force = a * tilt[near] + b * tilt[far] - weight * (values[rows][far] - values[rows][near])
            lattice.links(axis)[rows][near] = weight
            residual[rows][far] += force
            residual[rows][near] -= force
    return lattice, residual


def torn_links(mask: Bool, shares: Shares) -> tuple[Bool, Bool]:
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

    A tear that is off by one pixel is a local minimum: the strip in between cannot cross pixel by
    pixel, because each pixel would leave its neighbors in the strip. So all pixels on one side of all tears are
    moved at once, and the move is kept where the energy of the surroundings (5 × 5 pixels) falls, if the total
    energy also falls.
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
