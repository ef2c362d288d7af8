"""The Lights object against formulas written out here."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from photostereo.capture import Capture
from photostereo.core.errors import CaptureError
from photostereo.lights.lights import Lights
from photostereo_lab.scenes import dome_lights

POINTS = np.array([[0.0, 0.0], [30.0, -20.0], [-45.0, 12.0]])


def test_distant_lights_are_the_same_everywhere():
    lights = Lights(3.0 * dome_lights(7), strengths=np.arange(1.0, 8.0))
    np.testing.assert_allclose(lights.directions, dome_lights(7), atol=1e-15)
    np.testing.assert_array_equal(lights.matrix, lights.directions.T)
    assert lights.matrix.flags.c_contiguous and lights.matrix.flags.writeable
    assert not lights.directions.flags.writeable and not lights.is_near and len(lights) == 7
    for directions in lights.at(POINTS):
        np.testing.assert_array_equal(directions, lights.directions)
    assert lights.over(POINTS[:, 0], POINTS[:, 1], (9, 9)).fall_off is None
    assert lights.condition == pytest.approx(np.linalg.cond(dome_lights(7)))


def test_near_lights_point_to_their_positions_and_fall_off():
    positions = 200 * dome_lights(5) * np.arange(1, 6)[:, None]
    lights = Lights(positions=positions, strengths=np.full(5, 2.0))
    assert lights.is_near and not lights.as_distant().is_near
    np.testing.assert_allclose(lights.directions, dome_lights(5), atol=1e-15)
    fall_off = lights.over(60 - POINTS[:, 1], POINTS[:, 0] + 60, (121, 121)).fall_off
    for point, directions, strengths in zip(POINTS, lights.at(POINTS), fall_off, strict=True):
        for j in range(5):
            toward = positions[j] - [*point, 0.0]
            distance = np.sqrt(toward @ toward)
            np.testing.assert_allclose(directions[j], toward / distance, atol=1e-14)
            assert strengths[j] == pytest.approx((200 * (j + 1)) ** 2 / distance**2, rel=1e-6)
    lifted = lights.at(np.array([[0.0, 0.0, 50.0]]))[0, 2]
    expected = positions[2] - [0, 0, 50]
    np.testing.assert_allclose(lifted, expected / np.linalg.norm(expected), atol=1e-14)


def test_distances_at_which_the_strengths_hold():
    lights = Lights(positions=[[0, 0, 100.0]], distances=[200.0])
    assert lights.over(np.zeros(1), np.zeros(1), (1, 1)).fall_off[0, 0] == pytest.approx(4.0)


def test_a_subset_keeps_what_is_known_of_each_light():
    lights = Lights(
        dome_lights(4),
        strengths=[1, 2, 3, 4],
        expected_error=[0.1, np.nan, 0.3, 0.4],
        source=list("abcd"),
    ).take([3, 1])
    np.testing.assert_array_equal(lights.directions, dome_lights(4)[[3, 1]])
    assert lights.strengths.tolist() == [4, 2] and lights.source == ("d", "b")
    np.testing.assert_array_equal(lights.expected_error, [0.4, np.nan])
    assert "0.4°" in lights.describe()
    again = pickle.loads(pickle.dumps(lights))
    np.testing.assert_array_equal(again.directions, lights.directions)


@pytest.mark.parametrize(
    ("directions", "code"),
    [
        (np.ones((3, 2)), "lights-shape"),
        ([[0, 0, 1], [0, 0, 0], [0, 1, 1]], "light-zero"),
        ([[0, 0, 1], [0, np.nan, 1], [0, 1, 1]], "light-not-finite"),
        ([[0, 0, 1], [0, 1, 1], [0, 2, 1]], "lights-coplanar"),
        (dome_lights(4), "lights-count"),
    ],
)
def test_bad_lights(directions, code):
    with pytest.raises(CaptureError) as caught:
        Capture(images=np.ones((3, 4, 5)), lights=directions)
    assert caught.value.code == code


def test_a_capture_without_lights():
    capture = Capture(images=np.ones((4, 4, 5)))
    assert not capture.lights.known and len(capture.lights) == 4
    assert len(capture.digest) == 16 and len(capture.take([0, 1, 2]).lights) == 3
    assert "not known" in repr(capture.lights)
    with pytest.raises(CaptureError) as caught:
        _ = capture.lights.directions
    assert caught.value.code == "no-lights"
    assert np.asarray(Capture(images=np.ones((4, 4, 5)), lights=dome_lights(4)).lights).shape == (
        4,
        3,
    )
