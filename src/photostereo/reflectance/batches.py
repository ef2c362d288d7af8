"""Pixels in batches: compiled loops run over a few thousand at a time, so that progress can be told."""

from __future__ import annotations

from collections.abc import Iterator

from photostereo.core.control import Monitor

#: Pixels per batch: a few milliseconds of work, and a bounded share of memory whatever the capture's size.
BATCH = 8192


def pixel_batches(count: int, monitor: Monitor, stage: str, *, size: int = BATCH) -> Iterator[slice]:
    """Slices that cover ``range(count)``; the monitor hears of the stage and of every batch done.

    >>> [(part.start, part.stop) for part in pixel_batches(5, Monitor(), "demonstration", size=2)]
    [(0, 2), (2, 4), (4, 5)]
    """
    monitor.stage(stage, count)
    for first in range(0, count, size):
        part = slice(first, min(first + size, count))
        yield part
        monitor.advance(part.stop - part.start)
