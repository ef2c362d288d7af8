"""Pictures of normals, surfaces and dictionaries, for figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from photostereo.diagnosis.metrics import angular_error
from photostereo.lab.sweeps.style import name_of, new_figure

if TYPE_CHECKING:
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


def frame_of(mask: NDArray[Any]) -> Box:
    """Rows and columns of the smallest rectangle around a mask."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)


def box_of_difference(maps: Sequence[Mapping[str, NDArray[Any]]], share: float = 0.28) -> Box:
    """The square in which two error maps differ most in sum, for a close-up that shows why they differ."""
    from scipy.ndimage import uniform_filter

    mask = maps[0]["mask"].astype(bool)
    first, second = (np.nan_to_num(angular_error(m["normals"], m["truth"], mask)) for m in maps[:2])
    frame = frame_of(mask)
    side = int(share * min(frame[0].stop - frame[0].start, frame[1].stop - frame[1].start))
    inside = uniform_filter(mask.astype(np.float32), side) > 0.95
    score = np.where(inside, uniform_filter(np.abs(first - second), side), -1.0)
    row, column = np.unravel_index(int(np.argmax(score)), score.shape)
    top, left = max(0, int(row) - side // 2), max(0, int(column) - side // 2)
    return slice(top, top + side), slice(left, left + side)


def draw_surfaces(maps: Maps, *, title: str) -> Figure:
    """Surfaces integrated from the normals over the rectangle (Simchony et al. 1990), seen from the side."""
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
    ]  # what a small panel can show
    rows, across = (places[part] for places in np.mgrid[: mask.shape[0], : mask.shape[1]])
    for number, (label, found) in enumerate(everything.items()):
        depth = integrate(found["normals"], mask, method="simchony").depth
        height = np.where(mask, depth, np.nan)[part]
        shade = LightSource(315, 45).hillshade(np.nan_to_num(depth, nan=float(np.nanmin(depth))))[part]
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


def picture_of_atoms(
    atoms: NDArray[Any], patch: tuple[int, int, int] = (8, 8, 3), columns: int = 16
) -> NDArray[Any]:
    """Every atom as a small color image, each stretched to its own largest value, in a grid.

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
