"""Convert arrays to pictures in the page: cropping, shrinking, colors, data URLs. Titles and texts are in the templates.

The color scales of maps are perceptually uniform, and readable on light and dark pages. ``static/colors.json`` holds the
256 sRGB colors of each, made by ``tests/report/color_scales.py``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import (
    BoolArray,
    Float32,
    FloatArray,
    encode_normals,
    srgb_from_linear,
)
from photostereo.core.units import PixelSize
from photostereo.io.png import encode_indexed_png, encode_picture, encode_png, encode_webp

#: Pictures and textures are shrunk to this many pixels, so that a page stays below ten megabytes.
MAX_PIXELS = 420_000
#: Error maps saturate at this angle, in degrees: beyond it a normal is simply wrong.
ERROR_TOP = 45.0
#: Light positions and directions of the four still pictures for browsers without WebGL2.
STILL_LIGHTS = {
    "left": (-0.75, 0.1, 0.65),
    "top": (0.1, 0.75, 0.65),
    "right": (0.75, 0.1, 0.65),
    "front": (0.0, 0.15, 0.99),
}

#: What a template needs of a picture: ``address`` (a data URL), ``width`` and ``height``, and further figures.
Picture = dict[str, Any]


@dataclass(frozen=True)
class Frame:
    """The part of the photographs that the page shows, and the size of its pictures."""

    #: rows, cols: the box around the mask, with a small margin
    rows: slice
    cols: slice
    #: height, width: size of the pictures made from it
    height: int
    width: int

    @property
    def box(self) -> tuple[int, int]:
        """Height and width of the box in the photographs."""
        return self.rows.stop - self.rows.start, self.cols.stop - self.cols.start

    def cut(self, array: NDArray[Any]) -> NDArray[Any]:
        """Crop a full-frame array (H, W, ...) to the box."""
        return array[self.rows, self.cols]

    def places(self, shown: BoolArray) -> tuple[NDArray[Any], NDArray[Any]]:
        """Rows and columns in the photographs of the centers of the selected picture pixels (height, width)."""
        steps = self.box[0] / self.height, self.box[1] / self.width
        down, right = (
            step * (at + 0.5) - 0.5 for step, at in zip(steps, np.nonzero(shown), strict=True)
        )
        return down + self.rows.start, right + self.cols.start


def frame_around(mask: BoolArray, *, max_pixels: int = MAX_PIXELS, margin: float = 0.03) -> Frame:
    """Return the bounding box of the mask with a margin, shrunk to at most ``max_pixels``."""
    rows = np.flatnonzero(mask.any(axis=1))
    cols = np.flatnonzero(mask.any(axis=0))
    edge = int(np.ceil(margin * max(rows[-1] - rows[0] + 1, cols[-1] - cols[0] + 1)))
    top = max(int(rows[0]) - edge, 0)
    bottom = min(int(rows[-1]) + 1 + edge, mask.shape[0])
    left = max(int(cols[0]) - edge, 0)
    right = min(int(cols[-1]) + 1 + edge, mask.shape[1])
    height = bottom - top
    width = right - left
    factor = min(1.0, float(np.sqrt(max_pixels / (height * width))))
    return Frame(slice(top, bottom), slice(left, right), *scaled_size(height, width, factor))


def scaled_size(height: int, width: int, factor: float) -> tuple[int, int]:
    """Multiply a size by a factor and round to whole pixels, at least one."""
    return max(1, round(height * factor)), max(1, round(width * factor))


def resize(array: NDArray[Any], height: int, width: int) -> Float32:
    """Resize (H, W) or (H, W, c) by area averaging; an array that already has the size is returned as it is."""
    values = np.ascontiguousarray(array, dtype=np.float32)
    if values.shape[:2] == (height, width):
        return values
    resized: Float32 = cv2.resize(values, (width, height), interpolation=cv2.INTER_AREA)
    return resized


def small_map(values: FloatArray, side: int) -> Float32:
    """Shrink a map so that its longer side has at most ``side`` pixels."""
    height, width = values.shape[:2]
    factor = min(1.0, side / max(height, width))
    return resize(values, *scaled_size(height, width, factor))


def resize_masked(
    array: NDArray[Any], mask: BoolArray, height: int, width: int
) -> tuple[Float32, BoolArray]:
    """Average over the mask pixels only; also return the shrunk mask (at least half covered). Zero outside it."""
    cover = resize(mask.astype(np.float32), height, width)
    inside = cover >= 0.5
    channels = (...,) + (None,) * (array.ndim - 2)
    total = resize(np.where(mask[channels], array, 0), height, width)
    weight = np.where(inside, cover, 1.0)
    return np.where(inside[channels], total / weight[channels], 0).astype(np.float32), inside


def shrink_map(values: FloatArray, mask: BoolArray, frame: Frame) -> FloatArray:
    """Crop and shrink a scalar map (H, W) to the frame; NaN outside the mask."""
    known = frame.cut(mask & np.isfinite(values))
    small, inside = resize_masked(
        np.nan_to_num(frame.cut(values)), known, frame.height, frame.width
    )
    return np.where(inside, small, np.nan)


def shrink_normals(
    normals: FloatArray, mask: BoolArray, frame: Frame
) -> tuple[FloatArray, BoolArray]:
    """Crop and shrink unit normals to the frame; also return where they are known."""
    known = frame.cut(mask & normals.any(axis=-1))
    small, inside = resize_masked(frame.cut(normals), known, frame.height, frame.width)
    length = np.linalg.norm(small, axis=-1)
    inside &= length > 1e-6
    return np.where(inside[..., None], small / np.maximum(length, 1e-6)[..., None], 0), inside


def normals_picture(normals: FloatArray, inside: BoolArray) -> NDArray[np.uint8]:
    """Normals as colors, OpenGL convention; RGBA, transparent outside."""
    return with_alpha(encode_normals(normals, inside, bits=8), inside)


def albedo_picture(
    albedo: FloatArray, mask: BoolArray, frame: Frame
) -> tuple[NDArray[np.uint8], BoolArray]:
    """The albedo in sRGB, (h, w) or (h, w, 3); white is the 99th percentile inside the mask."""
    small, inside = resize_masked(frame.cut(albedo), frame.cut(mask), frame.height, frame.width)
    white = float(np.percentile(small[inside], 99)) if inside.any() else 1.0
    return to_srgb(small / (white if white > 0 else 1.0)), inside


def spread_beyond(values: NDArray[Any], inside: BoolArray, rings: int) -> tuple[Float32, BoolArray]:
    """Extend values beyond their mask, so that filtering mixes in no background; also return where they are known."""
    result = values.astype(np.float32)
    known = inside.astype(np.float32)
    channels = (...,) + (None,) * (result.ndim - 2)
    for _ in range(rings):
        weight = cv2.blur(known, (3, 3), borderType=cv2.BORDER_CONSTANT)
        total = cv2.blur(result * known[channels], (3, 3), borderType=cv2.BORDER_CONSTANT)
        fresh = (known == 0) & (weight > 1e-3)
        average = total / np.maximum(weight, 1e-6)[channels]
        result[fresh] = average[fresh]
        known[fresh] = 1.0
    return result, known > 0


@cache
def _srgb_table() -> NDArray[np.uint8]:
    # The power function is slow. Table steps are a quarter of a gray level where the curve is steepest.
    return np.rint(255 * srgb_from_linear(np.linspace(0, 1, 1 << 14, dtype=np.float32))).astype(
        np.uint8
    )


def to_srgb(linear: FloatArray) -> NDArray[np.uint8]:
    """Linear values in [0, 1] as 8-bit sRGB."""
    table = _srgb_table()
    index = np.clip(linear, 0, 1) * np.float32(len(table) - 1) + np.float32(0.5)
    return table[index.astype(np.uint16)]


def with_alpha(picture: NDArray[np.uint8], inside: BoolArray) -> NDArray[np.uint8]:
    """RGBA from gray or RGB; transparent outside."""
    rgb = np.repeat(picture[..., None], 3, axis=2) if picture.ndim == 2 else picture
    return np.dstack([rgb, np.where(inside, 255, 0).astype(np.uint8)])


@cache
def color_scales() -> dict[str, str]:
    """The colors of every scale, in hexadecimal digits."""
    text = (files("photostereo.report") / "static" / "colors.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def color_table(scale: str) -> NDArray[np.uint8]:
    """256 sRGB colors of a named scale."""
    return np.frombuffer(bytes.fromhex(color_scales()[scale]), np.uint8).reshape(256, 3)


@dataclass(frozen=True)
class Painting:
    """An indexed picture: color indices (h, w) and the colors (n, 4) as RGBA."""

    index: NDArray[np.uint8]
    colors: NDArray[np.uint8]

    @property
    def rgba(self) -> NDArray[np.uint8]:
        """The picture itself, (h, w, 4)."""
        return self.colors[self.index]


def paint(
    values: FloatArray, low: float, high: float, scale: str, *, levels: int = 255
) -> Painting:
    """Color a map with a scale; NaN is transparent."""
    known = np.isfinite(values)
    span = high - low if high > low else 1.0
    share = np.clip(np.where(known, (values - low) / span, 0), 0, 1)
    chosen = np.rint(np.linspace(0, 255, levels)).astype(int)
    colors = np.zeros((levels + 1, 4), dtype=np.uint8)  # the first one is transparent
    colors[1:, :3] = color_table(scale)[chosen]
    colors[1:, 3] = 255
    index = np.where(known, 1 + np.rint(share * (levels - 1)), 0).astype(np.uint8)
    return Painting(index, colors)


def gradient_stops(scale: str, count: int = 13) -> list[tuple[float, str]]:
    """Offsets in [0, 1] and hexadecimal colors for a vector gradient."""
    table = color_table(scale)
    positions = np.linspace(0, 1, count)
    return [(float(p), "#" + table[round(p * 255)].tobytes().hex()) for p in positions]


def png(picture: NDArray[np.uint8] | Painting) -> str:
    """Data URL of a lossless picture: gray, RGB, RGBA, or with at most 256 colors."""
    if isinstance(picture, Painting):
        return _address("png", encode_indexed_png(picture.index, picture.colors))
    return _address("png", encode_png(picture))


def webp(picture: NDArray[np.uint8], *, exact: bool = False) -> str:
    """Data URL of a picture, gray, RGB or RGBA; a fraction of the lossless size.

    With ``exact``, lossless, for gray or RGB numbers: at least a quarter smaller than a PNG.
    """
    return _address("webp", encode_webp(picture, exact=exact))


def jpeg(picture: NDArray[np.uint8], quality: int = 85) -> str:
    """Data URL of a photograph: gray or RGB."""
    return _address("jpeg", encode_picture(picture, "jpeg", quality=quality))


def _address(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64," + base64.b64encode(content).decode("ascii")


def shown(
    picture: NDArray[np.uint8] | Painting, encode: Callable[[NDArray[np.uint8]], str] = webp
) -> Picture:
    """Return a picture for a template."""
    if isinstance(picture, Painting):
        (height, width) = picture.index.shape
        address = png(picture)
    else:
        (height, width) = picture.shape[:2]
        address = encode(picture)
    return {"address": address, "width": width, "height": height}


def map_picture(
    values: FloatArray, mask: BoolArray, frame: Frame, *, top: float = ERROR_TOP
) -> Picture:
    """Color a map of numbers from 0 to ``top``; a fixed ``top`` makes reports comparable."""
    picture = shown(paint(shrink_map(values, mask, frame), 0, top, "ember"))
    inside = values[mask]
    statistics = {"mean": np.mean(inside), "median": np.median(inside), "highest": np.max(inside)}
    return {**picture, "top": top, **{name: float(figure) for name, figure in statistics.items()}}


def depth_picture(depth: FloatArray, mask: BoolArray, frame: Frame, size: PixelSize) -> Picture:
    """Picture the depth above its lowest point, in pixels or, if the pixel size is known, in millimeters."""
    small = shrink_map(depth, mask, frame)
    known = small[np.isfinite(small)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    pixels = high - low
    top = size.millimeters * (high - low)
    picture = shown(paint(size.millimeters * (small - low), 0, top, "depth"))
    unit = "mm" if size.known else "px"
    return {"picture": picture, "pixels": pixels, "top": top, "unit": unit}


def still_pictures(
    normals: FloatArray, inside: BoolArray, albedo: NDArray[np.uint8], *, side: int = 420
) -> Iterator[tuple[str, Picture]]:
    """Render the object under four lights, for browsers that cannot relight it."""
    factor = min(1.0, side / max(inside.shape))
    height, width = scaled_size(inside.shape[0], inside.shape[1], factor)
    small, known = resize_masked(normals, inside, height, width)
    color = resize(albedo / np.float32(255), height, width) ** 2.2
    for name, light in STILL_LIGHTS.items():
        direction = np.asarray(light) / np.linalg.norm(light)
        shade = np.maximum(small @ direction, 0) * 0.95 + 0.05
        lit = color * (shade if color.ndim == 2 else shade[..., None])
        yield name, shown(with_alpha(to_srgb(lit), known))
