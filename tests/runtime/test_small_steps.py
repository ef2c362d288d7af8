"""Small functions of `runtime`, each by an example."""

from __future__ import annotations

import numpy as np

from photostereo.runtime.algebra import quadratic_cost
from photostereo.runtime.compiling import MESSAGE, announcing, begun
from photostereo.runtime.convolution import convolve
from photostereo.runtime.illumination import shading
from photostereo.runtime.threads import in_turn


def test_quadratic_cost() -> None:
    entries, ones = np.array([[1.0, 0.5, 0, 3, 0, 4]]), np.ones((1, 3))
    assert quadratic_cost(entries, ones, np.ones(1), ones).tolist() == [4.0]


def test_a_compilation_is_announced_once() -> None:
    said: list[str] = []
    with announcing(said.append):
        begun()
        begun()
    assert said == [MESSAGE]


def test_convolution_pads_with_zeros() -> None:
    w = {"c.weight": np.ones((1, 1, 3, 3), np.float32), "c.bias": np.zeros(1, np.float32)}
    found = convolve(w, "c", np.ones((1, 3, 3, 1), np.float32))[0, :, :, 0]
    assert found.tolist() == [[4.0, 6.0, 4.0], [6.0, 9.0, 6.0], [4.0, 6.0, 4.0]]


def test_shading_under_shared_and_own_lights() -> None:
    lights, normals = np.array([[0.0, 0.6], [0.0, 0.0], [1.0, 0.8]]), np.array([[0.0, 0.0, 2.0]])
    for found in (shading(normals, lights), shading(normals, lights[None])):
        np.testing.assert_allclose(found, [[2.0, 1.6]])


def test_work_done_ahead_comes_in_order() -> None:
    assert list(in_turn(lambda number: number**2, 4, 2)) == [0, 1, 4, 9]
