"""Small functions about lights, each in a case that can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from photostereo.diagnosis.expected_error import factor_of_many
from photostereo.diagnosis.noise import chi_square_quantile
from photostereo.lights.ambient import estimate_room_light
from photostereo.lights.exposure import (
    _closest_half,
    describe_correction,
    estimate_strengths,
    strength_sample,
)
from photostereo.lights.geometry import compass_word, direction_words, light_geometry, row_lengths
from photostereo.lights.strengths import strengths_from_card, strengths_from_flat, unexplained_light
from photostereo.lights.thumbnail import matte_fit, shrink
from photostereo.lights.turn import coarse_curl, turn_of_lights
from photostereo.lights.unknown.crops import Symmetry, crop_photographs
from photostereo.lights.unknown.estimate import depth_factor, spread_of
from photostereo_lab.scenes import render_scene

LIGHTS = np.array([[0, 0, 1], [0.6, 0, 0.8], [0, 0.6, 0.8], [-0.6, 0, 0.8], [0, -0.6, 0.8]])


def test_geometry() -> None:
    np.testing.assert_allclose(row_lengths(np.array([[3.0, 0, 4], [3e200, 0, 4e200]])), [5, 5e200])
    geometry = light_geometry(np.eye(3))
    assert geometry.condition == pytest.approx(1)
    np.testing.assert_allclose(geometry.singular_values, 3**-0.5)
    assert [compass_word(angle) for angle in (0, 135, 268)] == ["right", "upper left", "bottom"]
    assert direction_words(np.array([0.0, 0.0, 1.0])) == "from in front, near the camera"
    assert direction_words(np.array([0.0, 1.0, 0.1])) == "from the top or the bottom"
    assert direction_words(np.array([-0.7, 0.0, 0.7])) == "from the left"


def test_strengths_in_closed_form() -> None:
    rng = np.random.default_rng(0)
    lights = rng.normal(size=(8, 3)) + np.array([0, 0, 4])
    strengths = rng.uniform(0.6, 1.4, 8)
    surface = rng.normal(size=(50, 3)) + np.array([0, 0, 5])
    share, found = unexplained_light(surface @ lights.T * strengths, lights)
    assert share < 1e-12
    np.testing.assert_allclose(found / found[0], strengths / strengths[0])
    flat = np.array([[0.6, 0, 0.8], [0, 0.8, 0.6], [0, 0, 1.0]])
    seen = np.array([[0.2], [0.7]]) * flat[:, 2] * [1.0, 2.0, 0.5]
    np.testing.assert_allclose(strengths_from_flat(seen, flat), [1, 2, 0.5])
    card = np.stack([np.full((8, 8), 0.8 * 0.5), np.full((8, 8), 0.6 * 1.0)])
    found = strengths_from_card(card, np.array([[0.6, 0, 0.8], [0.8, 0, 0.6]]), (2, 2, 6, 6))
    assert found[1] / found[0] == pytest.approx(2)


def test_one_bright_photograph_is_corrected() -> None:
    scene = render_scene("sphere", size=40, reflectance="ggx")
    pixels = np.stack([image[scene.mask] for image in scene.images], 1)
    pixels[:, 3] *= 1.25
    found = estimate_strengths(pixels, scene.lights.matrix, np.zeros(len(pixels), np.float32))
    assert np.flatnonzero(found.factors != 1.0).tolist() == [3]
    assert found.factors[3] == pytest.approx(1.25, abs=0.05)
    said = describe_correction(np.array([1.0, 1.45, 1.0, 0.9]))
    assert said is not None and said.code == "exposure-corrected"
    assert said.values == {"span": pytest.approx(0.38, abs=0.005), "count": 2, "photographs": 4}
    assert describe_correction(np.ones(4)) is None and describe_correction(None) is None


def test_samples_and_quantiles() -> None:
    steps = [strength_sample(*sizes).step for sizes in ((9000, 12), (9000, 96), (100, 12))]
    assert steps == [3, 9, 1]
    assert _closest_half(np.array([0.0, 0.1, 5.0, -0.1, 9.0])) == pytest.approx(
        (0, 0.148), abs=1e-3
    )
    shares = np.array([0.001, 0.5, 0.999])
    for freedom in (1, 2, 3, 9, 45, 93, 400):
        found = [chi_square_quantile(freedom, share) for share in shares]
        assert found == pytest.approx(chi2.ppf(shares, freedom), rel=1e-10)
    assert [round(factor_of_many(count), 2) for count in (6, 20, 48, 96)] == [1.0, 1.0, 1.07, 1.19]


def test_light_of_the_room() -> None:
    scene = render_scene("sphere", size=64)
    room = 0.2 * scene.truth_albedo * scene.truth[..., 2]
    for images, certain in ((scene.images + room, True), (scene.images, False)):
        assert (
            estimate_room_light(images, scene.lights.directions, scene.mask).is_certain is certain
        )


def test_thumbnails() -> None:
    mask = np.zeros((40, 60), dtype=bool)
    mask[10:30, 20:50] = True
    small = shrink(np.full((3, 40, 60), 0.5, dtype=np.float32), mask, side=15)
    assert small.mask.shape == (10, 15) and (small.values == 0.5).all()
    normals, misfit = matte_fit(LIGHTS @ np.array([[0.0], [0.6], [0.8]]), LIGHTS, top=1.0)
    np.testing.assert_allclose(normals, [[0, 0.6, 0.8]], atol=1e-6)
    assert misfit[0] < 1e-6
    mask = np.zeros((300, 400), dtype=bool)
    mask[50:250, 100:300] = True
    crops = crop_photographs([np.full((300, 400), 0.25, np.float32)] * 4, mask)
    assert crops.images.shape == (4, 96, 96, 3)
    np.testing.assert_allclose(crops.images[:, crops.mask], 0.25, atol=1e-4)


def test_a_turn_of_all_normals() -> None:
    sphere, relief = (render_scene(name, size=64) for name in ("sphere", "relief"))
    tilted = sphere.truth @ np.array([[1, 0, 0], [0, 0.995, -0.0998], [0, 0.0998, 0.995]]).T
    np.testing.assert_allclose(np.abs(turn_of_lights(tilted, sphere.mask)), [6, 0, 0], atol=0.5)
    assert (
        coarse_curl(sphere.truth, sphere.mask) < 0.02 < 0.1 < coarse_curl(relief.truth, relief.mask)
    )


def test_symmetries_and_spread() -> None:
    turn = Symmetry(
        1, False
    )  # what pointed right points up; the upper right corner becomes the upper left
    assert turn.of_vectors(np.array([[1, 0, 0]], np.float32)).tolist() == [[0.0, 1.0, 0.0]]
    assert turn.of_pictures(np.array([[[0, 1], [0, 0]]]))[0].tolist() == [[1, 0], [0, 0]]
    two = np.array([[0.6, 0, 0.8], [-0.6, 0, 0.8]])
    assert spread_of(two) == pytest.approx(36.87, abs=0.01)
    assert depth_factor(two, 5.0) == pytest.approx(1.2, abs=0.01)
