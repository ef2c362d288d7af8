"""Pictures of the page, with statistics for maps. Titles and texts are in the templates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.units import PixelSize
from photostereo.report import pictures
from photostereo.report.colors import Painting, paint
from photostereo.report.pictures import Frame

#: Error maps saturate at this angle, in degrees: beyond it a normal is simply wrong.
ERROR_TOP = 45.0
#: Light positions and directions of the four still pictures for browsers without WebGL2.
STILL_LIGHTS = {
    "left": (-0.75, 0.1, 0.65),
    "top": (0.1, 0.75, 0.65),
    "right": (0.75, 0.1, 0.65),
    "front": (0.0, 0.15, 0.99),
}


@dataclass(frozen=True)
class Picture:
    """A picture of the page, as a data URL."""

    address: str
    width: int
    height: int


@dataclass(frozen=True)
class Map(Picture):
    """A map of numbers from 0 to ``top``."""

    top: float
    mean: float
    median: float
    highest: float


def shown(
    picture: NDArray[np.uint8] | Painting, encode: Callable[[NDArray[np.uint8]], str] = pictures.webp
) -> Picture:
    if isinstance(picture, Painting):
        (height, width), address = picture.index.shape, pictures.indexed_png(picture)
    else:
        (height, width), address = picture.shape[:2], encode(picture)
    return Picture(address, width, height)


def normals_picture(normals: FloatArray, mask: BoolArray, frame: Frame) -> Picture:
    return shown(pictures.normals_picture(*pictures.shrink_normals(normals, mask, frame)))


def map_picture(values: FloatArray, mask: BoolArray, frame: Frame, *, top: float = ERROR_TOP) -> Map:
    """Color a map; a fixed ``top`` makes reports comparable."""
    picture = shown(paint(pictures.shrink_map(values, mask, frame), 0, top, "ember"))
    inside = values[mask]
    mean, median, highest = (float(figure(inside)) for figure in (np.mean, np.median, np.max))
    return Map(**vars(picture), top=top, mean=mean, median=median, highest=highest)


def depth_picture(depth: FloatArray, mask: BoolArray, frame: Frame, size: PixelSize) -> dict[str, object]:
    """Picture the depth above its lowest point, in pixels or, if the pixel size is known, in millimeters."""
    small = pictures.shrink_map(depth, mask, frame)
    known = small[np.isfinite(small)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    pixels, top = high - low, size.millimeters * (high - low)
    picture = shown(paint(size.millimeters * (small - low), 0, top, "depth"))
    unit = "mm" if size.known else "px"
    return {"picture": picture, "pixels": pixels, "top": top, "unit": unit, "per_pixel": size.millimeters}


def still_pictures(
    normals: FloatArray, inside: BoolArray, albedo: NDArray[np.uint8], *, side: int = 420
) -> Iterator[tuple[str, Picture]]:
    """Render the object under four lights, for browsers that cannot relight it."""
    factor = min(1.0, side / max(inside.shape))
    height, width = pictures.scaled_size(inside.shape[0], inside.shape[1], factor)
    small, known = pictures.resize_masked(normals, inside, height, width)
    color = pictures.resize(albedo / np.float32(255), height, width) ** 2.2
    for name, light in STILL_LIGHTS.items():
        direction = np.asarray(light) / np.linalg.norm(light)
        shade = np.maximum(small @ direction, 0) * 0.95 + 0.05
        lit = color * (shade if color.ndim == 2 else shade[..., None])
        yield name, shown(pictures.with_alpha(pictures.to_srgb(lit), known))
