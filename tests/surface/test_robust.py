"""The tearing integrator: it keeps steps, never raises its energy, and ends where the gradient vanishes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from photostereo.core.control import SILENT
from photostereo.core.errors import ConvergenceWarning
from photostereo.surface import integrate, robust
from photostereo.surface.robust import (
    RobustProblem,
    coarsen,
    descend,
    prolong,
    solve_robust,
    start_from_least_squares,
)
from photostereo.surface.slopes import SlopeField, SlopeSource
from photostereo.surface.softmin import (
    shift_tears,
    soft_choice,
    soft_energy,
    torn_links,
    weighted_problem,
)

QUIET = SILENT


def problem_of(normals: np.ndarray, mask: np.ndarray | None = None) -> RobustProblem:
    mask = np.ones(normals.shape[:2], dtype=bool) if mask is None else mask
    return RobustProblem(SlopeSource(normals, mask).field(mask))


def squared_residuals(field: SlopeField, values: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The squared residuals of the forward and the backward equation along columns and rows; NaN without a neighbor."""
    z = np.pad(np.where(field.mask, values, np.nan), 1, constant_values=np.nan)
    middle, found = z[1:-1, 1:-1], []
    for after, ahead, tilt in (
        (z[1:-1, 2:], z[1:-1, :-2], field.tilt_col),
        (z[2:, 1:-1], z[:-2, 1:-1], field.tilt_row),
    ):
        plus, minus = field.facing * (after - middle) - tilt, field.facing * (middle - ahead) - tilt
        found.append((plus**2, minus**2))
    return found


def choice(field: SlopeField, values: np.ndarray, k: float) -> tuple[list[np.ndarray], np.ndarray]:
    """Shares and energies in array operations, from their definition."""
    shares, energy = [], np.zeros(values.shape)
    for plus, minus in squared_residuals(field, values):
        both = np.isfinite(plus) & np.isfinite(minus)
        with np.errstate(invalid="ignore", over="ignore"):
            share = np.where(both, 1 / (1 + np.exp(-k * (minus - plus))), 0.5)
            soft = -np.log(0.5 * np.exp(-k * plus) + 0.5 * np.exp(-k * minus)) / k
        one = 0.5 * (np.nan_to_num(plus) + np.nan_to_num(minus))
        shares.append(share)
        energy += field.confidence * np.where(both, soft, one)
    return shares, energy


@pytest.fixture(scope="module")
def noisy_flap(shapes) -> RobustProblem:
    _, normals = shapes.flap(40)
    return problem_of(normals + 0.05 * np.random.default_rng(0).normal(size=normals.shape))


def test_the_weighted_problem() -> None:
    """The residual is minus half the gradient of the weighted cost, and the lattice its second derivative."""
    rng = np.random.default_rng(3)
    mask = rng.random((43, 31)) < 0.7
    normals = rng.normal(0, 0.3, (43, 31, 3)) + np.array([0.0, 0.0, 1.0])
    field = SlopeSource(normals, mask).field(mask)
    shares = tuple(rng.uniform(0.01, 0.99, mask.shape).astype(np.float32) for _ in range(2))

    def cost(values: np.ndarray) -> float:
        total = 0.0
        for (plus, minus), share in zip(squared_residuals(field, values), shares, strict=True):
            own = share * np.nan_to_num(plus) + (1.0 - share) * np.nan_to_num(minus)
            total += float((field.confidence * own).sum())
        return total

    values, direction = rng.normal(size=(2, *mask.shape)) * mask
    lattice, residual = weighted_problem(field, shares, values, QUIET)
    ahead, behind = cost(values + direction), cost(values - direction)
    assert -2 * (residual * direction).sum() == pytest.approx(0.5 * (ahead - behind), rel=1e-6)
    bend = (direction * lattice.apply(direction, np.empty(mask.shape))).sum()
    assert 2 * bend == pytest.approx(ahead - 2 * cost(values) + behind, rel=1e-5)


@pytest.mark.parametrize("size", [64, 75, 106])
def test_keeps_a_step_that_least_squares_smears(shapes, size: int) -> None:
    """At even and odd places of the tear, so that it also lies inside the blocks of coarser resolutions."""
    truth, normals = shapes.flap(size)
    middle = size // 2
    step = (truth[middle - 1] - truth[middle])[middle:]
    kept = {}
    for method in ("poisson", "robust"):
        surface = integrate(normals, method=method)
        kept[method] = ((surface.depth[middle - 1] - surface.depth[middle])[middle:] / step).min()
    assert kept["robust"] > 0.8
    assert kept["poisson"] < 0.5
    torn = surface.torn_down
    assert torn[middle - 1, middle:-1].all()
    assert surface.tears < 1.2 * (size - size // 4)


def test_the_sweep_equals_array_operations() -> None:
    rng = np.random.default_rng(1)
    mask = rng.random((23, 31)) > 0.2
    normals = rng.normal(size=(23, 31, 3))
    normals[..., 2] = np.abs(normals[..., 2])
    problem = problem_of(normals, mask)
    values = rng.normal(size=mask.shape)
    shares, energy = soft_choice(problem.field, values, 4.0)
    expected_shares, expected = choice(problem.field, values, 4.0)
    assert abs(soft_energy(problem.field, values, 4.0) - expected.sum()) < 1e-12 * expected.sum()
    assert np.abs(energy - expected).max() < 1e-6 * np.abs(expected).max()
    for axis in (0, 1):
        assert np.abs(shares[axis] - expected_shares[axis])[mask].max() < 2e-6


def test_shares_minimize_the_energy() -> None:
    """The closed form against a brute-force search over the share of one pixel."""
    p, m, k = 0.7, 0.3, 4.0
    w = np.linspace(1e-6, 1 - 1e-6, 200_001)
    entropy = w * np.log(2 * w) + (1 - w) * np.log(2 * (1 - w))
    cost = w * p + (1 - w) * m + entropy / k
    share = 1 / (1 + np.exp(-k * (m - p)))
    energy = -np.log(0.5 * np.exp(-k * p) + 0.5 * np.exp(-k * m)) / k
    assert abs(w[cost.argmin()] - share) < 1e-5
    assert abs(cost.min() - energy) < 1e-9


@pytest.mark.parametrize("limit", [12_000, 100])
def test_energy_never_rises(
    noisy_flap: RobustProblem, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """With exact solves and with loose ones, and through the shifts of tears."""
    monkeypatch.setattr(robust, "TIGHT_UP_TO", limit)
    result = descend(replace(noisy_flap, max_iter=60, tol=1e-9), np.zeros((40, 40)))
    energy = np.array(result.energy)
    assert (np.diff(energy) <= 1e-12 * energy[0]).all()
    assert energy[-1] < 0.2 * energy[0]


def test_gradient_vanishes_at_the_end(noisy_flap: RobustProblem) -> None:
    """Finite differences of the energy, in random directions, at a tightly converged result."""
    start = start_from_least_squares(noisy_flap, QUIET)
    result = descend(replace(noisy_flap, max_iter=2000, tol=1e-14, inner_rtol=1e-8), start)
    field, k = noisy_flap.field, noisy_flap.sharpness

    def energy(values: np.ndarray) -> float:
        return float(choice(field, values, k)[1].sum())

    rng = np.random.default_rng(0)
    for _ in range(5):
        direction = rng.normal(size=result.values.shape)
        step = 1e-5
        change = energy(result.values + step * direction) - energy(result.values - step * direction)
        reference = np.linalg.norm(direction) * energy(result.values)
        assert abs(change / (2 * step)) < 1e-4 * reference


def test_loose_solves_end_where_tight_ones_do(
    noisy_flap: RobustProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(robust, "TIGHT_UP_TO", 100)
    loose = solve_robust(noisy_flap)
    tight = solve_robust(replace(noisy_flap, max_iter=1000, tol=1e-10, inner_rtol=1e-8))
    assert loose.energy[-1] < 1.01 * tight.energy[-1]
    spread = np.ptp(tight.values)
    assert np.std(loose.values - tight.values) < 0.01 * spread


def test_shift_moves_a_misplaced_tear(shapes) -> None:
    """The row below the tear is glued to the upper side: one call brings it home, and the energy falls."""
    truth, normals = shapes.flap(48)
    problem = problem_of(normals)
    wrong = truth.copy()
    wrong[24] = truth[23]
    moved = shift_tears(problem.field, wrong, 4.0, QUIET)
    assert problem.energy(moved) < problem.energy(wrong)
    assert np.abs(moved[24, 18:] - truth[24, 18:]).max() < 1e-9


def test_half_the_resolution_and_back(shapes) -> None:
    """Blocks of a plane have its slopes; half its heights at the blocks' middles give all of it back."""
    normals = shapes.normals_of(np.full((11, 14), 0.6), np.full((11, 14), -0.3))
    mask = np.random.default_rng(0).random((11, 14)) > 0.3
    problem = problem_of(normals, mask)
    coarse = coarsen(problem.field, QUIET)
    slope = coarse.tilt_col[coarse.mask] / coarse.facing[coarse.mask]
    assert np.abs(slope - 0.6).max() < 1e-12
    row, col = np.indices(coarse.facing.shape)
    half = 0.5 * (0.6 * (2 * col + 0.5) - 0.3 * (2 * row + 0.5))
    row, col = np.indices(mask.shape)
    assert np.abs(prolong(half, problem.field, QUIET) - (0.6 * col - 0.3 * row))[mask].max() < 1e-12


def test_smooth_surface_does_not_tear(shapes) -> None:
    truth, normals, mask, _ = shapes.sphere(101)
    surface = integrate(normals, mask, method="robust")
    assert surface.tears == 0
    assert np.abs(shapes.aligned(surface.depth, truth, mask)).max() < 0.1


def test_torn_needs_both_ends() -> None:
    shares, half = np.array([[0.5, 0.1, 0.9, 0.5]]), np.full((1, 4), 0.5)
    row = np.ones((1, 4), dtype=bool)
    right, down = torn_links(row, (shares, half))
    assert right.tolist() == [[False, True, False, False]] and not down.any()
    right, down = torn_links(row.T, (half.T, shares.T))
    assert down.T.tolist() == [[False, True, False, False]] and not right.any()


def test_progress_and_warning(shapes, heard) -> None:
    _, normals = shapes.flap(24)
    with pytest.warns(ConvergenceWarning):
        surface = integrate(normals, method="robust", max_iter=2, control=heard)
    assert surface.status == "max_iter"
    assert heard.stages == [("integrate (robust)", 2)]
    assert heard.steps == [1, 1]
    assert len(surface.energy) == 3


def test_anchors_set_the_height(shapes) -> None:
    truth, normals = shapes.flap(40)
    anchors = np.full(truth.shape, np.nan)
    anchors[30, 5] = 3.0
    surface = integrate(normals, method="robust", anchors=anchors)
    assert np.abs(surface.depth[25:, 15:] - 3.0).max() < 0.5
    assert abs(surface.depth[30, 5] - 3.0) < 1e-3
