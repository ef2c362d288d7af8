"""Solve a lattice by conjugate gradients with geometric multigrid, without a matrix.

The problem is positive definite if every connected part has a pull; otherwise it is singular, and
the null space holds the constants of the parts without one. Conjugate gradients stay in the range
of the matrix, because every right-hand side sums to zero over such a part.

A coarse pixel is a block of 2 × 2, so every level is a lattice like the first. ``P`` maps a picture
of half the resolution to the full one: every pixel starts with the value of its block and takes one
Jacobi step of ``A``, so ``P = D⁻¹ N E`` with ``E`` the enlargement. With equal weights that is ½ of
its own block and ¼ of the next one along each axis: linear interpolation. Nothing is mixed across a
cut link or outside the mask, so masks and tears of any shape need no special case. The multigrid
works in single precision (it only has to point in the right direction), the conjugate gradients
around it in double. Measured: 10 iterations to 1e-10 at any size, 18 to 35 if a tearing surface has
weights that differ by a factor of a million; ``benchmarks/README.md`` compares it with other
solvers.

References
----------
D. Y. Kwak, "V-cycle multigrid for cell-centered finite differences", SIAM J. Sci. Comput. 21(2),
1999, doi:10.1137/S1064827597327310.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import Float32, Float64
from photostereo.surface.integrated import Heights
from photostereo.surface.lattice import Lattice, jacobi_change, prolong, relax, restrict

#: The coarsest level has at most this many pixels; it is factorized. With 200, comb-shaped masks
#: need four times the iterations.
COARSEST = 2_000
#: Chessboard sweeps before and after a coarse correction. With one, long tears converge slowly.
SWEEPS = 2
#: Maximum number of iterations; ten usually suffice.
MOST_ITERATIONS = 200


class _Level:
    """One resolution: its links, the inverse diagonal, and buffers.

    The buffers hold a solution, a right-hand side, and the change by a Jacobi step.
    """

    def __init__(self, lattice: Lattice, control: Control) -> None:
        self.links = lattice.right, lattice.down
        inverse = lattice.diagonal()
        control.check()
        self.inverse = np.divide(1, inverse, out=inverse, where=inverse > 0)
        control.check()
        self.values = np.zeros_like(self.inverse)
        self.side = np.zeros_like(self.inverse)
        self.change = np.zeros_like(self.inverse)

    def relax(self, colors: tuple[int, int]) -> None:
        """Run the chessboard sweeps, in this order of colors."""
        for color in SWEEPS * colors:
            relax(*self.links, self.inverse, self.side, self.values, color)


class Multigrid:
    """One symmetric V-cycle for a lattice: the preconditioner of :func:`conjugate_gradients`."""

    def __init__(self, lattice: Lattice, control: Control = SILENT) -> None:
        self.control = control
        control.check()
        self.levels = [_Level(lattice, control)]
        while lattice.right.size > COARSEST:
            control.check()
            lattice = lattice.halved()
            control.check()
            self.levels.append(_Level(lattice, control))
        self._coarsest = lattice.factorized()

    def __call__(self, residual: Float64) -> Float32:
        """Return an approximate solution for this right-hand side; valid until the next call."""
        self.levels[0].side[:] = residual
        return self._cycle(0)

    def _cycle(self, depth: int) -> Float32:
        level = self.levels[depth]
        self.control.check()
        if depth + 1 == len(self.levels):
            level.values[:] = self._coarsest(level.side)
            return level.values
        level.values[:] = 0
        level.relax((0, 1))
        self.control.check()
        jacobi_change(*level.links, level.inverse, level.side, level.values, level.change)
        restrict(*level.links, level.change, self.levels[depth + 1].side)
        prolong(*level.links, level.inverse, self._cycle(depth + 1), level.values)
        self.control.check()
        level.relax((1, 0))  # reversed, so that the cycle is symmetric
        return level.values


def inner_product(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Return ``Σ a b``, summed row by row to reduce rounding, without a temporary picture."""
    return float(np.einsum("ij,ij->i", a, b).sum())


def conjugate_gradients(
    lattice: Lattice,
    side: Float64,
    start: Float64,
    *,
    rtol: float,
    max_iter: int = MOST_ITERATIONS,
    control: Control = SILENT,
) -> Heights:
    """Run preconditioned conjugate gradients; every iterate lowers the quadratic energy.

    Parameters
    ----------
    lattice : Lattice
        The matrix A.
    side : (H, W) array
        The right-hand side b; it is overwritten by the residual.
    start : (H, W) array
        Heights to start from; they are overwritten by the solution.
    rtol : float
        Stop when the residual falls below this share of ``‖b‖``.
    max_iter : int
        Maximum number of iterations.
    control : Control
        Receives the percentage of digits gained, and can cancel the work.
    """
    control.check()
    values = start
    residual = side
    image = np.empty_like(side)
    scale = float(np.sqrt(inner_product(side, side))) or 1.0
    residual -= lattice.apply(values, image)
    size = float(np.sqrt(inner_product(residual, residual)))
    first = size
    goal = rtol * scale
    iterations = 0
    percent = 0
    if size > goal and max_iter > 0:
        precondition = Multigrid(lattice, control)
        direction = np.zeros_like(image)
        before = 1.0
    control.stage("integrate", 100)
    while size > goal and iterations < max_iter:
        smooth = precondition(residual)
        control.check()
        energy = inner_product(residual, smooth)
        direction *= energy / before
        direction += smooth
        before = energy
        curvature = inner_product(direction, lattice.apply(direction, image))
        if not (energy > 0 and curvature > 0):
            break  # rounding: the residual is as small as it can be
        control.check()
        step = energy / curvature
        image *= step
        residual -= image
        np.multiply(direction, step, out=image)
        values += image
        size = float(np.sqrt(inner_product(residual, residual)))
        iterations += 1
        digits = np.log(first / max(size, goal)) / np.log(first / goal)
        control.advance(max(0, round(100 * digits) - percent))
        percent = max(percent, round(100 * digits))
    control.advance(100 - percent)
    return Heights(values, iterations, size / scale, size <= goal)
