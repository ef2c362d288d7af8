"""Integration that may tear the surface at occlusions: each pixel follows the side on which it is continuous.

    minimize_z   Σ_pixels c Σ_axes  −(1/k) log( ½ exp(−k r₊²) + ½ exp(−k r₋²) ) ,      r_± = n_z ∂_± z − t

with the forward and backward differences ``∂_±`` and the slope equation ``n_z ∂z = t`` of the pixel. Where
both residuals are small this is their mean square, least squares as in :mod:`~photostereo.surface.poisson`; where
the surface is continuous on one side only, it keeps that side and drops the other. The soft minimum is itself a
minimum over shares ``w`` (:mod:`~photostereo.surface.softmin`), so alternating between the shares and a
*weighted least-squares* problem in z never raises it. That is iteratively reweighted least squares, as in
bilaterally weighted normal integration (Cao et al. 2022), which weights by the squared differences
themselves; weighting by residuals leaves steep but smooth regions intact, and gives the iteration an energy.

Speed, and how poor minima are avoided
    A solve only has to reduce the weighted problem, not to finish it: a few warm-started conjugate-gradient steps
    with a multigrid preconditioner suffice. Each step is extended as long as the energy falls. A tear
    grows by about one pixel per iteration, so the iteration starts from its own result at half the
    resolution, where tears are half as long (one coarse pixel represents a block of 2 × 2: slopes are the same numbers
    at every resolution, heights halve); a tear that is then off by a pixel is shifted. Small problems are also started
    from plain least squares, and the result with the lower energy is kept. None of these steps raises the energy.

Symbols: ``k`` sharpness, ``c`` confidence; facing and tilt: see :mod:`photostereo.surface.slopes`.

References
----------
X. Cao, H. Santo, B. Shi, F. Okura, Y. Matsushita, "Bilateral Normal Integration", ECCV 2022,
doi:10.1007/978-3-031-19769-7_32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter

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
#: Problems of up to this many pixels are solved accurately: it takes little time and gives a better start for the next
#: resolution.
TIGHT_UP_TO, TIGHT_RTOL = 12_000, 1e-6
#: For up to this many pixels, plain least squares is also tried as a start.
TWO_STARTS, SECOND_START_ITERATIONS = 100_000, 50
#: Problems with fewer pixels, or shorter sides, are not coarsened.
SMALLEST, SHORTEST_SIDE = 4_000, 16
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
    sharpness: float = 4.0
    max_iter: int = 150
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
    """Reduce the least-squares cost of these shares, from ``values``, until its gradient falls to ``rtol`` of its start."""
    lattice, residual = softmin.weighted_problem(problem.field, shares, values, control)
    del shares
    if problem.pulls is not None:
        pull, target = problem.pulls
        lattice = replace(lattice, pull=pull.astype(np.float32))
        residual += pull * (target - values)
    steps = int(STEPS_PER_DIGIT * max(1.0, -float(np.log10(rtol))))
    start, quiet = np.zeros_like(residual), control.unreported()
    correction = conjugate_gradients(
        lattice, residual, start, rtol=rtol, max_iter=steps, control=quiet
    )
    corrected = correction.values
    corrected += values
    return correction


def descend(problem: RobustProblem, start: Float64, control: Control = SILENT) -> Heights:
    """Alternate between shares and heights from ``start`` at one resolution.

    A state is an energy and its heights; the shares are computed again when needed, to save memory.
    """

    def state(values: Float64) -> tuple[float, Float64]:
        control.check()
        return problem.energy(values), values

    def lower(*states: tuple[float, Float64]) -> tuple[float, Float64]:
        return min(states, key=itemgetter(0))

    size = problem.size
    rtol = min(problem.inner_rtol, TIGHT_RTOL) if size <= TIGHT_UP_TO else problem.inner_rtol
    energy, now = state(start)
    del start  # free its memory: only the state is needed from here on
    energies = [energy]
    residual, reach, calm = 0.0, 1.0, 0
    control.stage("integrate (robust)", problem.max_iter)
    for iteration in range(1, problem.max_iter + 1):
        solution = lower_weighted(
            problem,
            now,
            softmin.soft_choice(problem.field, now, problem.sharpness)[0],
            rtol,
            control,
        )
        residual, following = solution.residual, state(solution.values)
        del solution
        # Reweighting takes short steps: extrapolate, and keep the result if its energy is lower.
        longer = following[1] - now
        longer *= reach
        longer += following[1]
        further = state(longer)
        del longer
        ahead = further[0] < following[0]
        reach = min(1.5 * reach, FARTHEST) if ahead else max(0.5 * reach, 0.5)
        # The lower limit of the shares affects the last digits: never accept a rise.
        before, (energy, now) = energy, lower((energy, now), further if ahead else following)
        del following, further  # free their memory before the next solve
        # No progress once: shift tears. Twice: the solve may be too loose. Three times: done.
        if calm == 1 or iteration in SHIFT_AT:
            shifted = state(softmin.shift_tears(problem.field, now, problem.sharpness, control))
            energy, now = lower((energy, now), shifted)
        energies.append(energy)
        control.advance()
        calm = calm + 1 if before - energy <= problem.tol * max(before, 1e-12 * size) else 0
        if calm == 3:
            break
    chosen, *_ = softmin.soft_choice(problem.field, now, problem.sharpness)
    torn = softmin.torn_links(problem.field.mask, chosen)
    return Heights(now, len(energies) - 1, residual, calm == 3, torn, tuple(energies))


def solve_robust(problem: RobustProblem, control: Control = SILENT) -> Heights:
    """Return heights and torn links; see :func:`~photostereo.integrate`."""
    best = descend(problem, first_start(problem, control), control)
    if not problem.is_coarsened or problem.size > TWO_STARTS:
        return best
    # From least squares, long tears open slowly; those are left to the other start.
    limited = replace(problem, max_iter=min(problem.max_iter, SECOND_START_ITERATIONS))
    trial = descend(limited, start_from_least_squares(problem, control), control)
    if trial.energy[-1] >= best.energy[-1]:
        return best
    if trial.converged or trial.iterations >= problem.max_iter:
        return trial
    remaining = replace(problem, max_iter=problem.max_iter - trial.iterations)
    rest = descend(remaining, trial.values, control)
    return replace(
        rest, energy=trial.energy + rest.energy[1:], iterations=trial.iterations + rest.iterations
    )


def start_from_least_squares(problem: RobustProblem, control: Control) -> Float64:
    """Return the least-squares solution for equal shares, to four digits."""
    half = np.full(problem.field.confidence.shape, 0.5, dtype=np.float32)
    rtol = TIGHT_RTOL if problem.size <= TIGHT_UP_TO else 1e-4
    return lower_weighted(problem, np.zeros(half.shape), (half, half), rtol, control).values


def first_start(problem: RobustProblem, control: Control) -> Float64:
    """Return the robust result at half the resolution, upsampled; for a small problem, the least squares."""
    if not problem.is_coarsened:
        return start_from_least_squares(problem, control)
    pulls = problem.pulls
    if pulls is not None:
        # s (z − t)² in fine pixels is 4 s (z − t)² in coarse ones, and a block represents four link equations.
        total, moment = (
            combine_blocks(np.add, pulls[0]),
            combine_blocks(np.add, pulls[0] * pulls[1]),
        )
        pulls = total, 0.5 * moment / np.where(total > 0, total, 1.0)
    coarse = replace(problem, field=coarsen(problem.field, control), pulls=pulls)
    result = descend(coarse, first_start(coarse, control), control.unreported())
    return prolong(result.values, problem.field, control)


def coarsen(field: SlopeField, control: Control) -> SlopeField:
    """Average the equations over blocks of 2 × 2 pixels; a block is used if any of its pixels is."""
    trust = field.confidence.astype(np.float64)
    total = combine_blocks(np.add, trust)
    inside = total > 0
    means = []
    for picture in (field.facing, field.tilt_col, field.tilt_row):
        control.check()
        means.append(combine_blocks(np.add, trust * picture) / np.where(inside, total, 1.0))
    facing, tilt_col, tilt_row = means
    control.check()
    # The mean of different unit normals is shorter than one: restore the length, which is the weight.
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
    """Return fine heights from coarse ones: twice the block's height, plus the pixel's own slope inside the block."""
    shape = field.facing.shape
    fine = 2.0 * enlarge(coarse, shape)
    # A pixel is half a pixel from the center of its block.
    offsets = (np.arange(shape[1]) % 2 - 0.5, (np.arange(shape[0]) % 2 - 0.5)[:, None])
    mask = field.mask
    facing = np.where(mask, field.facing, 1.0)
    for offset, tilt in zip(offsets, (field.tilt_col, field.tilt_row), strict=True):
        control.check()
        fine += offset * np.clip(tilt / facing, -STEEPEST_SPREAD, STEEPEST_SPREAD)
    return fine * mask
