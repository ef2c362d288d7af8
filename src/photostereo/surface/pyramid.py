"""Half the resolution and back: what lets :mod:`~photostereo.surface.robust` open long tears in few
iterations.

One coarse pixel stands for a block of 2 × 2. Slopes are the same numbers at every resolution (both height and
position are in pixels of that resolution), so the equations of a block are averaged; heights halve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.surface.slopes import FACING_FLOOR, SlopeField

Float64 = NDArray[np.float64]
IntArray = NDArray[np.integer[Any]]

#: Steeper slopes than this are not used to spread a block's height over its pixels.
STEEPEST_SPREAD = 2.0


@dataclass(frozen=True)
class Coarse:
    """A slope field at half the resolution; ``parent`` is the coarse pixel of each fine one (packed)."""

    field: SlopeField
    parts: IntArray
    parent: IntArray
    pull: Float64 | None
    target: Float64 | None


def coarsen(field: SlopeField, pull: Float64 | None, target: Float64 | None) -> Coarse:
    """Average the equations over blocks of 2 × 2 pixels; a block counts if any of its pixels does."""
    from scipy.ndimage import label

    height, width = field.mask.shape
    whole = np.pad(field.mask, ((0, height % 2), (0, width % 2)))
    mask = whole[::2, ::2] | whole[1::2, ::2] | whole[::2, 1::2] | whole[1::2, 1::2]
    count = int(np.count_nonzero(mask))
    number = np.zeros(mask.shape, dtype=np.int32)
    number[mask] = np.arange(count, dtype=np.int32)
    parent = number.repeat(2, axis=0)[:height].repeat(2, axis=1)[:, :width][field.mask]

    def mean(values: NDArray[Any], weight: NDArray[Any]) -> Float64:
        total = np.bincount(parent, weight, count)
        return np.asarray(np.bincount(parent, weight * values, count) / np.maximum(total, 1e-300))

    trust = field.confidence
    facing, tilt_col, tilt_row = (mean(v, trust) for v in (field.facing, field.tilt_col, field.tilt_row))
    # The mean of different unit normals is shorter than one: restore the length, which is the weight.
    length = np.sqrt(tilt_col**2 + tilt_row**2 + facing**2)
    length[length == 0] = 1.0
    coarse = SlopeField(
        mask,
        np.maximum(facing / length, FACING_FLOOR),
        tilt_col / length,
        tilt_row / length,
        mean(trust, np.ones_like(trust)).astype(trust.dtype, copy=False),
    )
    labels, _ = label(mask)
    coarse_pull = coarse_target = None
    if pull is not None:
        # s (z − t)² in fine pixels is 4 s (z − t)² in coarse ones, and a block stands for four link
        # equations.
        coarse_pull = np.asarray(np.bincount(parent, pull, count), dtype=np.float64)
        coarse_target = None if target is None else 0.5 * mean(target, pull)
    return Coarse(coarse, labels[mask] - 1, parent, coarse_pull, coarse_target)


def prolong(coarse: Coarse, field: SlopeField, values: Float64) -> Float64:
    """Fine heights from coarse ones: twice the block's height, and the pixel's own slope inside the block."""
    height, width = field.mask.shape
    fine = values[coarse.parent]
    fine *= 2.0
    odd_cols, odd_rows = np.arange(width) % 2 == 1, (np.arange(height) % 2 == 1)[:, None]
    for odd, tilt in ((odd_cols, field.tilt_col), (odd_rows, field.tilt_row)):
        slope = tilt / field.facing
        np.clip(slope, -STEEPEST_SPREAD, STEEPEST_SPREAD, out=slope)
        slope *= 0.5  # a pixel lies half a pixel from the middle of its block
        np.negative(slope, out=slope, where=~np.broadcast_to(odd, field.mask.shape)[field.mask])
        fine += slope
    return fine
