"""Pixels in batches: compiled loops run over a few thousand at a time, so that progress can be reported."""

from __future__ import annotations

from collections.abc import Iterator

from photostereo.core.control import Control

#: Pixels per batch: a few milliseconds of work, and a bounded share of memory whatever the capture's size.
BATCH = 8192


def pixel_batches(count: int, control: Control, stage: str, *, size: int = BATCH) -> Iterator[slice]:
    """Slices that cover ``range(count)``; the stage and every finished batch are reported to the control.

    >>> [(part.start, part.stop) for part in pixel_batches(5, Control(), "demonstration", size=2)]
    [(0, 2), (2, 4), (4, 5)]
    """
    control.stage(stage, count)
    for first in range(0, count, size):
        part = slice(first, min(first + size, count))
        yield part
        control.advance(part.stop - part.start)
