"""Data of the relighting view: colors, ranges, pixel size, and the tiles that fit into the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from photostereo.core.control import SILENT, Control
from photostereo.core.units import PixelSize
from photostereo.report.colors import color_scales
from photostereo.report.pictures import webp
from photostereo.report.pyramid import Layers
from photostereo.runtime.threads import in_turn, processors

#: Arrays, and the kind of tiles made of them.
Channel = tuple[Layers, str]
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
    sets: dict[str, dict[str, Any]] = {}
    channels = [(layers, kind) for layers, _ in shown.values() for kind in layers.kinds]
    tiles = iter(fill([(common, "albedo"), *channels], max(LEAST_ROOM, room), control))
    colors = next(tiles)
    for name, (layers, facts) in shown.items():
        sets[name] = {"channels": {kind: next(tiles) for kind in layers.kinds}, **facts}
        if layers.depth is not None:
            sets[name]["low"], sets[name]["high"] = layers.heights
    return {
        "width": common.width,
        "height": common.height,
        "origin": [common.frame.cols.start, common.frame.rows.start],
        "tile": common.tile,
        "levels": common.levels,
        "held": min(map(int, colors)),
        "pixel": pixel_data(pixel_size),
        "albedo": colors,
        "sets": sets,
        "shown": list(shown)[:2],
        "colors": color_scales(),
        "curvature_top": max((layers.curvature_top for layers, _ in shown.values()), default=1.0),
    }


def fill(channels: Sequence[Channel], budget: int, control: Control = SILENT) -> list[dict[str, list[str]]]:
    """Encode levels from the coarsest, always held, to the finest that fits the budget of characters.

    Returns the data URLs of each channel by level, row by row.
    """
    coarsest = channels[0][0].levels - 1
    found: list[dict[str, list[str]]] = [{} for _ in channels]
    spent = last = 0
    for level in range(coarsest, -1, -1):
        if level < coarsest and spent + 3.6 * last > budget:
            break
        tiles = encode_level(channels, level, control)
        last = sum(len(address) for row in tiles for address in row)
        if level < coarsest and spent + last > budget:
            break
        found = [{str(level): own, **coarser} for own, coarser in zip(tiles, found, strict=True)]
        spent += last
    return found


def encode_level(channels: Sequence[Channel], level: int, control: Control = SILENT) -> list[list[str]]:
    """Encode the tiles of a level as data URLs, empty if a tile shows nothing."""
    places = list(np.ndindex(*channels[0][0].tiles(level)))
    count = len(channels) * len(places)

    def encode(number: int) -> str:
        channel, place = divmod(number, len(places))
        layers, kind = channels[channel]
        tile = layers.make_tile(kind, level, *places[place])
        # Beyond level 0 colors are means anyway, so visually lossless compression is enough.
        return "" if tile is None else webp(tile, exact=kind != "albedo" or level == 0)

    # OpenCV releases the GIL while it compresses.
    done = in_turn(encode, count, processors(), control, ahead=count)
    return [list(islice(done, len(places))) for _ in channels]


def pixel_data(pixel_size: PixelSize) -> dict[str, Any]:
    """Return the factor for lengths in pixels, and the resulting unit."""
    return {"size": pixel_size.millimeters, "unit": "mm" if pixel_size.known else "px"}
