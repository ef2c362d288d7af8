"""Robust PCA: the blocked iteration through the Gram matrix against a plain singular value decomposition."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.core.control import SILENT, Control
from photostereo.reflectance.lambertian.model import Lambertian
from photostereo.reflectance.lowrank import model as lowrank
from photostereo.reflectance.lowrank.model import LowRank, robust_pca

from .readable import robust_pca_readable


def low_rank_and_sparse(rows=300, columns=40, rank=3, share=0.05, seed=0):
    rng = np.random.default_rng(seed)
    clean = rng.normal(size=(rows, rank)) @ rng.normal(size=(rank, columns))
    wrong = rng.random(clean.shape) < share
    return np.where(wrong, clean + rng.uniform(-8, 8, clean.shape), clean), clean, wrong


@pytest.mark.parametrize("weight", [0.5, 1.0, 3.0])
@pytest.mark.parametrize(("columns", "at_once"), [(40, 1 << 18), (39, 400), (5, 7)])
def test_equals_the_plain_decomposition(
    weight: float, columns: int, at_once: int, monkeypatch
) -> None:
    monkeypatch.setattr(lowrank, "AT_ONCE", at_once)
    dirty, *_ = low_rank_and_sparse(columns=columns)
    A, E = robust_pca_readable(dirty, weight / np.sqrt(300))
    found = robust_pca(dirty, weight=weight)
    assert found.converged
    # The result is stored in single precision, and differs from A by the last residual: 1e-7 of the norm.
    assert np.abs(found.low_rank - A).max() < 1e-5
    assert np.abs((dirty - found.low_rank) - E).max() < 1e-5
    # One singular value may lie at the last threshold to rounding.
    assert abs(found.rank - np.linalg.matrix_rank(A, tol=1e-11 * np.linalg.norm(A, 2))) <= 1


def test_recovers_the_clean_matrix() -> None:
    dirty, clean, _ = low_rank_and_sparse(rows=500, columns=60, share=0.04)
    assert np.abs(robust_pca(dirty).low_rank - clean).max() < 1e-4


def test_photographs_in_single_precision_give_the_same() -> None:
    dirty, *_ = low_rank_and_sparse()
    single, double = robust_pca(dirty.astype(np.float32)), robust_pca(dirty)
    assert np.abs(single.low_rank - double.low_rank).max() < 2e-5


def test_entries_not_observed_may_be_anything() -> None:
    dirty, clean, wrong = low_rank_and_sparse(rows=500, columns=60, share=0.25)
    without = np.abs(robust_pca(dirty).low_rank - clean).max()
    observed = robust_pca(dirty, observed=~wrong)
    assert observed.converged
    assert np.abs(observed.low_rank - clean).max() < 1e-4 < without
    other = np.where(wrong, 1.0, dirty)
    assert np.abs(robust_pca(other, observed=~wrong).low_rank - clean).max() < 1e-4


def test_solution_satisfies_the_optimality_conditions() -> None:
    """λ sign(E) on the support of E and |·| ≤ λ off it must be a subgradient of the nuclear norm at A."""
    dirty, *_ = low_rank_and_sparse(rows=120, columns=20)
    lam = 1.0 / np.sqrt(120)
    parts = robust_pca(dirty, tol=1e-9)
    A = parts.low_rank.astype(np.float64)
    E = dirty - A
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    U, Vt = U[:, : parts.rank], Vt[: parts.rank]
    # Any other split along a direction H costs no less: ‖A + H‖_* + λ‖E − H‖₁ for random and for targeted H.
    rng = np.random.default_rng(0)
    value = s.sum() + lam * np.abs(E).sum()
    for scale in (1e-3, 1e-1):
        for _ in range(20):
            for H in (rng.normal(size=A.shape), U @ rng.normal(size=(parts.rank, 20)), np.sign(E)):
                H = scale * H / np.linalg.norm(H)
                other = np.linalg.norm(A + H, "nuc") + lam * np.abs(E - H).sum()
                assert other >= value - 1e-4 * scale


def test_a_constant_factor_only_scales() -> None:
    dirty, *_ = low_rank_and_sparse()
    assert np.abs(robust_pca(dirty).low_rank * 16 - robust_pca(dirty * 16).low_rank).max() < 2e-4


def test_nothing_in_nothing_out() -> None:
    parts = robust_pca(np.zeros((30, 5), np.float32))
    assert parts.converged and parts.iterations == 0 and not parts.low_rank.any()


def test_stops_at_the_limit_and_says_so() -> None:
    dirty, *_ = low_rank_and_sparse()
    parts = robust_pca(dirty, max_iter=3)
    assert parts.iterations == 3 and not parts.converged


def test_the_model_is_the_lambertian_one_on_the_cleaned_photographs() -> None:
    rng = np.random.default_rng(1)
    lights = rng.normal(size=(3, 40))
    dirty, _, _ = low_rank_and_sparse(seed=1)
    dirty = dirty.astype(np.float32)
    model = LowRank(dirty, lights)
    cleaned = model._clean(SILENT)[0].low_rank
    plain = Lambertian(cleaned, lights)
    fit = model.alone(SILENT)
    assert fit.iterations > 5 and fit.converged
    assert np.array_equal(fit.normals, plain.alone(SILENT).normals)
    count, pull = np.full(300, 4.0), rng.normal(size=(300, 3))
    normals = model.update_normals({}, 0.3 * count, 0.3 * pull)
    assert np.array_equal(normals, plain.update_normals({}, 0.3 * count, 0.3 * pull))
    assert model.cost(normals, {}) == plain.cost(normals, {})
    assert np.abs(model.maps(normals, {})["errors"] + cleaned - dirty).max() < 1e-6


def test_shadows_are_left_out() -> None:
    rng = np.random.default_rng(2)
    lights = rng.normal(size=(3, 60)) + np.array([[0.0], [0.0], [1.0]])
    lights /= np.linalg.norm(lights, axis=0)
    normals = rng.normal(size=(400, 3)) * 0.5 + [0, 0, 1]
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    pixels = np.maximum(normals @ lights, 0).astype(np.float32)
    errors = [
        np.abs(LowRank(pixels, lights, shadow=s).alone(SILENT).normals - normals).mean()
        for s in (0.0, 0.02)
    ]
    assert errors[1] < 0.8 * errors[0]


def test_progress_is_told_and_the_work_done_once() -> None:
    class Count(Control):
        steps = 0

        def on_advance(self, steps=1):
            self.steps += steps

    dirty, *_ = low_rank_and_sparse()
    model, control = LowRank(dirty, np.random.default_rng(0).normal(size=(3, 40))), Count()
    fit = model.alone(control)
    assert control.steps == fit.iterations
    model.alone(control)
    assert control.steps == fit.iterations


def test_a_tolerance_whose_square_is_no_number() -> None:
    """Found by the fuzzer: 1e300 squared overflows."""
    images = np.random.default_rng(0).random((5, 30))
    assert np.isfinite(robust_pca(images, tol=1e300).low_rank).all()
