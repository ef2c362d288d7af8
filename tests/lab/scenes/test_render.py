"""Captures of scenes: the rendering equation, exposure, truth, determinism."""

import numpy as np
import pytest

from photostereo.core.conventions import gray_from_rgb
from photostereo.core.errors import ParameterError
from photostereo_lab import scenes
from photostereo_lab.scenes.textures import TEXTURES

NAMES = scenes.scene_names()
LIGHTS = scenes.dome_lights(6)


@pytest.mark.parametrize("reflectance", scenes.BRDFS)
@pytest.mark.parametrize("name", NAMES)
def test_every_scene_under_every_reflectance(name, reflectance):
    capture = scenes.render_scene(name, size=(40, 52), lights=LIGHTS, reflectance=reflectance)
    assert capture.images.shape == (6, 40, 52)
    assert capture.images.min() >= 0.0
    assert capture.images.max() == pytest.approx(0.95, abs=1e-6)
    assert (capture.images[:, ~capture.mask] == 0.0).all()
    assert (capture.images[:, capture.mask] > 0.0).any()
    assert capture.truth.shape == (40, 52, 3)
    assert np.array_equal(np.isfinite(capture.truth_depth), capture.mask)
    assert (capture.truth_albedo[capture.mask] > 0.0).all()
    assert capture.name == name


@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_lambertian_pixels_show_albedo_times_cosine(name, color):
    capture = scenes.render_scene(name, size=48, lights=LIGHTS, cast_shadows=False, color=color)
    cosine = np.maximum(capture.truth.astype(float) @ capture.lights.matrix, 0.0).transpose(2, 0, 1)
    albedo = capture.truth_albedo.astype(float)
    expected = cosine[..., None] * albedo if color else cosine * albedo
    assert np.abs(capture.images - expected)[:, capture.mask].max() < 5e-7


def test_unclipped_cosines_on_request():
    capture = scenes.render_scene(
        "sphere", size=40, lights=LIGHTS, cast_shadows=False, attached=False
    )
    expected = (capture.truth.astype(float) @ capture.lights.matrix).transpose(
        2, 0, 1
    ) * capture.truth_albedo
    assert capture.images.min() < -0.05
    assert np.abs(capture.images - expected).max() < 5e-7


def test_cast_shadows_only_darken_and_they_darken_the_figure():
    lights = scenes.ring_lights(6, elevation=35.0)
    free, cast = (
        scenes.render_scene("figure", size=96, lights=lights, cast_shadows=on, exposure=0.9)
        for on in (False, True)
    )
    dark = (cast.images == 0.0) & (free.images > 0.0)
    assert np.array_equal(cast.images[~dark], free.images[~dark])
    assert dark.sum() > 0.05 * len(lights) * cast.pixel_count


def test_glossy_surfaces_only_add_to_the_diffuse_base():
    shiny = scenes.BlinnPhong(shininess=60.0, specular=0.3)
    lambert, glossy = (
        scenes.render_scene("sphere", size=64, lights=LIGHTS, exposure=0.2, reflectance=r)
        for r in ("lambertian", shiny)
    )
    highlight = glossy.images - 0.7 * lambert.images
    assert highlight.min() > -1e-6
    # The highlight of light l is where n = h, halfway between light and camera.
    for light, image in zip(glossy.lights.directions, highlight, strict=True):
        half = light + np.array([0.0, 0.0, 1.0])
        half /= np.linalg.norm(half)
        at = np.unravel_index(np.argmax(image), image.shape)
        assert np.rad2deg(np.arccos(glossy.truth[at] @ half)) < 6.0


def test_gray_is_the_luma_of_color():
    options = {"size": 40, "lights": LIGHTS, "exposure": 0.5, "reflectance": "ggx"}
    gray = scenes.render_scene("figure", **options)
    color = scenes.render_scene("figure", color=True, **options)
    assert color.is_color
    assert color.truth_albedo.shape == (40, 40, 3)
    np.testing.assert_allclose(gray_from_rgb(color.images), gray.images, atol=1e-6)
    np.testing.assert_allclose(gray_from_rgb(color.truth_albedo), gray.truth_albedo, atol=1e-6)


def test_given_exposure_scales_and_saturates():
    once = scenes.render_scene("vase", size=40, lights=LIGHTS, exposure=0.5)
    thrice = scenes.render_scene("vase", size=40, lights=LIGHTS, exposure=5.0)
    np.testing.assert_allclose(thrice.images, np.minimum(10.0 * once.images, 1.0), atol=1e-6)
    assert thrice.images.max() == 1.0


@pytest.mark.parametrize("name", ["relief", "sphere", "figure"])
def test_same_seed_same_capture(name):
    first, second = (scenes.render_scene(name, size=32, lights=LIGHTS, rng=5) for _ in range(2))
    assert first.digest == second.digest
    assert np.array_equal(first.truth_albedo, second.truth_albedo)
    if name != "figure":
        assert first.digest != scenes.render_scene(name, size=32, lights=LIGHTS, rng=6).digest


@pytest.mark.parametrize("texture", TEXTURES)
def test_textures_are_albedos_at_any_resolution(texture):
    coarse, fine = (
        scenes.albedo_of(scenes.sphere(size), texture, rng=2, color=True) for size in (30, 90)
    )
    inside = scenes.sphere(30).mask & scenes.sphere(90).mask[1::3, 1::3]
    assert coarse[inside].min() > 0.0
    assert coarse.max() <= 1.0
    if texture != "uniform":
        assert coarse[inside].std(axis=0).max() > 0.03
    difference = np.abs(coarse - fine[1::3, 1::3])[inside].max(axis=-1)
    assert np.quantile(difference, 0.99) < 1e-6


def test_a_texture_can_be_a_function():
    capture = scenes.render_scene(
        "sphere",
        size=20,
        lights=LIGHTS,
        exposure=1.0,
        texture=lambda points, rng: np.full(points.shape, 0.25),
    )
    np.testing.assert_allclose(capture.truth_albedo[capture.mask], 0.25, atol=1e-6)


@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("size", [24, 64, (40, 70)])
def test_lambertian_reference_is_exact_for_least_squares(size, color):
    capture = scenes.lambertian_reference(size, d=10, color=color)
    cosine = capture.truth[capture.mask].astype(float) @ capture.lights.matrix
    assert cosine.min() >= np.cos(np.deg2rad(80.0)) - 1e-6
    gray = capture.gray().images[:, capture.mask].astype(float)
    estimate = gray.T @ np.linalg.pinv(capture.lights.matrix)
    truth = capture.truth[capture.mask].astype(float)
    error = np.arctan2(np.linalg.norm(np.cross(estimate, truth), axis=1), (estimate * truth).sum(1))
    assert np.rad2deg(error).max() < 1e-4
    albedo = gray_from_rgb(capture.truth_albedo) if color else capture.truth_albedo
    assert np.abs(np.linalg.norm(estimate, axis=1) - albedo[capture.mask]).max() < 1e-6
    assert albedo[capture.mask].std() > 0.02


def test_input_is_left_alone():
    surface = scenes.figure(24)
    lights, albedo = 2.0 * np.array(LIGHTS), scenes.albedo_of(surface, "painted")
    before = lights.copy(), albedo.copy()
    capture = scenes.render_surface(surface, lights, albedo=albedo)
    assert np.array_equal(lights, before[0])
    assert np.array_equal(albedo, before[1])
    np.testing.assert_allclose(np.linalg.norm(capture.lights.directions, axis=1), 1.0, atol=1e-14)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: scenes.render_scene("spere"), "unknown-scene"),
        (lambda: scenes.render_scene("sphere", texture="marbel"), "unknown-texture"),
        (lambda: scenes.render_scene("sphere", texture="painted"), "shape-without-colors"),
        (lambda: scenes.render_scene("sphere", reflectance="phong"), "unknown-reflectance"),
        (
            lambda: scenes.render_scene("sphere", reflectance="ggx", attached=False),
            "no-attached-shadows",
        ),
        (
            lambda: scenes.render_scene("sphere", lights=[[0, 0, -1], [0, 1, 1], [1, 0, 1]]),
            "bad-scene-lights",
        ),
        (
            lambda: scenes.render_scene("sphere", lights=[[0, 0, 0], [0, 1, 1], [1, 0, 1]]),
            "bad-scene-lights",
        ),
        (lambda: scenes.render_scene("sphere", lights=[0, 0, 1]), "bad-scene-lights"),
    ],
)
def test_mistakes_are_explained(make, code):
    with pytest.raises(ParameterError) as caught:
        make()
    assert caught.value.code == code
