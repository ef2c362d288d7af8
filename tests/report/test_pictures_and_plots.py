"""Pictures and vector plots."""

from __future__ import annotations

import base64
import xml.etree.ElementTree as ET

import cv2
import numpy as np
import pytest

from photostereo.report import pictures
from photostereo.report.learning import atom_sheet
from photostereo.report.pictures import color_table, paint
from photostereo.report.plots import (
    Series,
    color_bar,
    decade_ticks,
    histogram,
    legend,
    light_compass,
    line_chart,
    round_ticks,
    short_number,
)

from .color_scales import SCALES, made_table


def decoded(address):
    return cv2.imdecode(
        np.frombuffer(base64.b64decode(address.split(",")[1]), np.uint8), cv2.IMREAD_UNCHANGED
    )


def test_png_keeps_every_byte_in_every_layout():
    rng = np.random.default_rng(0)
    for shape in ((5, 7), (5, 7, 3), (5, 7, 4)):
        picture = rng.integers(0, 256, shape, dtype=np.uint8)
        back = decoded(pictures.png(picture))
        if len(shape) == 3:
            back = cv2.cvtColor(back, cv2.COLOR_BGR2RGB if shape[2] == 3 else cv2.COLOR_BGRA2RGBA)
        assert (back == picture).all()


def test_masked_shrinking_ignores_what_is_outside():
    values = np.full((40, 40), 3.0)
    mask = np.zeros((40, 40), bool)
    mask[8:32, 8:32] = True
    values[~mask] = 1e6
    small, inside = pictures.resize_masked(values, mask, 10, 10)
    assert np.abs(small[inside] - 3.0).max() < 1e-5
    assert (small[~inside] == 0).all()


def test_shrunk_normals_are_unit(sphere):
    frame = pictures.frame_around(sphere.mask, max_pixels=900)
    normals, inside = pictures.shrink_normals(sphere.normals, sphere.mask, frame)
    assert frame.height * frame.width <= 930
    assert np.abs(np.linalg.norm(normals[inside], axis=-1) - 1).max() < 1e-5


def test_a_texture_is_carried_beyond_its_mask():
    picture = np.zeros((9, 9), np.uint8)
    inside = np.zeros((9, 9), bool)
    inside[4, 4], picture[4, 4] = True, 200
    wide, _ = pictures.spread_beyond(picture, inside, rings=2)
    assert (np.rint(wide[2:7, 2:7]) == 200).all() and wide[0, 0] == 0


@pytest.mark.parametrize("scale", SCALES)
def test_color_scales_run_at_one_speed(scale):
    assert np.array_equal(color_table(scale), made_table(scale))
    table = color_table(scale).astype(int)
    steps = np.abs(np.diff(table, axis=0)).max(axis=1)
    assert steps.max() <= 8
    assert paint(np.array([[np.nan, -5.0, 99.0]]), 0, 1, scale).rgba[0, :, 3].tolist() == [
        0,
        255,
        255,
    ]


def test_ticks():
    for low, high in ((0, 1), (-3, 8), (1e-7, 5e-7), (99, 101)):
        ticks = round_ticks(low, high)
        assert 2 <= len(ticks) <= 8
        assert low - 1e-12 <= min(ticks) and max(ticks) <= high * (1 + 1e-9)
    assert round_ticks(3, 3) == [3]
    assert all(1 <= tick <= 900 for tick in decade_ticks(1, 900))
    assert short_number(123456.0) == "123k"


PLOTS = {
    "line": line_chart(
        [1, 2, 3],
        [Series("<b>", [1, 500, 2], 1)],
        x_label="<x>",
        y_label="&y",
        summary='"s"',
        allow_log=True,
    ),
    "one point": line_chart([1], [Series("a", [5.0], 1)], x_label="x", y_label="y", summary="s"),
    "flat": line_chart([1, 2], [Series("a", [0.0, 0.0], 1)], x_label="x", y_label="y", summary="s"),
    "with a gap": line_chart(
        [1, 2, 3], [Series("a", [1, float("nan"), 2], 1)], x_label="x", y_label="y", summary="s"
    ),
    "histogram": histogram(np.array([1.0, 99.0]), 45, {"m": 1.0}),
    "compass": light_compass([([0, 0, 1], "<script>"), ([0.6, 0, -0.8], "b")]),
    "bar": color_bar("ember", 0, 45, suffix="°"),
    "constant bar": color_bar("ember", 2, 2),
    "legend": legend([Series("<i>", [1], 2)]),
}


@pytest.mark.parametrize("name", PLOTS)
def test_plots_are_well_formed_and_escaped(name):
    text = str(PLOTS[name])
    ET.fromstring(text)
    assert "nan" not in text
    assert "<a>" not in text and "<script>" not in text and "<b>" not in text and "<i>" not in text


def test_line_chart_puts_values_where_they_belong():
    text = str(
        line_chart(
            [0, 10],
            [Series("a", [0.0, 100.0], 1)],
            x_label="x",
            y_label="y",
            summary="s",
            y_range=(0, 100),
        )
    )
    (line,) = ET.fromstring(text).findall("polyline")
    (x0, y0), (x1, y1) = (
        tuple(map(float, point.split(","))) for point in line.get("points").split()
    )
    assert (x0, y0, x1, y1) == (58, 210, 428, 14)


def test_atoms_are_drawn_with_their_components_slowest():
    # One atom: 2 wide, 1 high, components x, y, z; only (z, x = 1) is not zero.
    sheet = atom_sheet(np.array([[0, 0, 0, 0, 0, 1.0]]), (2, 1, 3))
    assert sheet[0, 1].tolist() == [128, 128, 255, 255]
    assert sheet[0, 0].tolist() == [128, 128, 128, 255]
