"""Integration that may tear the surface at occlusions.

Each pixel follows the side on which it is continuous.

    minimize_z   Σ_pixels c Σ_axes  −(1/k) log( ½ exp(−k r₊²) + ½ exp(−k r₋²) ) ,      r_± = n_z ∂_±
    z − t

with the forward and backward differences ``∂_±`` and the slope equation ``n_z ∂z = t`` of the
pixel. Where both residuals are small this is their mean square, least squares as in
:mod:`~photostereo.surface.poisson`; where the surface is continuous on one side only, it keeps that
side and drops the other. The soft minimum is itself a minimum over shares ``w``
(:mod:`~photostereo.surface.softmin`), so alternating between the shares and a *weighted
least-squares* problem in z never raises it. That is iteratively reweighted least squares, as in
bilaterally weighted normal integration (Cao et al. 2022), which weights by the squared differences
themselves; weighting by residuals leaves steep but smooth regions intact, and gives the iteration
an energy.

Speed, and how poor minima are avoided
    A solve only has to reduce the weighted problem, not to finish it: a few warm-started
    conjugate-gradient steps with a multigrid preconditioner suffice. Each step is extended as long
    as the energy falls. A tear grows by about one pixel per iteration, so the iteration starts from
    its own result at half the resolution, where tears are half as long (one coarse pixel represents
    a block of 2 × 2: slopes are the same numbers at every resolution, heights halve); a tear that
    is then off by a pixel is shifted. Small problems are also started from plain least squares, and
    the result with the lower energy is kept. None of these steps raises the energy.

Symbols: ``k`` sharpness, ``c`` confidence; facing and tilt: see :mod:`photostereo.surface.slopes`.

References
----------
X. Cao, H. Santo, B. Shi, F. Okura, Y. Matsushita, "Bilateral Normal Integration", ECCV 2022,
doi:10.1007/978-3-031-19769-7_32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import Float64
from photostereo.surface import softmin
from photostereo.surface.integrated import Heights, Pulls
from photostereo.surface.lattice import combine_blocks, enlarge
from photostereo.surface.multigrid import conjugate_gradients
from photostereo.surface.slopes import FACING_FLOOR, SlopeField
from photostereo.surface.softmin import Shares

#: Maximum conjugate-gradient steps per digit.
STEPS_PER_DIGIT = 12
#: Most iterations; few surfaces need more than 60.
MOST_REWEIGHTINGS = 150
#: Problems of up to this many pixels are solved accurately: it takes little time and gives a better
#: start for the next resolution.
TIGHT_UP_TO = 12_000
#: The relative residual of an accurate solve.
TIGHT_RTOL = 1e-6
#: For up to this many pixels, plain least squares is also tried as a start.
TWO_STARTS = 100_000
#: Iterations of that second start: long tears open slowly from least squares, and are left to the
#: first one.
SECOND_START_ITERATIONS = 50
#: Problems with fewer pixels are not coarsened: they are fast as they are.
SMALLEST = 4_000
#: Problems with a shorter side are not coarsened: too little would be left of them.
SHORTEST_SIDE = 16
#: Slopes steeper than this are not used to distribute a block's height over its pixels.
STEEPEST_SPREAD = 2.0
#: The longest extrapolation of a reweighting step, in steps.
FARTHEST = 8.0
#: Tears are shifted after these iterations, and whenever the energy stops falling.
SHIFT_AT = (3, 8, 16, 32, 64)


@dataclass(frozen=True)
class RobustProblem:
    """Slope equations, pulls toward known heights if there are any, and when to stop."""

    field: SlopeField
    pulls: Pulls | None = None
    sharpness: float = 4.0  #: how sharply a pixel chooses between its two sides, k
    max_iter: int = MOST_REWEIGHTINGS
    tol: float = 1e-5  #: the relative fall of the energy at which to stop
    inner_rtol: float = 0.1  #: the accuracy of a solve

    @property
    def size(self) -> int:
        """Number of pixels."""
        return int(np.count_nonzero(self.field.confidence))

    def energy(self, values: Float64) -> float:
        """Return the energy of these heights at their best shares."""
        total = softmin.soft_energy(self.field, values, self.sharpness)
        if self.pulls is not None:
            pull, target = self.pulls
            total += float((pull * (values - target) ** 2).sum())
        return total

    @property
    def is_coarsened(self) -> bool:
        """Whether the solve starts from the result at half the resolution."""
        return self.size > SMALLEST and min(self.field.facing.shape) >= SHORTEST_SIDE


def lower_weighted(
    problem: RobustProblem, values: Float64, shares: Shares, rtol: float, control: Control
) -> Heights:
    """Reduce the least-squares cost of these shares.

    Parameters
    ----------
    problem : RobustProblem
        Its slope equations and pulls.
    values : (H, W) array
        Heights to start from.
    shares : pair of (H, W) arrays
        Forward shares along columns and rows.
    rtol : float
        Stop when the gradient has fallen to this share of its start.
    control : Control
        Can cancel the work.
    """
    lattice, residual = softmin.weighted_problem(problem.field, shares, values, control)
    del shares
    if problem.pulls is not None:
        pull, target = problem.pulls
        lattice = replace(lattice, pull=pull.astype(np.float32))
        residual += pull * (target - values)
    digits = max(1.0, -float(np.log10(rtol)))
    correction = conjugate_gradients(
        lattice,
        residual,
        np.zeros_like(residual),
        rtol=rtol,
        max_iter=int(STEPS_PER_DIGIT * digits),
        control=control.unreported(),
    )
    heights = correction.values
    heights += values  # in place: these are the heights of the correction
    return correction


@dataclass
class _State:
    """Heights and their energy. Shares are computed again when needed, to save memory."""

    energy: float
    values: Float64


def descend(problem: RobustProblem, start: Float64, control: Control = SILENT) -> Heights:
    """Alternate between shares and heights from ``start`` at one resolution.

    Parameters
    ----------
    problem : RobustProblem
        What to solve, and when to stop.
    start : (H, W) array
        Heights to start from.
    control : Control
        Receives every iteration, and can cancel the work.
    """
    size = problem.size
    rtol = problem.inner_rtol
    if size <= TIGHT_UP_TO:
        rtol = min(rtol, TIGHT_RTOL)
    now = _State(problem.energy(start), start)
    del start  # free its memory: only the state is needed from here on
    energies = [now.energy]
    residual = 0.0
    reach = 1.0
    stalls = 0
    control.stage("integrate (robust)", problem.max_iter)
    for iteration in range(1, problem.max_iter + 1):
        control.check()
        before = now.energy
        residual, step, reach = _step(problem, now.values, rtol, reach, control)
        # The lower limit of the shares affects the last digits: never accept a rise.
        if step.energy < now.energy:
            now = step
        del step  # free its memory before the next solve
        # No progress once: shift tears. Twice: the solve may be too loose. Three times: done.
        if stalls == 1 or iteration in SHIFT_AT:
            control.check()
            values = softmin.shift_tears(problem.field, now.values, problem.sharpness, control)
            energy = problem.energy(values)
            if energy < now.energy:
                now = _State(energy, values)
            del values
        energies.append(now.energy)
        control.advance()
        if before - now.energy <= problem.tol * max(before, 1e-12 * size):
            stalls += 1
        else:
            stalls = 0
        if stalls == 3:
            break
    shares, _ = softmin.soft_choice(problem.field, now.values, problem.sharpness)
    return Heights(
        now.values,
        iterations=len(energies) - 1,
        residual=residual,
        converged=stalls == 3,
        torn=softmin.torn_links(problem.field.mask, shares),
        energy=tuple(energies),
    )


def _step(
    problem: RobustProblem, values: Float64, rtol: float, reach: float, control: Control
) -> tuple[float, _State, float]:
    """Return the residual of a solve, its state or a better one, and the next reach.

    Reweighting takes short steps, so the step is extrapolated by ``reach``.
    """
    shares, _ = softmin.soft_choice(problem.field, values, problem.sharpness)
    solution = lower_weighted(problem, values, shares, rtol, control)
    del shares
    control.check()
    following = _State(problem.energy(solution.values), solution.values)
    longer = following.values - values
    longer *= reach
    longer += following.values
    control.check()
    energy = problem.energy(longer)
    if energy < following.energy:
        return solution.residual, _State(energy, longer), min(1.5 * reach, FARTHEST)
    return solution.residual, following, max(0.5 * reach, 0.5)


def solve_robust(problem: RobustProblem, control: Control = SILENT) -> Heights:
    """Return heights and torn links; see :func:`~photostereo.integrate`."""
    best = descend(problem, first_start(problem, control), control)
    if not problem.is_coarsened or problem.size > TWO_STARTS:
        return best
    limited = replace(problem, max_iter=min(problem.max_iter, SECOND_START_ITERATIONS))
    trial = descend(limited, start_from_least_squares(problem, control), control)
    if trial.energy[-1] >= best.energy[-1]:
        return best
    if trial.converged or trial.iterations >= problem.max_iter:
        return trial
    remaining = replace(problem, max_iter=problem.max_iter - trial.iterations)
    rest = descend(remaining, trial.values, control)
    return replace(
        rest,
        energy=trial.energy + rest.energy[1:],
        iterations=trial.iterations + rest.iterations,
    )


def start_from_least_squares(problem: RobustProblem, control: Control) -> Float64:
    """Return the least-squares solution for equal shares, to four digits."""
    half = np.full(problem.field.confidence.shape, 0.5, dtype=np.float32)
    rtol = TIGHT_RTOL if problem.size <= TIGHT_UP_TO else 1e-4
    start = np.zeros(half.shape)
    return lower_weighted(problem, start, (half, half), rtol, control).values


def first_start(problem: RobustProblem, control: Control) -> Float64:
    """Return the robust result at half the resolution, upsampled.

    For a small problem, return the least-squares solution.
    """
    if not problem.is_coarsened:
        return start_from_least_squares(problem, control)
    pulls = problem.pulls
    if pulls is not None:
        # s (z − t)² in fine pixels is 4 s (z − t)² in coarse ones, and a block represents four link
        # equations.
        pull, target = pulls
        total = combine_blocks(np.add, pull)
        moment = combine_blocks(np.add, pull * target)
        pulls = total, 0.5 * moment / np.where(total > 0, total, 1.0)
    coarse = replace(problem, field=coarsen(problem.field, control), pulls=pulls)
    result = descend(coarse, first_start(coarse, control), control.unreported())
    return prolong(result.values, problem.field, control)


def coarsen(field: SlopeField, control: Control) -> SlopeField:
    """Average the equations over blocks of 2 × 2 pixels.

    A block is used if any of its pixels is.
    """
    trust = field.confidence.astype(np.float64)
    total = combine_blocks(np.add, trust)
    inside = total > 0
    means = []
    for picture in (field.facing, field.tilt_col, field.tilt_row):
        control.check()
        means.append(combine_blocks(np.add, trust * picture) / np.where(inside, total, 1.0))
    facing, tilt_col, tilt_row = means
    control.check()
    # The mean of different unit normals is shorter than one: restore the length, which is the
    # weight.
    length = np.sqrt(tilt_col**2 + tilt_row**2 + facing**2)
    length[length == 0] = 1.0
    count = combine_blocks(np.add, field.mask.astype(np.float64))
    return SlopeField(
        np.maximum(facing / length, FACING_FLOOR) * inside,
        tilt_col / length,
        tilt_row / length,
        (total / np.maximum(count, 1.0)).astype(np.float32),
    )


def prolong(coarse: Float64, field: SlopeField, control: Control) -> Float64:
    """Return fine heights from coarse ones.

    A height is twice that of its block, plus the pixel's own slope inside the block.

    Parameters
    ----------
    coarse : (⌈H/2⌉, ⌈W/2⌉) array
        Heights at half the resolution, in coarse pixels.
    field : SlopeField
        The slope equations of the fine pixels.
    control : Control
        Can cancel the work.
    """
    shape = field.facing.shape
    fine = 2.0 * enlarge(coarse, shape)
    # A pixel is half a pixel from the center of its block.
    col = np.arange(shape[1]) % 2 - 0.5
    row = (np.arange(shape[0]) % 2 - 0.5)[:, None]
    mask = field.mask
    facing = np.where(mask, field.facing, 1.0)
    for offset, tilt in ((col, field.tilt_col), (row, field.tilt_row)):
        control.check()
        fine += offset * np.clip(tilt / facing, -STEEPEST_SPREAD, STEEPEST_SPREAD)
    return fine * mask
