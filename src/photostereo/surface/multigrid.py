"""Solving one grid Laplacian: a direct factorisation when small, else conjugate gradients with algebraic
multigrid.

The matrix is positive definite where something pulls on every connected part, otherwise singular with the
constants of each part as null space. The direct solver then fixes one pixel per part; conjugate gradients
stay in the range of the matrix by themselves, because every right-hand side sums to zero over such a part.

Classical (Ruge–Stüben) coarsening is used because it follows strong links only, so that weights that differ
by orders of magnitude across a tear do not slow it. Measured at one million pixels it needs 2 s to set up
and 8 iterations to 1e-9, against 15–26 iterations for smoothed aggregation with a far dearer set-up.

References
----------
J. W. Ruge, K. Stüben, "Algebraic Multigrid", 1987, doi:10.1137/1.9781611971057.ch4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
IntArray = NDArray[np.integer[Any]]
Preconditioner = Callable[[Float64], Float64]

#: Up to this many pixels a sparse factorisation is faster than setting up the multigrid.
DIRECT_LIMIT = 12_000


@dataclass(frozen=True)
class LinearSolution:
    """The result of a linear solve: the solution, its iterations and ``‖b − A x‖ / ‖b‖``."""

    values: Float64
    iterations: int
    residual: float
    direct: bool = False


def relative_residual(matrix: Any, side: Float64, values: Float64) -> float:
    """``‖b − A x‖ / ‖b‖``, and zero for a zero right-hand side that is met."""
    left = norm(side - matrix @ values)
    scale = norm(side)
    return left / scale if scale > 0 else left


def solve_direct(matrix: Any, side: Float64, parts: IntArray, pulled: Float64 | None) -> LinearSolution:
    """Factorise; ``parts`` numbers the connected part of each pixel, ``pulled`` is the pull on it."""
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import splu

    count = int(parts.max()) + 1
    first_pixel = np.full(count, -1)
    first_pixel[parts[::-1]] = np.arange(parts.size)[::-1]
    free = np.ones(count, dtype=bool)
    if pulled is not None:
        free = np.bincount(parts, pulled, count) <= 0
    # A stiff spring to ground on one pixel of each free part carries no force, since b sums to zero there:
    # it only picks one solution out of those that differ by a constant.
    diagonal = matrix.diagonal()
    spring = np.zeros(parts.size)
    spring[first_pixel[free]] = np.maximum(diagonal[first_pixel[free]], 1.0)
    grounded = (matrix + diags_array(spring)).tocsc()
    factor = splu(
        grounded, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
    values = factor.solve(side)
    values += factor.solve(side - grounded @ values)
    return LinearSolution(values, 1, relative_residual(matrix, side, values), direct=True)


def build_preconditioner(matrix: Any) -> Preconditioner:
    """One V-cycle of classical algebraic multigrid for this matrix."""
    import pyamg
    from scipy.sparse import csr_matrix

    # pyamg keeps a reference to its matrix; ours changes its values in place.
    held = csr_matrix((matrix.data.copy(), matrix.indices, matrix.indptr), shape=matrix.shape)
    levels = pyamg.ruge_stuben_solver(
        held,
        max_coarse=30,
        presmoother=("gauss_seidel", {"sweep": "forward"}),
        postsmoother=("gauss_seidel", {"sweep": "backward"}),  # reversed, so that the cycle is symmetric
    )

    def cycle(depth: int, side: Float64) -> Float64:
        # pyamg's own cycle also measures residual norms, which a preconditioner does not need.
        level = levels.levels[depth]
        if depth + 1 == len(levels.levels):
            return np.asarray(levels.coarse_solver(level.A, side))
        values = np.zeros_like(side)
        level.presmoother(level.A, values, side)
        values += level.P @ cycle(depth + 1, level.R @ (side - level.A @ values))
        level.postsmoother(level.A, values, side)
        return values

    return lambda vector: cycle(0, vector)


def dot(first: Float64, second: Float64) -> float:
    """Inner product without BLAS, whose threads cost more than they save beside other work."""
    return float(np.einsum("i,i->", first, second))


def norm(vector: Float64) -> float:
    """Euclidean length, see :func:`dot`."""
    return float(np.sqrt(dot(vector, vector)))


def conjugate_gradients(
    matrix: Any,
    side: Float64,
    start: Float64,
    precondition: Preconditioner,
    *,
    rtol: float,
    max_iter: int,
    relative_to_start: bool = False,
    singular: bool = False,
) -> LinearSolution:
    """Preconditioned conjugate gradients from ``start``; every iterate lowers the quadratic energy.

    Stops when the residual falls below ``rtol`` times ``‖b‖`` (or, with ``relative_to_start``, times the
    residual of the start) or after ``max_iter`` iterations. ``singular`` says that nothing pulls, so that
    constants are free.
    """
    values = start.copy()
    residual = side - matrix @ values
    scale = norm(side) or 1.0
    size = norm(residual)
    goal = rtol * (size if relative_to_start else scale)
    iterations = 0
    direction = np.zeros_like(values)
    before = 1.0
    while size > goal and iterations < max_iter:
        if singular:
            residual -= residual.mean()  # rounding leaves the range of the matrix otherwise
        smooth = precondition(residual)
        energy = dot(residual, smooth)
        if not energy > 0:
            break  # rounding: the residual is as small as it can be
        direction *= energy / before
        direction += smooth
        before = energy
        image = matrix @ direction
        step = energy / dot(direction, image)
        values += step * direction
        residual -= step * image
        size = norm(residual)
        iterations += 1
    return LinearSolution(values, iterations, size / scale)


def centre_parts(values: Float64, parts: IntArray, pulled: Float64 | None) -> Float64:
    """Give every connected part that nothing pulls on the mean zero."""
    count = int(parts.max()) + 1
    size = np.bincount(parts, minlength=count)
    mean = np.bincount(parts, values, count) / size
    if pulled is not None:
        mean[np.bincount(parts, pulled, count) > 0] = 0.0
    return np.asarray(values - mean[parts])
