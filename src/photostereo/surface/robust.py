"""Integration that may tear the surface at occlusions: each pixel trusts the side on which it is continuous.

    minimise_z   Σ_pixels c Σ_axes  −(1/k) log( ½ exp(−k r₊²) + ½ exp(−k r₋²) ) ,      r_± = n_z ∂_± z − t

with the forward and backward differences ``∂_±`` and the slope equation ``n_z ∂z = t`` of the pixel. The
function of the two residuals is a soft minimum: where both are small it is their mean square, which is the
least squares of :mod:`~photostereo.surface.poisson`; where the surface is continuous on one side only, it
keeps that side and lets the other go. It equals the minimum over ``w ∈ [0, 1]`` of ``w r₊² + (1 − w) r₋² +
(1/k) (entropy of w)``, attained at

    w = 1 / (1 + exp(−k (r₋² − r₊²))) ,

so alternating between w and a *weighted least-squares* problem in z never raises it. That is iteratively
reweighted least squares, as in bilaterally weighted normal integration (Cao et al. 2022), which weighs by
the squared differences themselves; residuals leave steep but smooth ground alone, and give the iteration an
energy.

How it is made fast
    A solve only has to lower the weighted problem, not to end it: a few warm-started conjugate-gradient
    steps with a multigrid preconditioner that is kept until it wears out. And because a tear grows by about
    one pixel per iteration, the iteration starts from its own result at half the resolution, where tears
    are half as long.

Symbols: ``k`` sharpness; ``w`` the forward share; facing, tilt: see :mod:`photostereo.surface.slopes`.

References
----------
X. Cao, H. Santo, B. Shi, F. Okura, Y. Matsushita, "Bilateral Normal Integration", ECCV 2022,
doi:10.1007/978-3-031-19769-7_32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.surface.links import Laplacian, Links, find_links
from photostereo.surface.multigrid import (
    DIRECT_LIMIT,
    LinearSolution,
    Preconditioner,
    build_preconditioner,
    centre_parts,
    conjugate_gradients,
    solve_direct,
)
from photostereo.surface.poisson import link_equations, solve_poisson
from photostereo.surface.pyramid import coarsen, prolong, spread_torn
from photostereo.surface.slopes import SlopeField

Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]
IntArray = NDArray[np.integer[Any]]
Progress = Callable[[int, int, float], None]

#: No share falls below this, so that a piece cut off on all sides still has a place.
SHARE_FLOOR = 1e-6
#: A link is torn when both of its ends give it less than this share.
TORN_SHARE = 0.25
#: The weight of a link that may be torn, in the first solve after a coarser resolution.
LOOSE = 1e-7
#: A multigrid that needs more steps than this for one digit is rebuilt.
WORN_OUT = 6


@dataclass(frozen=True)
class RobustSolution:
    """Heights, torn links, the energy before every iteration at full resolution, and whether it converged."""

    values: Float64
    torn: Bool
    energy: tuple[float, ...]
    iterations: int
    residual: float
    converged: bool


def one_sided_residuals(
    field: SlopeField, links: Links, values: Float64, axis: int
) -> tuple[Float64, Float64]:
    """``r₊`` and ``r₋`` of every pixel along an axis; NaN where there is no neighbour on that side."""
    part = links.axis(axis)
    a, b = links.first[part], links.second[part]
    tilt = field.tilt_col if axis == 0 else field.tilt_row
    difference = values[b] - values[a]
    plus = np.full(links.size, np.nan)
    minus = np.full(links.size, np.nan)
    plus[a] = field.facing[a] * difference - tilt[a]
    minus[b] = field.facing[b] * difference - tilt[b]
    return plus, minus


def reweight(
    field: SlopeField, links: Links, values: Float64, sharpness: float
) -> tuple[tuple[Float64, Float64], float]:
    """The forward shares of both axes for these heights, and the energy (without pulls).

    A pixel with a neighbour on one side only keeps the share ½ for it: there is nothing to choose from.
    """
    shares = []
    energy = 0.0
    for axis in (0, 1):
        plus, minus = one_sided_residuals(field, links, values, axis)
        plus *= plus
        minus *= minus
        choice = minus - plus
        single = np.isnan(choice)
        choice[single] = 0.0
        gap = np.abs(choice)
        decay = np.exp(-sharpness * gap)
        share = 1.0 / (1.0 + decay)
        share = np.where(choice >= 0, share, 1.0 - share)
        # −(1/k) log(½ e^{−k p} + ½ e^{−k m}) = min(p, m) + (log 2 − log(1 + e^{−k|p − m|}))/k
        soft = np.fmin(plus, minus) + (np.log(2.0) - np.log1p(decay)) / sharpness
        soft[single] = 0.5 * np.nan_to_num(np.fmin(plus, minus)[single])
        energy += float(field.confidence @ soft)
        shares.append(np.clip(share, SHARE_FLOOR, 1.0 - SHARE_FLOOR))
    return (shares[0], shares[1]), energy


def torn_links(links: Links, shares: tuple[Float64, Float64]) -> Bool:
    """Links that both of their ends have turned away from."""
    torn = np.empty(links.first.size, dtype=bool)
    for axis in (0, 1):
        part = links.axis(axis)
        torn[part] = (
            np.maximum(shares[axis][links.first[part]], 1.0 - shares[axis][links.second[part]]) < TORN_SHARE
        )
    return torn


def _pull_energy(values: Float64, pull: Float64 | None, target: Float64 | None) -> float:
    if pull is None:
        return 0.0
    return float(pull @ (values - (0.0 if target is None else target)) ** 2)


def _solve_weighted(
    laplacian: Laplacian,
    parts: IntArray,
    start: Float64,
    weight: Float64,
    goal: Float64,
    pull: Float64 | None,
    target: Float64 | None,
    precondition: Preconditioner | None,
    rtol: float,
) -> LinearSolution:
    """Lower the weighted least squares from ``start`` until its gradient is ``rtol`` of what it was."""
    laplacian.set_weights(weight, pull)
    side = laplacian.right_hand_side(weight, goal, pull, target)
    if start.size <= DIRECT_LIMIT:
        return solve_direct(laplacian.matrix, side, parts, pull)
    return conjugate_gradients(
        laplacian.matrix,
        side,
        start,
        precondition or build_preconditioner(laplacian.matrix),
        rtol=rtol,
        max_iter=max(2 * WORN_OUT, int(-20 * np.log10(rtol))),
        relative_to_start=True,
        singular=pull is None,
    )


def descend(
    field: SlopeField,
    links: Links,
    parts: IntArray,
    start: Float64,
    *,
    sharpness: float,
    loose: Bool | None = None,
    max_iter: int,
    tol: float,
    inner_rtol: float,
    pull: Float64 | None = None,
    target: Float64 | None = None,
    progress: Progress | None = None,
) -> RobustSolution:
    """Alternate shares and heights from ``start`` at one resolution.

    ``loose`` marks links that a coarser resolution found torn, to within a pixel. They hardly count in a
    first least-squares solve with equal shares, so that every pixel next to a tear goes where its other
    neighbours are.
    """
    laplacian = Laplacian(links)
    values = start
    if loose is not None:
        weight, goal = link_equations(field, links, reweight(field, links, values, sharpness)[0])
        weight[loose] *= LOOSE
        values = _solve_weighted(laplacian, parts, values, weight, goal, pull, target, None, 1e-3).values
    energies: list[float] = []
    precondition: Preconditioner | None = None
    residual, converged, calm = 0.0, False, 0
    for iteration in range(max_iter + 1):
        shares, energy = reweight(field, links, values, sharpness)
        energy += _pull_energy(values, pull, target)
        energies.append(energy)
        if progress is not None:
            progress(iteration, max_iter, energy)
        if iteration > 0 and energies[-2] - energy <= tol * max(energies[-2], 1e-12 * links.size):
            calm += 1
            # Twice in a row: one loose linear solve may be idle just before a tear opens.
            if calm == 2:
                converged = True
                break
        else:
            calm = 0
        if iteration == max_iter:
            break
        weight, goal = link_equations(field, links, shares)
        if precondition is None and links.size > DIRECT_LIMIT:
            laplacian.set_weights(weight, pull)
            precondition = build_preconditioner(laplacian.matrix)
        solution = _solve_weighted(
            laplacian, parts, values, weight, goal, pull, target, precondition, inner_rtol
        )
        if solution.iterations > WORN_OUT * max(1.0, -np.log10(inner_rtol)):
            precondition = None
        values, residual = solution.values, solution.residual
    return RobustSolution(
        centre_parts(values, parts, pull),
        torn_links(links, shares),
        tuple(energies),
        len(energies) - 1,
        residual,
        converged,
    )


def solve_robust(
    field: SlopeField,
    links: Links,
    parts: IntArray,
    *,
    sharpness: float = 4.0,
    max_iter: int = 150,
    tol: float = 1e-4,
    inner_rtol: float = 0.1,
    pull: Float64 | None = None,
    target: Float64 | None = None,
    coarse_to_fine: bool = True,
    smallest: int = 4_000,
    progress: Progress | None = None,
) -> RobustSolution:
    """Heights of the packed mask pixels, and where the surface tears; see :func:`~photostereo.integrate`."""
    loose = None
    if coarse_to_fine and links.size > smallest and min(field.mask.shape) >= 16:
        coarse = coarsen(field, pull, target)
        coarse_links = find_links(coarse.field.mask)
        result = solve_robust(
            coarse.field,
            coarse_links,
            coarse.parts,
            sharpness=sharpness,
            max_iter=max_iter,
            tol=tol,
            inner_rtol=inner_rtol,
            pull=coarse.pull,
            target=coarse.target,
            smallest=smallest,
        )
        start = prolong(coarse, field, result.values)
        loose = spread_torn(coarse, coarse_links, result.torn, links)
    else:
        start = solve_poisson(field, links, parts, pull=pull, target=target, rtol=1e-4).values
    return descend(
        field,
        links,
        parts,
        start,
        sharpness=sharpness,
        loose=loose,
        max_iter=max_iter,
        tol=tol,
        inner_rtol=inner_rtol,
        pull=pull,
        target=target,
        progress=progress,
    )
