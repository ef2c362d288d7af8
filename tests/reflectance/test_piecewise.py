"""The piecewise-linear model against stacked least squares written from the paper, pixel by pixel."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.core.control import SILENT
from photostereo.reflectance.piecewise.elimination import RIDGE, statistics
from photostereo.reflectance.piecewise.model import Piecewise
from photostereo.runtime.symmetric import solve_symmetric_3x3

from .readable import pieces_matrix

GAMMA = 1e3


def problem(p: int, seed: int = 0, count: int = 30, photographs: int = 14):
    rng = np.random.default_rng(seed)
    lights = rng.normal(size=(3, photographs)) + np.array([[0.0], [0.0], [2.0]])
    lights /= np.linalg.norm(lights, axis=0)
    pixels = rng.uniform(0.05, 1.0, size=(count, photographs))
    return pixels, lights, rng.integers(1, 5, size=count).astype(float), rng.normal(size=(count, 3))


def stacked(C, lights, gamma, p, lam=0.0, count=0.0, pull=None):
    """Least squares over (a, n) of ‖C a − Lᵀn‖² + γ(1ᵀa − p)² + ridge ‖a‖² + λ(c |n|² − 2 n·r)."""
    ridge = np.sqrt(RIDGE * np.trace(C.T @ C))
    rows = [
        np.hstack([C, -lights.T]),
        np.hstack([np.sqrt(gamma) * np.ones((1, p)), np.zeros((1, 3))]),
    ]
    rows.append(np.hstack([ridge * np.eye(p), np.zeros((p, 3))]))
    right = [np.zeros(len(C)), [np.sqrt(gamma) * p], np.zeros(p)]
    if lam:
        weight = np.sqrt(lam * count)
        rows.append(np.hstack([np.zeros((3, p)), weight * np.eye(3)]))
        right.append(weight * pull / count)
    solution = np.linalg.lstsq(np.vstack(rows), np.concatenate(right), rcond=None)[0]
    return solution[:p], solution[p:]


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("knots", ["max", "range"])
def test_statistics_are_those_of_the_readable_matrix(p: int, knots: str) -> None:
    pixels, lights, *_ = problem(p)
    stats = statistics(pixels, lights, p, knots == "range")
    for i in range(len(pixels)):
        C = pieces_matrix(pixels[i], p, knots == "range")
        T = C.T @ C
        T += RIDGE * np.trace(T) * np.eye(p)
        assert np.abs(stats.gram[i] - T).max() < 1e-12
        assert np.abs(stats.cross[i] - C.T @ lights.T).max() < 1e-12


@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_update_solves_the_joint_least_squares(p: int) -> None:
    pixels, lights, count, pull = problem(p)
    model = Piecewise(pixels, lights, p=p, gamma=GAMMA)
    normals = model.update_normals({}, 0.3 * count, 0.3 * pull)
    slopes = model.update_unknowns(normals, {})["slopes"]
    for i in range(len(pixels)):
        C = pieces_matrix(pixels[i], p)
        a, n = stacked(C, lights, GAMMA, p, 0.3, count[i], pull[i])
        assert np.abs(normals[i] - n).max() < 1e-8
        assert np.abs(slopes[i] - a).max() < 1e-8


@pytest.mark.parametrize("p", [1, 2, 3])
def test_near_lights_weigh_by_their_fall_off(p: int) -> None:
    """Intensities divided by the fall-off have uneven noise; times the fall-off, residuals have that of the camera."""
    pixels, lights, count, pull = problem(p, seed=2)
    fall_off = np.random.default_rng(1).uniform(0.3, 2.0, pixels.shape)
    own = lights[None].repeat(len(pixels), 0)
    model = Piecewise(pixels, own, p=p, gamma=GAMMA, fall_off=fall_off)
    normals, alone = model.update_normals({}, 0.3 * count, 0.3 * pull), model.alone(SILENT).normals
    for i, weight in enumerate(fall_off):
        C = weight[:, None] * pieces_matrix(pixels[i], p)
        assert (
            np.abs(
                normals[i] - stacked(C, lights * weight, GAMMA, p, 0.3, count[i], pull[i])[1]
            ).max()
            < 1e-8
        )
        assert np.abs(alone[i] - stacked(C, lights * weight, 1e9, p)[1]).max() < 1e-5


@pytest.mark.parametrize("p", [1, 2, 3])
def test_cost_is_the_one_written_out(p: int) -> None:
    pixels, lights, count, pull = problem(p)
    model = Piecewise(pixels, lights, p=p, gamma=GAMMA)
    normals = model.update_normals({}, 0.3 * count, 0.3 * pull)
    slopes = model.update_unknowns(normals, {})["slopes"]
    expected = 0.0
    for i in range(len(pixels)):
        C = pieces_matrix(pixels[i], p)
        expected += ((C @ slopes[i] - lights.T @ normals[i]) ** 2).sum() + GAMMA * (
            slopes[i].sum() - p
        ) ** 2
    assert model.cost(normals, {"slopes": slopes}) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("p", [2, 3, 5])
def test_alone_meets_the_constraint_and_is_optimal(p: int) -> None:
    """A tight penalty must come to the same normals, and every feasible step away must cost more."""
    pixels, lights, *_ = problem(p, seed=4)
    fit = Piecewise(pixels, lights, p=p).alone(SILENT)
    slopes = fit.unknowns["slopes"]
    assert np.abs(slopes.sum(axis=1) - p).max() < 1e-9
    rng = np.random.default_rng(0)
    for i in range(len(pixels)):
        C = pieces_matrix(pixels[i], p)

        def cost(a, n, C=C):
            return ((C @ a - lights.T @ n) ** 2).sum()

        best = cost(slopes[i], fit.normals[i])
        for _ in range(20):
            step = rng.normal(size=p)
            step -= step.mean()
            assert (
                cost(slopes[i] + 1e-3 * step, fit.normals[i] + 1e-3 * rng.normal(size=3))
                >= best - 1e-9
            )


def test_one_piece_is_least_squares() -> None:
    pixels, lights, *_ = problem(1)
    expected = np.linalg.lstsq(lights.T, pixels.T, rcond=None)[0].T
    assert np.abs(Piecewise(pixels, lights, p=1).alone(SILENT).normals - expected).max() < 1e-9


def test_lambertian_pixels_have_unit_slopes() -> None:
    rng = np.random.default_rng(0)
    _, lights, *_ = problem(3)
    normals = rng.normal(size=(20, 3)) * 0.05 + np.array([0, 0, 0.6])
    pixels = normals @ lights
    fit = Piecewise(pixels, lights, p=3).alone(SILENT)
    assert np.abs(fit.normals - normals).max() < 1e-5
    assert np.abs(fit.unknowns["slopes"] - 1).max() < 1e-4


@pytest.mark.parametrize("value", [0.0, 0.4])
def test_degenerate_pixels_fall_back_to_the_lambertian_model(value: float) -> None:
    pixels, lights, *_ = problem(2)
    pixels[3] = value
    model = Piecewise(pixels, lights, p=2)
    expected = np.linalg.lstsq(lights.T, pixels[3], rcond=None)[0]
    fit = model.alone(SILENT)
    assert np.abs(fit.normals[3] - expected).max() < 1e-9
    assert np.all(fit.unknowns["slopes"][3] == 1)
    updated = model.update_normals({}, 0.0 * np.ones(len(pixels)), 0.0 * np.zeros((len(pixels), 3)))
    assert np.abs(updated[3] - expected).max() < 1e-9


def test_compiled_update_is_the_readable_one() -> None:
    pixels, lights, count, pull = problem(3)
    model = Piecewise(pixels, lights, p=3, gamma=GAMMA)
    h, right = model._reduced.hessian, model._reduced.linear + 0.3 * pull
    shift = 0.3 * count
    expected = solve_symmetric_3x3(
        h[:, 0] + shift, h[:, 1], h[:, 2], h[:, 3] + shift, h[:, 4], h[:, 5] + shift, *right.T
    )
    found = model.update_normals({}, 0.3 * count, 0.3 * pull)
    assert np.abs(found - np.stack(expected, axis=1)).max() < 1e-12
