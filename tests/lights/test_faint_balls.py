"""Balls that are hardly seen: on black cloth, beside detail, with a highlight in the noise, with a horizon in them."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from photostereo.core.errors import CaptureError
from photostereo.core.findings import by_code
from photostereo.lights.ball import calibration
from photostereo.lights.ball.calibration import calibrate_lights, light_positions
from photostereo.lights.ball.circle_search import find_circles
from photostereo.lights.ball.geometry import Circle, ball_normals
from photostereo.lights.ball.highlight import find_highlights
from photostereo.lights.ball.search import FoundBall
from photostereo.lights.ball.shading import fit_shading, settle_circle
from photostereo.lights.geometry import angles_between
from photostereo.lights.source import LightSource, SourceKind
from photostereo_lab.scenes import dome_lights, random_lights

from ..ball_scenes.balls import shoot_table
from ..ball_scenes.studio import Ball, Studio


def _beside_detail(step: float, noise: float) -> np.ndarray:
    """A bright object full of detail, and beside it a disc that is a little darker than black cloth."""
    rng = np.random.default_rng(0)
    rows, cols = np.mgrid[:160, :240]
    detail = cv2.GaussianBlur(rng.standard_normal((160, 240)), (0, 0), 1.5)
    disc = np.clip(30.5 - np.hypot(cols - 185.0, rows - 80.0), 0, 1)
    image = np.where(cols < 130, 0.6 + 0.3 * detail / detail.std(), 0.012 - step * disc)
    return np.clip(image + noise * rng.standard_normal((12, 160, 240)), 0, 1).astype(np.float32)


def test_an_outline_in_the_dark_is_seen_beside_an_object_full_of_detail() -> None:
    found = find_circles(_beside_detail(0.008, 0.001), most=24)
    assert any(np.hypot(c.x - 185, c.y - 80) < 0.5 and abs(c.radius - 30) < 0.7 for c in found)


def test_circle_and_light_of_the_room_are_settled_together() -> None:
    rows, cols = np.mgrid[:80, :80].astype(float)
    true = Circle(40.3, 39.6, 28.0)
    normals = np.nan_to_num(ball_normals(true, cols, rows))
    lights = dome_lights(12, max_angle=55)
    room = 0.1 * np.maximum(normals @ np.array([0.55, -0.35, 0.76]), 0)
    images = 0.7 * (np.maximum(np.einsum("hwc,dc->dhw", normals, lights), 0) + room)
    images += 0.002 * np.random.default_rng(1).standard_normal(images.shape)
    found = settle_circle(images, Circle(40.3, 39.6, 27.5))
    assert (
        np.hypot(found.x - true.x, found.y - true.y) < 0.05
        and abs(found.radius - true.radius) < 0.15
    )
    assert angles_between(fit_shading(images, found).directions, lights).max() < 0.3


def test_a_highlight_is_told_from_noise_and_its_error_grows_with_it() -> None:
    rng = np.random.default_rng(2)
    rows, cols = np.mgrid[:64, :64]
    places = 32 + rng.uniform(-10, 10, (10, 2))
    spots = np.stack([np.exp(-((cols - x) ** 2 + (rows - y) ** 2) / 2.0) for x, y in places])
    noise = 0.01 * rng.standard_normal(spots.shape)
    ball = Circle(32, 32, 25)
    assert not find_highlights(0.02 + noise, ball).found.any()
    faint = find_highlights(0.02 + noise + 0.06 * spots, ball)
    assert faint.found.mean() >= 0.8 and abs(faint.noise / 0.01 - 1) < 0.15
    assert np.nanmedian(np.hypot(faint.x - places[:, 0], faint.y - places[:, 1])) < 0.6


def test_a_mirror_whose_lights_are_dull_is_not_taken_for_its_horizon() -> None:
    ball = Ball("mirror", 160.3, 60.4, 36)
    studio = Studio(
        lamp_width=1, radiance=70, window=0, second=0.1, haze=3, table=0.25, texture=0.5
    )
    shoot = shoot_table(
        [ball], size=(120, 220), lights=random_lights(14, max_angle=50, rng=3), studio=studio, rng=1
    )
    found = calibrate_lights(shoot.images)
    assert abs(found.balls[0].circle.radius - 36) < 0.4
    assert angles_between(found.lights.directions, shoot.lights).mean() < 0.5


def test_a_ball_without_an_outline_is_refused_and_the_message_knows_black_ground() -> None:
    studio = Studio(window=0, second=0, table=0.0, texture=0)
    shoot = shoot_table(
        [Ball("mirror", 60.3, 50.4, 30)],
        size=(100, 120),
        scene=None,
        lights=dome_lights(10),
        studio=studio,
    )
    with pytest.raises(CaptureError, check=lambda e: e.code == "no-ball"):
        calibrate_lights(shoot.images)


def test_strengths_that_no_lights_have_are_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    shoot = shoot_table(
        [Ball("matte", 60.3, 50.4, 30)],
        size=(100, 120),
        scene=None,
        lights=dome_lights(8, max_angle=50),
    )
    wild = np.geomspace(0.1, 10, 8)
    for kind, kept in ((SourceKind.SHADING, False), (SourceKind.MATTE_BALL, True)):
        source = LightSource(kind)
        monkeypatch.setattr(calibration, "_strengths", lambda *_, source=source: (wild, source))
        found = calibrate_lights(shoot.images)
        assert bool(np.all(found.lights.strengths == wild)) is kept
        assert ("strengths-implausible" in by_code(found.warnings)) is not kept


def test_balls_that_agree_within_their_errors_see_lights_that_are_far() -> None:
    lights = random_lights(10, max_angle=50, rng=1)
    turned = lights + np.array([0.012, 0.004, 0.0])  # by 0.7°, as an outline that is off does
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    for residual, far in ((0.4, True), (0.05, False)):
        balls = [
            FoundBall("shiny", Circle(x, 60.0, 30.0), seen, None, np.full(10, residual))
            for x, seen in ((60.0, turned), (140.0, lights))
        ]
        assert (light_positions(balls, (240, 360)) is None) is far
