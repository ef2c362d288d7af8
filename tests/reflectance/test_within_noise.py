"""The bound on what a prior may do: exact minimizer over the ball, inside always, no half-step raises the cost."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from photostereo.core.control import SILENT
from photostereo.priors.dictionary.patches import PatchGrid
from photostereo.priors.dictionary.prior import DictionaryPrior
from photostereo.reflectance.lambertian.model import Lambertian
from photostereo.reflectance.piecewise.model import Piecewise
from photostereo.reflectance.sparse.model import LeastAbsolute, SparseBayes
from photostereo.solver.confidence_ball import CONFIDENCE, NoiseEvidence, WithinNoise

BUILDERS = [
    pytest.param(Lambertian, {}, id="ls"),
    pytest.param(Piecewise, {"p": 2}, id="pls"),
    pytest.param(SparseBayes, {"noise": None}, id="sbl"),
    pytest.param(LeastAbsolute, {}, id="l1"),
]
NOISE = 0.02
EVIDENCE = NoiseEvidence(NOISE, NOISE, NOISE, doubtful=2.0, fields=np.zeros((0, 3)))


def bounded(build, options, side=8):
    rng = np.random.default_rng(0)
    lights = rng.normal(size=(3, 12)) + np.array([[0.0], [0.0], [2.0]])
    lights /= np.linalg.norm(lights, axis=0)
    normals = rng.normal(0, 0.2, (side * side, 3)) + np.array([0, 0, 0.8])
    pixels = np.maximum(normals @ lights, 0) + rng.normal(0, NOISE, (side * side, 12))
    pixels[::7, 3] = 1.5
    model = build(pixels, lights, **options)
    start = model.start(SILENT)
    return model, WithinNoise(model, start, EVIDENCE), *start


@pytest.mark.parametrize(("build", "options"), BUILDERS)
def test_the_step_is_the_minimizer_over_the_ball(build, options) -> None:
    model, inside, center, unknowns = bounded(build, options)
    rng = np.random.default_rng(1)
    weight = np.full(len(center), 40.0)
    pull = weight[:, None] * (center + rng.normal(0, 0.2, center.shape))
    found = inside.update_normals(unknowns, weight, pull)
    radius = inside._radius
    assert (np.linalg.norm(found - center, axis=1) <= radius * (1 + 1e-12)).all()

    def objective(x, i):
        normals = center.copy()
        normals[i] = x
        return float(model.cost(normals, unknowns) + weight[i] * x @ x - 2 * x @ pull[i])

    for i in (0, 7, 20):
        ball = {"type": "ineq", "fun": lambda x, i=i: radius[i] ** 2 - ((x - center[i]) ** 2).sum()}
        best = minimize(
            objective,
            center[i],
            args=(i,),
            constraints=[ball],
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        assert objective(found[i], i) <= best.fun + 1e-6 * abs(best.fun)


@pytest.mark.parametrize(("build", "options"), BUILDERS)
def test_a_weak_pull_is_left_alone(build, options) -> None:
    model, inside, center, unknowns = bounded(build, options)
    weight = np.full(len(center), 1e-3)
    pull = weight[:, None] * center
    expected = model.update_normals(unknowns, weight, pull)
    close = np.linalg.norm(expected - center, axis=1) <= inside._radius
    assert close.mean() > 0.9
    assert np.allclose(
        inside.update_normals(unknowns, weight, pull)[close], expected[close], rtol=0, atol=1e-13
    )


@pytest.mark.parametrize(("build", "options"), BUILDERS)
def test_the_compiled_step_is_the_general_one(build, options) -> None:
    """One kernel for models with a quadratic cost, secants for all others: the same minimizer."""
    _, inside, center, unknowns = bounded(build, options)
    rng = np.random.default_rng(2)
    weight = np.full(len(center), 40.0)
    for far in (1e-3, 0.05, 1.0):
        pull = weight[:, None] * (center + rng.normal(0, far, center.shape))
        found = inside.update_normals(unknowns, weight, pull)
        general = inside._by_secants(unknowns, weight, pull)
        assert np.abs(found - general).max() < 1e-6 * inside._radius.max()


def test_the_radius_is_the_noise_of_a_normal() -> None:
    """Of normals fitted to noise alone one in a thousand lies farther from the truth."""
    rng = np.random.default_rng(0)
    azimuth = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    # At this height the lights hold all directions alike: L Lᵀ is a multiple of the identity.
    lights = np.stack([np.cos(azimuth), np.sin(azimuth), np.full(12, np.sqrt(0.5))]) * np.sqrt(
        2 / 3
    )
    truth = np.tile([0.1, 0.2, 0.7], (40_000, 1))
    model = Lambertian(truth @ lights + rng.normal(0, NOISE, (40_000, 12)), lights)
    normals, unknowns = model.start(SILENT)
    radius = np.sqrt(CONFIDENCE * NOISE**2 / 4.0)
    outside = (np.linalg.norm(normals - truth, axis=1) > radius).mean()
    assert 0.0005 < outside < 0.0015
    found = WithinNoise(model, (normals, unknowns), EVIDENCE)._radius
    assert (found >= radius * (1 - 1e-12)).all() and np.median(found) < 1.1 * radius


@pytest.mark.parametrize(("build", "options"), BUILDERS)
def test_no_half_step_raises_the_cost(build, options) -> None:
    _, inside, normals, unknowns = bounded(build, options, side=24)
    prior = DictionaryPrior(
        PatchGrid.from_mask(np.ones((24, 24), bool), size=(8, 8, 3), stride=4),
        lam=5.0,
        mu=0.3,
        atoms=16,
        dtype=np.float64,
    )
    state = prior.begin(normals)
    unknowns = inside.update_unknowns(normals, unknowns)

    def total():
        return float(inside.cost(normals, unknowns)) + float(
            sum(prior.cost(state, normals).values())
        )

    costs = [total()]
    for number in range(8):
        prior.update(state, normals, number)
        costs.append(total())
        updated = inside.update_normals(unknowns, *prior.pull(state, normals))
        prior.follow(state, updated - normals)
        normals = updated
        unknowns = inside.update_unknowns(normals, unknowns)
        costs.append(total())
    assert np.diff(costs).max() <= 1e-9 * costs[0], np.diff(costs)
    assert costs[-1] < 0.999 * costs[0]
