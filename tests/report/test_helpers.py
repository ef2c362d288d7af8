"""Small examples of what the pages are made with."""

from __future__ import annotations

import numpy as np

from photostereo.report import wording
from photostereo.report.document import json_for_script, safe_links
from photostereo.report.photographs import light_words
from photostereo.report.pictures import Frame, color_table, frame_around, paint, scaled_size
from photostereo.report.plots import decade_ticks, round_ticks, short_number, style_of
from photostereo.report.pyramid import Layers, pack_normals, shrink

from .unpacking import unpack_normals


def test_frames_and_levels():
    frame = Frame(rows=slice(0, 100, None), cols=slice(0, 200, None), height=50, width=100)
    assert frame_around(np.ones((100, 200), bool), max_pixels=5000) == frame
    assert scaled_size(600, 3, 0.1) == (60, 1)
    plan = Layers(Frame(slice(0, 6000), slice(0, 4000), 1, 1), np.ones((1, 1), bool))
    assert (plan.levels, plan.size(2), plan.tiles(2)) == (5, (1500, 1000), (3, 2))
    cells, inside = shrink(np.arange(4.0).reshape(2, 2), np.array([[True, True], [True, False]]), 1)
    assert cells.tolist() == [[1.0]] and inside.tolist() == [[True]]


def test_data_and_links_are_safe():
    assert str(json_for_script({"name": "</script><b>&"})) == (
        '{"name":"\\u003c/script\\u003e\\u003cb\\u003e\\u0026"}'
    )
    link = {"label": "full mesh", "href": "mesh%20%231.ply", "note": ""}
    assert safe_links({"full mesh": "mesh #1.ply"}) == [link]


def test_numbers_on_axes():
    assert (style_of(0), style_of(9)) == ((1, 0), (1, 1))
    assert round_ticks(0, 17) == [0.0, 5.0, 10.0, 15.0]
    assert decade_ticks(0.5, 200) == [1.0, 10.0, 100.0]
    numbers = (0, 0.25, 12.0, 1500, 2_500_000, 0.00012)
    assert list(map(short_number, numbers)) == ["0", "0.25", "12", "1500", "2.5M", "1.2e-4"]


def test_colors_and_packed_normals():
    assert color_table("ember").shape == (256, 3)
    assert paint(np.array([[0.0, 1.0, np.nan]]), 0, 1, "ember").rgba[..., 3].tolist() == [
        [255, 255, 0]
    ]
    n = np.array([[[0.6, 0.0, -0.8]]])
    assert np.abs(unpack_normals(pack_normals(n, np.ones((1, 1), bool))) - n).max() < 1e-3


def test_words():
    assert (
        light_words(np.array([-0.6, 0.0, 0.8])) == "Light from the left, 53° above the image plane."
    )
    assert (
        light_words(np.array([0.0, 0.0, 1.0])) == "Light from the front, 90° above the image plane."
    )
    assert [wording.duration(seconds) for seconds in (0.123, 8.26, 154)] == [
        "0.12 s",
        "8.3 s",
        "2 min 34 s",
    ]
    assert (wording.decibels(23.4), wording.decibels(float("inf"))) == ("23 dB", "none")
