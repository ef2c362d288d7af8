"""Image pyramid of a result: levels that halve, cut into tiles, computed from the arrays on request and packed in bytes.

Level 0 has the pixels of the arrays, cropped to the page's frame; a pixel of level k is the mean over the known pixels
among 2^k × 2^k of them. The page holds the levels that fit (:func:`view_data`); the local server computes the finer
ones (:mod:`.serving`). Both use this module, so their tiles are identical.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, Float32, FloatArray
from photostereo.core.units import PixelSize
from photostereo.report.pictures import (
    Frame,
    color_scales,
    resize_masked,
    spread_beyond,
    to_srgb,
    webp,
)
from photostereo.runtime.threads import in_turn, processors

#: Pixels along a side of a tile.
TILE = 512
#: Approximate number of values for percentiles: more would not change them.
SAMPLE = 1_000_000
#: Cells are averaged in bands of at most this many pixels, so that a large frame is never copied as a whole.
BAND = 4_000_000
#: Size limit of a page, below ten megabytes; tiles fill the remaining space.
PAGE_BYTES = 9_800_000
#: Minimum for the view, whatever else a page holds.
LEAST_ROOM = 400_000
#: Lengths in pixels.
UNKNOWN_SIZE = PixelSize()


@dataclass(frozen=True)
class Layers:
    """The full-size arrays of one result (possibly memory-mapped), and the part that the page shows, in levels and tiles."""

    frame: Frame  #: the part that is shown
    mask: BoolArray  #: (H, W) bool
    normals: FloatArray | None = (
        None  #: (H, W, 3) unit, zero if unknown; None if only colors are shown
    )
    #: arrays and factors whose sum is the albedo; empty if there is none
    albedos: Sequence[tuple[FloatArray, float]] = ()
    depth: FloatArray | None = None  #: (H, W) heights in pixels, or None
    tile: int = TILE

    @property
    def levels(self) -> int:
        """Number of levels; the coarsest is a single tile."""
        return 1 + max(0, int(np.ceil(np.log2(max(self.frame.box) / self.tile))))

    def size(self, level: int) -> tuple[int, int]:
        """Height and width of a level; pixels at the lower and right edges may be incomplete."""
        height, width = self.frame.box
        return -(-height >> level), -(-width >> level)

    def tiles(self, level: int) -> tuple[int, int]:
        """Number of rows and columns of tiles of a level."""
        height, width = self.size(level)
        return -(-height // self.tile), -(-width // self.tile)

    def box(self, level: int, row: int, col: int) -> tuple[slice, slice]:
        """The pixels of level 0 that a tile covers."""
        step = self.tile << level
        (height, width) = self.frame.box
        top = row * step
        left = col * step
        return slice(top, min(top + step, height)), slice(left, min(left + step, width))

    @cached_property
    def white(self) -> float:
        """The albedo shown as white: the 99th percentile, as in files."""
        step = max(1, int(np.sqrt(self.mask.size / SAMPLE)))
        inside = self.mask[::step, ::step]
        every = ((np.asarray(albedo[::step, ::step]), factor) for albedo, factor in self.albedos)
        values = _sum([factor * albedo[inside] for albedo, factor in every])
        white = float(np.percentile(values, 99)) if np.size(values) else 1.0
        return white if white > 0 else 1.0

    @cached_property
    def heights(self) -> tuple[float, float]:
        """The lowest and the highest point, encoded as 1 and 65535."""
        assert self.depth is not None
        known = np.asarray(self.depth)[self.mask]
        known = known[np.isfinite(known)]
        if not known.size:
            return 0.0, 1.0
        low = float(known.min())
        high = float(known.max())
        return low, high if high > low else low + 1.0

    @property
    def kinds(self) -> list[str]:
        """Kinds of tiles besides the albedo."""
        return [kind for kind in ("normals", "depth") if getattr(self, kind) is not None]

    @cached_property
    def curvature_top(self) -> float:
        """Upper limit of the curvature scale: the 90th percentile, at a resolution of about a megapixel."""
        if self.normals is None:
            return 1e-3
        level = max(0, self.levels - 2)
        normals = self.frame.cut(self.normals)
        unit, known = _unit(
            *shrink(normals, self.frame.cut(self.mask) & normals.any(axis=-1), level)
        )
        known = (
            known[1:-1, 1:-1]
            & known[:-2, 1:-1]
            & known[2:, 1:-1]
            & known[1:-1, :-2]
            & known[1:-1, 2:]
        )
        values = np.abs(mean_curvature(unit)[known]) / (1 << level)
        top = float(np.percentile(values, 90)) if values.size else 0.0
        return float(f"{top:.2g}") if top > 1e-6 else 1e-3

    def make_tile(self, kind: str, level: int, row: int, col: int) -> NDArray[np.uint8] | None:
        """Make a tile of ``normals``, ``albedo`` or ``depth``; None if nothing is known there.

        Normals are packed (h, w, 3). The albedo is in sRGB, (h, w) or (h, w, 3), and extended a little beyond the mask.
        Heights are 16-bit codes in the first two of three bytes; 0 is unknown.
        """
        rows, cols = self.box(level, row, col)
        top = self.frame.rows.start
        left = self.frame.cols.start
        box = np.s_[top + rows.start : top + rows.stop, left + cols.start : left + cols.stop]
        known = np.asarray(self.mask[box])
        if kind == "albedo":
            values = _sum(
                [np.float32(factor) * np.asarray(albedo[box]) for albedo, factor in self.albedos]
            )
        else:
            values = np.asarray(getattr(self, kind)[box])
            known = known & (values.any(axis=-1) if kind == "normals" else np.isfinite(values))
        if not known.any():
            return None
        if kind == "depth":
            low, high = self.heights
            small, inside = shrink(np.where(known, values - low, 0), known, level)
            code = np.where(inside, 1 + np.rint(np.clip(small / (high - low), 0, 1) * 65534), 0)
            high_byte, low_byte = np.divmod(code.astype(np.uint32), 256)
            return np.stack([high_byte, low_byte, np.zeros_like(low_byte)], axis=-1).astype(
                np.uint8
            )
        small, inside = shrink(values, known, level)
        if kind == "albedo":
            picture, _ = spread_beyond(to_srgb(small / np.float32(self.white)), inside, 3)
            return np.rint(picture).astype(np.uint8)
        return pack_normals(*_unit(small, inside))


def pack_normals(normals: FloatArray, inside: BoolArray) -> NDArray[np.uint8]:
    """Pack unit normals into three bytes: octahedral, 2 × 12 bits (within 0.06°); black means unknown.

    Eight bits per component, at the same size, would cause rings in a highlight on a smooth surface.

    References
    ----------
    Z. H. Cigolle et al., A survey of efficient representations for independent unit vectors, JCGT 3(2), 2014.
    """
    x, y, z = np.moveaxis(np.asarray(normals, np.float64), -1, 0)
    total = np.maximum(np.abs(x) + np.abs(y) + np.abs(z), 1e-12)
    u = x / total
    v = y / total
    # Fold the lower half of the octahedron over the diagonals of the square.
    folded_u = (1 - np.abs(v)) * _sign(u)
    folded_v = (1 - np.abs(u)) * _sign(v)
    u = np.where(z < 0, folded_u, u)
    v = np.where(z < 0, folded_v, v)
    a = np.rint((u * 0.5 + 0.5) * 4095).astype(np.uint32)
    b = np.rint((v * 0.5 + 0.5) * 4095).astype(np.uint32)
    # All corners mean "straight away from the camera"; black is reserved for "unknown".
    corner = (a == 0) & (b == 0)
    a = np.where(corner, 4095, a)
    b = np.where(corner, 4095, b)
    packed = np.stack([a >> 4, (a & 15) << 4 | b >> 8, b & 255], axis=-1).astype(np.uint8)
    packed[~inside] = 0
    return packed


def _sign(values: FloatArray) -> FloatArray:
    return np.where(values >= 0, 1.0, -1.0)


def albedo_share(albedo: FloatArray, mask: BoolArray) -> tuple[FloatArray, float]:
    """Return an albedo and the factor that makes its mean 1."""
    level = float(np.mean(albedo[mask]))
    return albedo, 1.0 / level if level > 0 else 1.0


def shrink(values: FloatArray, known: BoolArray, level: int) -> tuple[Float32, BoolArray]:
    """Means over the known pixels of 2^level × 2^level cells, and the cells at least half known."""
    step = 1 << level
    height, width = known.shape
    band = max(step, BAND // width // step * step)
    if height > band:
        bands = [slice(first, first + band) for first in range(0, height, band)]
        parts = [shrink(values[rows], known[rows], level) for rows in bands]
        return np.concatenate([part for part, _ in parts]), np.concatenate(
            [inside for _, inside in parts]
        )
    pad = ((0, -height % step), (0, -width % step))
    # Repeat the edge, so that the missing pixels of an incomplete cell do not count as unknown.
    rows = (height + pad[0][1]) // step
    cols = (width + pad[1][1]) // step
    if pad != ((0, 0), (0, 0)):
        known = np.pad(known, pad, mode="edge")
        values = np.pad(values, (*pad, (0, 0))[: values.ndim], mode="edge")
    return resize_masked(values, known, rows, cols)


def mean_curvature(normals: FloatArray) -> FloatArray:
    """Half the divergence of the normals, 1 / pixel, without the edge; a ball of radius R has 1 / R everywhere."""
    across = normals[1:-1, 2:, 0] - normals[1:-1, :-2, 0]
    down = normals[2:, 1:-1, 1] - normals[:-2, 1:-1, 1]
    return (across - down) / 4


def _sum(albedos: Sequence[FloatArray]) -> FloatArray:
    """Sum albedos; if one of them is in color, a gray one is added to every channel."""
    axes = max(albedo.ndim for albedo in albedos)
    shown = [one if one.ndim == axes else np.repeat(one[..., None], 3, axis=-1) for one in albedos]
    return np.asarray(np.sum(shown, axis=0))


def _unit(normals: FloatArray, inside: BoolArray) -> tuple[FloatArray, BoolArray]:
    length = np.linalg.norm(normals, axis=-1)
    return normals / np.maximum(length, 1e-6)[..., None], inside & (length > 1e-6)


#: Arrays, and the kind of tiles made of them.
Channel = tuple[Layers, str]


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
        "width": common.frame.box[1],
        "height": common.frame.box[0],
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


def fill(
    channels: Sequence[Channel], budget: int, control: Control = SILENT
) -> list[dict[str, list[str]]]:
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


def encode_level(
    channels: Sequence[Channel], level: int, control: Control = SILENT
) -> list[list[str]]:
    """Encode the tiles of a level as data URLs, empty if a tile shows nothing."""
    places = list(np.ndindex(*channels[0][0].tiles(level)))
    count = len(channels) * len(places)

    def encode(number: int) -> str:
        channel, place = divmod(number, len(places))
        layers, kind = channels[channel]
        tile = layers.make_tile(kind, level, *places[place])
        # Beyond level 0 colors are means anyway, so visually lossless compression is enough.
        if tile is None:
            return ""
        return webp(tile, exact=kind != "albedo" or level == 0)

    # OpenCV releases the GIL while it compresses.
    done = in_turn(encode, count, processors(), control, ahead=count)
    return [list(islice(done, len(places))) for _ in channels]


def pixel_data(pixel_size: PixelSize) -> dict[str, Any]:
    """Return the factor for lengths in pixels, and the resulting unit."""
    return {"size": pixel_size.millimeters, "unit": "mm" if pixel_size.known else "px"}
