"""Patches on torch against the compiled ones, which are tested against plain NumPy elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from photostereo.priors.dictionary.patches import PatchGrid
from photostereo.priors.dictionary.torch_pass import TorchPatches

from ..priors.dictionary import readable


@pytest.fixture(params=[((8, 8, 3), 4), ((5, 7, 1), 3), ((4, 4, 3), 1), ((3, 3, 3), 2)])
def grid(request) -> PatchGrid:
    size, stride = request.param
    rows, cols = np.mgrid[:31, :26]
    mask = (rows - 15) ** 2 + (cols - 12) ** 2 < 140
    mask[0, 0] = mask[-1, -1] = True
    return PatchGrid.from_mask(mask, size=size, stride=stride)


@pytest.fixture
def normals(grid: PatchGrid) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(2, grid.n_pixels, 3))


def extract(patches: TorchPatches, n: torch.Tensor, grid: PatchGrid) -> torch.Tensor:
    return patches.add_extract(n, n.new_zeros(*n.shape[:-2], grid.n_patches, grid.patch_length))


def adjoint(patches: TorchPatches, P: torch.Tensor, grid: PatchGrid) -> torch.Tensor:
    nothing = P.new_zeros(*P.shape[:-2], grid.n_pixels, 3)
    return patches.pull(nothing, P, -torch.ones((), dtype=P.dtype, device=P.device))


def test_extract_and_adjoint_equal_the_compiled_ones(grid, normals, torch_device) -> None:
    patches = TorchPatches(grid, torch_device)
    n = torch.tensor(normals, device=torch_device)
    P = extract(patches, n, grid)
    back = adjoint(patches, P, grid)
    for g in range(2):
        expected = readable.extract(grid, normals[g])
        assert np.array_equal(P[g].cpu().numpy(), expected)
        assert np.abs(back[g].cpu().numpy() - readable.adjoint(grid, expected)).max() < 1e-12
    assert np.array_equal(patches.count.cpu().numpy(), grid.count)


def test_adjoint_is_the_transpose(grid, normals, torch_device) -> None:
    patches = TorchPatches(grid, torch_device)
    n = torch.tensor(normals, device=torch_device)
    values = np.random.default_rng(1).normal(size=(2, grid.n_patches, grid.patch_length))
    P = torch.tensor(values, device=torch_device)
    left, right = (extract(patches, n, grid) * P).sum(), (n * adjoint(patches, P, grid)).sum()
    assert float(left) == pytest.approx(float(right), rel=1e-12)


def test_pulls_of_several_problems_have_their_own_weights(grid, normals, torch_device) -> None:
    patches = TorchPatches(grid, torch_device)
    values = np.random.default_rng(1).normal(size=(2, grid.n_patches, grid.patch_length))
    n, P = (torch.tensor(array, device=torch_device) for array in (normals, values))
    found = patches.pull(n, P, torch.tensor([0.5, 3.0], dtype=torch.float64, device=torch_device))
    for g, lam in enumerate((0.5, 3.0)):
        assert np.abs(found[g].cpu().numpy() - grid.pull(normals[g], values[g], lam)).max() < 1e-12


def test_add_extract_adds_in_place(grid, normals, torch_device) -> None:
    patches = TorchPatches(grid, torch_device)
    n = torch.tensor(normals[0], device=torch_device)
    P = torch.ones(grid.n_patches, grid.patch_length, dtype=torch.float64, device=torch_device)
    assert patches.add_extract(n, P) is P
    assert torch.equal(P, 1 + extract(patches, n, grid))
