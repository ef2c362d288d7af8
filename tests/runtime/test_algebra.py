"""The 3 × 3 algebra, whole arrays and compiled, against LAPACK."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from photostereo.runtime.algebra import (
    inverse_3x3,
    inverse_by_cofactors,
    invert_if_regular,
    quadratic_form,
    solve_3x3,
    solve_shifted_3x3,
    times_3x3,
)
from photostereo.runtime.symmetric import (
    inverse_symmetric_3x3,
    mean_symmetric_3x3,
    solve_symmetric_3x3,
    symmetric_entries,
)

ENTRIES = ([0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2])


@pytest.fixture(scope="module")
def systems() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(50, 3, 5))
    return factors @ factors.transpose(0, 2, 1), rng.normal(size=(50, 3))


@njit
def compiled(h, b):
    """Everything of one pixel, as a kernel would use it."""
    xx, xy, xz, yy, yz, zz = h[0], h[1], h[2], h[3], h[4], h[5]
    inverse = inverse_3x3(xx, xy, xz, yy, yz, zz), inverse_by_cofactors(xx, xy, xz, yy, yz, zz)
    solved = solve_3x3(xx, xy, xz, yy, yz, zz, b[0], b[1], b[2])
    times = times_3x3(xx, xy, xz, yy, yz, zz, b[0], b[1], b[2])
    return inverse, solved, times


def test_compiled_algebra(systems):
    for matrix, b in zip(*systems, strict=True):
        h = matrix[ENTRIES]
        inverse, solved, times = compiled(h, b)
        expected, worst = np.linalg.inv(matrix), np.linalg.cond(matrix) * 1e-14
        for found in inverse:
            np.testing.assert_allclose(
                found, expected[ENTRIES], atol=worst * np.abs(expected).max()
            )
        np.testing.assert_allclose(solved, expected @ b, atol=worst * np.abs(expected @ b).max())
        np.testing.assert_allclose(times, matrix @ b, atol=1e-13 * np.abs(matrix).max())
        assert quadratic_form(h, b) == pytest.approx(b @ matrix @ b, rel=1e-12)
        out = np.empty((3, 3))
        assert invert_if_regular(h, out)
        np.testing.assert_allclose(out, expected, atol=worst * np.abs(expected).max())


def test_whole_arrays_agree_with_the_compiled(systems):
    matrices, right = systems
    entries = matrices[:, ENTRIES[0], ENTRIES[1]]
    found = solve_shifted_3x3(entries, np.zeros(len(right)), right)
    pairs = [compiled(h, b) for h, b in zip(entries, right, strict=True)]
    np.testing.assert_allclose(found, [pair[1] for pair in pairs], rtol=1e-12)
    alone = [quadratic_form(h, b) for h, b in zip(entries, right, strict=True)]
    np.testing.assert_allclose(quadratic_form(entries, right), alone, rtol=1e-13)


def test_a_singular_matrix_is_told():
    lights = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 0.0]])  # in a plane
    assert not invert_if_regular((lights.T @ lights)[ENTRIES], np.empty((3, 3)))


def test_entries_of_symmetric_matrices(systems) -> None:
    h, b = systems
    entries = symmetric_entries(h)
    np.testing.assert_array_equal(entries, h[:, *ENTRIES])
    np.testing.assert_allclose(mean_symmetric_3x3(entries), h.mean(axis=0), rtol=1e-12)
    inverse = np.stack(inverse_symmetric_3x3(*symmetric_entries(h + 0.5 * np.eye(3)).T), axis=-1)
    np.testing.assert_allclose(
        inverse, symmetric_entries(np.linalg.inv(h + 0.5 * np.eye(3))), atol=1e-9
    )
    solved = np.stack(solve_symmetric_3x3(*entries.T, *b.T), axis=-1)
    np.testing.assert_allclose(solved, np.linalg.solve(h, b[..., None])[..., 0], rtol=1e-6)
