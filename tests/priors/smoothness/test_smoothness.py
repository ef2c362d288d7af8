"""The smoothness prior: its bound, its minimizer, and the same on every kind of array."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

import photostereo as ps
from photostereo.core.control import SILENT
from photostereo.priors.entry import Setting
from photostereo.priors.smoothness.prior import SmoothnessPrior, neighbors_of
from photostereo.reflectance.entry import registered_models
from photostereo.reflectance.lambertian.model import Lambertian
from photostereo.runtime.arrays import find_device, to_numpy
from photostereo.solver import tiles
from photostereo.solver.methods import find_method
from photostereo.solver.problem import Problem
from photostereo_lab.corruptions import add_poisson
from photostereo_lab.scenes import dome_lights, render_scene

LIGHTS = np.array([[0, 0.6, 0, -0.6, 0], [0, 0, 0.6, 0, -0.6], [1, 0.8, 0.8, 0.8, 0.8]])
#: With a hole, a single pixel and a row of one pixel.
MASK = np.array(
    [
        [1, 1, 1, 0, 1],
        [1, 0, 1, 0, 0],
        [1, 1, 1, 1, 0],
        [0, 0, 1, 1, 1],
    ],
    dtype=bool,
)


@pytest.fixture(scope="module")
def noisy():
    return add_poisson(render_scene("relief", size=64, lights=dome_lights(12)), 10.0, rng=0)


def cost_by_definition(mask, normals, lam, delta):
    """Huber's function over all pairs of pixels at distance 1, from the coordinates alone."""
    places = np.argwhere(mask)
    total = 0.0
    for (i, a), (j, b) in itertools.combinations(enumerate(places), 2):
        if np.abs(a - b).sum() == 1:
            t = np.linalg.norm(normals[i] - normals[j])
            total += t**2 if t <= delta else 2 * delta * t - delta**2
    return lam * total


def test_the_cost_is_that_of_the_definition() -> None:
    normals = np.random.default_rng(0).normal(size=(MASK.sum(), 3))
    for delta in (0.1, 1.5, 100.0):
        prior = SmoothnessPrior(MASK, lam=0.7, delta=delta)
        found = prior.cost({}, normals)["roughness"]
        assert found == pytest.approx(cost_by_definition(MASK, normals, 0.7, delta), rel=1e-12)


@pytest.mark.parametrize("delta", [0.05, 0.5, 5.0])
def test_the_bound_touches_and_stays_above(delta: float) -> None:
    rng = np.random.default_rng(1)
    prior = SmoothnessPrior(MASK, lam=2.0, delta=delta)
    here = rng.normal(size=(MASK.sum(), 3))
    weight, pull = prior.pull({}, here)

    def bound(n):
        return (weight * (n * n).sum(1)).sum() - 2 * (n * pull).sum()

    def cost(n):
        return prior.cost({}, n)["roughness"]

    for size in (1e-4, 0.1, 1.0, 10.0):
        for _ in range(20):
            there = here + size * rng.normal(size=here.shape)
            rise = bound(there) - bound(here)
            assert cost(there) - cost(here) <= rise + 1e-9 * abs(rise)
    step = 1e-6 * rng.normal(size=here.shape)  # the same slope
    slopes = [(f(here + step) - f(here - step)) / 2 for f in (cost, bound)]
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-6)


@pytest.mark.parametrize("delta", [0.02, 0.1, 10.0])
def test_the_descent_ends_at_the_minimizer_of_scipy(delta: float) -> None:
    rng = np.random.default_rng(2)
    n = np.array([0.1, 0.2, 0.8]) + 0.2 * rng.normal(size=(MASK.sum(), 3))
    pixels = n @ LIGHTS + 0.1 * rng.normal(size=(len(n), LIGHTS.shape[1]))
    lam = 1.5

    def whole(flat):
        normals = flat.reshape(-1, 3)
        return ((pixels - normals @ LIGHTS) ** 2).sum() + cost_by_definition(
            MASK, normals, lam, delta
        )

    expected = minimize(whole, n.ravel(), method="BFGS", options={"gtol": 1e-9, "maxiter": 2000}).x
    prior = SmoothnessPrior(MASK, lam=lam, delta=delta)
    found = Problem(Lambertian(pixels, LIGHTS), prior).solve(max_iter=3000).normals
    assert np.abs(found - expected.reshape(-1, 3)).max() < 1e-5


def test_without_edges_it_is_a_linear_system() -> None:
    pixels = np.random.default_rng(3).random((MASK.sum(), LIGHTS.shape[1]))
    table = neighbors_of(MASK)
    laplacian = np.diag((table >= 0).sum(1).astype(float))
    for i, row in enumerate(table):
        laplacian[i, row[row >= 0]] -= 1
    system = np.kron(np.eye(len(pixels)), LIGHTS @ LIGHTS.T) + 0.8 * np.kron(laplacian, np.eye(3))
    expected = np.linalg.solve(system, (pixels @ LIGHTS.T).ravel()).reshape(-1, 3)
    prior = SmoothnessPrior(MASK, lam=0.8, delta=1e9)
    found = Problem(Lambertian(pixels, LIGHTS), prior).solve(max_iter=2000).normals
    assert np.abs(found - expected).max() < 1e-10


@pytest.mark.parametrize("model", list(registered_models()))
def test_no_half_step_raises_the_cost_of_any_model(model: str, noisy) -> None:
    entry = find_method(model, "smoothness")
    values = entry.resolve({"lam": 2.0, "delta": 0.05})
    seen = {"mask": noisy.mask} if "mask" in entry.model.sees else {}
    pixels = noisy.pixels(noisy.intensity_scale())
    reflectance = entry.model.kind(pixels, noisy.lights.matrix, **entry.of_model(values), **seen)
    prior, _ = entry.prior.build(values, Setting(noisy.mask))
    normals, unknowns = reflectance.start(SILENT)
    unknowns = reflectance.update_unknowns(normals, unknowns)
    state = prior.begin(normals)

    def total():
        return float(reflectance.cost(normals, unknowns)) + float(
            prior.cost(state, normals)["roughness"]
        )

    costs = [total()]
    for _ in range(6):
        normals = reflectance.update_normals(unknowns, *prior.pull(state, normals))
        costs.append(total())
        unknowns = reflectance.update_unknowns(normals, unknowns)
        costs.append(total())
    assert np.diff(costs).max() <= 1e-9 * abs(costs[0])
    assert costs[-1] < costs[0]


def test_crops_are_not_neighbors() -> None:
    crops = neighbors_of(np.ones((6, 3), bool), side=3)
    alone = neighbors_of(np.ones((3, 3), bool))
    assert np.array_equal(crops[:9], alone)
    assert np.array_equal(crops[9:], np.where(alone < 0, -1, alone + 9))


def test_noise_goes_and_edges_stay() -> None:
    """A step between two planes: the noise falls by half, the step keeps its height."""
    rng = np.random.default_rng(4)
    truth = np.where(np.arange(40)[None, :, None] < 20, [0.5, 0.0, 0.8], [-0.5, 0.0, 0.8])
    truth = np.broadcast_to(truth, (40, 40, 3)).reshape(-1, 3)
    pixels = truth @ LIGHTS + 0.05 * rng.normal(size=(1600, LIGHTS.shape[1]))
    model = Lambertian(pixels, LIGHTS)
    prior = SmoothnessPrior(np.ones((40, 40), bool), lam=2.0, delta=0.05)
    before = model.alone(SILENT).normals - truth
    after = Problem(model, prior).solve(max_iter=200).normals - truth
    assert after.std() < 0.5 * before.std()
    beside = after.reshape(40, 40, 3)[:, 19:21]
    assert np.abs(beside.mean(0)).max() < 0.1


def test_a_solve_removes_noise_and_leaves_a_clean_capture_alone(noisy) -> None:
    alone, smooth = ps.solve(noisy, "ls"), ps.solve(noisy, "ls", prior="smoothness")
    assert smooth.method == "ls+smoothness" and 0 < smooth.iterations <= 40
    assert smooth.angular_error.mean < 0.8 * alone.angular_error.mean
    costs = [record.cost for record in smooth.history]
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in itertools.pairwise(costs))
    clean = render_scene("relief", size=64, lights=dome_lights(12), cast_shadows=False)
    alone, smooth = ps.solve(clean, "ls"), ps.solve(clean, "ls", prior="smoothness")
    assert smooth.angular_error.mean <= 1.02 * alone.angular_error.mean + 0.01


def test_resumed_equals_uninterrupted_and_a_dictionarys_state_is_refused(noisy, tmp_path) -> None:
    file, options = tmp_path / "state.npz", {"prior": "smoothness", "lam": 2.0, "delta": 0.05}
    whole = ps.solve(noisy, "ls", max_iter=6, **options)
    ps.solve(noisy, "ls", max_iter=3, checkpoint=file, **options)
    assert np.array_equal(
        whole.normals, ps.solve(noisy, "ls", max_iter=6, resume=file, **options).normals
    )
    ps.solve(noisy, "dlnv", max_iter=1, lam=1.0, mu=0.1, checkpoint=file)
    with pytest.raises(ps.ParameterError) as caught:
        ps.solve(noisy, "ls", resume=file, **options)
    assert caught.value.code == "state-does-not-fit"


def test_in_bands_as_in_one_go() -> None:
    capture = add_poisson(render_scene("relief", size=200, lights=dome_lights(8)), 15.0, rng=0)
    given = {"prior": "smoothness", "lam": 2.0, "delta": 0.05}
    row = tiles.bytes_of_row(200, len(capture), 1, prior=260)
    memory = tiles.OF_THE_PROGRAM + 200 * 200 * tiles.OF_A_RESULT + row * (72 + 48)
    whole, bands = ps.solve(capture, "ls", **given), ps.solve(capture, "ls", memory=memory, **given)
    assert np.abs(whole.normals - bands.normals).max() < 1e-3
    assert bands.iterations == whole.iterations == 40


@pytest.mark.torch
def test_torch_equals_the_compiled_loops(noisy) -> None:
    device = find_device("torch-cpu")
    normals = np.random.default_rng(5).normal(size=(MASK.sum(), 3))
    ours = SmoothnessPrior(MASK, lam=0.7, delta=0.9)
    theirs = SmoothnessPrior(MASK, lam=0.7, delta=0.9, device=device)
    for mine, other in zip(
        ours.pull({}, normals), theirs.pull({}, device.put(normals)), strict=True
    ):
        assert np.abs(to_numpy(other) - mine).max() < 1e-12
    one, two = ours.cost({}, normals), theirs.cost({}, device.put(normals))
    assert float(two["roughness"]) == pytest.approx(float(one["roughness"]), rel=1e-12)
    cpu, torch = (
        ps.solve(noisy, "sbl", prior="smoothness", device=d) for d in ("cpu", "torch-cpu")
    )
    assert np.abs(cpu.normals - torch.normals).max() < 1e-4


@pytest.mark.torch
def test_a_grid_at_once_equals_one_by_one(noisy) -> None:
    grid = [{"lam": lam, "delta": delta} for lam in (0.5, 3.0) for delta in (0.02, 0.2)]
    together = ps.solve_grid(noisy, "ls", grid, prior="smoothness", device="torch-cpu", max_iter=5)
    for setting, found in zip(grid, together, strict=True):
        alone = ps.solve(noisy, "ls", prior="smoothness", max_iter=5, **setting)
        assert np.abs(found.normals - alone.normals).max() < 1e-5
        assert found.parameters["delta"] == setting["delta"]
