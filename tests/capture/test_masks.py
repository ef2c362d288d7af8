"""A mask found from brightness."""

from __future__ import annotations

import numpy as np

from photostereo.masks.reading import mask_from_brightness


def ball(size=80, radius=30):
    rows, cols = np.mgrid[:size, :size] - (size - 1) / 2
    inside = rows**2 + cols**2 < radius**2
    height = np.sqrt(np.maximum(radius**2 - rows**2 - cols**2, 0))
    normals = np.stack([cols, -rows, height], axis=-1) / radius
    return inside, normals


def test_lit_ball_before_black():
    rng = np.random.default_rng(0)
    inside, normals = ball()
    lights = np.array([[0, 0, 1], [0.5, 0, 0.8], [-0.5, 0, 0.8], [0, 0.6, 0.8], [0, -0.6, 0.8]])
    images = np.maximum(normals @ lights.T, 0).transpose(2, 0, 1) * inside * 0.7
    images += rng.uniform(0, 0.03, images.shape)
    images[:, 2, 3] = 0.9  # a hot pixel
    images[:, 40, 40] = 0  # a hole
    images[2, 30, 30] = 8.0  # a glint
    found = mask_from_brightness(images)
    assert found[40, 40]
    assert not found[2, 3]
    wrong = found != inside
    assert wrong.mean() < 0.01
    np.testing.assert_array_equal(mask_from_brightness(images[..., None].repeat(3, axis=3)), found)


def test_black_has_no_object():
    assert not mask_from_brightness(np.zeros((3, 5, 5))).any()
