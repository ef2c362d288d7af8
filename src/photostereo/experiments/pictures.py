"""Figures of maps: normals, errors with one colour bar, surfaces, dictionaries as images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from photostereo.experiments.style import name_of, new_figure
from photostereo.metrics import angular_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: label → the kept maps of its trial: ``normals``, ``truth``, ``mask``.
Maps = Mapping[str, Mapping[str, NDArray[Any]]]
#: rows and columns of a close-up.
Box = tuple[slice, slice]


def picture_of_normals(normals: NDArray[Any], mask: NDArray[Any]) -> NDArray[np.float32]:
    """(n + 1) / 2 as RGB, white outside the mask."""
    picture = np.clip((np.asarray(normals, np.float32) + 1) / 2, 0, 1).astype(np.float32)
    picture[~mask.astype(bool)] = 1.0
    return picture


def draw_maps(
    maps: Maps, *, title: str, captions: Mapping[str, str], limit: float | None = None, box: Box | None = None
) -> Figure:
    """Normal maps above, error maps below with one colour bar; the truth first. A close-up of ``box``
    between them.

    Parameters
    ----------
    captions : label → text below its name
    limit : degrees at which the colours end; by default the 98th percentile of all errors
    """
    first = next(iter(maps.values()))
    mask, truth = first["mask"].astype(bool), first["truth"]
    frame = _frame_of(mask)
    errors = {label: angular_error(found["normals"], truth, mask) for label, found in maps.items()}
    top = limit or float(np.nanpercentile(np.stack(list(errors.values())), 98))
    lines = 3 if box else 2
    columns = len(maps) + 1
    ratio = (frame[0].stop - frame[0].start) / (frame[1].stop - frame[1].start)
    figure = new_figure(1.75 * columns + 0.6, (1.75 * ratio + 0.45) * lines)
    axes = figure.subplots(lines, columns, squeeze=False)
    for panel in axes.ravel():
        panel.set_axis_off()
    everything = {"reference": {"normals": truth}, **maps}
    for column, (label, found) in enumerate(everything.items()):
        whole = picture_of_normals(found["normals"], mask)
        axes[0, column].imshow(whole[frame])
        axes[0, column].set_title(name_of(label), fontsize=9)
        if box:
            axes[1, column].imshow(whole[box], interpolation="nearest")
        if label in errors:
            shown = axes[-1, column].imshow(errors[label][frame], cmap="inferno", vmin=0, vmax=top)
            axes[-1, column].set_title(captions.get(label, ""), fontsize=8)
    if box:
        _mark(axes[0, 0], box, frame)
    bar = figure.colorbar(shown, ax=axes[-1, :].tolist(), shrink=0.8, fraction=0.03)
    bar.set_label("degrees", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    figure.suptitle(title, fontsize=10)
    return figure


def _frame_of(mask: NDArray[Any]) -> Box:
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)


def _mark(panel: Axes, box: Box, frame: Box) -> None:
    from matplotlib.patches import Rectangle

    corner = (box[1].start - frame[1].start, box[0].start - frame[0].start)
    panel.add_patch(
        Rectangle(
            corner, box[1].stop - box[1].start, box[0].stop - box[0].start, fill=False, edgecolor="black"
        )
    )


def box_of_difference(maps: Sequence[Mapping[str, NDArray[Any]]], share: float = 0.28) -> Box:
    """The square in which two error maps differ most in sum, for a close-up that shows why they differ."""
    from scipy.ndimage import uniform_filter

    mask = maps[0]["mask"].astype(bool)
    first, second = (np.nan_to_num(angular_error(m["normals"], m["truth"], mask)) for m in maps[:2])
    frame = _frame_of(mask)
    side = int(share * min(frame[0].stop - frame[0].start, frame[1].stop - frame[1].start))
    inside = uniform_filter(mask.astype(np.float32), side) > 0.95
    score = np.where(inside, uniform_filter(np.abs(first - second), side), -1.0)
    row, column = np.unravel_index(int(np.argmax(score)), score.shape)
    top, left = max(0, int(row) - side // 2), max(0, int(column) - side // 2)
    return slice(top, top + side), slice(left, left + side)


def draw_surfaces(maps: Maps, *, title: str, step: int = 3) -> Figure:
    """Surfaces integrated from the normals over the rectangle (Simchony et al. 1990), seen from the side,
    shaded.
    """
    from matplotlib.colors import LightSource

    first = next(iter(maps.values()))
    mask = first["mask"].astype(bool)
    everything = {"reference": {"normals": first["truth"]}, **maps}
    columns = min(4, len(everything))
    lines = -(-len(everything) // columns)
    figure = new_figure(2.7 * columns, 2.9 * lines + 0.3)
    light = LightSource(azdeg=315, altdeg=40)
    frame = _frame_of(mask)
    small = mask[frame][::step, ::step]
    y, x = np.mgrid[0 : small.shape[0], 0 : small.shape[1]]
    reference: NDArray[Any] | None = None
    for number, (label, found) in enumerate(everything.items()):
        depth = _integrate(found["normals"], mask)[frame][::step, ::step] / step
        if reference is None:
            reference = depth
        # The same limits for all, so that a distorted surface looks distorted.
        low, high = np.percentile(reference[small], [0.5, 99.5])
        margin = 0.25 * (high - low)
        depth = np.clip(
            depth - np.median(depth[small]) + np.median(reference[small]), low - margin, high + margin
        )
        shown = np.where(small, depth, np.nan)
        colours = light.shade_rgb(np.full((*small.shape, 3), 0.82), depth, vert_exag=1.2, blend_mode="soft")
        panel = figure.add_subplot(lines, columns, number + 1, projection="3d")
        panel.plot_surface(
            x,
            shown,
            -y,
            facecolors=colours,
            rcount=200,
            ccount=200,
            linewidth=0,
            antialiased=False,
            shade=False,
        )
        panel.set_box_aspect((small.shape[1], high - low + 2 * margin, small.shape[0]))
        panel.view_init(elev=12, azim=62)
        panel.set_axis_off()
        panel.set_title(name_of(label), fontsize=9, y=0.96)
    figure.suptitle(title, fontsize=10)
    return figure


def _integrate(normals: NDArray[Any], mask: NDArray[Any]) -> NDArray[Any]:
    from photostereo.surface import integrate

    found = integrate(normals, mask, method="simchony")
    return np.nan_to_num(found.depth, nan=float(np.nanmin(found.depth)))


def picture_of_atoms(
    atoms: NDArray[Any], patch: tuple[int, int, int] = (8, 8, 3), columns: int = 16
) -> NDArray[Any]:
    """Every atom as a small colour image, each stretched to its own largest value, in a grid.

    >>> picture_of_atoms(np.eye(192), columns=16).shape
    (109, 145, 3)
    """
    w_x, w_y, w_z = patch
    lines = -(-len(atoms) // columns)
    picture = np.ones((lines * (w_y + 1) + 1, columns * (w_x + 1) + 1, 3))
    for number, atom in enumerate(atoms):
        values = atom.reshape(w_z, w_y, w_x).transpose(1, 2, 0)
        tile = 0.5 + 0.5 * values / max(float(np.abs(values).max()), 1e-12)
        top, left = (number // columns) * (w_y + 1) + 1, (number % columns) * (w_x + 1) + 1
        picture[top : top + w_y, left : left + w_x] = tile
    return picture


def draw_atoms(first: NDArray[Any], last: NDArray[Any], *, title: str) -> Figure:
    """The initial and the learned dictionary."""
    figure = new_figure(10, 4.2)
    for panel, atoms, words in zip(
        figure.subplots(1, 2), (first, last), ("initial (DCT)", "learned"), strict=True
    ):
        panel.imshow(picture_of_atoms(atoms), interpolation="nearest")
        panel.set_title(words, fontsize=10)
        panel.set_axis_off()
    figure.suptitle(title, fontsize=11)
    return figure
