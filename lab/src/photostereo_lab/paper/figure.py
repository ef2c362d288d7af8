"""A figure for a paper: results side by side, as is common in this field.

Columns are the reference and the results; rows are normal maps, close-ups, error maps on one color
scale with one color bar, and relit pictures. Text stays text in PDF and SVG, and pictures keep
their pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.errors import ParameterError
from photostereo.core.shading import relight
from photostereo.diagnosis.metrics import angular_error
from photostereo_lab.sweeps.curves import new_figure
from photostereo_lab.sweeps.outputs import name_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Text width over two columns, in inches (IEEE, CVPR), and sizes in points and inches.
WIDTH = 7.16
FONT, SMALL = 8.0, 7.0
LABEL, BAR, GAP, TITLE, CAPTION = 0.18, 0.42, 0.03, 0.17, 0.15
#: Side of a close-up relative to the object's shorter side.
CLOSE_UP = 0.28
#: Colors of the frames of close-ups (Okabe and Ito).
FRAMES = ("#d55e00", "#0072b2", "#009e73", "#e69f00")


@dataclass(frozen=True, eq=False)
class Column:
    """The content of a column: a name, normals and, if known, an albedo; a note below its mean error."""

    name: str
    normals: FloatArray
    mask: BoolArray
    albedo: FloatArray | None = None
    note: str = ""


def draw_figure(
    columns: Sequence[Column],
    *,
    truth: FloatArray | None = None,
    zooms: Sequence[Box] = (),
    lights: Sequence[Sequence[float]] = (),
    limit: float | None = None,
    width: float = WIDTH,
) -> Figure:
    """Draw results of one size side by side.

    A ``truth`` (H, W, 3) becomes the first column, with error maps against it up to ``limit``
    degrees (by default their 98th percentile); ``zooms`` and ``lights`` are rows of close-ups and
    of relit pictures.
    """
    mask = _common_mask(columns, truth, zooms)
    if truth is None:
        errors = {}
    else:
        errors = {c.name: angular_error(c.normals, truth, mask) for c in columns}
    everything = list(columns)
    if truth is not None:
        everything.insert(0, Column("ground truth", truth, mask))
    frame = frame_of(mask)
    top_error = _top_of(errors, limit)
    rows = _rows(frame, zooms, errors, lights, top_error)
    bar = BAR if errors else 0.0
    cell = (width - LABEL - bar - GAP * len(everything)) / len(everything)
    caption = CAPTION * (1 + any(column.note for column in columns)) if errors else 0.0
    heights = [cell * _height(box) / _width(box) for _, box, _ in rows]
    total = TITLE + sum(height + GAP for height in heights) + caption
    figure = new_figure(width, total)
    figure.set_layout_engine("none")
    top = total - TITLE
    for (words, _, fill), height in zip(rows, heights, strict=True):
        top -= height
        figure.text(
            0.5 * LABEL / width, (top + 0.5 * height) / total, words,
            rotation=90, ha="center", va="center", fontsize=SMALL,
        )  # fmt: skip
        for place, column in enumerate(everything):
            left = LABEL + place * (cell + GAP)
            panel = figure.add_axes((left / width, top / total, cell / width, height / total))
            panel.set_axis_off()
            fill(panel, column)
            if words == "normals":
                panel.set_title(column.name, fontsize=FONT, pad=2.5)
        if words == ERROR_ROW:
            _add_bar(figure, (width - bar + 0.04, top, height), (width, total), top_error)
            top -= caption
        top -= GAP
    return figure


ERROR_ROW = "angular error"


def _rows(
    frame: Box,
    zooms: Sequence[Box],
    errors: dict[str, FloatArray],
    lights: Sequence[Sequence[float]],
    top: float,
) -> list[tuple[str, Box, Callable[[Axes, Column], None]]]:
    """Return the rows of the figure: name, part of the picture, and a function that draws a column into a panel."""

    def normals(panel: Axes, column: Column) -> None:
        _show(panel, picture_of_normals(column.normals, column.mask)[frame])
        for number, zoom in enumerate(zooms):
            _mark(panel, zoom, frame, FRAMES[number % len(FRAMES)])

    def close_up(panel: Axes, column: Column, number: int) -> None:
        _show(panel, picture_of_normals(column.normals, column.mask)[zooms[number]])
        _border(panel, FRAMES[number % len(FRAMES)])

    def error(panel: Axes, column: Column) -> None:
        if column.name in errors:
            found = errors[column.name]
            panel.imshow(found[frame], cmap="inferno", vmin=0, vmax=top, interpolation="none")
            panel.text(
                0.5, -0.02, f"mean {np.nanmean(found[column.mask]):.2f}°\n{column.note}".strip(),
                transform=panel.transAxes, ha="center", va="top", fontsize=SMALL,
            )  # fmt: skip

    def relit(panel: Axes, column: Column, light: Sequence[float]) -> None:
        albedo = np.ones(column.mask.shape) if column.albedo is None else column.albedo
        direction = np.asarray(light, dtype=np.float64)
        picture = relight(
            column.normals, albedo, column.mask, direction / np.linalg.norm(direction)
        )
        picture[~column.mask] = 1.0
        _show(panel, picture[frame])

    return [
        ("normals", frame, normals),
        *(
            ("close-up", zoom, partial(close_up, number=number))
            for number, zoom in enumerate(zooms)
        ),
        *([(ERROR_ROW, frame, error)] if errors else []),
        *(("relit", frame, partial(relit, light=light)) for light in lights),
    ]


def _show(panel: Axes, picture: NDArray[Any]) -> None:
    panel.imshow(np.clip(picture, 0, 1), interpolation="none")


def _mark(panel: Axes, zoom: Box, frame: Box, color: str) -> None:
    from matplotlib.patches import Rectangle

    corner = (zoom[1].start - frame[1].start - 0.5, zoom[0].start - frame[0].start - 0.5)
    panel.add_patch(
        Rectangle(corner, _width(zoom), _height(zoom), fill=False, edgecolor=color, linewidth=0.9)
    )


def _border(panel: Axes, color: str) -> None:
    from matplotlib.patches import Rectangle

    panel.add_patch(
        Rectangle(
            (0, 0), 1, 1, transform=panel.transAxes, fill=False, edgecolor=color, linewidth=1.4
        )
    )


def _add_bar(
    figure: Figure, place: tuple[float, float, float], size: tuple[float, float], top: float
) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.ticker import FuncFormatter

    (left, bottom, height) = place
    (width, total) = size
    axes = figure.add_axes((left / width, bottom / total, 0.08 / width, height / total))
    bar = figure.colorbar(ScalarMappable(Normalize(0, top), cmap="inferno"), cax=axes)
    bar.ax.tick_params(labelsize=SMALL - 1, width=0.5, length=2, pad=1)
    bar.outline.set_linewidth(0.5)
    bar.formatter = FuncFormatter(lambda value, _: f"{value:g}°")
    bar.update_ticks()


def _top_of(errors: dict[str, FloatArray], limit: float | None) -> float:
    if limit is not None or not errors:
        return limit or 1.0
    return max(float(np.nanpercentile(np.stack(list(errors.values())), 98)), 0.1)


def _common_mask(
    columns: Sequence[Column], truth: FloatArray | None, zooms: Sequence[Box]
) -> BoolArray:
    if not columns:
        raise ParameterError("There are no results to draw. Give at least one.", code="no-results")
    shape = columns[0].mask.shape
    sizes = {column.name: column.mask.shape for column in columns}
    if truth is not None:
        sizes["the truth"] = truth.shape[:2]
    for name, size in sizes.items():
        if size != shape:
            raise ParameterError(
                f"{name} has {size[1]} × {size[0]} pixels, {columns[0].name} has {shape[1]} × {shape[0]}: a figure "
                "can only show results of one capture.",
                code="other-size",
                name=name,
            )
    for rows, cols in zooms:
        if rows.stop > shape[0] or cols.stop > shape[1]:
            raise ParameterError(
                f"The close-up x = {cols.start} … {cols.stop}, y = {rows.start} … {rows.stop} does not lie inside the "
                f"picture of {shape[1]} × {shape[0]} pixels.",
                code="zoom-outside",
            )
    mask = columns[0].mask.copy()
    for column in columns[1:]:
        mask &= column.mask
    return np.asarray(mask)


def _height(box: Box) -> int:
    return int(box[0].stop - box[0].start)


def _width(box: Box) -> int:
    return int(box[1].stop - box[1].start)


#: label → the kept maps of its trial: ``normals``, ``truth``, ``mask``.
Maps = Mapping[str, Mapping[str, NDArray[Any]]]
#: rows and columns of a close-up.
Box = tuple[slice, slice]


def picture_of_normals(normals: NDArray[Any], mask: NDArray[Any]) -> NDArray[np.float32]:
    """(n + 1) / 2 as RGB, white outside the mask."""
    picture = np.clip((np.asarray(normals, np.float32) + 1) / 2, 0, 1).astype(np.float32)
    picture[~mask.astype(bool)] = 1.0
    return picture


def frame_of(mask: NDArray[Any]) -> Box:
    """Return the rows and columns of the smallest rectangle around a mask."""
    rows = np.flatnonzero(mask.any(axis=1))
    columns = np.flatnonzero(mask.any(axis=0))
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)


def box_of_difference(maps: Sequence[Mapping[str, NDArray[Any]]]) -> Box:
    """Return the square with the largest summed difference between two error maps, for an informative close-up."""
    from scipy.ndimage import uniform_filter

    mask = maps[0]["mask"].astype(bool)
    first, second = (np.nan_to_num(angular_error(m["normals"], m["truth"], mask)) for m in maps[:2])
    frame = frame_of(mask)
    side = int(CLOSE_UP * min(frame[0].stop - frame[0].start, frame[1].stop - frame[1].start))
    inside = uniform_filter(mask.astype(np.float32), side) > 0.95
    score = np.where(inside, uniform_filter(np.abs(first - second), side), -1.0)
    row, column = np.unravel_index(int(np.argmax(score)), score.shape)
    top = max(0, int(row) - side // 2)
    left = max(0, int(column) - side // 2)
    return slice(top, top + side), slice(left, left + side)


def draw_surfaces(maps: Maps, *, title: str) -> Figure:
    """Draw surfaces integrated from the normals over the rectangle, seen from the side.

    The method is that of Simchony et al. 1990, as in the paper.
    """
    from matplotlib.colors import LightSource

    from photostereo.surface import integrate

    first = next(iter(maps.values()))
    mask = first["mask"].astype(bool)
    everything = {"reference": {"normals": first["truth"]}, **maps}
    columns = min(4, len(everything))
    lines = -(-len(everything) // columns)
    figure = new_figure(2.4 * columns, 2.4 * lines + 0.3)
    part = np.s_[
        :: max(1, mask.shape[0] // 120), :: max(1, mask.shape[1] // 120)
    ]  # as much as a small panel can show
    rows, across = (places[part] for places in np.mgrid[: mask.shape[0], : mask.shape[1]])
    for number, (label, found) in enumerate(everything.items()):
        depth = integrate(found["normals"], mask, method="simchony").depth
        height = np.where(mask, depth, np.nan)[part]
        shade = LightSource(315, 45).hillshade(np.nan_to_num(depth, nan=float(np.nanmin(depth))))[
            part
        ]
        panel: Any = figure.add_subplot(lines, columns, number + 1, projection="3d")
        panel.plot_surface(
            across, -rows, height, facecolors=np.repeat(shade[..., None], 3, -1),
            rstride=1, cstride=1, linewidth=0, antialiased=False, shade=False,
        )  # fmt: skip
        panel.view_init(elev=60, azim=-60)
        span = np.nanmax(height) - np.nanmin(height) + 1
        panel.set_box_aspect((np.ptp(across), np.ptp(rows), span), zoom=1.4)
        panel.set_axis_off()
        panel.set_title(name_of(label), fontsize=9)
    figure.suptitle(title, fontsize=10)
    return figure


def draw_atoms(first: NDArray[Any], last: NDArray[Any], *, title: str) -> Figure:
    """Draw the initial and the learned dictionary."""
    from photostereo.report.learning import atom_sheet

    figure = new_figure(10, 4.2)
    for panel, atoms, words in zip(
        figure.subplots(1, 2), (first, last), ("initial (DCT)", "learned"), strict=True
    ):
        panel.imshow(atom_sheet(atoms, (8, 8, 3)), interpolation="nearest")
        panel.set_title(words, fontsize=10)
        panel.set_axis_off()
    figure.suptitle(title, fontsize=11)
    return figure
