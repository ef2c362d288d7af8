"""Axis conventions of light files: how they are written, and which of them fits a surface.

A light file in another convention gives scaled normals in that convention and explains the photographs just as
well, so residuals do not help. Three criteria do. A visible surface faces the camera (n_z > 0). Its slopes are those of
a height, so their curl vanishes. And if the outline of the object is its own edge, the normals there point outwards.

The curl does not change if x and y are both reversed (a hollow lit from the other side looks like a bump), so it
leaves pairs; the outline, if there is one, decides between the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product

import cv2
import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.errors import ParameterError
from photostereo.lights.thumbnail import Thumbnail, bright_enough

#: Slopes are limited to this; beyond it a coarse grid is not informative.
STEEPEST = 5.0
#: Unit vectors that differ by less than this in every component (3°) are the same light.
SAME_LIGHTS = 0.05
#: If the mean change of slope over two cells is below this, the surface is a plane.
FLAT = 0.01


def axes_matrix(words: str) -> FloatArray:
    """Return the matrix A of axes such as ``x,-y,z``, so that ``lights @ A`` is in the axes of this package.

    >>> (np.array([[1.0, 2.0, 3.0]]) @ axes_matrix("x,-z,y")).tolist()
    [[1.0, -3.0, 2.0]]
    """
    parts = [part.strip().lower() for part in words.split(",")]
    matrix = np.zeros((3, 3))
    names = [part.removeprefix("-").removeprefix("+") for part in parts]
    if sorted(names) != ["x", "y", "z"]:
        raise ParameterError(
            f'"{words}" are not axes. Write x, y and z of the light file in the order right, up, towards the camera, '
            "each with a minus if it points the other way, for instance x,-y,z.",
            code="bad-axes",
            axes=words,
        )
    for column, (part, name) in enumerate(zip(parts, names, strict=True)):
        matrix["xyz".index(name), column] = -1.0 if part.startswith("-") else 1.0
    return matrix


def axes_words(matrix: FloatArray) -> str:
    """Return the axes of a matrix; the inverse of :func:`axes_matrix`.

    >>> axes_words(axes_matrix("y,x,-z"))
    'y,x,-z'
    """
    rows = np.abs(matrix).argmax(axis=0)
    signs = ["-" if matrix[row, column] < 0 else "" for column, row in enumerate(rows)]
    return ",".join(sign + "xyz"[row] for sign, row in zip(signs, rows, strict=True))


def conventions(*, depth_too: bool) -> list[FloatArray]:
    """Return the eight conventions of x and y, or all 48 of three axes; ours first, then the likelier mistakes."""
    found = []
    for order in permutations(range(3)):
        for signs in product((1.0, -1.0), repeat=3):
            matrix = np.zeros((3, 3))
            matrix[list(order), range(3)] = signs
            if depth_too or matrix[2, 2] > 0:
                found.append(matrix)
    # Pictures usually have y pointing down, and renderers usually have vectors pointing from the light.
    usual = {"x,y,z": 0, "x,-y,z": 1, "-x,-y,-z": 2, "y,x,z": 3, "x,z,y": 4, "x,z,-y": 4, "x,-z,y": 4}
    return sorted(found, key=lambda matrix: usual.get(axes_words(matrix), 9))


def turn_between(lights: FloatArray, others: FloatArray) -> FloatArray | None:
    """Return the matrix A with ``lights @ A`` = others, both (d, 3), if there is one; not necessarily a rotation."""
    turn, *_ = np.linalg.lstsq(lights, others, rcond=None)
    return turn if np.abs(lights @ turn - others).max() <= SAME_LIGHTS else None


@dataclass(frozen=True)
class SurfaceEvidence:
    """Evidence that a field of normals is a surface seen from the camera."""

    away: float  #: share of the normals that point away from the camera
    #: mean |curl| of the slopes over the mean size of their derivatives; 0 for a height, about 0.7 for noise
    curl: float
    #: share of the cells that carry the curvature; small if it is a single edge, which says little; 0 for
    #: a plane and for structure finer than the grid
    curved_share: float
    #: mean cosine between the normals' x, y (of length up to 1) and the outline's; nan without one
    outwards: float
    outwards_share: float  #: share of the outline where they point outwards; nan without one


@dataclass(frozen=True, eq=False)
class Outline:
    """Cells along the edge of the object (h, w), and their outward directions (2, n), y up."""

    cells: BoolArray
    direction: FloatArray


def outline_of(small: Thumbnail, useful: BoolArray, open_side: tuple[bool, bool, bool, bool]) -> Outline:
    """Return the outline of the mask, without the sides (top, bottom, left, right) where the frame cuts the object off."""
    inside = small.mask
    # Where the frame cuts the object off, the object continues beyond it.
    padded = inside
    for side, (axis, end) in zip(open_side, ((0, 0), (0, 1), (1, 0), (1, 1)), strict=True):
        width = [(0, 0), (0, 0)]
        width[axis] = (6, 0) if end == 0 else (0, 6)
        padded = np.pad(padded, width, mode="edge" if side else "constant")
    smooth = cv2.GaussianBlur(padded.astype(np.float32), (0, 0), 2.0)
    eroded = cv2.erode(padded.astype(np.uint8), np.ones((3, 3), np.uint8)).astype(bool)
    down, right = np.gradient(smooth)
    own = (slice(6, -6), slice(6, -6))
    cells = inside & ~eroded[own] & useful
    direction = np.stack([-right[own][cells], down[own][cells]])
    length = np.linalg.norm(direction, axis=0)
    return Outline(np.asarray(cells), direction / np.maximum(length, 1e-9))


def surface_evidence(normals: FloatArray, useful: BoolArray, outline: Outline) -> SurfaceEvidence:
    """Return the evidence for scaled normals (3, h, w); ``useful`` (h, w) selects those that count."""
    unit = normals / np.maximum(np.linalg.norm(normals, axis=0), 1e-12)
    facing = unit[2]
    depth = np.where(facing < 0, -1, 1) * np.maximum(np.abs(facing), 1 / STEEPEST)
    slope = -unit[:2] / depth  # of the height, along x and y
    across = slope[:, 1:-1, 2:] - slope[:, 1:-1, :-2]
    upwards = slope[:, :-2, 1:-1] - slope[:, 2:, 1:-1]
    whole = cv2.erode(useful.astype(np.uint8), np.ones((3, 3), np.uint8), borderValue=0)[1:-1, 1:-1] > 0
    weight = (facing[1:-1, 1:-1] ** 2)[whole]
    size = np.sqrt((across**2 + upwards**2).sum(axis=0))[whole]
    curl = np.abs(upwards[0] - across[1])[whole]
    bent = weight * size
    total = float(bent.sum())
    # If neighbors differ more than cells farther apart, the structure is finer than the grid (a weave), and its
    # slopes on the grid are a moiré.
    middle = slope[:, 1:-1, 1:-1]
    near = np.abs(slope[:, 1:-1, 2:] - middle) + np.abs(slope[:, :-2, 1:-1] - middle)
    far = np.abs(across) + np.abs(upwards)
    flat = total <= FLAT * max(len(bent), 1) or bool(near[:, whole].sum() > far[:, whole].sum())
    along = (unit[:2, outline.cells] * outline.direction).sum(axis=0)
    enough = along.size >= 20
    return SurfaceEvidence(
        away=float((facing[useful] < 0).mean()) if useful.any() else 0.0,
        curl=float((weight * curl).sum()) / max(total, 1e-12),
        curved_share=0.0 if flat else total**2 / float((bent**2).sum()) / len(bent),
        outwards=float(along.mean()) if enough else np.nan,
        outwards_share=float((along > 0).mean()) if enough else np.nan,
    )


def useful_cells(small: Thumbnail) -> BoolArray:
    """Return the cells (h, w) of the mask that are bright enough."""
    useful = small.mask.copy()
    useful[small.mask] = bright_enough(small.values)
    return np.asarray(useful)
