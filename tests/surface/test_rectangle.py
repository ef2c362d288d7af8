"""The rectangle solver against the sparse least-squares minimizer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, vstack
from scipy.sparse.linalg import lsqr

from photostereo.surface import integrate
from photostereo.surface.poisson import solve_rectangle


def difference_matrix(shape: tuple[int, int]) -> tuple[csr_array, np.ndarray, np.ndarray, int]:
    """The matrix of differences of neighbors, the two ends of each, and the number of those along columns."""
    number = np.arange(shape[0] * shape[1]).reshape(shape)
    first = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
    second = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
    rows, size = np.arange(first.size), (first.size, number.size)
    matrix = csr_array((np.ones(first.size), (rows, second)), shape=size) - csr_array(
        (np.ones(first.size), (rows, first)), shape=size
    )
    return matrix, first, second, number[:, 1:].size


@pytest.mark.parametrize("shape", [(17, 23), (1, 40), (40, 1), (2, 2)])
def test_equals_sparse_least_squares(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    p, q = rng.normal(size=shape), rng.normal(size=shape)
    matrix, first, second, split = difference_matrix(shape)
    a, b = first, second
    goal = np.concatenate(
        [
            0.5 * (p.ravel()[a[:split]] + p.ravel()[b[:split]]),
            0.5 * (q.ravel()[a[split:]] + q.ravel()[b[split:]]),
        ]
    )
    best = lsqr(vstack([matrix]).tocsr(), goal, atol=1e-15, btol=1e-15, iter_lim=20000)[0]
    best -= best.mean()
    z = solve_rectangle(p, q).ravel()
    assert np.abs(z - best).max() <= 1e-6 * np.abs(best).max()
    gradient = matrix.T @ (matrix @ z - goal)
    assert np.abs(gradient).max() < 1e-10


def test_screen_is_the_screened_minimizer() -> None:
    rng = np.random.default_rng(1)
    shape, screen = (9, 12), 0.3
    p, q = rng.normal(size=shape), rng.normal(size=shape)
    matrix, a, b, split = difference_matrix(shape)
    goal = np.concatenate(
        [
            0.5 * (p.ravel()[a[:split]] + p.ravel()[b[:split]]),
            0.5 * (q.ravel()[a[split:]] + q.ravel()[b[split:]]),
        ]
    )
    normal = (matrix.T @ matrix).toarray() + screen * np.eye(p.size)
    best = np.linalg.solve(normal, matrix.T @ goal)
    assert np.abs(solve_rectangle(p, q, screen=screen).ravel() - best).max() < 1e-12


def test_plane_is_exact() -> None:
    row, col = np.mgrid[:200, :151]
    z = 1.3 * col - 0.7 * row
    made = solve_rectangle(np.full(z.shape, 1.3), np.full(z.shape, -0.7))
    assert np.abs(made - (z - z.mean())).max() < 1e-10


def test_sphere_needs_the_mask(shapes) -> None:
    """Zero slopes outside pull the rim down; the masked solver is at least three times closer."""
    truth, normals, mask, _ = shapes.sphere(129)
    errors = {
        method: np.sqrt(
            np.mean(shapes.aligned(integrate(normals, mask, method=method).depth, truth, mask) ** 2)
        )
        for method in ("simchony", "poisson")
    }
    assert errors["poisson"] * 3 < errors["simchony"], errors
    assert errors["poisson"] < 0.1
