"""Sparse regression: L1 against an exact linear program, SBL against its plain form, the descent with a prior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from photostereo.core.control import SILENT, Control
from photostereo.reflectance.sparse.model import LeastAbsolute, SparseBayes
from photostereo.reflectance.sparse.reweighted import noise_of_residuals

from .readable import l1_reweighted_readable, sbl_readable


def dome(photographs: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    lights = rng.normal(size=(3, photographs)) + np.array([[0.0], [0.0], [2.0]])
    return lights / np.linalg.norm(lights, axis=0)


def corrupted(count: int = 60, photographs: int = 24, share: float = 0.2, seed: int = 0):
    """Lambertian pixels of many brightnesses, a little noise, and a share of wrong entries."""
    rng = np.random.default_rng(seed)
    lights = dome(photographs, seed)
    normals = rng.normal(size=(count, 3)) * 0.3 + [0, 0, 1]
    normals *= rng.uniform(0.05, 1.0, size=(count, 1))
    pixels = np.maximum(normals @ lights, 0) + rng.normal(0, 2e-3, size=(count, photographs))
    wrong = rng.random(pixels.shape) < share
    pixels[wrong] = rng.uniform(0, 1.5, size=wrong.sum())
    return pixels, lights, normals, wrong


def least_absolute_program(y, lights):
    """min Σ t subject to −t ≤ y − Lᵀn ≤ t, by HiGHS."""
    d = len(y)
    identity = np.eye(d)
    rows = np.block([[lights.T, -identity], [-lights.T, -identity]])
    cost = np.concatenate([np.zeros(3), np.ones(d)])
    bounds = [(None, None)] * 3 + [(0, None)] * d
    return linprog(cost, A_ub=rows, b_ub=np.concatenate([y, -y]), bounds=bounds, method="highs").x[
        :3
    ]


def check_against_program(pixels, lights, atol):
    """Costs relative to the pixel's brightness may differ by atol; so may the minimizers, where they are unique."""
    found = LeastAbsolute(pixels, lights).alone(SILENT)
    assert found.converged
    for y, n in zip(pixels.astype(np.float64), found.normals, strict=True):
        exact = least_absolute_program(y / y.max(), lights) * y.max()
        gap = np.abs(y - n @ lights).sum() - np.abs(y - exact @ lights).sum()
        assert gap < atol * y.max()
        assert np.abs(n - exact).max() < 1e3 * atol * y.max()


def test_l1_is_the_minimizer_of_the_linear_program() -> None:
    pixels, lights, *_ = corrupted(count=80)
    check_against_program(pixels, lights, 1e-9)


def test_l1_with_few_photographs() -> None:
    for photographs in (4, 5, 7):
        pixels, lights, *_ = corrupted(count=20, photographs=photographs, seed=photographs)
        check_against_program(np.abs(pixels), lights, 1e-9)


def test_l1_is_exact_where_most_photographs_fit_exactly() -> None:
    """More than three residuals are zero at the optimum: the degenerate case of the descent along edges."""
    rng = np.random.default_rng(3)
    lights = dome(20, 3)
    normals = rng.normal(size=(200, 3)) * 0.2 + [0, 0, 1]
    pixels = normals @ lights
    for row in pixels:
        row[rng.choice(20, 3, replace=False)] = 0
    found = LeastAbsolute(pixels, lights).alone(SILENT)
    assert found.converged
    assert np.abs(found.normals - normals).max() < 1e-8


def test_l1_starts_like_the_readable_reweighting() -> None:
    """Reweighting alone stops short of the optimum by about its floor, 1e-6 of the brightness."""
    pixels, lights, *_ = corrupted(count=40)
    readable = l1_reweighted_readable(pixels, lights, max_iter=3000, tol=1e-12)
    found = LeastAbsolute(pixels, lights).alone(SILENT).normals
    costs = [np.abs(pixels - n @ lights).sum(axis=1) for n in (readable, found)]
    assert (costs[1] <= costs[0] + 1e-12).all()
    assert np.abs(readable - found).max() < 1e-3


def test_l1_number_of_reweighting_steps_does_not_matter() -> None:
    pixels, lights, *_ = corrupted(count=50)
    few, many = (
        LeastAbsolute(pixels, lights, max_iter=steps).alone(SILENT).normals for steps in (1, 60)
    )
    assert np.abs(few - many).max() < 1e-9


@pytest.mark.parametrize("noise", [1e-6, 1e-3, 1e-1])
def test_sbl_equals_the_readable_expectation_maximization(noise: float) -> None:
    pixels, lights, *_ = corrupted(count=60)
    pixels[5] = 0.0
    readable = sbl_readable(pixels, lights, noise=noise)
    found = SparseBayes(pixels, lights, noise=noise).alone(SILENT)
    # The iteration counts may differ by one where a step lies at the tolerance: 1e-5 of the brightness.
    assert np.abs(found.normals - readable).max() < 2e-5
    assert np.median(np.abs(found.normals - readable)) < 1e-12


def test_sbl_finds_the_normals_and_the_wrong_photographs() -> None:
    pixels, lights, normals, wrong = corrupted(count=300, photographs=40)
    fit = SparseBayes(pixels, lights, noise=None).alone(SILENT)
    inliers = fit.unknowns["inliers"]
    assert inliers.shape == pixels.shape
    far = wrong & (np.abs(pixels - normals @ lights) > 0.05)
    lit = normals @ lights > 0
    assert (inliers[far & lit] < 0.1).mean() > 0.99
    assert inliers[~wrong & lit].mean() > 10 * inliers[far].mean()
    assert np.percentile(np.abs(fit.normals - normals), 99) < 0.01


def test_a_factor_per_capture_scales_the_normals() -> None:
    pixels, lights, *_ = corrupted()
    for model in (LeastAbsolute, SparseBayes):
        one, many = (model(factor * pixels, lights).alone(SILENT).normals for factor in (1.0, 8.0))
        assert np.abs(8.0 * one - many).max() < 1e-9


def test_black_pixels_and_constant_pixels() -> None:
    pixels, lights, *_ = corrupted(count=4)
    pixels[0] = 0.0
    pixels[1] = 0.5
    for model in (
        LeastAbsolute(pixels, lights),
        SparseBayes(pixels, lights),
        SparseBayes(pixels, lights, noise=None),
    ):
        normals = model.alone(SILENT).normals
        assert not normals[0].any()
        assert np.isfinite(normals).all()
        n, u = model.start(SILENT)
        assert np.isfinite(
            model.update_normals(u, 0.1 * np.full(4, 4.0), 0.1 * np.zeros((4, 3)))
        ).all()
        assert np.isfinite(model.cost(n, u))


def test_noise_is_measured_through_the_outliers() -> None:
    rng = np.random.default_rng(0)
    for sigma in (0.01, 0.1):
        lights = dome(20)
        pixels = (rng.normal(size=(4000, 3)) * 0.2 + [0, 0, 1]) @ lights
        pixels += rng.normal(0, sigma, pixels.shape)
        clean = noise_of_residuals(
            pixels, lights, LeastAbsolute(pixels, lights).alone(SILENT).normals
        )
        assert clean == pytest.approx(sigma, rel=0.15)
        pixels[rng.random(pixels.shape) < 0.1] = 1.5
        normals = LeastAbsolute(pixels, lights).alone(SILENT).normals
        # Outliers push the quantile up, by less than half where a tenth of the entries is wrong.
        assert 0.9 * sigma < noise_of_residuals(pixels, lights, normals) < 1.5 * sigma


def test_noise_is_seen_where_most_entries_are_zero() -> None:
    """So few photons that three entries in five are zero: the median of the residuals would be zero too."""
    rng = np.random.default_rng(0)
    lights = dome(20)
    pixels = 0.5 * rng.poisson(np.full((4000, 20), 0.5))
    normals = LeastAbsolute(pixels, lights).alone(SILENT).normals
    assert noise_of_residuals(pixels, lights, normals) > 0.5 * pixels.std()


def robust_cost(r, tau, redescending):
    square = r * r
    outer = (
        tau * (1 + np.log(np.maximum(square, tau) / tau))
        if redescending
        else 2 * np.sqrt(tau * square) - tau
    )
    return np.where(square <= tau, square, outer).sum()


MODELS = [
    pytest.param(lambda y, L: SparseBayes(y, L, noise=None), True, id="sbl-auto"),
    pytest.param(lambda y, L: SparseBayes(y, L, noise=1e-3), True, id="sbl"),
    pytest.param(lambda y, L: LeastAbsolute(y, L), False, id="l1"),
]


@pytest.mark.parametrize(("build", "redescending"), MODELS)
def test_cost_touches_the_robust_cost_at_the_models_own_normals_and_lies_above_it(
    build, redescending
) -> None:
    pixels, lights, *_ = corrupted(count=10)
    model = build(pixels, lights)
    own, unknowns = model.start(SILENT)

    def robust(normals):
        rows = zip(pixels, normals, model.thresholds(), strict=True)
        return sum(robust_cost(y - n @ lights, tau, redescending) for y, n, tau in rows)

    assert model.cost(own, unknowns) == pytest.approx(robust(own), rel=1e-9)
    rng = np.random.default_rng(3)
    for step in (1e-3, 1e-2, 0.1, 1.0):
        moved = own + step * rng.normal(size=own.shape)
        assert model.cost(moved, unknowns) >= robust(moved)


@pytest.mark.parametrize(("build", "redescending"), MODELS)
def test_a_prior_makes_no_outliers(build, redescending) -> None:
    """However far a prior pulls, the photographs resist in proportion: the force on n is linear in its shift."""
    pixels, lights, *_ = corrupted(count=50)
    model = build(pixels, lights)
    _, unknowns = model.start(SILENT)
    weight = np.full(50, 1e-9)
    free = model.update_normals(unknowns, weight, np.zeros((50, 3)))
    shifts = []
    for strength in (1.0, 100.0):
        pulled = model.update_normals(unknowns, weight, np.full((50, 3), strength))
        unknowns = model.update_unknowns(pulled, unknowns)
        shifts.append(pulled - free)
    assert np.abs(shifts[1] - 100.0 * shifts[0]).max() < 1e-6 * np.abs(shifts[1]).max()


@pytest.mark.parametrize(("build", "redescending"), MODELS)
def test_the_normals_update_is_the_minimizer(build, redescending) -> None:
    pixels, lights, *_ = corrupted(count=6)
    model = build(pixels, lights)
    rng = np.random.default_rng(1)
    lam, count, pull = 0.7, np.arange(6) % 3 + 1.0, rng.normal(size=(6, 3))
    _, unknowns = model.start(SILENT)
    found = model.update_normals(unknowns, lam * count, lam * pull)

    def objective(x):
        n = x.reshape(-1, 3)
        return (
            model.cost(n, unknowns)
            + lam * (count * (n * n).sum(axis=1) - 2 * (n * pull).sum(axis=1)).sum()
        )

    best = minimize(objective, found.ravel() + 0.01, method="BFGS", options={"gtol": 1e-9})
    assert objective(found.ravel()) <= best.fun + 1e-10
    assert np.abs(found.ravel() - best.x).max() < 1e-5


@pytest.mark.parametrize(("build", "redescending"), MODELS)
def test_no_half_step_raises_the_cost(build, redescending) -> None:
    pixels, lights, *_ = corrupted(count=400, photographs=12, share=0.3)
    model = build(pixels, lights)
    rng = np.random.default_rng(2)
    normals, unknowns = model.start(SILENT)
    lam, count, pull = 0.5, np.full(400, 4.0), 4 * normals + rng.normal(0, 0.3, size=(400, 3))

    def total():
        prior = count * (normals * normals).sum(axis=1) - 2 * (normals * pull).sum(axis=1)
        return model.cost(normals, unknowns) + lam * prior.sum()

    costs = [total()]
    for _ in range(25):
        normals = model.update_normals(unknowns, lam * count, lam * pull)
        costs.append(total())
        unknowns = model.update_unknowns(normals, unknowns)
        costs.append(total())
    assert np.diff(costs).max() <= 1e-11 * abs(costs[0])
    assert costs[-1] < costs[0] - 1e-3


def test_weights_of_the_prior_mode_are_shown() -> None:
    pixels, lights, *_ = corrupted(count=10)
    model = SparseBayes(pixels, lights, noise=None)
    normals, unknowns = model.start(SILENT)
    weights = model.maps(normals, unknowns)["inliers"]
    square = (pixels - normals @ lights) ** 2
    tau = model.thresholds()[0]
    assert np.abs(weights - tau / np.maximum(square, tau)).max() < 1e-6


def test_progress_covers_every_pixel() -> None:
    class Count(Control):
        total = done = 0

        def on_stage(self, name, total=None):
            self.total = total

        def on_advance(self, steps=1):
            self.done += steps

    pixels, lights, *_ = corrupted(count=60)
    pixels = np.tile(pixels, (300, 1))
    control = Count()
    SparseBayes(pixels, lights).alone(control)
    assert control.done == control.total == len(pixels)


def test_threads_and_batches_do_not_change_the_result() -> None:
    import numba

    pixels, lights, *_ = corrupted(count=200)
    before = numba.get_num_threads()
    results = []
    try:
        for threads in {1, before}:
            numba.set_num_threads(threads)
            results.append(
                [m(pixels, lights).alone(SILENT).normals for m in (LeastAbsolute, SparseBayes)]
            )
    finally:
        numba.set_num_threads(before)
    alone = [m(pixels[7:8], lights).alone(SILENT).normals[0] for m in (LeastAbsolute, SparseBayes)]
    for pair in results:
        for whole, first, single in zip(pair, results[0], alone, strict=True):
            assert np.array_equal(whole, first)
            assert np.array_equal(whole[7], single)
