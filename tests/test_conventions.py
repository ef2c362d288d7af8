"""Encodings go there and back."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.core.conventions import (
    decode_normals,
    encode_normals,
    gray_from_rgb,
    linear_from_srgb,
    srgb_from_linear,
)
from photostereo.diagnosis.metrics import angle_between


@pytest.mark.parametrize(("bits", "limit"), [(8, 0.5), (16, 0.002)])
@pytest.mark.parametrize("flip_y", [False, True])
def test_normal_pictures_round_trip(bits: int, limit: float, flip_y: bool) -> None:
    rng = np.random.default_rng(0)
    normals = rng.normal(size=(20, 30, 3))
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    mask = rng.uniform(size=(20, 30)) > 0.2
    picture = encode_normals(normals, mask, flip_y=flip_y, bits=bits)
    back = decode_normals(picture, flip_y=flip_y)
    assert angle_between(back[mask], normals[mask]).max() < limit
    assert not back[~mask].any()


def test_green_is_up_in_opengl() -> None:
    up = np.array([[[0.0, 1.0, 0.0]]])
    mask = np.ones((1, 1), bool)
    assert encode_normals(up, mask)[0, 0, 1] == 65535
    assert encode_normals(up, mask, flip_y=True)[0, 0, 1] == 0


def test_srgb_round_trip() -> None:
    value = np.linspace(0, 1, 1001)
    assert np.abs(linear_from_srgb(srgb_from_linear(value)) - value).max() < 1e-6


def test_gray_weights_sum_to_one() -> None:
    assert gray_from_rgb(np.ones(3)) == pytest.approx(1.0, abs=1e-12)


def test_middle_gray_of_srgb() -> None:
    np.testing.assert_allclose(
        linear_from_srgb(np.array([0.0, 0.5, 1.0])), [0.0, 0.214, 1.0], atol=5e-5
    )
    assert float(gray_from_rgb(np.ones(3))) == 1.0
