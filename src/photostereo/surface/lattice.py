"""The weighted least squares over the links of a pixel grid, as pictures: what :mod:`.multigrid` solves.

    minimize_z   Σ_links  w (z_b − z_a − g)²   +   Σ_pixels  s (z − t)²

as in :mod:`~photostereo.surface.links`, but with every number at its place in the picture: ``right[r, c]`` is
the weight of the link from pixel (r, c) to its right neighbor, ``down[r, c]`` of that to the one below, zero
where there is no link. No index, no matrix: two numbers a pixel. The targets g and t appear in the right-hand
side only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True)
class Lattice:
    """Weights of the links to the right and downwards, and pulls (None where nothing pulls); (H, W) each."""

    right: Float64
    down: Float64
    pull: Float64 | None = None

    def apply(self, values: Float64, out: Float64, products: Float64 | None = None) -> Float64:
        """``out = A values``; ``products`` (H,) receives the sums of ``values · out`` by row."""
        from photostereo.surface.lattice_kernels import apply_laplacian

        pull = np.zeros((0, 0)) if self.pull is None else self.pull
        sums = np.empty(values.shape[0]) if products is None else products
        apply_laplacian(self.right, self.down, pull, values, out, sums)
        return out


def place_links(mask: Bool, weight: Float64, goal: Float64) -> tuple[Float64, Float64, Float64]:
    """Packed link weights and targets (see :class:`.links.Links`) as pictures: right, down, right-hand side."""
    right, down = np.zeros(mask.shape), np.zeros(mask.shape)
    side = np.zeros(mask.shape)
    begin = 0
    for weights, ends, first, second in (
        (right[:, :-1], mask[:, :-1] & mask[:, 1:], np.s_[:, :-1], np.s_[:, 1:]),
        (down[:-1], mask[:-1] & mask[1:], np.s_[:-1], np.s_[1:]),
    ):
        count = int(np.count_nonzero(ends))
        weights[ends] = weight[begin : begin + count]
        side[second][ends] += weights[ends] * goal[begin : begin + count]
        side[first][ends] -= weights[ends] * goal[begin : begin + count]
        begin += count
    return right, down, side


def place_pixels(mask: Bool, packed: Float64) -> Float64:
    """Packed mask pixels as a picture, zero outside."""
    picture = np.zeros(mask.shape)
    picture[mask] = packed
    return picture
