"""Angular error against known angles."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.diagnosis.metrics import angle_between, angular_error, summarize_error


@pytest.mark.parametrize("degrees", [0.0, 1e-6, 0.01, 30.0, 90.0, 179.99, 180.0])
def test_known_angles(degrees: float) -> None:
    radians = np.radians(degrees)
    a = np.array([0.0, 0.0, 3.0])
    b = 0.2 * np.array([np.sin(radians), 0.0, np.cos(radians)])
    assert angle_between(a, b) == pytest.approx(degrees, abs=1e-9)


def test_zero_vectors_count_ninety() -> None:
    truth = np.zeros((2, 2, 3))
    truth[0] = [0, 0, 1]
    normals = np.zeros((2, 2, 3))
    normals[..., 2] = 1
    mask = np.array([[True, False], [True, True]])
    error = angular_error(normals, truth, mask)
    assert error[0, 0] == 0 and np.isnan(error[0, 1]) and (error[1] == 90).all()
    summary = summarize_error(normals, truth, mask)
    assert summary.mean == pytest.approx(60) and summary.unknown_truth == 2 and summary.pixels == 3


@pytest.mark.parametrize(
    "degrees", [0.0, 1e-7, 10.0, 33.5, 45.0, 56.5, 89.0, 90.0, 91.0, 135.0, 146.5, 179.9999, 180.0]
)
def test_angles_of_pixels_at_known_angles(degrees: float) -> None:
    """Also where one vector is unknown."""
    turned = np.array([[np.sin(np.radians(degrees)), 0.0, np.cos(np.radians(degrees))]])
    up = np.array([[0.0, 0.0, 2.0]])
    assert angle_between(0.3 * turned, up) == pytest.approx(degrees, abs=1e-9)
    assert angle_between(turned, 0.0 * up) == 90.0


def test_the_summary_leaves_out_unknown_truth() -> None:
    up = np.tile([0.0, 0.0, 1.0], (1, 3, 1))
    truth = up.copy()
    truth[0, 1], truth[0, 2] = [0, np.sin(np.radians(4)), np.cos(np.radians(4))], 0
    summary = summarize_error(up, truth, np.ones((1, 3), bool))
    assert summary.known_mean == pytest.approx(2) and summary.known_median == pytest.approx(2)
    assert summary.max == 90 and summary.within_5deg == pytest.approx(2 / 3)
    nothing = summarize_error(up, 0 * truth, np.ones((1, 3), bool))
    assert nothing.known_mean is None and nothing.known_median is None
