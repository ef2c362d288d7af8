"""What the relighting view needs to know: colors, ranges, the size of a pixel, and as many tiles as fit into the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.units import PixelSize
from photostereo.report.colors import color_table
from photostereo.report.packing import unpack_normals
from photostereo.report.pictures import webp, webp_lossless
from photostereo.report.pyramid import Layers, Layout, mean_curvature
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


#: A page stays below ten megabytes; what is left of them goes to the tiles.
PAGE_BYTES = 9_800_000
#: The least that the view gets, however much else a page holds.
LEAST_ROOM = 400_000


#: Lengths in pixels.
UNKNOWN_SIZE = PixelSize()


@dataclass(frozen=True)
class Shown:
    """A result in the view: its arrays, its name, and the folder beside the page that holds it (None: no folder)."""

    layers: Layers
    title: str = ""
    folder: str | None = ""
    still: str = ""


def view_data(
    shown: Mapping[str, Shown],
    common: Layers,
    *,
    pixel_size: PixelSize = UNKNOWN_SIZE,
    room: int = PAGE_BYTES,
    control: Control = SILENT,
) -> dict[str, Any]:
    """Tiles of the results by name, and of their common albedo, as fine as the room in characters allows."""
    layout = common.layout
    colors = channels_of(Layers(common.frame, common.mask, albedos=common.albedos, tile=common.tile))[
        "albedo"
    ]
    channels = {
        name: {kind: channel for kind, channel in channels_of(one.layers).items() if kind != "albedo"}
        for name, one in shown.items()
    }
    everything = [colors, *(channel for kinds in channels.values() for channel in kinds.values())]
    held = fill(everything, layout, max(LEAST_ROOM, room), control)
    return {
        "width": layout.width,
        "height": layout.height,
        "origin": [common.frame.cols.start, common.frame.rows.start],
        "tile": layout.tile,
        "levels": layout.levels,
        "held": held,
        "pixel": pixel_data(pixel_size),
        "albedo": page_levels(colors),
        "sets": {name: _set_data(one, channels[name]) for name, one in shown.items()},
        "shown": list(shown)[:2],
        "colors": {name: color_table(name).tobytes().hex() for name in ("ember", "depth", "weight", "sky")},
        "curvature_top": max((_curvature_top(one.layers) for one in shown.values()), default=1.0),
    }


def pixel_data(pixel_size: PixelSize) -> dict[str, Any]:
    """What lengths in pixels are multiplied with, and the unit they then have."""
    return {"size": pixel_size.millimeters, "unit": "mm" if pixel_size.known else "px"}


def _set_data(one: Shown, channels: Mapping[str, Channel]) -> dict[str, Any]:
    data: dict[str, Any] = {
        "channels": {kind: page_levels(channel) for kind, channel in channels.items()},
        "folder": one.folder,
    }
    if one.title:
        data["title"] = one.title
    if one.still:
        data["still"] = one.still
    if "depth" in channels:
        data["low"], data["high"] = one.layers.heights
    return data


def _curvature_top(layers: Layers) -> float:
    """Where the scale of curvatures ends: nine in ten stay below, at the scale of about a megapixel."""
    level = max(0, layers.layout.levels - 2)
    rows, cols = layers.layout.tiles(level)
    found = []
    for row in range(rows):
        for col in range(cols):
            tile = layers.normal_tile(level, row, col)
            if tile is None:
                continue
            known = np.asarray(tile.any(axis=-1), dtype=bool)
            known[1:-1, 1:-1] &= known[:-2, 1:-1] & known[2:, 1:-1] & known[1:-1, :-2] & known[1:-1, 2:]
            curvature = mean_curvature(unpack_normals(tile)) / (1 << level)
            found.append(np.abs(curvature[1:-1, 1:-1][known[1:-1, 1:-1]]))
    values = np.concatenate(found) if found else np.zeros(0)
    top = float(np.percentile(values, 90)) if values.size else 0.0
    return float(f"{top:.2g}") if top > 1e-6 else 1e-3
