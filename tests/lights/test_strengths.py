"""Strengths of lights from the shading of an unknown object."""

from __future__ import annotations

import numpy as np
import pytest

import photostereo as ps
from photostereo.lights.ball.calibration import _strengths
from photostereo.lights.source import SourceKind
from photostereo.lights.strengths import (
    equal_strengths_suffice,
    sample_pixels,
    strengths_from_flat,
    strengths_from_shading,
    unexplained_light,
)
from photostereo_lab.scenes import random_lights, render_scene


def falsified(capture: ps.Capture, seed: int) -> tuple[np.ndarray, np.ndarray]:
    factors = np.random.default_rng(seed).uniform(0.6, 1.4, len(capture))
    factors /= np.exp(np.mean(np.log(factors)))
    return capture.images * factors[:, None, None].astype(np.float32), factors


@pytest.mark.parametrize("scene", ["figure", "vase"])
def test_falsified_strengths_of_a_scene(scene: str) -> None:
    capture = render_scene(scene, size=128)
    images, factors = falsified(capture, 0)
    pixels = sample_pixels(images, capture.mask)
    found = strengths_from_shading(pixels, capture.lights.directions)
    assert np.abs(found / factors - 1).max() < 0.015
    assert np.exp(np.mean(np.log(found))) == pytest.approx(1)
    assert not equal_strengths_suffice(pixels, capture.lights.directions)
    assert equal_strengths_suffice(
        sample_pixels(capture.images, capture.mask), capture.lights.directions
    )


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "limit"), [("ballPNG", 0.03), ("catPNG", 0.03), ("pot2PNG", 0.05)]
)
def test_falsified_strengths_of_a_photographed_object(data_dir, name: str, limit: float) -> None:
    capture = ps.load(data_dir / "diligent" / "pmsData" / name).take(20, rng=1)
    images, factors = falsified(capture, 1)
    found = strengths_from_shading(sample_pixels(images, capture.mask), capture.lights.directions)
    assert np.abs(found / factors - 1).mean() < limit
    assert np.abs(factors - 1).mean() > 0.15  # it was wrong before


def test_the_eigenvalue_is_the_least_that_any_strengths_leave() -> None:
    rng = np.random.default_rng(3)
    lights = rng.normal(size=(7, 3)) + np.array([0, 0, 3])
    pixels = np.maximum(rng.normal(size=(200, 3)) @ lights.T, 0) + 0.01
    share, strengths = unexplained_light(pixels, lights)

    def left(inverse: np.ndarray) -> float:
        unit = pixels / np.linalg.norm(pixels, axis=1, keepdims=True) * inverse
        rest = unit - unit @ np.linalg.pinv(lights.T) @ lights.T
        return float((rest**2).sum() / (unit**2).sum())

    assert left(1 / strengths) == pytest.approx(share, rel=1e-6)
    for _ in range(50):
        assert left(np.exp(0.3 * rng.normal(size=7)) / strengths) >= share


def test_an_overexposed_flat_thing_tells_the_strengths_where_it_is_not_white() -> None:
    rng = np.random.default_rng(5)
    lights = random_lights(10, max_angle=50, rng=2)
    strengths = np.exp(rng.uniform(-0.4, 0.4, 10))
    strengths /= np.exp(np.log(strengths).mean())
    albedo = rng.uniform(0.05, 1.8, (40, 50))  # half of it is white in some photograph
    images = np.minimum(albedo * (strengths * lights[:, 2])[:, None, None], 1.0)
    pixels = sample_pixels(images, overexposed=True)
    assert np.isnan(pixels).any()
    np.testing.assert_allclose(strengths_from_flat(pixels, lights), strengths, rtol=1e-6)


def test_five_photographs_of_a_solid_thing_tell_no_strengths() -> None:
    """They are too few for its shading, and it does not face the camera as something flat does."""
    scene = render_scene("sphere", size=48, lights=random_lights(5, max_angle=60, rng=3))
    found, source = _strengths(scene.images, scene.mask, (), scene.lights.directions, None, None)
    assert source.kind is SourceKind.ASSUMED_EQUAL
    assert (found == 1.0).all()
