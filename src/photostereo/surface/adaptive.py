"""Fewer triangles where a surface is smooth: a quadtree over the pixels, coarse where it bends little.

A block of 2^l × 2^l squares between pixels becomes one cell where all its pixels lie inside the mask, no link
in it is torn, and no height in it is farther than a tolerance from the mesh. Neighboring cells differ by at
most one level; a cell with a finer neighbor is a fan around its middle pixel, any other two triangles, so
that there are no cracks. Borders and tears keep every pixel. Vertices are pixels, with their own heights.

Measure
    The error of a block is the largest distance, along z, of its heights from the bilinear patch over its
    corners, plus a quarter of the patch's twist (by which two triangles depart from it).

References
----------
B. Von Herzen, A. H. Barr, "Accurate triangulations of deformed, intersecting surfaces", SIGGRAPH 1987,
doi:10.1145/37401.37415.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from photostereo.surface.integrated import Surface
from photostereo.surface.triangles import Faces, held_links, triangles_of_squares, triangulate

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]
IntArray = NDArray[np.int64]

#: Cells have at most 2 ** TOP pixels along a side.
TOP = 7
#: The tolerance is sought above this share of the largest error.
SMALLEST_SHARE = 1e-6


def triangulate_adaptively(
    surface: Surface, triangles: int, *, across_tears: bool = False
) -> tuple[Faces, IntArray, float]:
    """At most about ``triangles`` triangles; borders and tears alone may need more.

    Returns
    -------
    faces : (F, 3) int
        Indices into ``pixels``, counter-clockwise seen from the camera.
    pixels : (V,) int
        The pixels that are used (row · W + col), in row-major order.
    tolerance : float
        The largest error of a block that became a cell, in the units of the depth.
    """
    right, down = held_links(surface, across_tears=across_tears)
    whole = right[:-1, :-1] & right[1:, :-1] & down[:-1, :-1] & down[:-1, 1:]
    errors = block_errors(surface.depth, whole)
    if not errors:
        return (*triangulate(surface, across_tears=across_tears), 0.0)
    partial = ~whole & (right[:-1, :-1] | right[1:, :-1]) & (down[:-1, :-1] | down[:-1, 1:])
    tolerance = find_tolerance(errors, whole, int(np.count_nonzero(partial)), triangles)
    split = balanced_splits(errors, tolerance)
    parts = [triangles_of_squares(surface.depth, right, down, _squares_of(split[0], whole.shape))]
    for level in range(1, len(split) + 1):
        parts.append(_cells_of_level(surface, split, level))
    faces = np.concatenate(parts)
    pixels, packed = np.unique(faces, return_inverse=True)
    return packed.reshape(-1, 3).astype(np.int64), pixels, tolerance


def block_errors(depth: Float64, whole: Bool) -> list[Float32]:
    """The error of the blocks of levels 1, 2, …: infinite where a block is not whole, never below its parts'."""
    from photostereo.surface.adaptive_kernel import patch_errors

    parts = np.where(whole, np.float32(0), np.float32(np.inf))
    errors: list[Float32] = []
    for level in range(1, TOP + 1):
        side = 2**level
        if min(depth.shape) <= side:
            break
        parts = _largest_of_four(parts)
        here = np.full(parts.shape, np.inf, dtype=np.float32)
        patch_errors(depth, np.isfinite(parts), side, here)
        parts = np.maximum(parts, here)
        errors.append(parts)
    return errors


def patch_error_readable(block: Float64) -> float:
    """The error of one block, its (s + 1, s + 1) heights given: the reference of the kernel.

    >>> patch_error_readable(np.array([[0.0, 1.0, 2.0], [0.0, 1.5, 2.0], [0.0, 1.0, 2.0]]))
    0.5
    """
    share = np.linspace(0.0, 1.0, len(block))
    a, b, c, d = block[0, 0], block[0, -1], block[-1, 0], block[-1, -1]
    above, below = a + (b - a) * share, c + (d - c) * share
    patch = above + (below - above) * share[:, None]
    return float(np.abs(block - patch).max() + 0.25 * abs(a + d - b - c))


def find_tolerance(errors: list[Float32], whole: Bool, others: int, triangles: int) -> float:
    """The smallest tolerance (to 1 %) that leaves at most so many triangles, ``others`` of them outside whole
    squares; zero if every pixel may stay."""

    def fits(tolerance: float) -> bool:
        split = balanced_splits(errors, tolerance)
        count = others + 2 * int(np.count_nonzero(whole & _squares_of(split[0], whole.shape)))
        for level in range(1, len(split) + 1):
            cuts = np.sum(_finer_sides(split, level), axis=0)
            count += 2 * int(np.count_nonzero(cuts == 0)) + int((4 + cuts[cuts > 0]).sum())
        return count <= triangles

    finite = [float(level[np.isfinite(level)].max(initial=0.0)) for level in errors]
    high = max(finite, default=0.0)
    if not high > 0 or fits(-1.0):
        return 0.0
    low = high * SMALLEST_SHARE
    while high > 1.01 * low:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def balanced_splits(errors: list[Float32], tolerance: float) -> list[Bool]:
    """For levels 1, 2, …, which blocks are split: those with a larger error, and those that would have a
    neighbor two levels finer."""
    split = [level > tolerance for level in errors]
    for fine in range(len(split) - 1):
        needed = split[fine].copy()
        # A split block needs neighbors of its own size or finer: whatever holds them is split too.
        needed[1:] |= split[fine][:-1]
        needed[:-1] |= split[fine][1:]
        needed[:, 1:] |= split[fine][:, :-1]
        needed[:, :-1] |= split[fine][:, 1:]
        split[fine + 1] |= _any_of_four(needed)
    return split


def _squares_of(split: Bool, shape: tuple[int, ...]) -> Bool:
    """The squares whose block of level 1 is split."""
    return np.repeat(np.repeat(split, 2, axis=0), 2, axis=1)[: shape[0], : shape[1]]


def _cells(split: list[Bool], level: int) -> tuple[IntArray, IntArray]:
    """Rows and columns, in blocks, of the cells of a level: not split, but what holds them is."""
    here = split[level - 1]
    exists = np.ones_like(here) if level == len(split) else _squares_of(split[level], here.shape)
    rows, cols = np.nonzero(exists & ~here)
    return rows.astype(np.int64), cols.astype(np.int64)


def _finer_sides(split: list[Bool], level: int) -> NDArray[np.int8]:
    """(4, cells): whether the neighbors in the north, south, west and east of each cell are finer."""
    rows, cols = _cells(split, level)
    finer = np.pad(split[level - 1], 1).astype(np.int8)
    return np.stack(
        [finer[rows, cols + 1], finer[rows + 2, cols + 1], finer[rows + 1, cols], finer[rows + 1, cols + 2]]
    )


def _cells_of_level(surface: Surface, split: list[Bool], level: int) -> Faces:
    """Triangles of the cells with 2 ** level pixels along a side."""
    rows, cols = _cells(split, level)
    north, south, west, east = _finer_sides(split, level).astype(bool)
    side, width = 2**level, surface.mask.shape[1]
    a = (rows * side) * width + cols * side
    b, c, d = a + side, a + side * width, a + side * width + side
    half, drop = side // 2, (side // 2) * width
    middle = a + drop + half
    plain = ~(north | south | west | east)
    z = surface.depth.ravel()
    rises = plain & (np.abs(z[c] - z[b]) <= np.abs(z[a] - z[d]))
    falls = plain & ~rises
    fan = ~plain
    # Rows run down, y runs up: a, c, b turns counter-clockwise for who looks along −z.
    found = [_stack(rises, a, c, b), _stack(rises, d, b, c), _stack(falls, b, a, d), _stack(falls, c, d, a)]
    for cut, first, between, last in (
        (west, a, a + drop, c),
        (south, c, c + half, d),
        (east, d, b + drop, b),
        (north, b, a + half, a),
    ):
        found += [
            _stack(fan & ~cut, middle, first, last),
            _stack(fan & cut, middle, first, between),
            _stack(fan & cut, middle, between, last),
        ]
    return np.concatenate(found)


def _stack(chosen: Bool, *corners: IntArray) -> Faces:
    return np.stack([corner[chosen] for corner in corners], axis=1)


def _even_blocks(picture: NDArray[np.generic], fill: object) -> NDArray[np.generic]:
    height, width = picture.shape
    padded = np.pad(picture, ((0, height % 2), (0, width % 2)), constant_values=fill)  # type: ignore[call-overload]
    return np.asarray(padded)


def _largest_of_four(picture: Float32) -> Float32:
    """The largest of each block of 2 × 2; infinite where a part lies outside."""
    p = np.asarray(_even_blocks(picture, np.inf), dtype=np.float32)
    return np.asarray(
        np.maximum(np.maximum(p[::2, ::2], p[1::2, ::2]), np.maximum(p[::2, 1::2], p[1::2, 1::2]))
    )


def _any_of_four(picture: Bool) -> Bool:
    p = np.asarray(_even_blocks(picture, False), dtype=bool)
    return np.asarray(p[::2, ::2] | p[1::2, ::2] | p[::2, 1::2] | p[1::2, 1::2])
