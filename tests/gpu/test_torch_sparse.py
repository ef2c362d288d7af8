"""Sparse regression in torch operations against the compiled loops."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.reflectance.sparse import absolute_kernels, kernels
from photostereo.runtime.arrays import to_numpy
from photostereo.scenes import dome_lights

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.fixture(scope="module", params=["shared", "of each pixel"])
def problem(request):
    """Noisy pixels with outliers, some without light: Y, L, least-squares start."""
    rng = np.random.default_rng(0)
    L = np.ascontiguousarray(dome_lights(14).T)
    normals = rng.normal(0, 0.3, (400, 3)) + np.array([0, 0, 1])
    Y = np.maximum(normals @ L, 0) + rng.normal(0, 0.01, (400, 14))
    Y[rng.random(Y.shape) < 0.15] = 1.7
    Y[:5] = 0.0
    lights = L[None] + 0.0 if request.param == "shared" else L + rng.normal(0, 0.02, (400, 1, 1))
    return Y.astype(np.float32), lights, Y.astype(np.float32) @ np.linalg.pinv(L)


def both(compiled, name, arguments, outputs):
    """The outputs of the compiled loop and of the torch form."""
    from photostereo.reflectance.sparse import torch_kernels

    here, there = [o.copy() for o in outputs], [torch.from_numpy(o.copy()) for o in outputs]
    compiled(*arguments, *here)
    tensors = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arguments]
    getattr(torch_kernels, name)(*tensors, *there)
    return here, [to_numpy(part) for part in there]


def test_least_absolute_residuals(problem) -> None:
    Y, L, start = problem
    outputs = [np.empty((400, 3)), np.empty(400, np.int64)]
    (n, _), (found, steps) = both(
        absolute_kernels.l1_regression, "l1_regression", (Y, L, start, 1e-6, 1e-8, 10), outputs
    )
    assert (steps > 0).all()
    np.testing.assert_allclose(found, n, atol=1e-9)


def test_sparse_bayesian_learning(problem) -> None:
    Y, L, _ = problem
    scale = np.abs(Y).max(1).astype(np.float64)
    outputs = [np.empty((400, 3)), np.empty(400, np.int64), np.empty(Y.shape, np.float32)]
    arguments = (Y, L, scale, 1e-3, 1e6, 1e-5, 1e-3, 200)
    (n, steps, weights), (found, others, inliers) = both(kernels.sbl_em, "sbl_em", arguments, outputs)
    np.testing.assert_allclose(found, n, atol=1e-8)
    np.testing.assert_array_equal(others, steps)
    np.testing.assert_allclose(inliers, weights, atol=1e-5)


@pytest.mark.parametrize("redescending", [True, False])
def test_weights_and_what_they_leave(problem, redescending) -> None:
    Y, L, start = problem
    threshold = np.full(400, 0.02**2)
    threshold[:3] = 0.0
    outputs = [np.empty((400, 6)), np.empty((400, 3)), np.empty(400)]
    here, there = both(kernels.reweigh, "reweigh", (Y, L, start, threshold, redescending), outputs)
    for expected, found in zip(here, there, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
