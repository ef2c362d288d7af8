"""Triangles between neighboring mask pixels: none across a tear, none outside the mask."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from photostereo.surface.integrated import Surface

Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]
#: Numbers of pixels or vertices: no picture has 2³¹ of them.
Faces = NDArray[np.int32]


def held_links(surface: Surface, *, across_tears: bool) -> tuple[Bool, Bool]:
    """Which links to the right and downward neighbors hold."""
    mask = surface.mask
    right = np.zeros_like(mask)
    down = np.zeros_like(mask)
    right[:, :-1] = mask[:, :-1] & mask[:, 1:]
    down[:-1] = mask[:-1] & mask[1:]
    if not across_tears:
        right &= ~surface.torn_right
        down &= ~surface.torn_down
    return right, down


def whole_and_partial(right: Bool, down: Bool) -> tuple[Bool, Bool]:
    """Squares between four pixels (H − 1, W − 1): those with all links, and those with one triangle.

    A whole square makes two triangles. A square with two or three links makes one if two of them meet in a corner.
    """
    top, bottom, left, east = right[:-1, :-1], right[1:, :-1], down[:-1, :-1], down[:-1, 1:]
    whole = top & bottom & left & east
    return whole, (top | bottom) & (left | east) & ~whole


def triangles_of_squares(depth: Float64, right: Bool, down: Bool, squares: Bool) -> Faces:
    """Triangles (F, 3) over pixel numbers (row · W + col), counter-clockwise as seen from the camera.

    Between four neighboring pixels there are four right-angled triangles; each has two links as legs and is possible
    if both hold. If all four links hold, two triangles share the diagonal that bends less (the one whose ends differ
    less in height). With one link torn, at the end of a tear, two triangles would overlap: the one with the shorter
    diagonal is kept.
    """
    width = depth.shape[1]
    rows, cols = (part.astype(np.int32) for part in np.nonzero(squares))
    a = rows * np.int32(width) + cols  # corners a b over c d
    b, c, d = a + 1, a + width, a + width + 1
    held_right, held_down = right.ravel(), down.ravel()
    top, bottom, left, east = held_right[a], held_right[c], held_down[a], held_down[b]
    z = depth.ravel()
    with np.errstate(invalid="ignore"):
        rises = ~(
            np.abs(z[a] - z[d]) < np.abs(z[c] - z[b])
        )  # also if a corner is outside: then the other one is
    # Two links meet in one corner only. Three or four meet in several, and the diagonal decides.
    single = top.astype(np.int8) + bottom + left + east == 2
    rising, falling = rises | single, ~rises | single
    found = (
        (top & left & rising, a, c, b),  # the right angle is at the first corner
        (top & east & falling, b, a, d),
        (bottom & left & falling, c, d, a),
        (bottom & east & rising, d, b, c),
    )
    return np.concatenate([stacked(chosen, *corners) for chosen, *corners in found])


def stacked(chosen: Bool, *corners: NDArray[np.integer]) -> Faces:
    """The chosen triangles, one row each."""
    return np.stack([corner[chosen] for corner in corners], axis=1, dtype=np.int32)


def packed(faces: Faces, size: int) -> tuple[Faces, NDArray[np.int64]]:
    """Triangles over the pixels that they use, and those pixels in row-major order."""
    used = np.zeros(size, dtype=bool)
    used[faces] = True
    number = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return number[faces], np.flatnonzero(used)


def triangulate(surface: Surface, *, across_tears: bool = False) -> tuple[Faces, NDArray[np.int64]]:
    """The triangles of every pixel: faces (F, 3) as indices into the pixels (V,) that are used (row · W + col, in
    row-major order).
    """
    right, down = held_links(surface, across_tears=across_tears)
    whole, partial = whole_and_partial(right, down)
    return packed(triangles_of_squares(surface.depth, right, down, whole | partial), surface.mask.size)


def near_partial_squares(surface: Surface, *, across_tears: bool) -> Bool:
    """Pixels (H, W) where triangles may touch in a point only: the corners of squares that are not whole."""
    partial = ~whole_and_partial(*held_links(surface, across_tears=across_tears))[0]
    near = np.zeros_like(surface.mask)
    for rows in (np.s_[:-1], np.s_[1:]):
        for cols in (np.s_[:-1], np.s_[1:]):
            near[rows, cols] |= partial
    return near


def split_pinched(faces: Faces, suspect: Bool) -> tuple[Faces, NDArray[np.int64]]:
    """Give every fan of triangles around a vertex a vertex of its own; the faces, and the old vertex of each new
    one.

    If two fans touch in one vertex only, the surface is not a manifold there, and its boundary, followed by the
    walls of a solid, would cross itself. Vertices that are not ``suspect`` are left alone, which saves most of the
    time.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = suspect.size
    chosen = np.flatnonzero(suspect[faces].any(axis=1))
    if chosen.size == 0:
        return faces, np.arange(count)
    corner = faces[chosen].ravel().astype(np.int64)
    slot = np.arange(corner.size)
    following = slot - slot % 3 + (slot + 1) % 3
    end = corner[following]
    key = np.minimum(corner, end) * count + np.maximum(corner, end)
    order = np.argsort(key, kind="stable")
    twin = key[order][1:] == key[order][:-1]
    one, two = order[:-1][twin], order[1:][twin]
    # Corners of one vertex in two triangles with a common edge belong to one fan. Edges run opposite ways.
    rows = np.concatenate([one, following[one]])
    cols = np.concatenate([following[two], two])
    graph = coo_array((np.ones(rows.size, dtype=np.int8), (rows, cols)), shape=(slot.size, slot.size))
    fan = connected_components(graph, directed=False)[1]
    # The first fan of a vertex keeps it, every other one gets a copy.
    _, first, fan = np.unique(fan, return_index=True, return_inverse=True)
    vertex = corner[first]
    order = np.lexsort((first, vertex))
    again = np.zeros(vertex.size, dtype=bool)
    again[order[1:]] = vertex[order][1:] == vertex[order][:-1]
    again &= suspect[vertex]
    number = vertex.copy()
    number[again] = count + np.arange(np.count_nonzero(again))
    result = faces.copy()
    result[chosen] = number[fan].reshape(-1, 3)
    return result, np.concatenate([np.arange(count), vertex[again]])


def boundary_edges(faces: Faces, count: int) -> NDArray[np.int64]:
    """Directed edges (E, 2) that belong to one triangle only."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]).astype(np.int64)
    key = edges.min(axis=1) * count + edges.max(axis=1)
    _, first, copies = np.unique(key, return_index=True, return_counts=True)
    return np.asarray(edges[first[copies == 1]])
