"""Integration that may tear the surface at occlusions: each pixel trusts the side on which it is continuous.

    minimize_z   Σ_pixels c Σ_axes  −(1/k) log( ½ exp(−k r₊²) + ½ exp(−k r₋²) ) ,      r_± = n_z ∂_± z − t

with the forward and backward differences ``∂_±`` and the slope equation ``n_z ∂z = t`` of the pixel. Where
both residuals are small this is their mean square, a least squares like that of
:mod:`~photostereo.surface.poisson`; where the surface is continuous on one side only, it keeps that side
and lets the other go. The soft minimum is itself a
minimum over shares ``w`` (:mod:`~photostereo.surface.softmin`), so alternating between the shares and a
*weighted least-squares* problem in z never raises it. That is iteratively reweighted least squares, as in
bilaterally weighted normal integration (Cao et al. 2022), which weighs by the squared differences
themselves; residuals leave steep but smooth ground alone, and give the iteration an energy.

How it is made fast, and kept out of poor minima
    A solve only has to lower the weighted problem, not to end it: a few warm-started conjugate-gradient steps
    with a multigrid preconditioner; and each step is followed further as long as the energy falls. A tear
    grows by about one pixel per iteration, so the iteration starts from its own result at half the
    resolution, where tears are half as long; a tear that then lies a pixel beside its place is shifted. Small
    problems are also started from the plain least squares, and the lower energy wins. None of these steps raises the energy.

Symbols: ``k`` sharpness, ``c`` confidence; facing and tilt: see :mod:`photostereo.surface.slopes`.

References
----------
X. Cao, H. Santo, B. Shi, F. Okura, Y. Matsushita, "Bilateral Normal Integration", ECCV 2022,
doi:10.1007/978-3-031-19769-7_32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.surface.lattice import Lattice, place_pixels
from photostereo.surface.links import Laplacian, find_links
from photostereo.surface.multigrid import (
    DIRECT_LIMIT,
    LinearSolution,
    center_parts,
    conjugate_gradients,
    solve_direct,
)
from photostereo.surface.pyramid import coarsen, prolong
from photostereo.surface.reporting import Progress
from photostereo.surface.slopes import SlopeField
from photostereo.surface.softmin import (
    Shares,
    shared_equations,
    shared_pictures,
    shift_tears,
    soft_energy,
    soft_shares,
    torn_links,
)

Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]
IntArray = NDArray[np.integer[Any]]

#: Conjugate-gradient steps that a solve may take for one digit.
STEPS_PER_DIGIT = 12
#: Up to this many pixels the plain least squares is tried as a start too.
TWO_STARTS, SECOND_START_ITERATIONS = 100_000, 50
#: Problems of fewer pixels, or sides, are not coarsened.
SMALLEST, SHORTEST_SIDE = 4_000, 16
#: The longest extrapolation of a reweighting step, in steps.
FARTHEST = 8.0
#: Tears are shifted after these iterations, and whenever the energy has come to rest.
SHIFT_AT = (3, 8, 16, 32, 64)


@dataclass(frozen=True)
class RobustProblem:
    """Slope equations, the connected part of each pixel, and pulls towards known heights."""

    field: SlopeField
    parts: IntArray
    pull: Float64 | None = None
    target: Float64 | None = None
    sharpness: float = 4.0

    @property
    def size(self) -> int:
        """How many pixels."""
        return self.field.facing.size

    def shares(self, values: Float64) -> Shares:
        """The best shares for these heights."""
        return soft_shares(self.field, values, self.sharpness)

    def energy(self, values: Float64) -> float:
        """The energy of these heights at their best shares."""
        total = soft_energy(self.field, values, self.sharpness)
        if self.pull is not None:
            goal = 0.0 if self.target is None else self.target
            total += float((self.pull * (values - goal) ** 2).sum())
        return total


@dataclass(frozen=True)
class RobustSolution:
    """Heights, torn links (pictures: to the right, downwards), the energy before every iteration at full resolution,
    and whether it converged."""

    values: Float64
    torn: tuple[Bool, Bool]
    energy: tuple[float, ...]
    iterations: int
    residual: float
    converged: bool


class _WeightedSolver:
    """Lowers the weighted least squares of changing shares."""

    def __init__(self, problem: RobustProblem, rtol: float) -> None:
        self.problem, self.rtol = problem, rtol
        self.laplacian = None
        if problem.size <= DIRECT_LIMIT:
            self.laplacian = Laplacian(find_links(problem.field.mask))

    def step(self, values: Float64, shares: Shares) -> LinearSolution:
        """From ``values`` until the gradient is ``rtol`` of what it was."""
        p = self.problem
        if self.laplacian is not None:
            weight, goal = shared_equations(p.field, self.laplacian.links, shares)
            self.laplacian.set_weights(weight, p.pull)
            side = self.laplacian.right_hand_side(weight, goal, p.pull, p.target)
            return solve_direct(self.laplacian.matrix, side, p.parts, p.pull)
        mask = p.field.mask
        right, down, residual, scale = shared_pictures(p.field, shares, values)
        del shares
        pull = None
        if p.pull is not None:
            pull = place_pixels(mask, p.pull)
            residual[mask] += p.pull * ((0.0 if p.target is None else p.target) - values)
        digits = max(1.0, -float(np.log10(self.rtol)))
        before = float(np.linalg.norm(residual))
        # A correction to the heights, in single precision: the next one is told by a residual in double.
        correction = conjugate_gradients(
            Lattice(right, down, pull),
            residual,
            np.zeros_like(residual),
            rtol=self.rtol,
            max_iter=int(STEPS_PER_DIGIT * digits),
        )
        left = correction.residual * before / (scale or 1.0)
        return LinearSolution(values + correction.values[mask], correction.iterations, left)


@dataclass(frozen=True)
class _State:
    """Heights and the energy of their best shares, which are found again when they are needed: they take twice as
    much memory as the heights."""

    values: Float64
    energy: float


def descend(
    problem: RobustProblem,
    start: Float64,
    *,
    max_iter: int,
    tol: float,
    inner_rtol: float,
    progress: Progress | None = None,
) -> RobustSolution:
    """Alternate shares and heights from ``start`` at one resolution."""

    def state(values: Float64) -> _State:
        return _State(values, problem.energy(values))

    solver = _WeightedSolver(problem, inner_rtol)
    now = state(start)
    del start  # it would stay in memory beside what it became
    energies = [now.energy]
    residual, reach, calm = 0.0, 1.0, 0
    if progress is not None:
        progress(0, max_iter, now.energy)
    for iteration in range(1, max_iter + 1):
        solution = solver.step(now.values, problem.shares(now.values))
        residual = solution.residual
        following = state(solution.values)
        del solution
        # Reweighting takes short steps: look further along, and keep that if it is lower.
        longer = following.values - now.values
        longer *= reach
        longer += following.values
        further = state(longer)
        del longer
        ahead = further.energy < following.energy
        reach = min(1.5 * reach, FARTHEST) if ahead else max(0.5 * reach, 0.5)
        # The floor under the shares moves the last digits: never accept a rise.
        before, now = now.energy, min(now, further if ahead else following, key=lambda s: s.energy)
        del following, further  # heights that are let go take no memory during the next solve
        # At rest once: shift tears. Once more: a loose solve may be idle. Three times: done.
        if calm == 1 or iteration in SHIFT_AT:
            shifted = shift_tears(problem.field, now.values, problem.sharpness)
            now = min(now, state(shifted), key=lambda s: s.energy)
        energies.append(now.energy)
        if progress is not None:
            progress(iteration, max_iter, now.energy)
        rests = before - now.energy <= tol * max(before, 1e-12 * problem.size)
        calm = calm + 1 if rests else 0
        if calm == 3:
            break
    return RobustSolution(
        center_parts(now.values, problem.parts, problem.pull),
        torn_links(problem.field.mask, problem.shares(now.values)),
        tuple(energies),
        len(energies) - 1,
        residual,
        calm == 3,
    )


def solve_robust(
    problem: RobustProblem,
    *,
    max_iter: int = 150,
    tol: float = 1e-5,
    inner_rtol: float = 0.1,
    progress: Progress | None = None,
) -> RobustSolution:
    """Heights of the packed mask pixels, and where the surface tears; see :func:`~photostereo.integrate`."""

    def run(start: Float64, most: int) -> RobustSolution:
        return descend(problem, start, max_iter=most, tol=tol, inner_rtol=inner_rtol, progress=progress)

    def coarse() -> Float64 | None:
        return start_from_coarse(problem, max_iter=max_iter, tol=tol, inner_rtol=inner_rtol)

    if problem.size > TWO_STARTS:
        start = coarse()
        starts = [start_from_least_squares(problem) if start is None else start]
        del start
        return descend(
            problem, starts.pop(), max_iter=max_iter, tol=tol, inner_rtol=inner_rtol, progress=progress
        )
    start = coarse()
    if start is None:
        return run(start_from_least_squares(problem), max_iter)
    best = run(start, max_iter)
    # From least squares long tears open slowly; those are left to the other start.
    trial = run(start_from_least_squares(problem), min(max_iter, SECOND_START_ITERATIONS))
    if trial.energy[-1] >= best.energy[-1]:
        return best
    if trial.converged or trial.iterations >= max_iter:
        return trial
    rest = run(trial.values, max_iter - trial.iterations)
    return replace(rest, energy=trial.energy + rest.energy[1:], iterations=trial.iterations + rest.iterations)


def start_from_least_squares(problem: RobustProblem) -> Float64:
    """The least squares of equal shares, to four digits."""
    half = np.full(problem.size, 0.5, dtype=problem.field.confidence.dtype)
    return _WeightedSolver(problem, 1e-4).step(np.zeros(half.size), (half, half)).values


def start_from_coarse(
    problem: RobustProblem, *, max_iter: int, tol: float, inner_rtol: float
) -> Float64 | None:
    """The robust result at half the resolution, brought to this one; None where that is too small."""
    if problem.size <= SMALLEST or min(problem.field.mask.shape) < SHORTEST_SIDE:
        return None
    coarse = coarsen(problem.field, problem.pull, problem.target)
    halved = RobustProblem(coarse.field, coarse.parts, coarse.pull, coarse.target, problem.sharpness)
    start = start_from_coarse(halved, max_iter=max_iter, tol=tol, inner_rtol=inner_rtol)
    if start is None:
        start = start_from_least_squares(halved)
    result = descend(halved, start, max_iter=max_iter, tol=tol, inner_rtol=inner_rtol)
    return prolong(coarse, problem.field, result.values)
