"""The soft choice between the two sides of a pixel: its energy, its shares, and the links it leaves torn.

    e(p, m) = −(1/k) log( ½ exp(−k p) + ½ exp(−k m) ) = min_w  w p + (1 − w) m + (1/k) KL(w ‖ ½)

with ``p = r₊²`` and ``m = r₋²`` the squared residuals of the forward and the backward slope equation of a
pixel along an axis, ``r_± = facing · ∂_± z − tilt``. The minimum is attained at the *share* ``w = 1 / (1 +
exp(−k (m − p)))``. A pixel with a neighbor on one side only has nothing to choose from: its share is ½ and
its energy ``½ r²``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.surface.links import Links
from photostereo.surface.slopes import SlopeField

Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]
#: Single precision where a problem is large.
Real = NDArray[Any]
Shares = tuple[Real, Real]

#: No share falls below this, so that a piece cut off on all sides still has a place.
SHARE_FLOOR = 1e-6
#: A link is torn when both of its ends give it less than this share.
TORN_SHARE = 0.25
#: Steeper slopes than this are not used to carry a pixel across a tear.
STEEPEST_SHIFT = 2.0


def soft_choice(field: SlopeField, values: Float64, sharpness: float) -> tuple[Shares, Real]:
    """The forward shares along columns and rows for these heights, and the energy of every pixel."""
    columns, rows, energy = (np.empty_like(field.confidence) for _ in range(3))
    _sweep(field, values, sharpness, columns, rows, energy)
    return (columns, rows), energy


def soft_shares(field: SlopeField, values: Float64, sharpness: float) -> Shares:
    """The shares alone."""
    columns, rows = np.empty_like(field.confidence), np.empty_like(field.confidence)
    _sweep(field, values, sharpness, columns, rows, columns[:0])
    return columns, rows


def soft_energy(field: SlopeField, values: Float64, sharpness: float) -> float:
    """The energy of all pixels, without an array."""
    nothing = field.confidence[:0]
    return _sweep(field, values, sharpness, nothing, nothing, nothing)


def _sweep(
    field: SlopeField, values: Float64, sharpness: float, columns: Real, rows: Real, energy: Real
) -> float:
    from photostereo.surface.softmin_kernel import soft_sweep

    by_row = np.empty(field.mask.shape[0])
    equations = field.facing, field.tilt_col, field.tilt_row, field.confidence
    soft_sweep(field.mask, *equations, values, sharpness, SHARE_FLOOR, columns, rows, energy, by_row)
    return float(by_row.sum())


def soft_choice_readable(
    field: SlopeField, links: Links, values: Float64, sharpness: float
) -> tuple[Shares, Float64]:
    """The same as :func:`soft_choice` in array operations: the reference of the kernel."""
    energy = np.zeros(links.size)
    shares = []
    for axis, tilt in enumerate((field.tilt_col, field.tilt_row)):
        part = links.axis(axis)
        a, b = links.first[part], links.second[part]
        difference = values[b] - values[a]
        plus = np.full(links.size, np.nan)
        minus = np.full(links.size, np.nan)
        plus[a] = (field.facing[a] * difference - tilt[a]) ** 2
        minus[b] = (field.facing[b] * difference - tilt[b]) ** 2
        gap = minus - plus
        single = np.isnan(gap)
        decay = np.exp(-sharpness * np.abs(gap))
        share = np.where(gap >= 0, 1.0, decay) / (1.0 + decay)
        smaller = np.fmin(plus, minus)
        soft = smaller + (np.log(2.0) - np.log1p(decay)) / sharpness
        soft[single] = 0.5 * np.nan_to_num(smaller[single])
        share[single] = 0.5
        energy += field.confidence * soft
        shares.append(np.clip(share, SHARE_FLOOR, 1.0 - SHARE_FLOOR))
    return (shares[0], shares[1]), energy


def shared_equations(field: SlopeField, links: Links, shares: Shares) -> tuple[Float64, Float64]:
    """Weight and target of every link, when pixels give these shares to their forward difference.

    A link carries the forward equation of its first pixel and the backward one of its second; the sum of two
    weighted squares of the same difference is one weighted square (and a constant).
    """
    weight = np.empty(links.first.size)
    goal = np.empty(links.first.size)
    for axis, tilt in enumerate((field.tilt_col, field.tilt_row)):
        part = links.axis(axis)
        a, b = links.first[part], links.second[part]
        slope = tilt / field.facing
        share_a = shares[axis][a] * field.weight[a]
        share_b = (1.0 - shares[axis][b]) * field.weight[b]
        weight[part] = share_a + share_b
        goal[part] = (share_a * slope[a] + share_b * slope[b]) / weight[part]
    return weight, goal


def shared_pictures(field: SlopeField, shares: Shares, values: Float64) -> tuple[Real, Real, Real, float]:
    """The same as pictures (see :mod:`.lattice`), for a correction to ``values``: weights of the links to the right and
    downwards, the residual that is left of the right-hand side b, and ‖b‖."""
    from photostereo.surface.softmin_kernel import shared_lattice

    right, down, residual = (np.zeros(field.mask.shape, dtype=shares[0].dtype) for _ in range(3))
    squares = np.empty(field.mask.shape[0])
    equations = field.facing, field.tilt_col, field.tilt_row, field.confidence
    shared_lattice(field.mask, *equations, *shares, values, right, down, residual, squares)
    return right, down, residual, float(np.sqrt(squares.sum()))


def torn_links(mask: Bool, shares: Shares) -> tuple[Bool, Bool]:
    """Links that both of their ends have turned away from, as pictures: to the right and downwards."""
    from photostereo.surface.softmin_kernel import torn_pictures

    right, down = np.zeros_like(mask), np.zeros_like(mask)
    torn_pictures(mask, *shares, TORN_SHARE, right, down)
    return right, down


def _ends(mask: Bool, torn: Bool, axis: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The numbers of the two pixels of each torn link along an axis (0: to the right, 1: downwards)."""
    number = np.zeros(mask.shape, dtype=np.int32)
    number[mask] = np.arange(np.count_nonzero(mask), dtype=np.int32)
    row, col = np.nonzero(torn)
    return number[row, col], number[row + axis, col + 1 - axis]


def shift_tears(field: SlopeField, values: Float64, sharpness: float) -> Float64:
    """Move pixels beside tears to the other side where that lowers the energy.

    A tear that lies a pixel beside its place is a local minimum: the strip between cannot cross pixel by
    pixel, as each would leave its neighbors in the strip. So all pixels on one side of all tears are moved
    at once, and the move is kept where the energy of the surroundings (5 × 5 pixels) falls, if the whole
    energy does.
    """
    from scipy.ndimage import uniform_filter

    shares, before = soft_choice(field, values, sharpness)
    torn = torn_links(field.mask, shares)
    del shares
    least = soft_energy(field, values, sharpness)
    for axis, tilt in enumerate((field.tilt_col, field.tilt_row)):
        if not torn[axis].any():
            continue
        first, second = _ends(field.mask, torn[axis], axis)
        for mover, other, sign in ((first, second, -1.0), (second, first, 1.0)):
            slope = np.clip(tilt[mover] / field.facing[mover], -STEEPEST_SHIFT, STEEPEST_SHIFT)
            moved = values.copy()
            moved[mover] = values[other] + sign * slope
            gain = np.zeros(field.mask.shape, dtype=before.dtype)
            gain[field.mask] = before - soft_choice(field, moved, sharpness)[1]
            worse = ~(uniform_filter(gain, 5, mode="constant")[field.mask] > 1e-6)
            np.copyto(moved, values, where=worse)
            del gain, worse
            after = soft_energy(field, moved, sharpness)
            if after < least:
                values, least = moved, after
                before = soft_choice(field, values, sharpness)[1]
    return values
