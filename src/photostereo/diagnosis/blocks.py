"""Detect photographs that were stored as JPEG by the traces of its 8 × 8 blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.runtime.arrays import Array, contiguous, is_tensor, like, namespace, to_numpy
from photostereo.runtime.illumination import some_lights, without_matte
from photostereo.runtime.order import row_quantiles

#: Blocks are detected if their effect on the jumps is this many times that of anything else (about the 0.1 % point of the
#: F distribution with eight and six degrees of freedom).
JPEG_SIDE, BLOCK_EVIDENCE = 8, 20.0
#: Fewest photographs to examine, the number of values up to which more are examined, and half the number of rows and of
#: columns.
LOOKED_AT, LOOKED_VALUES, BAND, ACROSS = 12, 1 << 20, 96, 512
#: Jumps beyond this quantile are shadow edges; they are clipped to it.
EDGES = 0.9
#: Rows per crop if the pixels are a sample (:mod:`photostereo.solver.sample`). Pairs of rows across the boundary of a
#: crop are always skipped, sample or not.
CROP = 32


def has_blocks(pixels: Any, lights: FloatArray, mask: BoolArray) -> bool:
    """Whether the jumps of the matte residuals follow the 8 × 8 blocks of a JPEG, which start at the corner of the file.

    Errors are independent between blocks and smooth, or rippled, within them, so the power of a jump depends on its position
    in the block. It is measured relative to nearby jumps, because the object's roughness varies. A block is symmetric about
    its middle. The object's effect on the eight positions has no reason to be symmetric, so the asymmetric
    part shows how much of the rest may be due to chance: an analysis of variance.
    """
    rows, columns = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
    if min(len(rows), len(columns)) < 4 * JPEG_SIDE:
        return False
    # A band of rows around the middle of the object is enough.
    middle, center = rows[len(rows) // 2], columns[len(columns) // 2]
    top, left = (max(first, 0) // CROP * CROP for first in (middle - BAND, center - ACROSS))
    around = np.s_[top : middle + BAND, left : center + ACROSS]
    band = np.zeros_like(mask)
    band[around] = mask[around]
    inside = np.flatnonzero(band[mask])
    values = pixels[like(inside, pixels) if is_tensor(pixels) else inside]
    photographs = values.shape[1]
    enough = min(max(LOOKED_AT, LOOKED_VALUES // max(len(values), 1)), photographs)
    chosen = np.linspace(0, photographs - 1, enough).astype(int)
    residual = contiguous(without_matte(values, some_lights(lights, inside), chosen).T)
    places = np.stack([_power_by_place(residual, band[around], axis) for axis in (0, 1)])
    if not np.isfinite(places).all():
        return False
    # Positions 0 and 6, 1 and 5, 2 and 4 are equivalent in the block; 3 is its middle, 7 the border.
    mirrored = places[:, [6, 5, 4, 3, 2, 1, 0, 7]]
    alike, apart = 0.5 * (places + mirrored), 0.5 * (places - mirrored)
    by_blocks = ((alike - alike.mean(axis=1, keepdims=True)) ** 2).sum() / 8.0
    by_chance = (apart**2).sum() / 6.0
    return bool(by_blocks > BLOCK_EVIDENCE * by_chance + 1e-6)


def block_corners(shape: tuple[int, int]) -> BoolArray:
    """Pixels whose 2 × 2 square (to the right and down) touches four blocks and lies within one crop of a sample."""
    rows, columns = np.ogrid[: shape[0], : shape[1]]
    last = JPEG_SIDE - 1
    of_rows = (rows % JPEG_SIDE == last) & (rows % CROP != CROP - 1)
    return np.asarray(of_rows & (columns % JPEG_SIDE == last))


def _power_by_place(residual: Array, band: BoolArray, axis: int) -> FloatArray:
    """(8,) mean power of jumps to the next pixel by position in a block, relative to that of nearby jumps.

    ``residual`` (photographs, n) belongs to the n pixels of ``band``; NaN where a position has no jumps.
    """
    number = np.full(band.shape, -1)
    number[band] = np.arange(residual.shape[1])
    here, there = (number[:-1], number[1:]) if axis == 0 else (number[:, :-1], number[:, 1:])
    both = (here >= 0) & (there >= 0)
    if axis == 0:
        both[CROP - 1 :: CROP] = False
    if not both.any():
        return np.full(JPEG_SIDE, np.nan)
    xp = namespace(residual)
    squares = (residual[:, like(there[both], residual)] - residual[:, like(here[both], residual)]) ** 2
    widest = row_quantiles(squares, EDGES)
    power = np.full(both.shape, np.nan)
    power[both] = to_numpy((xp.minimum(squares, widest) / xp.where(widest > 0, widest, 1.0)).mean(0))
    # One period with its ends at half weight: every position counts once, and equally on both sides.
    periods = np.lib.stride_tricks.sliding_window_view(power, JPEG_SIDE + 1, axis)
    middle = np.take(periods, JPEG_SIDE // 2, -1)
    around = (periods[..., :-1] + periods[..., 1:]).mean(-1) / 2.0
    known = around > 0
    place = (np.nonzero(known)[axis] + JPEG_SIDE // 2) % JPEG_SIDE
    count = np.bincount(place, minlength=JPEG_SIDE)
    total = np.bincount(place, middle[known] / around[known], JPEG_SIDE)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
