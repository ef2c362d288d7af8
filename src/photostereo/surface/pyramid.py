"""Half the resolution and back, so that :mod:`~photostereo.surface.robust` opens long tears in few iterations.

One coarse pixel stands for a block of 2 × 2. Slopes are the same numbers at every resolution (both height and
position are in pixels of that resolution), so the equations of a block are averaged; heights halve.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from photostereo.surface.blocks import combine_blocks, enlarge
from photostereo.surface.progress import Progress
from photostereo.surface.slopes import FACING_FLOOR, SlopeField

Float64 = NDArray[np.float64]

#: Steeper slopes than this are not used to spread a block's height over its pixels.
STEEPEST_SPREAD = 2.0


def coarsen(field: SlopeField, progress: Progress) -> SlopeField:
    """Average the equations over blocks of 2 × 2 pixels; a block counts if any of its pixels does."""
    trust = field.confidence.astype(np.float64)
    total = combine_blocks(np.add, trust)
    inside = total > 0
    means = []
    for picture in (field.facing, field.tilt_col, field.tilt_row):
        progress.check()
        means.append(combine_blocks(np.add, trust * picture) / np.where(inside, total, 1.0))
    facing, tilt_col, tilt_row = means
    progress.check()
    # The mean of different unit normals is shorter than one: restore the length, which is the weight.
    length = np.sqrt(tilt_col**2 + tilt_row**2 + facing**2)
    length[length == 0] = 1.0
    count = combine_blocks(np.add, field.mask.astype(np.float64))
    return SlopeField(
        np.maximum(facing / length, FACING_FLOOR) * inside,
        tilt_col / length,
        tilt_row / length,
        (total / np.maximum(count, 1.0)).astype(np.float32),
    )


def coarsen_pull(pull: Float64 | None, target: Float64 | None) -> tuple[Float64 | None, Float64 | None]:
    """Pulls and targets of blocks.

    ``s (z − t)²`` in fine pixels is ``4 s (z − t)²`` in coarse ones, and a block stands for four link equations.
    """
    if pull is None:
        return None, None
    total = combine_blocks(np.add, pull)
    if target is None:
        return total, None
    return total, 0.5 * combine_blocks(np.add, pull * target) / np.where(total > 0, total, 1.0)


def prolong(coarse: Float64, field: SlopeField, progress: Progress) -> Float64:
    """Fine heights from coarse ones: twice the block's height, and the pixel's own slope inside the block."""
    shape = field.facing.shape
    fine = 2.0 * enlarge(coarse, shape)
    # A pixel lies half a pixel from the middle of its block.
    offsets = (np.arange(shape[1]) % 2 - 0.5, (np.arange(shape[0]) % 2 - 0.5)[:, None])
    mask = field.mask
    facing = np.where(mask, field.facing, 1.0)
    for offset, tilt in zip(offsets, (field.tilt_col, field.tilt_row), strict=True):
        progress.check()
        fine += offset * np.clip(tilt / facing, -STEEPEST_SPREAD, STEEPEST_SPREAD)
    return fine * mask
