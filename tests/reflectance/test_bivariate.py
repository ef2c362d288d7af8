"""Constrained bivariate regression against independent solvers: SciPy's NNLS, and SLSQP on the original problem."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize, nnls

from photostereo.core.control import SILENT
from photostereo.core.errors import ParameterError
from photostereo.reflectance.bivariate.kernels import nonnegative_least_squares, scratch
from photostereo.reflectance.bivariate.model import RIDGE, Bivariate, bernstein_basis, monotone_cone


def curved(count=12, photographs=30, seed=0):
    """Pixels of a reflectance that is no polynomial: a diffuse part, a lobe, a little noise."""
    rng = np.random.default_rng(seed)
    lights = rng.normal(size=(3, photographs)) + np.array([[0.0], [0.0], [2.0]])
    lights /= np.linalg.norm(lights, axis=0)
    normals = rng.normal(size=(count, 3)) * 0.3 + [0, 0, 1]
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    shading = np.maximum(normals @ lights, 0)
    pixels = rng.uniform(0.2, 1, (count, 1)) * (shading + 0.5 * shading**8)
    return pixels + rng.uniform(0, 0.02, pixels.shape), lights, normals


def design(y, lights, orders, total="sum"):
    """The matrix Φ of one pixel, readable, and the weights c of the constraint."""
    first, second = orders
    top = y.max()
    t = (lights[2] - lights[2].min()) / np.ptp(lights[2])
    along = bernstein_basis(first, y / top)[:, 1:]
    columns = (along[:, :, None] * bernstein_basis(second, t)[:, None, :]).reshape(len(y), -1)
    c = np.ones((first, second + 1))
    if total == "top":
        c[:-1] = 0
    identity = np.repeat(np.arange(1, first + 1) / first, second + 1)
    return columns * top * (c.ravel() @ identity), c.ravel()


def differences(orders, slope):
    """Rows g such that g·a ≥ 0 says that the grid a is non-negative and monotone."""
    first, second = orders
    rows = []
    for i in range(first):
        for j in range(second + 1):
            row = np.zeros((first, second + 1))
            row[i, j] = 1
            if i > 0:
                row[i - 1, j] = -1
            rows.append(row.ravel())
            if j > 0 and slope != "free":
                row = np.zeros((first, second + 1))
                row[i, j], row[i, j - 1] = (1, -1) if slope == "rising" else (-1, 1)
                rows.append(row.ravel())
    return np.array(rows)


def quadratic(y, lights, orders, total):
    phi, c = design(y, lights, orders, total)
    projector = np.eye(len(y)) - lights.T @ np.linalg.solve(lights @ lights.T, lights)
    T = phi.T @ phi
    return phi.T @ projector @ phi + RIDGE * np.trace(T) * np.eye(len(T)), c


@pytest.mark.parametrize("seed", range(5))
def test_nnls_equals_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for size in (3, 5, 19):
        C, y = rng.normal(size=(30, size)), rng.normal(size=30)
        w = np.empty(size)
        nonnegative_least_squares(C.T @ C, C.T @ y, w, 1e-12, *scratch(len(w)))
        assert np.abs(w - nnls(C, y)[0]).max() < 1e-9


def test_nnls_with_dependent_columns_meets_the_optimality_conditions() -> None:
    """SciPy is no judge here: with dependent columns its answers grow to 1e14."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        C = rng.normal(size=(20, 4)) @ rng.normal(size=(4, 9))
        y = rng.normal(size=20)
        w = np.empty(9)
        nonnegative_least_squares(C.T @ C, C.T @ y, w, 1e-12, *scratch(len(w)))
        gradient = C.T @ (y - C @ w)
        assert (w >= 0).all()
        assert gradient.max() < 1e-6
        assert np.abs(gradient[w > 0]).max(initial=0) < 1e-6


@pytest.mark.parametrize("slope", ["rising", "falling", "free"])
@pytest.mark.parametrize("orders", [(1, 1), (2, 1), (3, 2), (4, 0)])
def test_the_cone_is_all_monotone_grids(orders, slope) -> None:
    first, second = orders
    cone = monotone_cone(first, second + 1, slope)
    test = differences(orders, slope)
    assert (cone @ test.T >= 0).all()
    if slope != "free":
        assert len(cone) == comb(first + second + 1, first) - 1
    # Random points of the polyhedral cone: solutions of test · a = s with s ≥ 0 that are consistent.
    rng = np.random.default_rng(0)
    for _ in range(30):
        grid = np.cumsum(rng.exponential(size=(first, second + 1)), axis=0)
        if slope != "free":
            grid = np.cumsum(grid, axis=1)
        if slope == "falling":
            grid = grid[:, ::-1]
        assert (test @ grid.ravel() >= 0).all()
        assert nnls(cone.T, grid.ravel())[1] < 1e-10


@pytest.mark.parametrize("slope", ["rising", "falling", "free"])
@pytest.mark.parametrize("total", ["sum", "top"])
@pytest.mark.parametrize("orders", [(2, 1), (3, 2)])
def test_fit_is_the_minimizer_of_the_original_problem(orders, slope, total) -> None:
    pixels, lights, _ = curved(count=6)
    fit = Bivariate(pixels, lights, orders=orders, slope=slope, total=total).alone(SILENT)
    for y, n, a in zip(pixels, fit.normals, fit.unknowns["coefficients"], strict=True):
        check_optimal(y, lights, n, a, orders, slope, total)


def check_optimal(y, lights, n, a, orders, slope, total, polish=True):
    """Feasible, its normal the least-squares one, KKT residual at rounding, and SLSQP finds nothing better."""
    S, c = quadratic(y, lights, orders, total)
    scale = np.trace(S) / len(S)
    test = differences(orders, slope)
    assert (test @ a).min() > -1e-10
    assert c @ a == pytest.approx(1, abs=1e-10)
    phi, _ = design(y, lights, orders, total)
    assert np.abs(n - np.linalg.lstsq(lights.T, phi @ a, rcond=None)[0]).max() < 1e-6
    # KKT: 2 S a = ν c + testᵀ m with m ≥ 0 on the active rows; ν = 2 aᵀS a by complementarity.
    active = test @ a < 1e-9
    gradient = 2 * S @ a - 2 * (a @ S @ a) * c
    if active.any():
        multipliers = lsq_linear(test[active].T, gradient, bounds=(0, np.inf), tol=1e-14)
        residual = np.abs(test[active].T @ multipliers.x - gradient).max()
    else:
        residual = np.abs(gradient).max()
    assert residual < 1e-8 * scale
    if polish:
        better = minimize(
            lambda x: x @ S @ x / scale,
            np.full(len(a), 1 / c.sum()),
            jac=lambda x: 2 * S @ x / scale,
            method="SLSQP",
            constraints=[
                {"type": "eq", "fun": lambda x: c @ x - 1, "jac": lambda x: c},
                {"type": "ineq", "fun": lambda x: test @ x, "jac": lambda x: test},
            ],
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert a @ S @ a / scale <= better.fun + 1e-9


def test_lambertian_pixels_keep_their_normals_and_albedo() -> None:
    _, lights, normals = curved(count=30)
    normals = normals * np.linspace(0.1, 3, 30)[:, None]
    lights = lights[:, (normals @ lights).min(axis=0) > 0]
    for options in ({}, {"orders": (3, 2), "slope": "falling", "total": "top"}):
        found = Bivariate(normals @ lights, lights, **options).alone(SILENT).normals
        assert np.abs(found - normals).max() < 1e-3


def test_recovers_a_monotone_reflectance_exactly() -> None:
    """l·n = I² up to a scale is of order (2, 0): no error is left but rounding."""
    _, lights, normals = curved(count=30)
    lights = lights[:, (normals @ lights).min(axis=0) > 0.05]
    pixels = np.sqrt(normals @ lights)
    found = Bivariate(pixels, lights).alone(SILENT).normals
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    assert np.abs(found - normals).max() < 1e-4
    plain = pixels @ np.linalg.pinv(lights)
    plain /= np.linalg.norm(plain, axis=1, keepdims=True)
    assert np.abs(plain - normals).max() > 0.05


def test_shadowed_entries_have_no_influence() -> None:
    pixels, lights, _ = curved(count=20)
    dark = pixels < 0.2 * pixels.max(axis=1, keepdims=True)
    assert dark.any()
    other = np.where(dark, 0.01 * pixels, pixels)
    first, second = (
        Bivariate(p, lights, shadow=0.2).alone(SILENT).normals for p in (pixels, other)
    )
    assert np.array_equal(first, second)


def test_pixels_that_tell_nothing_fall_back_to_least_squares() -> None:
    pixels, lights, _ = curved(count=5)
    pixels[0] = 0.0
    pixels[1] = 0.4
    pixels[2, 2:] = 0.0  # two photographs above the shadow threshold
    model = Bivariate(pixels, lights, shadow=0.1)
    fit = model.alone(SILENT)
    assert np.abs(fit.normals[:3] - pixels[:3] @ np.linalg.pinv(lights)).max() < 1e-12
    count, pull = np.full(5, 4.0), np.zeros((5, 3))
    normals = model.update_normals(fit.unknowns, 0.5 * count, 0.5 * pull)
    expected = np.linalg.solve(lights @ lights.T + 2.0 * np.eye(3), lights @ pixels[1])
    assert np.abs(normals[1] - expected).max() < 1e-10
    assert np.isfinite(model.cost(normals, model.update_unknowns(normals, fit.unknowns)))


def test_no_half_step_raises_the_cost_and_each_is_the_minimizer() -> None:
    pixels, lights, _ = curved(count=15)
    model = Bivariate(pixels, lights, gamma=1e3)
    normals, unknowns = model.start(SILENT)
    rng = np.random.default_rng(1)
    lam, count, pull = 0.4, np.full(15, 4.0), 4 * normals + rng.normal(0, 0.2, size=(15, 3))

    def total():
        prior = count * (normals * normals).sum(axis=1) - 2 * (normals * pull).sum(axis=1)
        return model.cost(normals, unknowns) + lam * prior.sum()

    costs = [total()]
    for _ in range(10):
        normals = model.update_normals(unknowns, lam * count, lam * pull)
        costs.append(total())
        unknowns = model.update_unknowns(normals, unknowns)
        costs.append(total())
    assert np.diff(costs).max() <= 1e-10 * abs(costs[0])
    cone = monotone_cone(2, 2, "rising")
    for y, n, a in zip(pixels, normals, unknowns["coefficients"], strict=True):
        phi, c = design(y, lights, (2, 1))
        rows = np.vstack([phi, np.sqrt(1e3) * c]) @ cone.T
        right = np.concatenate([lights.T @ n, [np.sqrt(1e3)]])
        assert np.linalg.norm(rows @ nnls(cone.T, a)[0] - right) <= nnls(rows, right)[1] + 1e-8


def test_cost_is_the_sum_of_squares() -> None:
    pixels, lights, normals = curved(count=7)
    model = Bivariate(pixels, lights, gamma=10.0)
    unknowns = model.update_unknowns(normals, {})
    expected = 0.0
    for y, n, a in zip(pixels, normals, unknowns["coefficients"], strict=True):
        phi, c = design(y, lights, (2, 1))
        expected += ((phi @ a - lights.T @ n) ** 2).sum() + 10.0 * (c @ a - 1) ** 2
    assert model.cost(normals, unknowns) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("orders", [(0, 1), (2, 9), (2,)])
def test_orders_out_of_range_are_refused(orders) -> None:
    pixels, lights, _ = curved(count=1)
    with pytest.raises(ParameterError) as caught:
        Bivariate(pixels, lights, orders=orders)
    assert caught.value.code == "bad-orders"
