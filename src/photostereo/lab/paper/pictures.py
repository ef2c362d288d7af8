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
    first = next(iter(maps.values()))
    mask = first["mask"].astype(bool)
    everything = {"reference": {"normals": first["truth"]}, **maps}
    columns = min(4, len(everything))
    lines = -(-len(everything) // columns)
    pictures = {
        label: picture_of_surface(_integrate(found["normals"], mask), mask)
        for label, found in everything.items()
    }
    ratio = max(picture.shape[0] / picture.shape[1] for picture in pictures.values())
    figure = new_figure(2.4 * columns, (2.4 * ratio + 0.25) * lines + 0.3)
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for panel in axes:
        panel.set_axis_off()
    for panel, (label, picture) in zip(axes, pictures.items(), strict=False):
        panel.imshow(picture, cmap="gray", vmin=0, vmax=1)
        panel.set_title(name_of(label), fontsize=9)
    figure.suptitle(title, fontsize=10)
    return figure


def picture_of_surface(
    depth: NDArray[Any], mask: NDArray[Any], *, turn: float = 32.0, tilt: float = 12.0, size: int = 420
) -> NDArray[np.float64]:
    """A matte surface turned and tilted by these angles in degrees, as a gray picture of at most ``size`` rows,
    white around.

    The pixels are painted from the back to the front; what the larger spacing after turning leaves open is
    filled from the neighbors.
    """
    from scipy.ndimage import binary_closing, distance_transform_edt

    rows, columns = np.nonzero(mask)
    shade = _shaded(depth)[rows, columns]
    height = depth[rows, columns] - np.median(depth[rows, columns])
    x, y = columns - columns.mean(), rows.mean() - rows
    a, b = np.radians(turn), np.radians(tilt)
    across, towards = np.cos(a) * x - np.sin(a) * height, np.sin(a) * x + np.cos(a) * height
    up, towards = np.cos(b) * y - np.sin(b) * towards, np.sin(b) * y + np.cos(b) * towards
    scale = min(0.8, size / np.ptp(up))
    column = np.rint((across - across.min()) * scale).astype(int)
    row = np.rint((up.max() - up) * scale).astype(int)
    order = np.argsort(towards, kind="stable")
    picture = np.full((row.max() + 1, column.max() + 1), np.nan)
    picture[row[order], column[order]] = shade[order]
    painted = np.isfinite(picture)
    inside = binary_closing(painted, iterations=3) | painted
    nearest = distance_transform_edt(~painted, return_distances=False, return_indices=True)
    return np.where(inside, picture[tuple(nearest)], 1.0)


def _shaded(depth: NDArray[Any]) -> NDArray[np.float64]:
    """Gray values of a matte surface lit from the upper left, with a weaker light from the right."""
    rows, columns = np.gradient(depth)
    normals = np.stack([-columns, rows, np.ones_like(depth)], axis=-1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    key, fill = np.array([-0.5, 0.5, 0.7]), np.array([0.7, 0.1, 0.7])
    return np.asarray(0.05 + 0.7 * np.clip(normals @ key, 0, 1) + 0.25 * np.clip(normals @ fill, 0, 1))


def _integrate(normals: NDArray[Any], mask: NDArray[Any]) -> NDArray[Any]:
    from photostereo.surface import integrate

    found = integrate(normals, mask, method="simchony")
    return np.nan_to_num(found.depth, nan=float(np.nanmin(found.depth)))


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
