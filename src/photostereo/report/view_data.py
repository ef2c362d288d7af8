"""Data of the relighting view: colors, ranges, pixel size, and the tiles that fit into the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from photostereo.core.control import SILENT, Control
from photostereo.core.units import PixelSize
from photostereo.report.colors import color_table
from photostereo.report.packing import unpack_normals
from photostereo.report.pictures import webp
from photostereo.report.pyramid import Layers, mean_curvature
from photostereo.runtime.threads import in_turn, processors


@dataclass
class Channel:
    """Tiles of one kind; those in the page as data URLs, by level, row by row."""

    layers: Layers
    kind: str
    held: dict[int, list[str]] = field(default_factory=dict)

    def encode(self, level: int, row: int, col: int) -> str:
        """Encode a tile as a data URL; empty if it shows nothing."""
        tile = self.layers.make_tile(self.kind, level, row, col)
        if tile is None:
            return ""
        # Beyond level 0 colors are means anyway, so visually lossless compression is enough.
        return webp(tile, exact=self.kind != "albedo" or level == 0)

    def hold(self, level: int) -> None:
        (self.held[level],) = _level([self], level)

    @property
    def data(self) -> dict[str, list[str]]:
        """Data URLs by level, for the page."""
        return {str(level): addresses for level, addresses in sorted(self.held.items())}


def fill(channels: Sequence[Channel], budget: int, control: Control = SILENT) -> int:
    """Encode levels from the coarsest, always held, to the finest that fits the budget of characters; return that one."""
    coarsest = channels[0].layers.layout.levels - 1
    held, spent, last = coarsest, 0, 0
    for level in range(coarsest, -1, -1):
        if level < coarsest and spent + 3.6 * last > budget:
            break
        tiles = _level(channels, level, control)
        last = sum(len(address) for row in tiles for address in row)
        if level < coarsest and spent + last > budget:
            break
        for channel, addresses in zip(channels, tiles, strict=True):
            channel.held[level] = addresses
        held, spent = level, spent + last
    return held


def _level(channels: Sequence[Channel], level: int, control: Control = SILENT) -> list[list[str]]:
    places = list(np.ndindex(*channels[0].layers.layout.tiles(level)))
    count = len(channels) * len(places)

    def encode(number: int) -> str:
        channel, place = divmod(number, len(places))
        return channels[channel].encode(level, *places[place])

    # OpenCV releases the GIL while it compresses.
    done = in_turn(encode, count, processors(), control, ahead=count)
    return [list(islice(done, len(places))) for _ in channels]


#: Size limit of a page, below ten megabytes; tiles fill the remaining space.
PAGE_BYTES = 9_800_000
#: Minimum for the view, whatever else a page holds.
LEAST_ROOM = 400_000
#: Lengths in pixels.
UNKNOWN_SIZE = PixelSize()


def view_data(
    shown: Mapping[str, tuple[Layers, Mapping[str, Any]]],
    common: Layers,
    *,
    pixel_size: PixelSize = UNKNOWN_SIZE,
    room: int = PAGE_BYTES,
    control: Control = SILENT,
) -> dict[str, Any]:
    """Return the tiles of results, with further facts for the page's script, as fine as ``room`` characters allow."""
    layout, colors = common.layout, Channel(common, "albedo")
    sets: dict[str, dict[str, Any]] = {}
    channels = {
        name: {kind: Channel(layers, kind) for kind in layers.kinds} for name, (layers, _) in shown.items()
    }
    held = fill(
        [colors, *(channel for kinds in channels.values() for channel in kinds.values())],
        max(LEAST_ROOM, room),
        control,
    )
    for name, (layers, facts) in shown.items():
        sets[name] = {"channels": {kind: one.data for kind, one in channels[name].items()}, **facts}
        if layers.depth is not None:
            sets[name]["low"], sets[name]["high"] = layers.heights
    return {
        "width": layout.width,
        "height": layout.height,
        "origin": [common.frame.cols.start, common.frame.rows.start],
        "tile": layout.tile,
        "levels": layout.levels,
        "held": held,
        "pixel": pixel_data(pixel_size),
        "albedo": colors.data,
        "sets": sets,
        "shown": list(shown)[:2],
        "colors": {name: color_table(name).tobytes().hex() for name in ("ember", "depth", "weight", "sky")},
        "curvature_top": max((_curvature_top(layers) for layers, _ in shown.values()), default=1.0),
    }


def pixel_data(pixel_size: PixelSize) -> dict[str, Any]:
    """Return the factor for lengths in pixels, and the resulting unit."""
    return {"size": pixel_size.millimeters, "unit": "mm" if pixel_size.known else "px"}


def _curvature_top(layers: Layers) -> float:
    """Upper limit of the curvature scale: the 90th percentile, at a resolution of about a megapixel."""
    level = max(0, layers.layout.levels - 2)
    found = []
    for row, col in np.ndindex(*layers.layout.tiles(level)):
        tile = layers.make_tile("normals", level, row, col)
        if tile is None:
            continue
        known = np.asarray(tile.any(axis=-1), dtype=bool)
        known[1:-1, 1:-1] &= known[:-2, 1:-1] & known[2:, 1:-1] & known[1:-1, :-2] & known[1:-1, 2:]
        curvature = mean_curvature(unpack_normals(tile)) / (1 << level)
        found.append(np.abs(curvature[1:-1, 1:-1][known[1:-1, 1:-1]]))
    values = np.concatenate(found) if found else np.zeros(0)
    top = float(np.percentile(values, 90)) if values.size else 0.0
    return float(f"{top:.2g}") if top > 1e-6 else 1e-3
