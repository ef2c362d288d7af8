"""Detect photographs that were stored as JPEG by the traces of its 8 × 8 blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.runtime.arrays import Array, cast, is_tensor, like, namespace, to_numpy
from photostereo.runtime.illumination import without_matte
from photostereo.runtime.order import row_quantiles

#: Blocks are detected if their effect on the jumps is this many times that of anything else (0.1 % of F with eight and six
#: degrees of freedom).
JPEG_SIDE, BLOCK_EVIDENCE = 8, 20.0
#: The fewest photographs to examine, the number of values up to which there are more, and half the number of rows and of
#: columns.
LOOKED_AT, LOOKED_VALUES, BAND, ACROSS = 12, 1 << 20, 96, 512
#: Jumps beyond this quantile are edges of shadows; they are clipped to it.
EDGES = 0.9


def has_blocks(pixels: Any, lights: FloatArray, mask: BoolArray) -> bool:
    """Whether the jumps of the matte residuals follow the 8 × 8 blocks of a JPEG, which begin at the corner of the file.

    Between blocks the errors are independent, within they are smooth, or ripple; so the power of a jump depends on its place
    in the block. A block looks the same from both of its ends. What the object does to the eight places has no reason to be
    symmetric, so the asymmetric part shows how much of the rest may be chance: an analysis of variance.

    >>> rng = np.random.default_rng(0)
    >>> lights = np.array([[0.0, 0.5, 0.0, -0.5, 0.0], [0.0, 0.0, 0.5, 0.0, -0.5], [1.0, 0.9, 0.9, 0.9, 0.9]])
    >>> fine, mask = rng.normal(0, 0.01, (64, 64, 5)), np.ones((64, 64), bool)
    >>> blocks = fine + np.kron(rng.normal(0, 0.01, (8, 8, 5)), np.ones((8, 8, 1)))
    >>> [has_blocks(noise.reshape(-1, 5), lights, mask) for noise in (fine, blocks)]
    [False, True]
    """
    rows, columns = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
    if min(len(rows), len(columns)) < 4 * JPEG_SIDE:
        return False
    # A band of rows around the middle of the object tells enough.
    middle, center = rows[len(rows) // 2], columns[len(columns) // 2]
    around = np.s_[max(middle - BAND, 0) : middle + BAND, max(center - ACROSS, 0) : center + ACROSS]
    band = np.zeros_like(mask)
    band[around] = mask[around]
    inside = np.flatnonzero(band[mask])
    values = pixels[like(inside, pixels) if is_tensor(pixels) else inside]
    photographs = values.shape[1]
    enough = min(max(LOOKED_AT, LOOKED_VALUES // max(len(values), 1)), photographs)
    chosen = np.linspace(0, photographs - 1, enough).astype(int)
    # In the photographs' own precision.
    if lights.ndim == 3:
        residual = without_matte(values, lights[inside])[:, chosen].T
    else:
        fit = values @ cast(like(np.linalg.pinv(lights), values), str(values.dtype).removeprefix("torch."))
        expected = like(np.ascontiguousarray(lights[:, chosen].T), values) @ cast(fit, "float64").T
        residual = values[:, chosen].T - expected
    places = np.stack([to_numpy(_power_by_place(residual, band, axis)) for axis in (0, 1)])
    if not np.isfinite(places).all():
        return False
    # Places 0 and 6, 1 and 5, 2 and 4 lie alike in the block; 3 is its middle, 7 the border.
    mirrored = places[:, [6, 5, 4, 3, 2, 1, 0, 7]]
    alike, apart = 0.5 * (places + mirrored), 0.5 * (places - mirrored)
    by_blocks = ((alike - alike.mean(axis=1, keepdims=True)) ** 2).sum() / 8.0
    by_chance = (apart**2).sum() / 6.0
    return bool(by_blocks > BLOCK_EVIDENCE * by_chance + 1e-6)


def _power_by_place(residual: Array, band: BoolArray, axis: int) -> Array:
    """(8,) the mean power of jumps to the next pixel by their place in a block, without edges; nan where a place has none.

    ``residual`` (photographs, n) is of the n pixels of ``band``.
    """
    number = np.full(band.shape, -1)
    number[band] = np.arange(residual.shape[1])
    here, there = (number[:-1], number[1:]) if axis == 0 else (number[:, :-1], number[:, 1:])
    both = (here >= 0) & (there >= 0)
    if not both.any():
        return np.full(JPEG_SIDE, np.nan)
    xp = namespace(residual)
    place, first, second = (
        like(part, residual) for part in (np.nonzero(both)[axis] % JPEG_SIDE, here[both], there[both])
    )
    squares = (residual[:, second] - residual[:, first]) ** 2
    widest = row_quantiles(squares, EDGES)
    power = (xp.minimum(squares, widest) / xp.where(widest > 0, widest, 1.0)).mean(0)
    count = xp.bincount(place, minlength=JPEG_SIDE)
    total = xp.bincount(place, weights=power, minlength=JPEG_SIDE)
    return xp.where(count > 0, total / xp.where(count > 0, count, 1), np.nan)
