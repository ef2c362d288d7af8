"""The small steps of a descent on a GPU, against the same in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from photostereo.diagnosis.metrics import angle_between
from photostereo.runtime.algebra import quadratic_form, solve_shifted_3x3

RNG = np.random.default_rng(0)


@pytest.fixture(params=[(), (3,)], ids=["one problem", "three problems"])
def vectors(request) -> np.ndarray:
    return RNG.normal(size=(*request.param, 1000, 3))


def put(array: np.ndarray, torch_device: str) -> torch.Tensor:
    return torch.tensor(array, device=torch_device)


@pytest.mark.parametrize("shared", [True, False])
def test_systems(vectors: np.ndarray, shared: bool, torch_device: str) -> None:
    lead = () if shared else vectors.shape[:-2]
    root = RNG.normal(size=(*lead, 1000, 3, 3))
    entries = (root @ root.swapaxes(-1, -2))[..., [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    weight = RNG.uniform(0.5, 2, (*lead, 1000))
    found = solve_shifted_3x3(*(put(a, torch_device) for a in (entries, weight, vectors)))
    assert np.abs(found.cpu().numpy() - solve_shifted_3x3(entries, weight, vectors)).max() < 1e-10
    squares = quadratic_form(put(entries, torch_device), put(vectors, torch_device))
    assert np.abs(squares.cpu().numpy() - quadratic_form(entries, vectors)).max() < 1e-10


def test_angles(vectors: np.ndarray, torch_device: str) -> None:
    truth = RNG.normal(size=(1000, 3))
    truth[3] = 0.0
    vectors[..., 5, :] = 0.0
    found = angle_between(put(vectors, torch_device), put(truth, torch_device)).cpu().numpy()
    assert np.abs(found - angle_between(vectors, truth)).max() < 1e-10
    assert (found[..., [3, 5]] == 90.0).all()
