"""The parts of the ball search, each in a case that can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.lights.ball.calibration import calibrate_lights, meeting_points
from photostereo.lights.ball.circle_search import black_level, find_circles, shared_outlines
from photostereo.lights.ball.geometry import (
    Camera,
    Circle,
    ball_normals,
    facing_view,
    mask_circle,
    mirrored_directions,
    unknown_perspective,
)
from photostereo.lights.ball.highlight import find_highlights
from photostereo.lights.ball.outline_fit import blurred_fresnel, settle_outline
from photostereo.lights.ball.shading import fit_shading, settle_circle

LIGHTS = np.array([[0.6, 0, 0.8], [0, 0.6, 0.8], [-0.6, 0, 0.8], [0, -0.6, 0.8]])


def matte(circle: Circle, lights: np.ndarray) -> np.ndarray:
    rows, cols = np.mgrid[:60, :60].astype(float)
    normals = np.nan_to_num(ball_normals(circle, cols, rows))
    return np.maximum(0, np.einsum("hwc,dc->dhw", normals, lights))


def test_normals_and_mirrored_directions() -> None:
    ball = Circle(10, 10, 5)
    np.testing.assert_allclose(
        ball_normals(ball, np.array([13.0]), np.array([10.0])), [[0.6, 0, 0.8]]
    )
    seen = mirrored_directions(ball, np.array([10.0, 13.0]), np.array([10.0, 10.0]))
    np.testing.assert_allclose(seen, [[0, 0, 1], [0.96, 0, 0.28]], atol=1e-12)


def test_a_stretched_outline_shows_the_perspective() -> None:
    angle = np.linspace(0, 2 * np.pi, 360)
    for stretch, expected in ((1.0, 1.0), (1 / np.cos(0.2), 11.0)):
        points = np.stack([350 + stretch * 50 * np.cos(angle), 149.5 + 50 * np.sin(angle)], 1)
        turned = unknown_perspective(Circle(350, 149.5, 50, points=points), (300, 400))
        np.testing.assert_allclose(turned, [expected, 0], atol=0.5)


def test_a_camera_that_already_faces_the_ball_does_not_turn() -> None:
    image, circle = np.random.default_rng(0).random((1, 80, 100)), Circle(50.0, 40.0, 20.0)
    view, outline, in_photographs = facing_view(image, circle, Camera(500.0, 50.0, 40.0))
    np.testing.assert_allclose(view, image[:, 2:79, 12:89], atol=1e-5)
    back = in_photographs(outline)
    np.testing.assert_allclose([back.x, back.y, back.radius], [50, 40, 20], atol=1e-6)


def test_circles() -> None:
    assert Circle(10, 10, 5).standard_errors() == (0.5, 0.5)
    rows, cols = np.mgrid[:60, :80]
    circle = mask_circle(np.hypot(cols - 40.0, rows - 30.0) <= 20)
    assert circle is not None and (circle.x, circle.y) == pytest.approx((40, 30))
    assert circle.radius == pytest.approx(20.1, abs=0.2)
    rows, cols = np.mgrid[:90, :120]
    disc = np.clip(25.5 - np.hypot(cols - 70.3, rows - 40.5), 0, 1)
    found = find_circles(np.stack([disc, 0.5 * disc, 0.8 * disc]))[0]
    np.testing.assert_allclose([found.x, found.y, found.radius], [70.3, 40.5, 25.0], atol=0.05)


def test_an_edge_that_all_photographs_share() -> None:
    images = np.zeros((3, 20, 20))
    images[:, :, 10:] = 1
    outlines = shared_outlines(images, black=black_level(images))
    assert int(outlines.strength[10].argmax()) in (9, 10) and abs(outlines.normals[0][10, 9]) > 0.99


def test_the_rim() -> None:
    away = np.array([-20.0, -2.0, 0.0, 9.0])
    np.testing.assert_allclose(blurred_fresnel(away, 50.0, 1.0), [0, 0.22, 0.22, 0], atol=5e-3)
    rows, cols = np.mgrid[:80, :80]
    disc = np.clip(25.0 + 0.5 - np.hypot(cols - 40.3, rows - 39.6), 0, 1)
    found = settle_outline(np.stack([1 - disc, 0.5 - 0.4 * disc] * 3), Circle(40.1, 39.7, 24.8))
    np.testing.assert_allclose([found.x, found.y, found.radius], [40.3, 39.6, 25.0], atol=0.05)


def test_highlights_beside_a_window() -> None:
    rows, cols = np.mgrid[:64, :64]

    def spot(x: float, y: float) -> np.ndarray:
        return np.exp(-((cols - x) ** 2 + (rows - y) ** 2) / 8.0)

    places = np.array([(20.3, 30.0), (30.0, 20.6), (33.0, 41.0)])
    images = np.stack([spot(x, y) + 0.9 * spot(45, 40) for x, y in places])
    found = find_highlights(images, Circle(32, 32, 25))
    np.testing.assert_allclose(np.stack([found.x, found.y], 1), places, atol=0.05)


def test_lines_that_meet() -> None:
    points = np.array([[[0, 0, 0], [2.0, 0, 0]]])
    directions = np.array([[[0.6, 0, 0.8], [-0.6, 0, 0.8]]])
    np.testing.assert_allclose(meeting_points(points, directions), [[1, 0, 4 / 3]], atol=1e-9)


def test_shading_in_closed_form() -> None:
    strengths = np.array([1, 2, 0.5])
    images = matte(Circle(30, 30, 25), strengths[:, None] * LIGHTS[:3])
    found = fit_shading(images, Circle(30, 30, 25))
    np.testing.assert_allclose(found.directions, LIGHTS[:3], atol=1e-4)
    np.testing.assert_allclose(found.strengths, strengths, atol=1e-3)
    circle = settle_circle(matte(Circle(30.3, 29.8, 25), LIGHTS), Circle(30.1, 30.0, 24.8))
    np.testing.assert_allclose([circle.x, circle.y, circle.radius], [30.3, 29.8, 25], atol=0.05)


def test_a_matte_ball_alone() -> None:
    lights = np.vstack([LIGHTS, [[0, 0, 1]]])
    rows, cols = np.mgrid[:80, :100].astype(float)
    normals = np.nan_to_num(ball_normals(Circle(50, 40, 30), cols, rows))
    found = calibrate_lights(0.02 + np.maximum(0, np.einsum("hwc,dc->dhw", normals, lights)))
    assert found.balls[0].kind == "matte"
    np.testing.assert_allclose(found.lights.directions, lights, atol=0.05)
