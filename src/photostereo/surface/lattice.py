"""Weighted least squares over the links of a pixel grid.

Every method in this package leads to the same problem. With one difference ``z_b − z_a`` per link
of neighboring pixels,

    minimize_z   Σ_links  w (z_b − z_a − g)²   +   Σ_pixels  s (z − t)² ,

where ``w`` is the link's weight, ``g`` its target, and ``s`` a pull toward ``t`` if depths are
known. Weights are stored as pictures: ``right[r, c]`` is the weight of the link from pixel (r, c)
to its right neighbor, ``down[r, c]`` of the link to the one below, zero if there is no link. This
needs two numbers per pixel, and no index or matrix. The targets g and t appear in the right-hand
side only.

The matrix of the normal equations is ``A = D − N``, where ``N`` is the weighted sum over the four
neighbors and ``D`` the diagonal (the weights of a pixel's links and its pull). In the compiled
loops, each row writes only its own results, so a result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import Float32, Float64
from photostereo.runtime.loops import njit, prange

#: Two parts of a picture: the start pixels and the end pixels of links.
Ends = tuple[tuple[slice, slice], tuple[slice, slice]]
#: Rows converted to equations at a time: small enough for the processor's cache.
STRIP = 32
#: No pulls: an argument of the compiled loops.
NO_PULL = np.zeros((0, 0), dtype=np.float32)
#: Share of the diagonal added before a factorization, so that parts without a pull, whose constants
#: are arbitrary, are not singular. Not tuned.
TOUCH = 1e-6


def strips(height: int) -> Iterator[tuple[slice, tuple[Ends, Ends]]]:
    """Yield runs of rows, each with one more row below, and the ends of its links.

    The ends, of the links to the right and of those down, are relative to the run. Every link of
    the picture belongs to one run.
    """
    for first in range(0, height, STRIP):
        count = min(STRIP, height - first)
        rows = slice(first, min(first + count + 1, height))
        right = (np.s_[:count, :-1], np.s_[:count, 1:])
        down = (np.s_[:-1, :], np.s_[1:, :])
        yield rows, (right, down)


@dataclass(frozen=True)
class Lattice:
    """Weights of links and pulls.

    Single precision suffices: the same rounded weight is used in the matrix and in the right-hand
    side.
    """

    right: Float32  #: (H, W), of the links to the right
    down: Float32  #: (H, W), of the links down
    pull: Float32 | None = None  #: (H, W), if there are any pulls

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> Lattice:
        """Create a lattice without links and pulls."""
        return cls(np.zeros(shape, np.float32), np.zeros(shape, np.float32))

    def apply(self, values: Float64, out: Float64) -> Float64:
        """Compute ``out = A values``."""
        pull = NO_PULL if self.pull is None else self.pull
        apply_laplacian(self.right, self.down, pull, values, out)
        return out

    def diagonal(self) -> Float32:
        """Return the diagonal ``D``."""
        total = self.right + self.down
        total[:, 1:] += self.right[:, :-1]
        total[1:] += self.down[:-1]
        if self.pull is not None:
            total += self.pull
        return total

    def halved(self) -> Lattice:
        """Return the lattice of blocks of 2 × 2 pixels.

        A link between two blocks is half the sum of the links that cross from one to the other,
        because it is twice as long. That keeps the energy of a plane, and never underestimates that
        of a picture that is constant in each block by more than half: a coarse step may be too
        short, but it cannot diverge.
        """
        height, width = self.right.shape
        odd = (0, height % 2), (0, width % 2)
        right = np.pad(self.right[:, 1::2], odd)
        down = np.pad(self.down[1::2], odd)
        half = np.float32(0.5)
        return Lattice(
            right=half * (right[::2] + right[1::2]),
            down=half * (down[:, ::2] + down[:, 1::2]),
            pull=None if self.pull is None else combine_blocks(np.add, self.pull),
        )

    def factorized(self) -> Callable[[Float32], Float64]:
        """Return a function that solves A x = side, for small lattices.

        One line of pixels after the other is eliminated. Lines run along the shorter side. SciPy's
        sparse factorization is as fast, but takes 0.2 seconds to import.
        """
        transposed = self.right.shape[0] < self.right.shape[1]
        along = self.right.astype(np.float64)
        across = self.down.astype(np.float64)
        diagonal = self.diagonal().astype(np.float64)
        if transposed:
            along, across, diagonal = across.T, along.T, diagonal.T
        diagonal += TOUCH * np.where(diagonal > 0, diagonal, 1.0)
        inverses: list[Float64] = []
        for line, links in enumerate(along[:, :-1]):
            block = np.diag(diagonal[line]) - np.diag(links, 1) - np.diag(links, -1)
            if line:
                block -= across[line - 1, :, None] * inverses[-1] * across[line - 1]
            inverses.append(np.linalg.inv(block))

        def solve(side: Float32) -> Float64:
            rest = side.astype(np.float64)
            if transposed:
                rest = rest.T
            for line in range(1, len(rest)):
                rest[line] += across[line - 1] * (inverses[line - 1] @ rest[line - 1])
            rest[-1] = inverses[-1] @ rest[-1]
            for line in reversed(range(len(rest) - 1)):
                rest[line] = inverses[line] @ (rest[line] + across[line] * rest[line + 1])
            return rest.T if transposed else rest

        return solve


def combine_blocks(combine: np.ufunc, picture: NDArray[Any], fill: float = 0) -> NDArray[Any]:
    """Combine each block of 2 × 2 pixels into one, (⌈H/2⌉, ⌈W/2⌉).

    Parameters
    ----------
    combine : ufunc
        Sum, maximum, …
    picture : (H, W) array
        The pixels.
    fill : float
        Value of a pixel outside the picture, if a side is odd.
    """
    height, width = picture.shape
    if height % 2 or width % 2:
        picture = np.pad(picture, ((0, height % 2), (0, width % 2)), constant_values=fill)
    rows = combine(picture[::2], picture[1::2])
    return np.asarray(combine(rows[:, ::2], rows[:, 1::2]))


def enlarge(picture: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Repeat every pixel as a block of 2 × 2, cropped to ``shape``."""
    return np.repeat(np.repeat(picture, 2, axis=0), 2, axis=1)[: shape[0], : shape[1]]


# The compiled loops. Their arrays are pictures (H, W): ``right`` and ``down`` are the weights of
# the links, ``inverse`` is D⁻¹ (zero where a pixel has no link), ``values`` a solution, ``side``
# the right-hand side. Each row writes only its own results; sums run in a fixed order, so that
# results do not depend on the number of threads.


@njit(cache=True, parallel=True)  # type: ignore[untyped-decorator]
def apply_laplacian(
    right: Float32, down: Float32, pull: Float32, values: Float64, out: Float64
) -> Any:
    """Compute ``out = A values``. An empty ``pull`` means none."""
    height, width = values.shape
    for row in prange(height):
        for col in range(width):
            value = values[row, col]
            total = 0.0
            if pull.size > 0:
                total = pull[row, col] * value
            if col > 0:
                total += right[row, col - 1] * (value - values[row, col - 1])
            if col < width - 1:
                total += right[row, col] * (value - values[row, col + 1])
            if row > 0:
                total += down[row - 1, col] * (value - values[row - 1, col])
            if row < height - 1:
                total += down[row, col] * (value - values[row + 1, col])
            out[row, col] = total


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def plus_neighbors(
    total: float,
    right: Float32,
    down: Float32,
    values: Float32,
    row: int,
    col: int,
    halvings: int = 0,
) -> float:
    """Return ``total`` plus the weighted values of a pixel's neighbors.

    ``values`` may have a lower resolution, by ``halvings`` powers of two.
    """
    if col > 0:
        total += right[row, col - 1] * values[row >> halvings, (col - 1) >> halvings]
    if col < right.shape[1] - 1:
        total += right[row, col] * values[row >> halvings, (col + 1) >> halvings]
    if row > 0:
        total += down[row - 1, col] * values[(row - 1) >> halvings, col >> halvings]
    if row < right.shape[0] - 1:
        total += down[row, col] * values[(row + 1) >> halvings, col >> halvings]
    return total


@njit(cache=True, parallel=True, fastmath={"contract"})  # type: ignore[untyped-decorator]
def relax(
    right: Float32, down: Float32, inverse: Float32, side: Float32, values: Float32, color: int
) -> Any:
    """Run one Gauss–Seidel sweep over the pixels of one chessboard color."""
    height, width = values.shape
    for row in prange(height):
        for col in range((row + color) % 2, width, 2):
            scale = inverse[row, col]
            if scale > 0:
                values[row, col] = scale * plus_neighbors(
                    side[row, col], right, down, values, row, col
                )


@njit(cache=True, parallel=True, fastmath={"contract"})  # type: ignore[untyped-decorator]
def jacobi_change(
    right: Float32, down: Float32, inverse: Float32, side: Float32, values: Float32, out: Float32
) -> Any:
    """Compute ``out = D⁻¹ (side − A values)``."""
    height, width = values.shape
    for row in prange(height):
        for col in range(width):
            scale = inverse[row, col]
            total = plus_neighbors(side[row, col], right, down, values, row, col)
            change = scale * total - values[row, col]
            out[row, col] = change if scale > 0 else 0.0


@njit(cache=True, parallel=True, fastmath={"contract"})  # type: ignore[untyped-decorator]
def restrict(right: Float32, down: Float32, change: Float32, out: Float32) -> Any:
    """Compute ``out = Pᵀ r`` at half the resolution, from ``change = D⁻¹ r``."""
    height, width = change.shape
    for block_row in prange(out.shape[0]):
        for block_col in range(out.shape[1]):
            total = 0.0
            for row in range(2 * block_row, min(2 * block_row + 2, height)):
                for col in range(2 * block_col, min(2 * block_col + 2, width)):
                    total = plus_neighbors(total, right, down, change, row, col)
            out[block_row, block_col] = total


@njit(cache=True, parallel=True, fastmath={"contract"})  # type: ignore[untyped-decorator]
def prolong(
    right: Float32, down: Float32, inverse: Float32, coarse: Float32, values: Float32
) -> Any:
    """Compute ``values += P coarse``."""
    height, width = values.shape
    for row in prange(height):
        for col in range(width):
            values[row, col] += inverse[row, col] * plus_neighbors(
                0.0, right, down, coarse, row, col, 1
            )
