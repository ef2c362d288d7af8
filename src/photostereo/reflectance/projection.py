"""Batches of pixels, and ``L y`` and ``|y|²`` of every pixel, for NumPy arrays and torch tensors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from photostereo.core.control import Control
from photostereo.runtime.arrays import Array, cast, empty, is_tensor, like
from photostereo.runtime.illumination import projected, some_lights

#: Pixels per batch of a compiled loop: a few milliseconds of work, so that progress can be reported.
BATCH = 8192
#: Values in one batch of tensors: at most a few hundred megabytes of temporaries for any capture.
BATCH_VALUES = 1 << 23


def pixel_batches(count: int, control: Control, stage: str, *, size: int = BATCH) -> Iterator[slice]:
    """Yield slices that cover ``range(count)``; report the stage and every finished batch to the control."""
    control.stage(stage, count)
    for first in range(0, count, size):
        part = slice(first, min(first + size, count))
        yield part
        control.advance(part.stop - part.start)


def tensor_batches(pixels: Array, *, copies: int = 1) -> Iterator[slice]:
    """Yield slices over the pixels, so that ``copies`` arrays of their intensities stay small."""
    step = max(BATCH_VALUES // (pixels.shape[1] * copies), 1)
    for first in range(0, len(pixels), step):
        yield slice(first, min(first + step, len(pixels)))


def project(pixels: Array, lights: Array) -> Array:
    """Return ``L y`` of every pixel, (N, 3) in double precision. NumPy multiplies in the precision of the photographs, which
    is fast; a GPU in double precision, which also avoids TF32."""
    if not is_tensor(pixels):
        return projected(pixels, lights.astype(pixels.dtype)).astype(np.float64)
    directions = like(np.asarray(lights, dtype=np.float64), pixels)
    out = empty((len(pixels), 3), pixels)
    for part in tensor_batches(pixels):
        out[part] = projected(cast(pixels[part], "float64"), some_lights(directions, part))
    return out


def squared_lengths(pixels: Array) -> Array:
    """Return ``|y|²`` of every pixel, (N,) in double precision."""
    if not is_tensor(pixels):
        return np.einsum("ij,ij->i", pixels, pixels).astype(np.float64)
    out = empty((len(pixels),), pixels)
    for part in tensor_batches(pixels):
        values = cast(pixels[part], "float64")
        out[part] = (values * values).sum(1)
    return out
