"""Products with lights, against NumPy."""

from __future__ import annotations

import numpy as np

from photostereo.runtime.illumination import turns_to_z, weighted_least_squares


def test_what_has_no_weight_does_not_count() -> None:
    lights = np.array([[0.0, 0.6, 0.0, 0.6], [0.0, 0.0, 0.6, 0.6], [1.0, 0.8, 0.8, 0.5]])
    seen = np.array([[0.0, 0.0, 1.0]]) @ lights + [[0, 0, 0, 7.0]]
    found = weighted_least_squares(seen, lights, np.array([[1.0, 1, 1, 0]]))
    np.testing.assert_allclose(found, [[0.0, 0.0, 1.0]], atol=1e-7)


def test_vectors_are_turned_to_z() -> None:
    toward = np.array([[3.0, -1.0, 2.0], [0.0, 0.0, 1.0]])
    unit = toward / np.linalg.norm(toward, axis=1, keepdims=True)
    turns = turns_to_z(toward)
    np.testing.assert_allclose(turns @ unit[..., None], [[[0.0], [0.0], [1.0]]] * 2, atol=1e-6)
    np.testing.assert_allclose(turns @ turns.transpose(0, 2, 1), [np.eye(3)] * 2, atol=1e-6)
