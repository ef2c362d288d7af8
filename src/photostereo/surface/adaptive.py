"""Use fewer triangles where a surface is smooth: a quadtree over the pixels.

A block of 2^l × 2^l squares between pixels becomes one cell if all its pixels lie inside the mask,
no link in it is torn, and no height in it is farther than a tolerance from the mesh. Neighboring
cells differ by at most one level; a cell with a finer neighbor is a fan around its middle pixel,
any other is two triangles, so that there are no cracks. Borders and tears keep every pixel.
Vertices are pixels, with their own heights.

Measure
    The error of a block is the largest distance, along z, of its heights from the bilinear patch
    over its corners, plus a quarter of the patch's twist (by which two triangles depart from it).

References
----------
B. Von Herzen, A. H. Barr, "Accurate triangulations of deformed, intersecting surfaces", SIGGRAPH
1987, doi:10.1145/37401.37415.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, Float32, Float64
from photostereo.runtime.loops import njit
from photostereo.surface.lattice import combine_blocks, enlarge
from photostereo.surface.triangles import Faces, Squares, packed, stacked, triangles_of_squares

#: Cells have at most 2 ** TOP pixels along a side: larger ones would save few triangles.
TOP = 7
#: The search for the tolerance starts at this share of the largest error. A surface that needs less
#: keeps every pixel.
SMALLEST_SHARE = 1e-6
#: The tolerance is accurate to this factor; the number of triangles is then a few percent below the
#: limit.
TOLERANCE_STEP = 1.03


def triangulate_adaptively(
    squares: Squares, triangles: int, control: Control = SILENT
) -> tuple[Faces, NDArray[np.int64], float]:
    """Triangulate with at most about ``triangles`` triangles.

    Parameters
    ----------
    squares : Squares
        The surface.
    triangles : int
        Maximum number; borders and tears alone may need more.
    control : Control
        Can cancel the work.

    Returns
    -------
    faces, pixels : arrays
        As from :func:`.triangulate`.
    tolerance : float
        The largest error of a block that became a cell, in the units of the depth.
    """
    errors = block_errors(squares.depth, squares.whole, control)
    tolerance = 0.0
    split: list[BoolArray] = []
    fine = squares.whole | squares.partial
    if errors:
        others = int(np.count_nonzero(squares.partial))
        tolerance = find_tolerance(errors, squares.whole, others, triangles, control)
        split = balanced_splits(errors, tolerance)
        fine &= enlarge(split[0], fine.shape)
    faces = [triangles_of_squares(squares, fine)]
    for level in range(1, len(split) + 1):
        control.check()
        faces.append(_cells_of_level(squares.depth, split, level))
    return (*packed(np.concatenate(faces), squares.depth.size), tolerance)


def block_errors(depth: Float64, whole: BoolArray, control: Control = SILENT) -> list[Float32]:
    """Return the errors of the blocks of levels 1, 2, …

    They are infinite if a block is not whole, and never below those of its parts.

    Parameters
    ----------
    depth : (H, W) array
        Heights.
    whole : (H − 1, W − 1) array
        The squares with all four links.
    control : Control
        Can cancel the work.
    """
    parts = np.where(whole, np.float32(0), np.float32(np.inf))
    errors: list[Float32] = []
    for level in range(1, TOP + 1):
        side = 2**level
        if min(depth.shape) <= side:
            break
        control.check()
        parts = combine_blocks(np.maximum, parts, np.inf)
        blocks = np.full(parts.shape, np.inf, dtype=np.float32)
        patch_errors(depth, np.isfinite(parts), side, blocks)
        parts = np.maximum(parts, blocks)
        errors.append(parts)
    return errors


def find_tolerance(
    errors: list[Float32], whole: BoolArray, others: int, triangles: int, control: Control = SILENT
) -> float:
    """Find the smallest tolerance for a number of triangles.

    Parameters
    ----------
    errors : list of arrays
        From :func:`block_errors`.
    whole : (H − 1, W − 1) array
        The whole squares.
    others : int
        Number of triangles outside whole squares.
    triangles : int
        Maximum number of all triangles.
    control : Control
        Can cancel the work.

    Returns
    -------
    float
        Zero if every pixel can be kept.
    """

    def fits(tolerance: float) -> bool:
        control.check()
        split = balanced_splits(errors, tolerance)
        return others + _count_triangles(split, whole) <= triangles

    high = max(float(np.max(level, where=np.isfinite(level), initial=0.0)) for level in errors)
    if not high > 0 or fits(-1.0):
        return 0.0
    low = high * SMALLEST_SHARE
    while high > TOLERANCE_STEP * low:
        middle = float(np.sqrt(low * high))
        if fits(middle):
            high = middle
        else:
            low = middle
    return high


def _count_triangles(split: list[BoolArray], whole: BoolArray) -> int:
    """Return the number of triangles in whole squares, single or in cells."""
    count = 2 * int(np.count_nonzero(whole & enlarge(split[0], whole.shape)))
    for level in range(1, len(split) + 1):
        cells = _cells(split, level)
        cuts = np.sum(_finer_sides(split[level - 1]), axis=0, dtype=np.int8)
        # A fan has four triangles, and one more for every side that is cut in two.
        fans = cells & (cuts > 0)
        count += 2 * int(np.count_nonzero(cells)) + 2 * int(np.count_nonzero(fans))
        count += int(np.sum(cuts, where=fans, dtype=np.int64))
    return count


def balanced_splits(errors: list[Float32], tolerance: float) -> list[BoolArray]:
    """Return the blocks of each level that are split.

    The reason is their error, or a neighbor that would be two levels finer.
    """
    split = [level > tolerance for level in errors]
    for fine in range(len(split) - 1):
        needed = np.logical_or.reduce([split[fine], *_finer_sides(split[fine])])
        split[fine + 1] |= combine_blocks(np.logical_or, needed)
    return split


def _finer_sides(split: BoolArray) -> list[BoolArray]:
    """Return whether the neighbors north, south, west and east of each block are split."""
    framed = np.pad(split, 1)
    return [framed[:-2, 1:-1], framed[2:, 1:-1], framed[1:-1, :-2], framed[1:-1, 2:]]


def _cells(split: list[BoolArray], level: int) -> BoolArray:
    """Return the blocks of a level that are cells.

    They are not split themselves, but inside a split block.
    """
    blocks = ~split[level - 1]
    if level < len(split):
        blocks &= enlarge(split[level], blocks.shape)
    return blocks


def _cells_of_level(depth: Float64, split: list[BoolArray], level: int) -> Faces:
    """Return the triangles of the cells with 2 ** level pixels along a side."""
    cells = _cells(split, level)
    rows, cols = np.nonzero(cells)
    north, south, west, east = (finer[cells] for finer in _finer_sides(split[level - 1]))
    side = 2**level
    width = depth.shape[1]
    # Corners a b over c d; across and drop are half a side.
    a = (rows * side) * width + cols * side
    b = a + side
    c = a + side * width
    d = c + side
    across = side // 2
    drop = across * width
    middle = a + drop + across
    fan = north | south | west | east
    z = depth.ravel()
    rises = np.abs(z[c] - z[b]) <= np.abs(z[a] - z[d])
    rising = ~fan & rises
    falling = ~fan & ~rises
    # Rows run down, y runs up: a, c, b turns counter-clockwise as seen from the camera.
    faces = [
        stacked(rising, a, c, b),
        stacked(rising, d, b, c),
        stacked(falling, b, a, d),
        stacked(falling, c, d, a),
    ]
    for cut, first, between, last in (
        (west, a, a + drop, c),
        (south, c, c + across, d),
        (east, d, b + drop, b),
        (north, b, a + across, a),
    ):
        faces += [
            stacked(fan & ~cut, middle, first, last),
            stacked(fan & cut, middle, first, between),
            stacked(fan & cut, middle, between, last),
        ]
    return np.concatenate(faces)


@njit(cache=True)  # type: ignore[untyped-decorator]
def patch_errors(depth: Float64, usable: BoolArray, side: int, errors: Float32) -> None:
    """Write the errors of the usable blocks of ``side`` pixels.

    They are the distances from the patches over their corners.
    """
    for block_row in range(errors.shape[0]):
        for block_col in range(errors.shape[1]):
            if not usable[block_row, block_col]:
                continue
            top = block_row * side
            west = block_col * side
            a = depth[top, west]
            b = depth[top, west + side]
            c = depth[top + side, west]
            d = depth[top + side, west + side]
            worst = 0.0
            for row in range(side + 1):
                edge = a + (c - a) * row / side
                slope = (b + (d - b) * row / side - edge) / side
                for col in range(side + 1):
                    worst = max(worst, abs(depth[top + row, west + col] - edge - slope * col))
            errors[block_row, block_col] = worst + 0.25 * abs(a + d - b - c)
