"""Models on torch against the same models on NumPy: one class, two kinds of array."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from photostereo.core.control import SILENT
from photostereo.reflectance.lambertian.model import Lambertian
from photostereo.reflectance.piecewise.model import Piecewise
from photostereo.runtime.arrays import find_device, tensor_batches, to_numpy


@pytest.fixture(scope="module")
def photographs():
    """Glossy-looking intensities with shadows, and pixels that see nothing or no change."""
    rng = np.random.default_rng(0)
    lights = rng.normal(size=(3, 15)) + np.array([[0], [0], [2.0]])
    lights /= np.linalg.norm(lights, axis=0)
    normals = rng.normal(size=(400, 3)) + np.array([0, 0, 2.0])
    shading = np.maximum(normals @ lights, 0)
    pixels = (0.3 * shading + 0.1 * shading**3 + 0.01 * rng.random(shading.shape)).astype(
        np.float32
    )
    pixels[:5] = 0
    pixels[5:9] = 0.25
    return pixels, lights


MODELS = [
    (Lambertian, {}),
    (Piecewise, {"p": 1}),
    (Piecewise, {"p": 2}),
    (Piecewise, {"p": 5, "knots": "range"}),
    (Piecewise, {"p": 3, "begin": "pls"}),
]


@pytest.fixture(params=MODELS, ids=lambda m: f"{m[0].__name__}-{'-'.join(map(str, m[1].values()))}")
def pair(request, photographs, device):
    """The model on NumPy and on torch."""
    pixels, lights = photographs
    make, options = request.param
    return make(pixels, lights, **options), make(find_device(device).put(pixels), lights, **options)


def assert_same(found, expected, tolerance=1e-5) -> None:
    assert isinstance(found, torch.Tensor)
    assert np.abs(to_numpy(found) - expected).max() < tolerance * max(1.0, np.abs(expected).max())


def test_alone(pair) -> None:
    expected, found = (model.alone(SILENT) for model in pair)
    assert_same(found.normals, expected.normals)
    for name, value in expected.unknowns.items():
        assert_same(found.unknowns[name], value)


@pytest.mark.parametrize("lam", [0.0, 0.3, 10.0])
def test_a_step_under_a_prior(pair, lam) -> None:
    on_numpy, on_torch = pair
    rng = np.random.default_rng(1)
    normals, unknowns = on_numpy.start(SILENT)
    count, pull = rng.integers(1, 9, len(normals)).astype(float), rng.normal(size=normals.shape)
    tensors, their_unknowns = on_torch.start(SILENT)
    assert_same(tensors, normals)
    theirs = (torch.tensor(count, device=tensors.device), torch.tensor(pull, device=tensors.device))
    expected = on_numpy.update_normals(unknowns, lam * count, lam * pull)
    found = on_torch.update_normals(their_unknowns, *(lam * each for each in theirs))
    assert_same(
        found, expected, 1e-4 if lam == 0 else 1e-5
    )  # without a prior a bad curve amplifies rounding
    unknowns, their_unknowns = (
        model.update_unknowns(n, u)
        for model, n, u in ((on_numpy, expected, unknowns), (on_torch, found, their_unknowns))
    )
    for name, value in unknowns.items():
        assert_same(their_unknowns[name], value, 1e-4)
    assert float(on_torch.cost(found, their_unknowns)) == pytest.approx(
        float(on_numpy.cost(expected, unknowns)), rel=1e-4
    )


def test_several_problems_at_once_equal_one_by_one(pair) -> None:
    model = pair[1]
    normals, unknowns = model.start(SILENT)
    lam = torch.tensor([0.1, 1.0, 7.0], dtype=torch.float64, device=normals.device)
    count = torch.full((len(normals),), 4.0, dtype=torch.float64, device=normals.device)
    pull = torch.stack([normals * k for k in (1.0, 2.0, 3.0)])
    together = model.update_normals(unknowns, lam[:, None] * count, lam[:, None, None] * pull)
    costs = model.cost(together, model.update_unknowns(together, unknowns))
    assert costs.shape == (3,)
    for g in range(3):
        alone = model.update_normals(unknowns, float(lam[g]) * count, float(lam[g]) * pull[g])
        assert float((together[g] - alone).abs().max()) < 1e-12
        assert float(costs[g]) == pytest.approx(
            float(model.cost(alone, model.update_unknowns(alone, unknowns)))
        )


def test_batches_cover_every_pixel_once() -> None:
    pixels = np.zeros((1000, 1 << 15))
    covered = np.concatenate([np.arange(1000)[part] for part in tensor_batches(pixels, copies=3)])
    assert np.array_equal(covered, np.arange(1000))
