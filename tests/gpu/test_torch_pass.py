"""The dictionary pass on torch against the paper's equations in plain NumPy (``readable``)."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from photostereo.priors.dictionary.atoms import initial_dictionary
from photostereo.priors.dictionary.torch_pass import (
    dictionary_pass,
    follow_atoms,
    fused_pass,
    plan_launch,
)

from ..priors.dictionary.readable import update_dictionary
from .readable import plain_pass

SIZES = [(700, 48, 60), (300, 108, 40), (40, 7, 12), (33, 3, 3)]


def problem(patches: int, length: int, atoms: int, seed: int = 0):
    """Patches that are sparse in a dictionary, with noise; a start that is not that dictionary."""
    rng = np.random.default_rng(seed)
    D = initial_dictionary("dct", (length, 1, 1), atoms)
    truth = D + 0.3 * rng.normal(size=D.shape) / np.sqrt(length)
    codes = rng.normal(size=(patches, atoms)) * (rng.random((patches, atoms)) < 0.1)
    return codes @ truth + 0.05 * rng.normal(size=(patches, length)), D, np.zeros((atoms, patches))


def passes(P, D, B, count: int = 3, **options):
    for _ in range(count):
        D, B = update_dictionary(P, D, B, **options)
    return P - B.T @ D, D, B


def relative(found, expected) -> float:
    found = found.double().cpu().numpy()
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize(("patches", "length", "atoms"), SIZES)
@pytest.mark.parametrize("learn", [True, False])
def test_three_passes_equal_the_readable_ones(patches, length, atoms, learn, torch_device) -> None:
    P, D, B = problem(patches, length, atoms)
    tensors = [torch.tensor(array, device=torch_device) for array in (P, D, B)]
    for _ in range(3):
        dictionary_pass(*tensors, mu=0.4, q=1.5, update_atoms=learn)
    expected = passes(P, D, B, mu=0.4, q=1.5, update_atoms=learn)
    assert np.abs(expected[2]).max() == 1.5  # the bound q is at work
    for found, wanted in zip(tensors, expected, strict=True):
        assert np.abs(found.cpu().numpy() - wanted).max() < 1e-10


def test_single_precision_stays_within_the_promise(torch_device) -> None:
    P, D, B = problem(2000, 192, 192)
    tensors = [torch.tensor(array, dtype=torch.float32, device=torch_device) for array in (P, D, B)]
    for _ in range(3):
        dictionary_pass(*tensors, mu=0.4, q=1e3)
    for found, wanted in zip(tensors, passes(P, D, B, mu=0.4, q=1e3), strict=True):
        assert relative(found, wanted) < 1e-4


def test_every_problem_of_a_batch_is_solved_as_if_alone(torch_device) -> None:
    thresholds = torch.tensor([0.2, 0.5, 0.9, 0.4, 0.3], dtype=torch.float64, device=torch_device)
    P, D, B = problem(260, 48, 48)
    tensors = [torch.tensor(array, device=torch_device).repeat(5, 1, 1) for array in (P, D, B)]
    for _ in range(2):
        dictionary_pass(*tensors, mu=thresholds, q=1e3)
    for g, mu in enumerate(thresholds.tolist()):
        for found, wanted in zip(tensors, passes(P, D, B, count=2, mu=mu, q=1e3), strict=True):
            assert np.abs(found[g].cpu().numpy() - wanted).max() < 1e-10


def test_unused_atoms_become_the_first_unit_vector(torch_device) -> None:
    P, D, B = problem(100, 48, 48)
    tensors = [torch.tensor(array, device=torch_device) for array in (P, D, B)]
    dictionary_pass(*tensors, mu=1e6, q=1e6)
    assert torch.equal(
        tensors[1], torch.eye(1, 48, dtype=torch.float64, device=torch_device).expand(48, 48)
    )
    assert not tensors[2].any()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA GPU here")
class TestFusedKernel:
    """The CUDA kernel in every layout on the GPU, against plain torch in double precision."""

    def run(self, plan, problems, patches, dtype, length=192, atoms=192):
        P, D, B = problem(patches, length, atoms)
        arrays = [torch.tensor(array, device="cuda").repeat(problems, 1, 1) for array in (P, D, B)]
        mu, q = (
            torch.full((problems,), value, device="cuda", dtype=torch.float64)
            for value in (0.4, 1e3)
        )
        found = [array.to(dtype, copy=True) for array in arrays]
        for _ in range(3):
            fused_pass(*found, mu.to(dtype), q.to(dtype), True, plan)
            plain_pass(*arrays, mu, q, True)
        return max(
            float((a - b).norm() / b.norm()) for a, b in zip(found, arrays, strict=True)
        ), found

    @pytest.mark.parametrize("shared_limit", [232448, 60000, 40000])
    @pytest.mark.parametrize("problems", [1, 3])
    def test_resident_and_streamed(self, shared_limit, problems) -> None:
        processors = torch.cuda.get_device_properties(0).multi_processor_count
        plan = plan_launch(problems, 4000, 192, 8, processors=processors, shared_limit=shared_limit)
        assert self.run(plan, problems, 4000, torch.float64)[0] < 1e-10

    def test_full_frame_in_single_precision_within_1e_4(self) -> None:
        assert self.run(None, 1, 19304, torch.float32)[0] < 1e-4

    def test_same_bits_on_every_run(self) -> None:
        first, second = (self.run(None, 1, 5000, torch.float32)[1] for _ in range(2))
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize(("patches", "length", "atoms"), [*SIZES, (1001, 192, 192), (50, 600, 9)])
def test_following_given_atoms_equals_the_readable_pass(
    patches, length, atoms, kind, torch_device
) -> None:
    P, D, B = problem(patches, length, atoms)
    D_2, B_2 = update_dictionary(P, D, B, mu=0.4, q=1.5)
    new = D_2 + 0.01
    new /= np.linalg.norm(new, axis=1, keepdims=True)
    arrays = (P - B_2.T @ D_2, D_2, B_2)
    tensors = [torch.tensor(array, dtype=kind, device=torch_device) for array in arrays]
    follow_atoms(*tensors, torch.tensor(new, dtype=kind, device=torch_device), mu=0.4, q=1.5)
    D_3, B_3 = update_dictionary(P, D_2, B_2, mu=0.4, q=1.5, given=new)
    assert np.any(B_3 != B_2)
    for found, wanted in zip(tensors, (P - B_3.T @ D_3, D_3, B_3), strict=True):
        assert relative(found, wanted) < (1e-12 if kind is torch.float64 else 1e-4)
