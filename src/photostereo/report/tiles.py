"""The tiles of a page: as many levels of a result as fit into the bytes that are left for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.report.pictures import webp, webp_lossless
from photostereo.report.pyramid import Layers, Layout
from photostereo.runtime.threads import in_turn, processors

Tile = NDArray[np.uint8]


@dataclass
class Channel:
    """Tiles of one kind: how one is made, and those that the page holds, by level and row by row."""

    make: Callable[[int, int, int], Tile | None]
    #: Colors are means beyond level 0 anyway: there the eye decides what may be lost.
    for_the_eye: bool = False
    held: dict[int, list[str]] = field(default_factory=dict)

    def encode(self, level: int, row: int, col: int) -> str:
        """The tile as a data address; empty if it shows nothing."""
        tile = self.make(level, row, col)
        if tile is None:
            return ""
        return webp(tile) if self.for_the_eye and level > 0 else webp_lossless(tile)

    def hold(self, layout: Layout, level: int) -> None:
        """Keep all tiles of a level."""
        (self.held[level],) = _level([self], layout, level)


def channels_of(layers: Layers) -> dict[str, Channel]:
    """What a result has to show."""
    found = {}
    if layers.normals is not None:
        found["normals"] = Channel(layers.normal_tile)
    if layers.albedos:
        found["albedo"] = Channel(layers.albedo_tile, for_the_eye=True)
    if layers.depth is not None:
        found["depth"] = Channel(layers.depth_tile)
    return found


def fill(channels: Sequence[Channel], layout: Layout, budget: int, control: Control = SILENT) -> int:
    """Encode levels from the coarsest to the finest that the budget of characters allows; the finest one held.

    The coarsest is always there. A level is tried only if about four times the one before it would fit.
    """
    held, spent, last = layout.levels - 1, 0, 0
    for level in reversed(range(layout.levels)):
        if level < layout.levels - 1 and spent + 3.6 * last > budget:
            break
        tiles = _level(channels, layout, level, control)
        last = sum(len(address) for row in tiles for address in row)
        if level < layout.levels - 1 and spent + last > budget:
            break
        for channel, addresses in zip(channels, tiles, strict=True):
            channel.held[level] = addresses
        held, spent = level, spent + last
    return held


def _level(
    channels: Sequence[Channel], layout: Layout, level: int, control: Control = SILENT
) -> list[list[str]]:
    rows, cols = layout.tiles(level)
    places = [(row, col) for row in range(rows) for col in range(cols)]
    tasks = [(channel, row, col) for channel in channels for row, col in places]

    def encode(number: int) -> str:
        channel, row, col = tasks[number]
        return channel.encode(level, row, col)

    # OpenCV compresses outside of Python's lock.
    done = in_turn(encode, len(tasks), processors(), control, ahead=len(tasks))
    return [list(islice(done, len(places))) for _ in channels]


def page_levels(channel: Channel) -> Mapping[str, Any]:
    """The tiles of a channel for the page's data."""
    return {str(level): addresses for level, addresses in sorted(channel.held.items())}
