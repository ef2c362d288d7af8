"""Triangles between neighboring mask pixels: none across a tear, none outside the mask."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray
from photostereo.surface.integrated import Surface

#: Indices of pixels or vertices: no picture has 2³¹ of them.
Faces = NDArray[np.int32]


class Squares:
    """Squares between four neighboring pixels of a surface, (H − 1, W − 1), and their intact links.

    A ``whole`` square has all four links and gives two triangles; in a ``partial`` one at least two
    meet in a corner, and it gives one. ``right`` and ``down`` (H, W) are the intact links.
    """

    def __init__(self, surface: Surface, *, across_tears: bool = False) -> None:
        mask = surface.mask
        self.depth = surface.depth
        self.right = np.zeros_like(mask)
        self.down = np.zeros_like(mask)
        self.right[:, :-1] = mask[:, :-1] & mask[:, 1:]
        self.down[:-1] = mask[:-1] & mask[1:]
        if not across_tears:
            self.right &= ~surface.torn_right
            self.down &= ~surface.torn_down
        north = self.right[:-1, :-1]
        south = self.right[1:, :-1]
        west = self.down[:-1, :-1]
        east = self.down[:-1, 1:]
        self.whole = north & south & west & east
        self.partial = (north | south) & (west | east) & ~self.whole

    @property
    def count(self) -> int:
        """Number of triangles of all squares."""
        return 2 * int(np.count_nonzero(self.whole)) + int(np.count_nonzero(self.partial))

    def near_partial(self) -> BoolArray:
        """Return the pixels (H, W) where triangles may touch only in a point.

        They are the corners of squares that are not whole.
        """
        framed = np.pad(~self.whole, 1)
        return framed[:-1, :-1] | framed[:-1, 1:] | framed[1:, :-1] | framed[1:, 1:]


def triangles_of_squares(squares: Squares, chosen: BoolArray) -> Faces:
    """Return triangles (F, 3) of the chosen squares (H − 1, W − 1).

    They are counter-clockwise as seen from the camera.

    Corners are pixel numbers, row · W + col.

    Between four neighboring pixels there are four right-angled triangles; each has two links as
    legs and is possible if both are intact. If all four are intact, two triangles share the
    diagonal that bends less (the one whose ends differ less in height). With one link torn, at the
    end of a tear, two triangles would overlap: the one with the shorter diagonal is kept.
    """
    width = squares.depth.shape[1]
    rows, cols = np.nonzero(chosen)
    # Corners a b over c d.
    a = rows.astype(np.int32) * np.int32(width) + cols.astype(np.int32)
    b = a + 1
    c = a + width
    d = c + 1
    right = squares.right.ravel()
    down = squares.down.ravel()
    north = right[a]
    south = right[c]
    west = down[a]
    east = down[b]
    z = squares.depth.ravel()
    with np.errstate(invalid="ignore"):
        # Also if a corner is outside: then the other diagonal is.
        rises = ~(np.abs(z[a] - z[d]) < np.abs(z[c] - z[b]))
    # Two links meet in one corner only. Three or four meet in several, and the diagonal decides.
    single = north.astype(np.int8) + south + west + east == 2
    rising = rises | single
    falling = ~rises | single
    # The right angle is at the first corner.
    return np.concatenate(
        [
            stacked(north & west & rising, a, c, b),
            stacked(north & east & falling, b, a, d),
            stacked(south & west & falling, c, d, a),
            stacked(south & east & rising, d, b, c),
        ]
    )


def stacked(chosen: BoolArray, *corners: NDArray[np.integer]) -> Faces:
    """Return the chosen triangles, one row each, from their three corners."""
    return np.stack([corner[chosen] for corner in corners], axis=1, dtype=np.int32)


def packed(faces: Faces, size: int) -> tuple[Faces, NDArray[np.int64]]:
    """Renumber the corners of triangles from 0 without gaps.

    Parameters
    ----------
    faces : (F, 3) array
        Triangles, as numbers of pixels.
    size : int
        Number of pixels of the picture.

    Returns
    -------
    faces : (F, 3) array
        Triangles, as indices into ``pixels``.
    pixels : (V,) array
        Numbers of the pixels that are corners, in row-major order.
    """
    is_corner = np.zeros(size, dtype=bool)
    is_corner[faces] = True
    number = np.cumsum(is_corner, dtype=np.int32) - np.int32(1)
    return number[faces], np.flatnonzero(is_corner)


def triangulate(squares: Squares) -> tuple[Faces, NDArray[np.int64]]:
    """Triangulate every pixel.

    Returns
    -------
    faces : (F, 3) array
        Triangles, counter-clockwise as seen from the camera, as indices into ``pixels``.
    pixels : (V,) array
        The corners, row · W + col, in row-major order.
    """
    faces = triangles_of_squares(squares, squares.whole | squares.partial)
    return packed(faces, squares.depth.size)


def split_pinched(faces: Faces, suspect: BoolArray) -> tuple[Faces, NDArray[np.int64]]:
    """Give every fan of triangles around a vertex its own vertex.

    If two fans touch only in one vertex, the surface is not a manifold there, and its boundary,
    which the walls of a solid follow, would cross itself.

    Parameters
    ----------
    faces : (F, 3) array
        Triangles.
    suspect : (V,) array
        Whether a vertex may have several fans; the others are skipped, to save time.

    Returns
    -------
    faces : (F, 3) array
        The same triangles, some with new vertices.
    origin : (V',) array
        The old vertex of each vertex.
    """
    count = suspect.size
    chosen = np.flatnonzero(suspect[faces].any(axis=1))
    if chosen.size == 0:
        return faces, np.arange(count)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    corner = faces[chosen].ravel().astype(np.int64)
    slot = np.arange(corner.size)
    following = slot - slot % 3 + (slot + 1) % 3
    end = corner[following]
    key = np.minimum(corner, end) * count + np.maximum(corner, end)
    order = np.argsort(key, kind="stable")
    twin = key[order][1:] == key[order][:-1]
    one = order[:-1][twin]
    two = order[1:][twin]
    # Corners of one vertex in two triangles with a common edge belong to one fan. Their edges have
    # opposite directions.
    rows = np.concatenate([one, following[one]])
    cols = np.concatenate([following[two], two])
    graph = coo_array(
        (np.ones(rows.size, dtype=np.int8), (rows, cols)), shape=(slot.size, slot.size)
    )
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
    """Return directed edges (E, 2) that belong to only one triangle."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]).astype(np.int64)
    key = edges.min(axis=1) * count + edges.max(axis=1)
    _, first, copies = np.unique(key, return_index=True, return_counts=True)
    return np.asarray(edges[first[copies == 1]])
