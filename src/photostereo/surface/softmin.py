"""The soft choice between the two sides of a pixel: its energy, its shares, and the links it leaves torn.

    e(p, m) = −(1/k) log( ½ exp(−k p) + ½ exp(−k m) ) = min_w  w p + (1 − w) m + (1/k) KL(w ‖ ½)

with ``p = r₊²`` and ``m = r₋²`` the squared residuals of the forward and the backward slope equation of a
pixel along an axis, ``r_± = facing · ∂_± z − tilt``. The minimum is attained at the *share* ``w = 1 / (1 +
exp(−k (m − p)))``. A pixel with a neighbour on one side only has nothing to choose from: its share is ½ and
its energy ``½ r²``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from photostereo.surface.links import Links
from photostereo.surface.slopes import SlopeField

Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]
Shares = tuple[Float64, Float64]

#: No share falls below this, so that a piece cut off on all sides still has a place.
SHARE_FLOOR = 1e-6
#: A link is torn when both of its ends give it less than this share.
TORN_SHARE = 0.25
#: Steeper slopes than this are not used to carry a pixel across a tear.
STEEPEST_SHIFT = 2.0


def soft_choice(field: SlopeField, links: Links, values: Float64, sharpness: float) -> tuple[Shares, Float64]:
    """The forward shares along columns and rows for these heights, and the energy of every pixel."""
    from photostereo.surface.softmin_kernel import soft_choice_axis

    energy = np.zeros(links.size)
    shares = []
    for axis, tilt in enumerate((field.tilt_col, field.tilt_row)):
        part = links.axis(axis)
        share = np.empty(links.size)
        soft_choice_axis(
            links.first[part],
            links.second[part],
            field.facing,
            tilt,
            field.confidence,
            values,
            sharpness,
            SHARE_FLOOR,
            share,
            energy,
        )
        shares.append(share)
    return (shares[0], shares[1]), energy


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


def shared_pictures(field: SlopeField, shares: Shares) -> tuple[Float64, Float64, Float64]:
    """The same as pictures (see :mod:`.lattice`): weights of the links to the right and downwards, and the right-hand
    side."""
    from photostereo.surface.softmin_kernel import shared_lattice

    right, down, side = (np.zeros(field.mask.shape) for _ in range(3))
    tilts = field.facing, field.tilt_col, field.tilt_row, field.confidence
    shared_lattice(field.mask, *tilts, *shares, right, down, side)
    return right, down, side


def torn_links(links: Links, shares: Shares) -> Bool:
    """Links that both of their ends have turned away from."""
    torn = np.empty(links.first.size, dtype=bool)
    for axis in (0, 1):
        part = links.axis(axis)
        ahead = shares[axis][links.first[part]]
        behind = 1.0 - shares[axis][links.second[part]]
        torn[part] = np.maximum(ahead, behind) < TORN_SHARE
    return torn


def shift_tears(field: SlopeField, links: Links, values: Float64, sharpness: float) -> Float64:
    """Move pixels beside tears to the other side where that lowers the energy.

    A tear that lies a pixel beside its place is a local minimum: the strip between cannot cross pixel by
    pixel, as each would leave its neighbours in the strip. So all pixels on one side of all tears are moved
    at once, and the move is kept where the energy of the surroundings (5 × 5 pixels) falls, if the whole
    energy does.
    """
    from scipy.ndimage import uniform_filter

    shares, before = soft_choice(field, links, values, sharpness)
    torn = torn_links(links, shares)
    for axis, tilt in enumerate((field.tilt_col, field.tilt_row)):
        part = links.axis(axis)
        cut = torn[part]
        if not cut.any():
            continue
        slope = np.clip(tilt / field.facing, -STEEPEST_SHIFT, STEEPEST_SHIFT)
        first, second = links.first[part][cut], links.second[part][cut]
        for mover, other, sign in ((first, second, -1.0), (second, first, 1.0)):
            moved = values.copy()
            moved[mover] = values[other] + sign * slope[mover]
            gain = np.zeros(field.mask.shape)
            gain[field.mask] = before - soft_choice(field, links, moved, sharpness)[1]
            better = uniform_filter(gain, 5, mode="constant")[field.mask] > 1e-6
            moved = np.where(better, moved, values)
            after = soft_choice(field, links, moved, sharpness)[1]
            if after.sum() < before.sum():
                values, before = moved, after
    return values
