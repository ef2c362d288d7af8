"""Lamps from balls that were rendered with exact truth."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.core.errors import CaptureError
from photostereo.core.findings import by_code
from photostereo.lights.ball.calibration import Calibration, calibrate_lights
from photostereo.lights.ball.circle_search import find_circles
from photostereo.lights.ball.geometry import (
    Camera,
    Circle,
    ball_normals,
    mirrored_directions,
    outline_cone,
)
from photostereo.lights.ball.highlight import find_highlights
from photostereo.lights.ball.outline_fit import settle_outline
from photostereo.lights.ball.search import find_balls
from photostereo_lab.scenes import dome_lights

from ..ball_scenes.balls import Shoot, shoot_table
from ..ball_scenes.studio import Ball, Studio

STRENGTHS = np.random.default_rng(1).uniform(0.6, 1.4, 20)


def angles(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.degrees(np.arctan2(np.linalg.norm(np.cross(a, b), axis=1), (a * b).sum(axis=1)))


@pytest.fixture(scope="module")
def three() -> Shoot:
    balls = [
        Ball("mirror", 305.3, 66.7, 50),
        Ball("black", 312.2, 178.4, 46),
        Ball("matte", 232.6, 205.1, 25),
    ]
    return shoot_table(balls, strengths=STRENGTHS)


@pytest.fixture(scope="module")
def found(three: Shoot) -> Calibration:
    return calibrate_lights(three.images)


def test_finds_every_ball_and_nothing_else(three: Shoot, found: Calibration) -> None:
    assert sorted(ball.kind for ball in found.balls) == ["matte", "shiny", "shiny"]
    for ball in found.balls:
        truth = min(three.balls, key=lambda b: np.hypot(b.x - ball.circle.x, b.y - ball.circle.y))
        assert np.hypot(truth.x - ball.circle.x, truth.y - ball.circle.y) < 0.3
        assert abs(truth.radius - ball.circle.radius) < 0.3
        assert (ball.kind == "matte") == (truth.kind == "matte")


def test_directions_and_strengths(three: Shoot, found: Calibration) -> None:
    error = angles(found.lights.directions, three.lights)
    assert error.mean() < 0.5 and error.max() < 0.8
    assert found.lights.strengths_source == "matte ball"
    assert np.abs(found.lights.strengths / three.strengths - 1).max() < 0.03
    assert found.warnings == () and found.suspects == ()


def test_the_balls_leave_the_mask(three: Shoot, found: Calibration) -> None:
    rows, cols = np.mgrid[: found.frame[0], : found.frame[1]]
    for ball in three.balls:
        disc = np.hypot(cols - ball.x, rows - ball.y) <= ball.radius
        assert found.balls_mask()[disc].all()
    assert found.balls_mask().mean() < 0.3


def test_strengths_come_from_the_shading_of_the_object(mirror: Shoot) -> None:
    """A mirror has no strengths of its own."""
    found = calibrate_lights(mirror.images)
    assert len(found.balls) == 1
    assert angles(found.lights.directions, mirror.lights).mean() < 0.5
    assert np.abs(found.lights.strengths / mirror.strengths - 1).max() < 0.03


def test_partly_outside_the_frame() -> None:
    shoot = shoot_table([Ball("mirror", 336.3, 130.7, 50)], lights=dome_lights(16, max_angle=45))
    [ball] = find_balls(shoot.images)
    assert abs(ball.circle.x - 336.3) < 0.4 and abs(ball.circle.radius - 50) < 0.5
    assert np.nanmedian(angles(ball.directions, shoot.lights)) < 0.6


def test_small_balls_are_found() -> None:
    shoot = shoot_table([Ball("matte", 60.4, 40.2, 20)], size=(90, 120), scene=None)
    [ball] = find_balls(shoot.images)
    assert abs(ball.circle.x - 60.4) < 0.2 and abs(ball.circle.radius - 20) < 0.2
    assert angles(ball.directions, shoot.lights).mean() < 0.8


def test_no_ball_is_found_where_there_is_none() -> None:
    shoot = shoot_table([])  # an owl with round eyes on a patterned table
    assert find_balls(shoot.images) == []
    with pytest.raises(CaptureError, check=lambda e: e.code == "no-ball"):
        calibrate_lights(shoot.images)


def test_a_ball_that_fills_the_frame() -> None:
    shoot = shoot_table(
        [Ball("mirror", 100, 100, 190)], size=(200, 200), scene=None, lights=dome_lights(10)
    )
    with pytest.raises(CaptureError, check=lambda e: e.code == "no-ball"):
        calibrate_lights(shoot.images)


def test_a_round_thing_that_is_no_ball() -> None:
    rows, cols = np.mgrid[:120, :160]
    plate = (
        np.where(np.hypot(cols - 80, rows - 60) < 35, 0.8, 0.1)
        * np.linspace(0.5, 1, 8)[:, None, None]
    )
    with pytest.raises(CaptureError, check=lambda e: e.code == "no-ball"):
        calibrate_lights(plate)


def test_ball_without_lamp() -> None:
    shoot = shoot_table([Ball("mirror", 300.3, 130.7, 50)], studio=Studio(radiance=0.0, second=0.0))
    with pytest.raises(CaptureError, check=lambda e: e.code == "no-ball"):
        calibrate_lights(shoot.images)
    with pytest.raises(CaptureError, check=lambda e: e.code == "circle-without-ball"):
        calibrate_lights(np.full((5, 60, 60), 0.5), circles=[Circle(30, 30, 20)])


@pytest.fixture(scope="module")
def mirror() -> Shoot:
    return shoot_table([Ball("mirror", 300.3, 130.7, 50)], strengths=STRENGTHS)


BALL = (slice(70, 190), slice(240, 360))


def test_a_missing_highlight_comes_from_the_shading(mirror: Shoot) -> None:
    images = mirror.images.copy()
    images[3][BALL] = np.minimum(images[3][BALL], 0.05)
    found = calibrate_lights(images, files=[f"shot{i}.png" for i in range(20)])
    assert found.lights.source[3] == "shading of the object"
    assert by_code(found.warnings)["light-from-shading"].values["names"] == "shot3.png"
    assert angles(found.lights.directions, mirror.lights)[3] < 5
    alone = shoot_table(
        [Ball("mirror", 60, 60, 40)], size=(120, 120), scene=None, studio=Studio(table=0.05)
    )
    images = alone.images.copy()
    images[3] = np.minimum(images[3], 0.05)
    with pytest.raises(CaptureError, check=lambda e: e.code == "no-highlight"):
        calibrate_lights(images)


def test_a_wrong_highlight_is_named(mirror: Shoot) -> None:
    images = mirror.images.copy()
    images[3][BALL] = mirror.images[9][BALL]
    found = calibrate_lights(images, files=[f"shot{i}.png" for i in range(20)])
    assert found.suspects == (3,)
    assert by_code(found.warnings)["shading-disagrees"].values["names"] == "shot3.png"


def test_two_lamps_at_once_are_named(mirror: Shoot) -> None:
    images = mirror.images.copy()
    images[3] = np.minimum(images[3] + images[9], 1)
    found = calibrate_lights(images, files=[f"shot{i}.png" for i in range(20)])
    assert by_code(found.warnings)["two-lights-at-once"].values["names"] == "shot3.png"


def test_the_user_knows_the_circle(mirror: Shoot) -> None:
    found = calibrate_lights(mirror.images, circles=[Circle(300.3, 130.7, 50.0)])
    assert angles(found.lights.directions, mirror.lights).mean() < 0.4
    with pytest.raises(CaptureError, check=lambda e: e.code == "circle-outside"):
        calibrate_lights(mirror.images, circles=[Circle(900, 130, 50)])


def test_the_cone_of_an_outline_in_closed_form() -> None:
    camera = Camera(800.0, 200.0, 150.0)
    center, half = np.array([0.2, -0.1, -1.0]), 0.09
    center /= np.linalg.norm(center)
    side = np.linalg.svd(center[None])[2][1:]
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    rays = np.cos(half) * center + np.sin(half) * (
        np.cos(angle)[:, None] * side[0] + np.sin(angle)[:, None] * side[1]
    )
    points = np.stack(
        [
            camera.x - camera.focal * rays[:, 0] / rays[:, 2],
            camera.y + camera.focal * rays[:, 1] / rays[:, 2],
        ],
        1,
    )
    found, alpha = outline_cone(Circle(0, 0, 1, points=points), camera)
    np.testing.assert_allclose(found, center, atol=1e-9)
    assert alpha == pytest.approx(half, abs=1e-9)


def test_mirror_law_is_what_reflection_says() -> None:
    circle = Circle(50, 40, 30)
    x, y = np.array([45.0, 62.0, 50.0]), np.array([30.0, 44.0, 55.0])
    normals, lights = ball_normals(circle, x, y), mirrored_directions(circle, x, y)
    half = lights + np.array([0, 0, 1])
    np.testing.assert_allclose(
        half / np.linalg.norm(half, axis=1, keepdims=True), normals, atol=1e-12
    )


def test_the_rim_of_a_black_ball_is_inside_its_outline() -> None:
    shoot = shoot_table(
        [Ball("black", 150.3, 149.6, 80)], size=(300, 300), scene=None, studio=Studio(texture=0.0)
    )
    seen = find_circles(shoot.images)[0]
    assert seen.radius < 79.6  # what one sees ...
    assert settle_outline(shoot.images, seen).radius == pytest.approx(
        80, abs=0.25
    )  # ... is not where it ends
    rows, cols = np.mgrid[:200, :200]
    sharp = np.stack(
        [np.clip(60.5 - np.hypot(cols - 100.2, rows - 99.7), 0, 1) * k for k in (0.5, 0.7, 0.9)] * 4
    )
    circle = find_circles(sharp)[0]
    assert settle_outline(sharp, circle).radius == pytest.approx(
        60, abs=0.15
    )  # a rim that ends sharply stays


def test_saturated_highlights_with_rays_and_a_window() -> None:
    rows, cols = np.mgrid[:200, :200].astype(float)
    places = [(80, 90), (120, 85), (100, 120), (90, 105), (110, 70), (130, 110)]
    images = []
    for x, y in places:
        disc = np.hypot(cols - x, rows - y) < 9
        ray = (
            (np.abs(cols - x) < 3) & (rows < y + 60) & (rows > y - 30)
        )  # glare, longer to one side
        window = (np.abs(cols - 60) < 8) & (np.abs(rows - 60) < 10)
        images.append(np.where(disc | ray, 1.0, np.where(window, 1.0, 0.02)))
    found = find_highlights(np.stack(images), Circle(100, 100, 90))
    np.testing.assert_allclose(np.stack([found.x, found.y], 1), places, atol=1.0)


def test_positions_of_near_lamps() -> None:
    positions = dome_lights(8, max_angle=45) * 900
    balls = [
        Ball("mirror", 60.2, 60.4, 45),
        Ball("black", 440.1, 70.3, 45),
        Ball("mirror", 250.4, 330.2, 45),
    ]
    shoot = shoot_table(
        balls,
        size=(400, 500),
        scene=None,
        positions=positions,
        studio=Studio(table=0.04, texture=0.0, second=0.0),
    )
    found = calibrate_lights(shoot.images)
    assert found.lights.positions is not None
    assert np.linalg.norm(found.lights.positions - positions, axis=1).max() < 0.12 * 900
    assert angles(found.lights.directions, shoot.lights).max() < 1.5
    assert "near-lights" in by_code(found.warnings)


def test_the_search_can_be_cancelled(mirror: Shoot) -> None:
    from photostereo.core.control import Cancelled, Control

    class Counting(Control):
        def __init__(self, last: int) -> None:
            self.left = last

        def check(self) -> None:
            self.left -= 1
            if self.left < 0:
                raise Cancelled

    for last in (0, 5, 25):
        with pytest.raises(Cancelled):
            calibrate_lights(mirror.images, control=Counting(last))
