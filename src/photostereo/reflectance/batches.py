"""Batches of pixels: compiled loops process a few thousand at a time, so that progress can be reported."""

from __future__ import annotations

from collections.abc import Iterator

from photostereo.core.control import Control

#: Pixels per batch: a few milliseconds of work, and bounded memory for any size of capture.
BATCH = 8192


def pixel_batches(count: int, control: Control, stage: str, *, size: int = BATCH) -> Iterator[slice]:
    """Yield slices that cover ``range(count)``; report the stage and every finished batch to the control."""
    control.stage(stage, count)
    for first in range(0, count, size):
        part = slice(first, min(first + size, count))
        yield part
        control.advance(part.stop - part.start)
