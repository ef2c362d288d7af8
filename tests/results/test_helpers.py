"""Small examples of what the files are made with."""

from __future__ import annotations

import numpy as np

from photostereo.results.maps import encode_heights
from photostereo.results.occlusion import ambient_occlusion
from photostereo.results.relighting import spread_lights
from photostereo.results.textured import interpolate, tangents_of
from photostereo.results.tiling import largest_rectangle, seam_ratio


def test_tangents_and_interpolation():
    assert tangents_of(np.array([[0.6, 0.0, 0.8]])).round(3).tolist() == [[0.8, 0.0, -0.6]]
    corners = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    found = np.full((3, 3, 1), np.nan)
    interpolate(corners, np.array([[0, 1, 2]]), np.array([[0.0], [1.0], [0.0]]), found)
    expected = [[0.0, 0.5, 1.0], [0.0, 0.5, np.nan], [0.0, np.nan, np.nan]]
    np.testing.assert_array_equal(found[..., 0], expected)


def test_heights_as_sixteen_bits():
    picture, span = encode_heights(np.array([[0.0, 1.0, np.nan]]), np.array([[True, True, False]]))
    assert picture.tolist() == [[1, 65535, 0]] and span == (0.0, 1.0)


def test_no_light_is_lower_than_asked():
    assert spread_lights(50, 10.0)[:, 2].min() >= np.sin(np.radians(10.0)) - 1e-12


def test_a_plane_lies_in_the_open():
    up = np.broadcast_to([0.0, 0.0, 1.0], (9, 9, 3))
    assert np.allclose(ambient_occlusion(np.zeros((9, 9)), up), 1.0)


def test_the_largest_rectangle_ignores_what_sticks_out():
    mask = np.zeros((50, 60), bool)
    mask[5:45, 10:50] = True
    mask[3, 30] = True
    assert largest_rectangle(mask) == (slice(5, 45), slice(10, 50))


def test_the_seam_of_a_wave():
    wave = np.sin(np.arange(32) / 32 * 2 * np.pi)[None, :] + np.zeros((4, 1))
    assert round(seam_ratio(wave, 1), 1) == 1.6
