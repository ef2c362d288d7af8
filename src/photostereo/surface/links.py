"""Links between neighboring mask pixels, and the weighted least squares over them.

Every method of this folder ends in the same problem. With one difference ``z_b − z_a`` per link,

    minimize_z   Σ_links  w (z_b − z_a − g)²   +   Σ_pixels  s (z − t)² ,

``w`` the link's weight, ``g`` its target, and a pull ``s`` towards ``t`` where depths are known. Its normal
equations are a weighted graph Laplacian with five entries a row: memory is linear in pixels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Int32 = NDArray[np.int32]
Bool = NDArray[np.bool_]


@dataclass(frozen=True)
class Links:
    """The links of a mask; pixels are numbered in row-major order.

    Attributes
    ----------
    size : int
        How many pixels.
    first, second : (m,) int32
        The two ends of each link: first those along columns (``second`` is the right neighbor), then those
        along rows (``second`` is below).
    along_cols : int
        How many links of the first kind.
    """

    size: int
    first: Int32
    second: Int32
    along_cols: int

    def axis(self, which: int) -> slice:
        """The slice of links along columns (0) or rows (1)."""
        return slice(0, self.along_cols) if which == 0 else slice(self.along_cols, None)


def find_links(mask: Bool) -> Links:
    """All pairs of horizontally and vertically adjacent mask pixels.

    >>> links = find_links(np.array([[True, True], [False, True]]))
    >>> links.first.tolist(), links.second.tolist(), links.along_cols
    ([0, 1], [1, 2], 1)
    """
    number = np.full(mask.shape, -1, dtype=np.int32)
    number[mask] = np.arange(np.count_nonzero(mask), dtype=np.int32)
    right = mask[:, :-1] & mask[:, 1:]
    down = mask[:-1] & mask[1:]
    first = np.concatenate([number[:, :-1][right], number[:-1][down]])
    second = np.concatenate([number[:, 1:][right], number[1:][down]])
    return Links(int(np.count_nonzero(mask)), first, second, int(np.count_nonzero(right)))


class Laplacian:
    """The normal equations of a link problem: one sparsity, values that can be set many times."""

    def __init__(self, links: Links) -> None:
        from scipy.sparse import csr_array

        n, m, split = links.size, links.first.size, links.along_cols
        self.links = links
        left_of, above = links.first[:split], links.first[split:]
        right_of, below = links.second[:split], links.second[split:]
        # Each row reads: above, left, itself, right, below; sorted because pixels are in row-major order.
        has = np.zeros((n, 5), dtype=np.int32)
        has[below, 0] = has[right_of, 1] = has[:, 2] = has[left_of, 3] = has[above, 4] = 1
        place = np.cumsum(has.ravel(), dtype=np.int32).reshape(n, 5) - 1
        indptr = np.concatenate([[0], place[:, 4] + 1]).astype(np.int32)
        indices = np.empty(indptr[-1], dtype=np.int32)
        self._diagonal = np.ascontiguousarray(place[:, 2])
        self._upper = np.concatenate([place[left_of, 3], place[above, 4]])
        self._lower = np.concatenate([place[right_of, 1], place[below, 0]])
        indices[self._diagonal] = np.arange(n, dtype=np.int32)
        indices[self._upper] = links.second
        indices[self._lower] = links.first
        self.matrix = csr_array((np.zeros(indices.size), indices, indptr), shape=(n, n))
        assert indices.size == n + 2 * m

    def set_weights(self, weight: Float64, pull: Float64 | None = None) -> None:
        """Write the values of the matrix for these link weights and pulls."""
        n = self.links.size
        degree = np.zeros(n) if pull is None else pull.copy()
        degree += np.bincount(self.links.first, weight, n)
        degree += np.bincount(self.links.second, weight, n)
        data = self.matrix.data
        data[self._upper] = -weight
        data[self._lower] = -weight
        data[self._diagonal] = degree

    def right_hand_side(
        self, weight: Float64, goal: Float64, pull: Float64 | None = None, target: Float64 | None = None
    ) -> Float64:
        """The right-hand side for link targets ``goal`` and pulls towards ``target``."""
        n, flow = self.links.size, weight * goal
        side = np.zeros(n) if pull is None or target is None else pull * target
        side += np.bincount(self.links.second, flow, n)
        side -= np.bincount(self.links.first, flow, n)
        return side
