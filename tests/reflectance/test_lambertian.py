"""The Lambertian model against its normal equations and brute force."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.core.control import SILENT
from photostereo.reflectance.lambertian.model import Lambertian
from photostereo.runtime.symmetric import solve_symmetric_3x3


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    lights = rng.normal(size=(3, 9))
    lights /= np.linalg.norm(lights, axis=0)
    pixels = rng.uniform(size=(40, 9))
    count = rng.integers(1, 5, size=40).astype(float)
    pull = rng.normal(size=(40, 3))
    return pixels, lights, count, pull


def test_alone_is_least_squares(problem) -> None:
    pixels, lights, *_ = problem
    expected = np.linalg.lstsq(lights.T, pixels.T, rcond=None)[0].T
    assert np.abs(Lambertian(pixels, lights).alone(SILENT).normals - expected).max() < 1e-12


def test_update_solves_the_stacked_least_squares(problem) -> None:
    pixels, lights, count, pull = problem
    lam = 0.7
    found = Lambertian(pixels, lights).update_normals({}, lam * count, lam * pull)
    for i in range(len(pixels)):
        weight = np.sqrt(lam * count[i])
        stacked = np.vstack([lights.T, weight * np.eye(3)])
        right = np.concatenate([pixels[i], weight * pull[i] / count[i]])
        expected = np.linalg.lstsq(stacked, right, rcond=None)[0]
        assert np.abs(found[i] - expected).max() < 1e-12


def test_cost_is_the_squared_residual(problem) -> None:
    pixels, lights, *_ = problem
    normals = np.random.default_rng(1).normal(size=(40, 3))
    expected = ((pixels - normals @ lights) ** 2).sum()
    assert Lambertian(pixels, lights).cost(normals, {}) == pytest.approx(expected, rel=1e-12)


def test_single_precision_photographs_are_enough(problem) -> None:
    pixels, lights, *_ = problem
    exact = Lambertian(pixels, lights).alone(SILENT).normals
    single = Lambertian(pixels.astype(np.float32), lights).alone(SILENT).normals
    assert np.abs(exact - single).max() < 1e-5


def test_symmetric_3x3_solver() -> None:
    rng = np.random.default_rng(3)
    root = rng.normal(size=(100, 3, 3))
    A = root @ root.transpose(0, 2, 1) + 0.01 * np.eye(3)
    b = rng.normal(size=(100, 3))
    found = np.stack(
        solve_symmetric_3x3(
            A[:, 0, 0],
            A[:, 0, 1],
            A[:, 0, 2],
            A[:, 1, 1],
            A[:, 1, 2],
            A[:, 2, 2],
            *b.T,
        ),
        axis=1,
    )
    expected = np.linalg.solve(A, b[..., None])[..., 0]
    assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()
