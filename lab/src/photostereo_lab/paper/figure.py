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

#: Text width over two columns, in inches (IEEE, CVPR).
WIDTH = 7.16
#: Size of titles, in points.
FONT = 8.0
#: Size of other text, in points.
SMALL = 7.0
#: Width of the labels of the rows, in inches.
LABEL = 0.18
#: Width of the color bar with its numbers, in inches.
BAR = 0.42
#: Distance between pictures, in inches.
GAP = 0.03
#: Height of the titles of the columns, in inches.
TITLE = 0.17
#: Height of a line below an error map, in inches.
CAPTION = 0.15
#: Side of a close-up relative to the object's shorter side.
CLOSE_UP = 0.28
#: Colors of the frames of close-ups (Okabe and Ito).
FRAMES = ("#d55e00", "#0072b2", "#009e73", "#e69f00")
#: Label of the row of error maps.
ERROR_ROW = "angular error"

#: Rows and columns of a part of a picture.
Box = tuple[slice, slice]
#: Label → the kept maps of its trial: ``normals``, ``truth``, ``mask``.
Maps = Mapping[str, Mapping[str, NDArray[Any]]]


@dataclass(frozen=True, eq=False)
class Column:
    """The content of a column."""

    name: str
    normals: FloatArray  #: (H, W, 3)
    mask: BoolArray  #: (H, W)
    albedo: FloatArray | None = None  #: for relit pictures, if it is known
    note: str = ""  #: below the mean error


@dataclass(frozen=True)
class _Row:
    """A row of pictures."""

    label: str
    box: Box  #: the part of the pictures that it shows
    draw: Callable[[Axes, Column], None]  #: draws a column into a panel


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

    Parameters
    ----------
    columns : sequence of Column
        The results.
    truth : (H, W, 3) array, optional
        Ground truth normals: they become the first column, and error maps are drawn.
    zooms : sequence of (rows, columns)
        Parts of the picture; each adds a row of close-ups.
    lights : sequence of (x, y, z)
        Directions to lights; each adds a row of relit pictures.
    limit : float, optional
        Largest error on the color scale, in degrees; by default the 98th percentile.
    width : float
        Width of the figure in inches.
    """
    mask = _common_mask(columns, truth, zooms)
    errors = {}
    all_columns = list(columns)
    if truth is not None:
        errors = {column.name: angular_error(column.normals, truth, mask) for column in columns}
        all_columns.insert(0, Column("ground truth", truth, mask))
    top_error = _top_of(errors, limit)
    rows = _rows(frame_of(mask), zooms, errors, lights, top_error)
    bar = 0.0
    caption = 0.0
    if errors:
        bar = BAR
        caption = CAPTION
    if errors and any(column.note for column in columns):
        caption += CAPTION
    cell = (width - LABEL - bar - GAP * len(all_columns)) / len(all_columns)
    heights = [cell * _height(row.box) / _width(row.box) for row in rows]
    total = TITLE + sum(height + GAP for height in heights) + caption
    figure = new_figure(width, total)
    figure.set_layout_engine("none")
    top = total - TITLE
    for row, height in zip(rows, heights, strict=True):
        top -= height
        figure.text(
            0.5 * LABEL / width,
            (top + 0.5 * height) / total,
            row.label,
            rotation=90,
            ha="center",
            va="center",
            fontsize=SMALL,
        )
        for number, column in enumerate(all_columns):
            x = LABEL + number * (cell + GAP)
            panel = figure.add_axes((x / width, top / total, cell / width, height / total))
            panel.set_axis_off()
            row.draw(panel, column)
            if row.label == "normals":
                panel.set_title(column.name, fontsize=FONT, pad=2.5)
        if row.label == ERROR_ROW:
            _add_bar(figure, (width - bar + 0.04, top, height), (width, total), top_error)
            top -= caption
        top -= GAP
    return figure


def _rows(
    frame: Box,
    zooms: Sequence[Box],
    errors: dict[str, FloatArray],
    lights: Sequence[Sequence[float]],
    top: float,
) -> list[_Row]:
    """Return the rows of the figure; ``top`` is the largest error on the color scale."""
    rows = [_Row("normals", frame, partial(_draw_normals, frame=frame, zooms=zooms))]
    for number, zoom in enumerate(zooms):
        color = FRAMES[number % len(FRAMES)]
        rows.append(_Row("close-up", zoom, partial(_draw_close_up, zoom=zoom, color=color)))
    if errors:
        rows.append(
            _Row(ERROR_ROW, frame, partial(_draw_error, frame=frame, errors=errors, top=top))
        )
    for light in lights:
        rows.append(_Row("relit", frame, partial(_draw_relit, frame=frame, light=light)))
    return rows


def _draw_normals(panel: Axes, column: Column, frame: Box, zooms: Sequence[Box]) -> None:
    _show(panel, picture_of_normals(column.normals, column.mask)[frame])
    for number, zoom in enumerate(zooms):
        _mark(panel, zoom, frame, FRAMES[number % len(FRAMES)])


def _draw_close_up(panel: Axes, column: Column, zoom: Box, color: str) -> None:
    _show(panel, picture_of_normals(column.normals, column.mask)[zoom])
    _border(panel, color)


def _draw_error(
    panel: Axes, column: Column, frame: Box, errors: Mapping[str, FloatArray], top: float
) -> None:
    error = errors.get(column.name)
    if error is None:  # the ground truth itself
        return
    panel.imshow(error[frame], cmap="inferno", vmin=0, vmax=top, interpolation="none")
    panel.text(
        0.5,
        -0.02,
        f"mean {np.nanmean(error[column.mask]):.2f}°\n{column.note}".strip(),
        transform=panel.transAxes,
        ha="center",
        va="top",
        fontsize=SMALL,
    )


def _draw_relit(panel: Axes, column: Column, frame: Box, light: Sequence[float]) -> None:
    albedo = np.ones(column.mask.shape) if column.albedo is None else column.albedo
    direction = np.asarray(light, dtype=np.float64)
    direction /= np.linalg.norm(direction)
    picture = relight(column.normals, albedo, column.mask, direction)
    picture[~column.mask] = 1.0
    _show(panel, picture[frame])


def _show(panel: Axes, picture: NDArray[Any]) -> None:
    panel.imshow(np.clip(picture, 0, 1), interpolation="none")


def _mark(panel: Axes, zoom: Box, frame: Box, color: str) -> None:
    """Draw the frame of a close-up."""
    from matplotlib.patches import Rectangle

    corner = (zoom[1].start - frame[1].start - 0.5, zoom[0].start - frame[0].start - 0.5)
    size = (_width(zoom), _height(zoom))
    panel.add_patch(Rectangle(corner, *size, fill=False, edgecolor=color, linewidth=0.9))


def _border(panel: Axes, color: str) -> None:
    """Draw a frame around a panel."""
    from matplotlib.patches import Rectangle

    whole = Rectangle((0, 0), 1, 1, fill=False, edgecolor=color, linewidth=1.4)
    whole.set_transform(panel.transAxes)
    panel.add_patch(whole)


def _add_bar(
    figure: Figure, place: tuple[float, float, float], size: tuple[float, float], top: float
) -> None:
    """Add the color bar of errors up to ``top`` degrees.

    ``place`` is its left, bottom and height, ``size`` that of the figure, in inches.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.ticker import FuncFormatter

    x, bottom, height = place
    width, total = size
    axes = figure.add_axes((x / width, bottom / total, 0.08 / width, height / total))
    bar = figure.colorbar(ScalarMappable(Normalize(0, top), cmap="inferno"), cax=axes)
    bar.ax.tick_params(labelsize=SMALL - 1, width=0.5, length=2, pad=1)
    bar.outline.set_linewidth(0.5)
    bar.formatter = FuncFormatter(lambda value, _: f"{value:g}°")
    bar.update_ticks()


def _top_of(errors: dict[str, FloatArray], limit: float | None) -> float:
    """Return the largest error on the color scale, in degrees."""
    if limit is not None:
        return limit
    if not errors:
        return 1.0
    return max(float(np.nanpercentile(np.stack(list(errors.values())), 98)), 0.1)


def _common_mask(
    columns: Sequence[Column], truth: FloatArray | None, zooms: Sequence[Box]
) -> BoolArray:
    """Return the pixels that all columns have; raise an error if their sizes differ."""
    if not columns:
        raise ParameterError("There are no results to draw. Give at least one.", code="no-results")
    shape = columns[0].mask.shape
    sizes = {column.name: column.mask.shape for column in columns}
    if truth is not None:
        sizes["the truth"] = truth.shape[:2]
    for name, size in sizes.items():
        if size != shape:
            raise ParameterError(
                f"{name} has {size[1]} × {size[0]} pixels, {columns[0].name} has "
                f"{shape[1]} × {shape[0]}: a figure can only show results of one capture.",
                code="other-size",
                name=name,
            )
    for rows, cols in zooms:
        if rows.stop > shape[0] or cols.stop > shape[1]:
            raise ParameterError(
                f"The close-up x = {cols.start} … {cols.stop}, y = {rows.start} … {rows.stop} "
                f"does not lie inside the picture of {shape[1]} × {shape[0]} pixels.",
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


def picture_of_normals(normals: NDArray[Any], mask: NDArray[Any]) -> NDArray[np.float32]:
    """Return (n + 1) / 2 as RGB, white outside the mask."""
    picture = np.clip((np.asarray(normals, np.float32) + 1) / 2, 0, 1).astype(np.float32)
    picture[~mask.astype(bool)] = 1.0
    return picture


def frame_of(mask: NDArray[Any]) -> Box:
    """Return the rows and columns of the smallest rectangle around a mask."""
    rows = np.flatnonzero(mask.any(axis=1))
    columns = np.flatnonzero(mask.any(axis=0))
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)


def box_of_difference(maps: Sequence[Mapping[str, NDArray[Any]]]) -> Box:
    """Return an informative close-up: where two error maps differ most.

    It is the square with the largest summed difference.
    """
    from scipy.ndimage import uniform_filter

    mask = maps[0]["mask"].astype(bool)
    first, second = (
        np.nan_to_num(angular_error(arrays["normals"], arrays["truth"], mask))
        for arrays in maps[:2]
    )
    frame = frame_of(mask)
    side = int(CLOSE_UP * min(_height(frame), _width(frame)))
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
    normals = {"reference": first["truth"]}
    normals |= {label: arrays["normals"] for label, arrays in maps.items()}
    columns = min(4, len(normals))
    lines = -(-len(normals) // columns)
    figure = new_figure(2.4 * columns, 2.4 * lines + 0.3)
    # As much as a small panel can show.
    row_step = max(1, mask.shape[0] // 120)
    col_step = max(1, mask.shape[1] // 120)
    part = np.s_[::row_step, ::col_step]
    rows, cols = np.mgrid[: mask.shape[0] : row_step, : mask.shape[1] : col_step]
    for number, label in enumerate(normals):
        depth = integrate(normals[label], mask, method="simchony").depth
        height = np.where(mask, depth, np.nan)[part]
        solid = np.nan_to_num(depth, nan=float(np.nanmin(depth)))
        shade = LightSource(315, 45).hillshade(solid)[part]
        panel: Any = figure.add_subplot(lines, columns, number + 1, projection="3d")
        panel.plot_surface(
            cols,
            -rows,
            height,
            facecolors=np.repeat(shade[..., None], 3, -1),
            rstride=1,
            cstride=1,
            linewidth=0,
            antialiased=False,
            shade=False,
        )
        panel.view_init(elev=60, azim=-60)
        span = np.nanmax(height) - np.nanmin(height) + 1
        panel.set_box_aspect((np.ptp(cols), np.ptp(rows), span), zoom=1.4)
        panel.set_axis_off()
        panel.set_title(name_of(label), fontsize=9)
    figure.suptitle(title, fontsize=10)
    return figure


def draw_atoms(first: NDArray[Any], last: NDArray[Any], *, title: str) -> Figure:
    """Draw the initial and the learned dictionary."""
    from photostereo.report.learning import atom_sheet

    figure = new_figure(10, 4.2)
    sheets = {"initial (DCT)": first, "learned": last}
    for panel, (heading, atoms) in zip(figure.subplots(1, 2), sheets.items(), strict=True):
        panel.imshow(atom_sheet(atoms, (8, 8, 3)), interpolation="nearest")
        panel.set_title(heading, fontsize=10)
        panel.set_axis_off()
    figure.suptitle(title, fontsize=11)
    return figure
