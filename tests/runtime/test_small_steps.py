"""Small functions of `runtime`, each by an example."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.runtime.algebra import quadratic_cost
from photostereo.runtime.compile_notice import MESSAGE, announcing, begun
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


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(
    ("inputs", "outputs", "size"), [(1, 1, (4, 4)), (5, 7, (6, 10)), (3, 50, (128, 130))]
)
def test_convolution_pads_with_zeros(
    stride: int, inputs: int, outputs: int, size: tuple[int, int]
) -> None:
    rng = np.random.default_rng(0)
    kernel, bias = rng.standard_normal((outputs, inputs, 3, 3)), rng.standard_normal(outputs)
    pictures = rng.standard_normal((2, *size, inputs))
    around = np.pad(pictures, [(0, 0), (1, 1), (1, 1), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(around, (3, 3), axis=(1, 2))[
        :, ::stride, ::stride
    ]
    w = {"c.weight": np.float32(kernel), "c.bias": np.float32(bias)}
    found = convolve(w, "c", np.float32(pictures), stride)
    expected = np.einsum("byxirc,oirc->byxo", windows, kernel) + bias
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_shading_under_shared_and_own_lights() -> None:
    lights, normals = np.array([[0.0, 0.6], [0.0, 0.0], [1.0, 0.8]]), np.array([[0.0, 0.0, 2.0]])
    for found in (shading(normals, lights), shading(normals, lights[None])):
        np.testing.assert_allclose(found, [[2.0, 1.6]])


def test_work_done_ahead_comes_in_order() -> None:
    assert list(in_turn(lambda number: number**2, 4, 2)) == [0, 1, 4, 9]
