"""Pictures with a color scale, a caption and a text for those who cannot see them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.units import PixelSize
from photostereo.diagnosis.diagnose import Diagnosis
from photostereo.report import pictures
from photostereo.report.colors import Painting, paint
from photostereo.report.pictures import Frame
from photostereo.report.plots import NOTHING, color_bar

#: Error maps saturate here, in degrees: beyond it a normal is simply wrong.
ERROR_TOP = 45.0
#: The four still pictures for browsers without WebGL2: name and light direction.
STILL_LIGHTS = (
    ("left", (-0.75, 0.1, 0.65)),
    ("top", (0.1, 0.75, 0.65)),
    ("right", (0.75, 0.1, 0.65)),
    ("front", (0.0, 0.15, 0.99)),
)


@dataclass(frozen=True)
class MapFigure:
    """A picture of the page."""

    #: title, note: heading, and a line below
    title: str
    note: str
    address: str  #: the picture itself
    alt: str  #: what it shows, in words
    #: width, height: its size in pixels
    width: int
    height: int
    bar: Markup = NOTHING  #: its color scale, perhaps empty


def normals_figure(normals: FloatArray, inside: BoolArray, *, title: str = "Normal map") -> MapFigure:
    return _figure(
        title,
        "Red points right, green up, blue to the camera.",
        pictures.normals_picture(normals, inside),
        f"{title}: the surface orientation at each pixel as a color",
    )


def albedo_figure(picture: NDArray[np.uint8], inside: BoolArray) -> MapFigure:
    return _figure(
        "Albedo",
        "The object's own color, without shading. White is the 99.5th percentile.",
        pictures.with_alpha(picture, inside),
        "Albedo: the object's own brightness or color at each pixel",
    )


def depth_figure(depth: FloatArray, mask: BoolArray, frame: Frame, size: PixelSize) -> MapFigure:
    """The integrated depth, in millimeters if the size of a pixel is known."""
    unit = "mm" if size.known else "px"
    small = pictures.shrink_map(depth, mask, frame)
    low, high = _range(small)
    pixels = high - low
    small, high = size.millimeters * (small - low), size.millimeters * pixels
    note = 'Height above the lowest point, up to <span data-pixels="{}">{:.3g} {}</span>. Brighter is nearer.'
    return _figure(
        "Depth",
        Markup(note).format(pixels, high, unit),
        paint(small, 0, high, "depth"),
        f"Depth map: height above the lowest point, up to {high:.3g} {unit}",
        color_bar("depth", 0, high, suffix=f" {unit}", per_pixel=size.millimeters),
    )


def scalar_figure(
    title: str, note: str, values: FloatArray, mask: BoolArray, frame: Frame, *, top: float, suffix: str = ""
) -> MapFigure:
    """A map of numbers from 0 to ``top``; a fixed top makes reports comparable."""
    inside = values[mask]
    return _figure(
        title,
        note,
        paint(pictures.shrink_map(values, mask, frame), 0, top, "ember"),
        f"{title}: mean {inside.mean():.1f}{suffix}, median {np.median(inside):.1f}{suffix}",
        color_bar("ember", 0, top, suffix=suffix),
    )


def error_figure(
    error: FloatArray, mask: BoolArray, frame: Frame, *, title: str = "Angular error", note: str = ""
) -> MapFigure:
    """The angle between the normals found and the true ones."""
    note = note or "Angle between the normal found and the true one."
    return scalar_figure(title, note, error, mask, frame, top=ERROR_TOP, suffix="°")


def spread_figure(spread: FloatArray, mask: BoolArray, frame: Frame) -> MapFigure:
    """The error that the method itself expects of each normal."""
    note = (
        f"How far off the method expects each normal to be, {np.median(spread[mask]):.1f}° typically. "
        "On hollow objects, in which light bounces, the true error can be twice as large."
    )
    return scalar_figure("Expected error", note, spread, mask, frame, top=ERROR_TOP, suffix="°")


def diagnosis_figures(diagnosis: Diagnosis, mask: BoolArray, frame: Frame) -> list[MapFigure]:
    """In how many photographs each pixel is dark, and how badly a matte surface explains the photographs."""
    dark, residual = diagnosis.dark_count.astype(np.float32), 100 * diagnosis.residual
    in_shadow = (
        f"In how many of {diagnosis.photographs} each pixel is dark: typically {np.median(dark[mask]):.0f}, "
        f"at most {dark[mask].max():.0f}."
    )
    unexplained = (
        "Brightness that a matte surface with these normals leaves unexplained: "
        f"{np.median(residual[mask]):.0f} % typically."
    )
    top = float(max(diagnosis.photographs, 1))
    return [
        scalar_figure("Photographs in shadow", in_shadow, dark, mask, frame, top=top),
        scalar_figure("Model-fit residual", unexplained, residual, mask, frame, top=50.0, suffix=" %"),
    ]


def still_figures(
    normals: FloatArray, inside: BoolArray, albedo: NDArray[np.uint8], *, side: int = 420
) -> list[MapFigure]:
    """The object under four lights, for browsers that cannot relight it."""
    factor = min(1.0, side / max(inside.shape))
    height, width = pictures.scaled_size(inside.shape[0], inside.shape[1], factor)
    small, known = pictures.resize_masked(normals, inside, height, width)
    color = pictures.resize(albedo / np.float32(255), height, width) ** 2.2
    result = []
    for name, light in STILL_LIGHTS:
        direction = np.asarray(light) / np.linalg.norm(light)
        shade = np.maximum(small @ direction, 0) * 0.95 + 0.05
        lit = color * (shade if color.ndim == 2 else shade[..., None])
        picture = pictures.with_alpha(pictures.to_srgb(lit), known)
        where = "the front" if name == "front" else f"the {name}"
        result.append(_figure(f"Lit from {where}", "", picture, f"The object lit from {where}"))
    return result


def _range(values: FloatArray) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)


def _figure(
    title: str, note: str, picture: NDArray[np.uint8] | Painting, alt: str, bar: Markup | None = None
) -> MapFigure:
    if isinstance(picture, Painting):
        (height, width), address = picture.index.shape, pictures.indexed_png(picture)
    else:
        (height, width), address = picture.shape[:2], pictures.webp(picture)
    return MapFigure(title, note, address, alt, width, height, bar if bar is not None else NOTHING)
