"""Lights that are close are noticed, against photographs under lights at known distances."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.capture import Capture
from photostereo.diagnosis.diagnose import diagnose
from photostereo.diagnosis.near_lights import find_near_lights
from photostereo_lab.scenes import dome_lights, render_scene


def near(scene: Capture, widths: float) -> np.ndarray:
    """The photographs with the light's direction and fall-off as they are at each pixel, from the true normals."""
    assert scene.truth is not None
    rows, columns = np.mgrid[: scene.frame[0], : scene.frame[1]]
    x, y = columns - 0.5 * (scene.frame[1] - 1), 0.5 * (scene.frame[0] - 1) - rows
    place = np.stack([x, y, 0 * x], axis=-1) / scene.frame[1]
    images = []
    for image, light in zip(scene.images, scene.lights.directions, strict=True):
        toward = widths * light - place
        distance = np.linalg.norm(toward, axis=-1)
        cosine = np.maximum((scene.truth * toward).sum(axis=-1) / distance, 0)
        images.append(
            image
            * np.minimum(cosine / np.maximum(scene.truth @ light, 0.05), 3)
            * (widths / distance) ** 2
        )
    return np.stack(images).astype(np.float32)


@pytest.mark.parametrize(("shape", "reflectance"), [("vase", "ggx"), ("fabric", "lambertian")])
def test_distance_and_bend_are_estimated(shape: str, reflectance: str) -> None:
    scene = render_scene(
        shape, size=96, lights=dome_lights(14, max_angle=60), reflectance=reflectance, rng=3
    )
    directions = scene.lights.directions
    assert find_near_lights(scene.images, directions, scene.mask) is None
    found = find_near_lights(near(scene, 4.0), directions, scene.mask)
    assert found is not None and found.values["widths"] == pytest.approx(4.0, rel=0.35)
    capture = Capture(images=near(scene, 4.0), lights=directions, mask=scene.mask)
    findings = [finding for finding in diagnose(capture).findings if finding.is_mistake]
    assert [finding.effect for finding in findings] == [found.effect]
    # That of least squares, which has no opinion of its own.
    pixels = near(scene, 4.0)[:, scene.mask]
    bent = np.linalg.lstsq(directions, pixels, rcond=None)[0].T
    straight = np.linalg.lstsq(directions, scene.images[:, scene.mask], rcond=None)[0].T
    cosine = (
        (bent * straight).sum(axis=1)
        / np.linalg.norm(bent, axis=1)
        / np.linalg.norm(straight, axis=1)
    )
    assert 0.4 < found.effect / np.degrees(np.arccos(np.clip(cosine, -1, 1))).mean() < 1.2


def test_other_faults_are_not_near_lights() -> None:
    scene = render_scene("figure", size=96, lights=dome_lights(14, max_angle=60), rng=4)
    directions, rng = scene.lights.directions, np.random.default_rng(0)
    for images in (
        scene.images + rng.normal(0, 0.05, scene.images.shape),
        scene.images + 0.3 * scene.images.mean(axis=0),
        scene.images * np.linspace(1, 0.5, 14)[:, None, None],
        np.minimum(scene.images, np.quantile(scene.images, 0.9)),
    ):
        assert find_near_lights(images, directions, scene.mask) is None
    assert find_near_lights(scene.images, np.roll(directions, 1, axis=0), scene.mask) is None
    assert find_near_lights(scene.images[:4], directions[:4], scene.mask) is None


def test_an_exposure_that_falls_is_not_taken_for_near_lights() -> None:
    lights = dome_lights(14, max_angle=60)
    scene = render_scene(
        "sphere", size=120, lights=lights, reflectance="oren-nayar", texture="stone", rng=1
    )
    falling = np.linspace(1, 0.1, 14, dtype=np.float32)[:, None, None]
    assert find_near_lights(scene.images * falling, lights, scene.mask) is not None  # as they are
    capture = Capture(images=scene.images * falling, lights=lights, mask=scene.mask)
    assert not [finding for finding in diagnose(capture).findings if finding.is_mistake]
