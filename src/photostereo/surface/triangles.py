"""Triangles between neighboring mask pixels: none across a tear, none outside the mask."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.surface.integrated import Surface

Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]
Faces = NDArray[np.int64]


def triangulate(surface: Surface, *, across_tears: bool = False) -> tuple[Faces, NDArray[np.int64]]:
    """Triangles over pixel numbers (row · W + col), counter-clockwise seen from the camera.

    Between four neighboring pixels there are four right-angled triangles; each has two links as legs and
    may only be used if both hold. If all four links hold, two triangles share the diagonal that bends less
    (the one whose ends differ less in height). With one link torn, the end of a tear, two triangles would
    overlap: the one with the shorter diagonal is kept.

    Returns
    -------
    faces : (F, 3) int
        Indices into ``pixels``.
    pixels : (V,) int
        The pixels that are used, in row-major order.
    """
    right, down = held_links(surface, across_tears=across_tears)
    faces = triangles_of_squares(surface.depth, right, down)
    pixels, packed = np.unique(faces, return_inverse=True)
    return packed.reshape(-1, 3).astype(np.int64), pixels


def held_links(surface: Surface, *, across_tears: bool) -> tuple[Bool, Bool]:
    """Which links to the right and downwards hold."""
    mask = surface.mask
    right = np.zeros_like(mask)
    down = np.zeros_like(mask)
    right[:, :-1] = mask[:, :-1] & mask[:, 1:]
    down[:-1] = mask[:-1] & mask[1:]
    if not across_tears:
        right &= ~surface.torn_right
        down &= ~surface.torn_down
    return right, down


def triangles_of_squares(depth: Float64, right: Bool, down: Bool, squares: Bool | None = None) -> Faces:
    """Triangles over pixel numbers of the squares between four pixels, or of those chosen (H − 1, W − 1)."""
    height, width = depth.shape
    top, bottom = right[:-1, :-1], right[1:, :-1]
    left, east = down[:-1, :-1], down[:-1, 1:]

    # Corners a b over c d. A triangle is named after the corner with the right angle.
    links = top.astype(np.int8) + bottom + left + east
    with np.errstate(invalid="ignore"):
        rising = np.abs(depth[1:, :-1] - depth[:-1, 1:])  # c to b
        falling = np.abs(depth[:-1, :-1] - depth[1:, 1:])  # a to d
        use_rising = ~(falling < rising)  # also where a corner is missing: then the other one is
    whole = links == 4
    corners = {
        "a": top & left,
        "b": top & east,
        "c": bottom & left,
        "d": bottom & east,
    }
    chosen: dict[str, Bool] = {}
    for name, possible in corners.items():
        rises = name in "ad"  # the hypotenuse of a and of d is c–b
        preferred = use_rising if rises else ~use_rising
        # Two links meet in one corner only; three meet in two corners whose triangles overlap.
        chosen[name] = possible & np.where(whole | (links == 3), preferred, True)
        if squares is not None:
            chosen[name] &= squares

    number = np.arange(height * width).reshape(height, width)
    a, b, c, d = number[:-1, :-1], number[:-1, 1:], number[1:, :-1], number[1:, 1:]
    # Rows run down, y runs up: a, c, b turns counter-clockwise for who looks along −z.
    order = {"a": (a, c, b), "b": (b, a, d), "c": (c, d, a), "d": (d, b, c)}
    return np.concatenate(
        [np.stack([vertex[chosen[name]] for vertex in order[name]], axis=1) for name in "abcd"]
    )


def split_pinched(faces: Faces, count: int) -> tuple[Faces, NDArray[np.int64]]:
    """Give every fan of triangles around a vertex a vertex of its own.

    Where two fans touch in one vertex only, the surface is not a manifold there, and its boundary, followed
    by the walls of a solid, would cross itself.

    Returns
    -------
    faces : (F, 3) int
        The same triangles over new vertices.
    origin : (V',) int
        The old vertex of each new one.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    triangles = len(faces)
    start = faces[:, [0, 1, 2]].ravel()
    end = faces[:, [1, 2, 0]].ravel()
    slot = np.arange(3 * triangles)
    next_slot = slot - slot % 3 + (slot + 1) % 3
    key = np.minimum(start, end) * count + np.maximum(start, end)
    order = np.argsort(key, kind="stable")
    twin = key[order][1:] == key[order][:-1]
    one, two = order[:-1][twin], order[1:][twin]

    # Corners of one vertex in two triangles with a common edge belong to one fan. Edges run opposite ways.
    ends: list[tuple[NDArray[Any], NDArray[Any]]] = [(one, next_slot[two]), (next_slot[one], two)]
    rows = np.concatenate([e[0] for e in ends])
    cols = np.concatenate([e[1] for e in ends])
    graph = coo_array((np.ones(rows.size, dtype=np.int8), (rows, cols)), shape=(slot.size, slot.size))
    fans, fan = connected_components(graph, directed=False)
    origin = np.zeros(fans, dtype=np.int64)
    origin[fan] = faces.ravel()
    return fan.reshape(-1, 3).astype(np.int64), origin


def boundary_edges(faces: Faces, count: int) -> NDArray[np.int64]:
    """Directed edges (E, 2) that belong to one triangle only."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    key = edges.min(axis=1) * count + edges.max(axis=1)
    _, first, copies = np.unique(key, return_index=True, return_counts=True)
    return np.asarray(edges[first[copies == 1]])
