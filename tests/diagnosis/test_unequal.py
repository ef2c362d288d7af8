"""Many blurred photographs and an uncertain exposure are reported, with the error that they cause."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from photostereo.capture import Capture
from photostereo.diagnosis.advice import Finding
from photostereo.diagnosis.metrics import angle_between
from photostereo.diagnosis.unequal import relative_strengths, unequal_photographs
from photostereo.lights.exposure import StrengthEstimate
from photostereo_lab.scenes import Ggx, dome_lights, render_scene

LIGHTS = dome_lights(14, max_angle=60)


def found_in(images: np.ndarray, mask: np.ndarray, noise: float) -> list[Finding]:
    strengths = relative_strengths(images, LIGHTS, mask, noise)
    return list(unequal_photographs(images, LIGHTS, mask, strengths))


@pytest.fixture(scope="module")
def scene() -> Capture:
    return render_scene(
        "relief", size=96, lights=LIGHTS, reflectance="blinn-phong", texture="marble", rng=62018
    )


def test_good_photographs_are_equal(scene: Capture) -> None:
    noisy = scene.images + np.random.default_rng(0).normal(0, 0.02, scene.images.shape)
    for images in (scene.images, noisy.astype(np.float32)):
        assert not found_in(images, scene.mask, 0.01)


def test_many_blurred_photographs_are_reported_with_their_effect(scene: Capture) -> None:
    images = scene.images.copy()
    for image in images[1::2]:
        image[:] = cv2.GaussianBlur(image, (0, 0), 4)
    [finding] = found_in(images, scene.mask, 0.01)
    assert finding.is_mistake and (finding.code, finding.values["count"]) == (
        "blurred-photographs",
        7,
    )
    fit = np.linalg.pinv(LIGHTS).T
    lost = float(
        angle_between(scene.images[:, scene.mask].T @ fit, images[:, scene.mask].T @ fit).mean()
    )
    assert 0.5 < finding.effect / lost < 2


def test_an_exposure_that_cannot_be_corrected_is_a_problem(scene: Capture) -> None:
    """On metal; a relief with a gloss is corrected, and nothing is left to report."""
    falling = np.linspace(1, 0.2, 14, dtype=np.float32)[:, None, None]
    assert not found_in(scene.images * falling, scene.mask, 0.01)
    metal = render_scene(
        "relief", size=96, lights=LIGHTS, reflectance=Ggx(0.3, 0.8), texture="marble"
    )
    assert not found_in(metal.images, metal.mask, 0.0)
    [finding] = found_in(metal.images * falling, metal.mask, 0.0)
    assert finding.is_mistake and finding.code == "varying-exposure" and finding.effect > 3


def test_strengths_that_look_like_a_turn_of_the_whole_have_little_effect(scene: Capture) -> None:
    """A relief that is tilted by 12° darkens the photographs as weaker lights would."""
    tilted = LIGHTS @ Rotation.from_euler("y", 12, degrees=True).as_matrix()
    strengths = tilted[:, 2] / LIGHTS[:, 2]
    uncertain = StrengthEstimate(strengths, np.ones(14), np.ones(14, np.float32), left=0.5)
    [finding] = unequal_photographs(scene.images, LIGHTS, scene.mask, uncertain)
    pixels, fit = scene.images[:, scene.mask].T, np.linalg.pinv(LIGHTS).T
    turned = angle_between(pixels @ fit, (pixels / strengths) @ fit).mean()
    assert finding.code == "varying-exposure" and turned > 6 and finding.effect < turned / 3
