"""Highlights smaller than a pixel, small balls, perspective: what limits the directions."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.core.findings import by_code
from photostereo.lights.ball.calibration import calibrate_lights
from photostereo.lights.ball.geometry import Camera, Circle, facing_view
from photostereo.lights.ball.highlight import find_highlights
from photostereo.lights.ball.outline_fit import settle_outline
from photostereo.lights.ball.search import find_balls
from photostereo.lights.ball.shading import fit_shading, settle_circle
from photostereo.lights.geometry import angles_between
from photostereo_lab.scenes import dome_lights, random_lights

from ..ball_scenes.balls import shoot_table
from ..ball_scenes.studio import Ball, Studio

LIGHTS = random_lights(12, max_angle=50, rng=4)


def test_highlights_are_found_to_a_tenth_of_a_pixel() -> None:
    for kind in ("mirror", "black"):
        shoot = shoot_table(
            [Ball(kind, 48.3, 44.6, 27.0)], size=(90, 96), scene=None, lights=LIGHTS
        )
        found = find_highlights(shoot.images, Circle(48.3, 44.6, 27.0))
        half = shoot.lights + np.array([0, 0, 1])
        half /= np.linalg.norm(half, axis=1, keepdims=True)
        error = np.hypot(found.x - (48.3 + 27 * half[:, 0]), found.y - (44.6 - 27 * half[:, 1]))
        assert error.max() < 0.3 and error.mean() < 0.1


def test_shading_knows_the_circle_better_than_the_outline() -> None:
    shoot = shoot_table([Ball("matte", 48.3, 44.6, 27.0)], size=(90, 96), scene=None, lights=LIGHTS)
    guess = Circle(48.6, 44.2, 26.7)
    found = settle_circle(shoot.images, guess)
    assert np.hypot(found.x - 48.3, found.y - 44.6) < 0.06
    before, after = (
        angles_between(fit_shading(shoot.images, circle).directions, shoot.lights).mean()
        for circle in (guess, found)
    )
    assert before > 1.0 and after < 0.3


@pytest.mark.parametrize(("kind", "limit"), [("mirror", 0.5), ("matte", 0.3)])
def test_balls_of_sixty_pixels(kind: str, limit: float) -> None:
    shoot = shoot_table(
        [Ball(kind, 58.3, 53.6, 30.0)],
        size=(110, 116),
        scene=None,
        lights=LIGHTS,
        studio=Studio(texture=0.2),
    )
    [ball] = find_balls(shoot.images)
    assert np.nanmean(angles_between(ball.directions, shoot.lights)) < limit


@pytest.mark.parametrize("kind", ["black", "matte"])
def test_perspective_of_every_kind(kind: str) -> None:
    """Far from the axis the outline is an ellipse; without the focal length the lights are off by ten degrees."""
    shoot = shoot_table(
        [Ball(kind, 290.0, 60.0, 45)],
        scene=None,
        focal=500.0,
        lights=LIGHTS,
        studio=Studio(texture=0.2),
    )
    found = calibrate_lights(shoot.images, focal=500.0)
    assert (
        angles_between(found.lights.directions, shoot.lights).mean() < 0.6
        and found.lights.expected_error.mean() < 1
    )
    blind = calibrate_lights(shoot.images)
    off = angles_between(blind.lights.directions, shoot.lights).mean()
    assert off > 5 and 0.6 < blind.lights.expected_error.mean() / off < 1.7
    assert "focal-length-unknown" in by_code(blind.warnings)


def test_strengths_beside_a_flat_object() -> None:
    """A coin on a table: all normals alike, so strengths and cosines cannot be told apart by shading."""
    strengths = np.random.default_rng(5).uniform(0.6, 1.4, len(LIGHTS))
    shoot = shoot_table(
        [Ball("black", 158.3, 53.6, 30.0)],
        size=(110, 196),
        scene="coin",
        lights=LIGHTS,
        strengths=strengths,
        studio=Studio(second=0.0),
    )
    found = calibrate_lights(shoot.images)
    assert "flat" in found.lights.strengths_source
    assert np.abs(found.lights.strengths / shoot.strengths - 1).max() < 0.05


def test_a_camera_that_faces_the_ball_sees_a_circle() -> None:
    camera = Camera(400.0, 150.0, 100.0)
    shoot = shoot_table(
        [Ball("matte", 260.0, 50.0, 30)],
        size=(201, 301),
        scene=None,
        focal=400.0,
        lights=LIGHTS[:3],
    )
    angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    # Points of the outline from the cone of rays that touch the sphere.
    center = np.array([260.0 - 150.0, 100.0 - 50.0, -400.0])
    axis = center / np.linalg.norm(center)
    half = np.arcsin(30 / np.linalg.norm(center))
    side = np.linalg.svd(axis[None])[2][1:]
    rays = np.cos(half) * axis + np.sin(half) * (
        np.cos(angle)[:, None] * side[0] + np.sin(angle)[:, None] * side[1]
    )
    points = np.stack(
        [150 - 400 * rays[:, 0] / rays[:, 2], 100 + 400 * rays[:, 1] / rays[:, 2]], axis=1
    )
    assert np.ptp(np.hypot(*(points - points.mean(axis=0)).T)) > 0.5
    _, outline, in_photographs = facing_view(
        shoot.images, Circle(260.0, 50.0, 30.0, points=points), camera
    )
    distance = np.hypot(*(outline.points - [outline.x, outline.y]).T)
    assert np.ptp(distance) < 1e-6
    # Mapped back, it is the same cone of rays.
    np.testing.assert_allclose(
        camera.rays(*in_photographs(outline).points.T) @ axis, np.cos(half), atol=1e-9
    )


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", ["mirror", "black"])
def test_the_rim_on_a_patterned_table(kind: str, seed: int) -> None:
    """Edges alone are a quarter of a pixel off here: the pattern moves them, and the rim hides the outline."""
    truth = Ball(kind, 50.3, 45.7, 24.4)
    shoot = shoot_table(
        [truth],
        size=(92, 100),
        scene=None,
        lights=dome_lights(8, max_angle=50),
        studio=Studio(table=0.3, texture=0.4, window=0.0),
        rng=seed,
    )
    seen = Circle(50.15, 45.85, 24.0, 0.9, 0.3)
    found = settle_outline(shoot.images, seen)
    assert np.hypot(found.x - truth.x, found.y - truth.y) < 0.12
    assert abs(found.radius - truth.radius) < 0.2
    assert found.errors is not None and 0.01 < found.errors[0] < 0.3


def test_perspective_keeps_the_highlights_of_the_photographs() -> None:
    focal, ball = 260.0, Ball("mirror", 62.3, 40.7, 23.2)
    shoot = shoot_table(
        [ball],
        size=(100, 116),
        scene=None,
        focal=focal,
        lights=dome_lights(8, max_angle=50),
        studio=Studio(table=0.35, texture=0.0, window=0.0, blur=0.5, lamp_width=5.0),
    )
    found = find_balls(shoot.images, camera=Camera.of_frame(focal, (100, 116)))[0]
    assert angles_between(found.directions, shoot.lights).mean() < 0.35
    assert np.median(found.residual) < 0.6


def test_what_is_said_of_the_error_is_of_its_size() -> None:
    """Over several balls the stated error of a direction is neither a tenth nor ten times what it is."""
    ratios = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        shoot = shoot_table(
            [Ball("black", 50 + rng.uniform(), 45 + rng.uniform(), rng.uniform(22, 36))],
            size=(92, 100),
            scene=None,
            lights=dome_lights(8, max_angle=50),
            studio=Studio(table=rng.uniform(0.1, 0.4), texture=0.3, window=0.0),
            rng=seed,
        )
        ball = find_balls(shoot.images)[0]
        ratios.append(
            np.median(ball.residual) / angles_between(ball.directions, shoot.lights).mean()
        )
    assert 0.4 < np.median(ratios) < 6
