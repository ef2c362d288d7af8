"""Mistakes in light files, masks and photographs are named; where all is well nothing is said."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

import photostereo as ps
from photostereo.core.conventions import srgb_from_linear
from photostereo.core.errors import ParameterError
from photostereo.core.findings import by_code
from photostereo.diagnosis.checks import find_mistakes, usual_orders
from photostereo.diagnosis.light_axes import Opinion, compare_axes, judge_axes
from photostereo.lights.geometry import axes_matrix, axes_words, conventions
from photostereo.lights.strengths import unexplained_by_equal
from photostereo_lab.scenes import dome_lights, random_lights, render_scene, ring_lights


@pytest.fixture(scope="module")
def figure():
    return render_scene("figure", size=96, lights=dome_lights(16), reflectance="ggx")


@pytest.fixture(scope="module")
def relief():
    return render_scene("relief", size=96, lights=dome_lights(16))


def kinds(capture, *, images=None, lights=None, mask=None):
    return [mistake.code for mistake in _find(capture, images, lights, mask)]


def _find(capture, images=None, lights=None, mask=None):
    return find_mistakes(
        capture.images if images is None else images,
        capture.lights.directions if lights is None else lights,
        capture.mask if mask is None else mask,
    )


@pytest.mark.parametrize("shape", ["figure", "relief", "coin", "sphere", "vase", "plane"])
@pytest.mark.parametrize("reflectance", ["lambertian", "blinn-phong"])
def test_nothing_is_said_where_all_is_well(shape, reflectance):
    for lights in (ring_lights(8), random_lights(12, rng=2)):
        scene = render_scene(shape, size=64, lights=lights, reflectance=reflectance)
        assert kinds(scene) == []


def test_a_weave_finer_than_the_thumbnail_says_nothing():
    assert (
        kinds(render_scene("fabric", size=96, lights=dome_lights(30), reflectance="oren-nayar"))
        == []
    )


def test_the_edge_of_a_step_alone_says_nothing():
    for lights in (ring_lights(8), random_lights(12, rng=2)):
        assert kinds(render_scene("step", size=64, lights=lights)) == []


@pytest.mark.parametrize("words", [axes_words(axes) for axes in conventions(depth_too=False)][1:])
def test_each_of_the_axis_conventions_is_mended_by_the_option_that_is_named(figure, words):
    # The file has other axes: reading it with these words gives ours back.
    file = figure.lights.directions @ axes_matrix(words).T
    (mistake,) = _find(figure, lights=file)
    assert (mistake.remedy, mistake.values["axes"]) == ("lights-axes", words)
    assert f"--lights-axes {words}" in mistake.rendered("terminal")
    assert np.allclose(file @ axes_matrix(words), figure.lights.directions)


def test_arrows_from_the_lamp_are_named(figure, relief):
    for scene in (figure, relief):
        (mistake,) = _find(scene, lights=-scene.lights.directions)
        assert (mistake.code, mistake.remedy) == ("lights-reversed", "reverse-lights")


def test_without_an_outline_bumps_and_hollows_cannot_be_told_apart(relief):
    assert kinds(relief, lights=relief.lights.directions * [-1, -1, 1]) == []
    (mistake,) = _find(relief, lights=relief.lights.directions * [-1, 1, 1])
    # x or y: the photographs cannot tell which, and the remedy says so.
    assert (mistake.code, mistake.remedy) == ("light-axes", "lights-axes") and mistake.values[
        "note"
    ]


@pytest.mark.parametrize("order", ["shifted", "reversed", "shuffled"])
def test_lights_out_of_order_are_named(figure, order):
    places = {
        "shifted": np.roll(np.arange(16), 1),
        "reversed": np.arange(16)[::-1],
        "shuffled": np.random.default_rng(1).permutation(16),
    }[order]
    assert kinds(figure, lights=figure.lights.directions[places]) == ["light-order"]


def test_a_ring_that_begins_elsewhere_is_named():
    ring = render_scene("figure", size=96, lights=ring_lights(10))
    assert kinds(ring, lights=np.roll(ring.lights.directions, 1, axis=0)) == ["light-order"]


def test_an_inverted_mask_is_named_alone(figure):
    (mistake,) = _find(figure, mask=~figure.mask)
    assert (mistake.code, mistake.remedy) == ("mask-inverted", "automatic-mask")


def test_the_srgb_curve_is_named_and_only_that(figure):
    top = np.percentile(figure.images[:, figure.mask], 99.5)
    assert kinds(figure, images=srgb_from_linear(figure.images / top)) == ["tone-curve"]


def test_a_factor_and_noise_change_nothing(figure):
    noisy = figure.images * 37 + np.random.default_rng(0).normal(0, 0.3, figure.images.shape)
    assert kinds(figure, images=noisy.astype(np.float32)) == []
    assert kinds(
        figure, images=noisy.astype(np.float32), lights=figure.lights.directions * [1, -1, 1]
    ) == ["light-axes"]


def test_black_tiny_and_color_captures_are_no_trouble(figure):
    assert kinds(figure, images=np.zeros_like(figure.images)) == []
    speck = np.zeros_like(figure.mask)
    speck[48, 48] = True
    assert kinds(figure, mask=speck) == []
    color = np.repeat(figure.images[..., None], 3, axis=-1)
    assert kinds(figure, images=color, lights=figure.lights.directions * [1, -1, 1]) == [
        "light-axes"
    ]
    three = np.eye(3)
    assert find_mistakes(figure.images[:3], three, figure.mask) == ()


def test_the_unexplained_share_is_that_of_a_projection():
    rng = np.random.default_rng(0)
    values, lights = rng.random((9, 40)), rng.normal(size=(9, 3))
    fit = lights @ np.linalg.lstsq(lights, values, rcond=None)[0]
    expected = ((values - fit) ** 2).sum() / (values**2).sum()
    assert np.isclose(unexplained_by_equal(values @ values.T, lights), expected)


def test_axes_and_their_words():
    np.testing.assert_array_equal([[1.0, 2.0, 3.0]] @ axes_matrix("x,-z,y"), [[1, -3, 2]])
    assert axes_words(axes_matrix("y,x,-z")) == "y,x,-z"
    assert len(conventions(depth_too=True)) == 48


def test_usual_orders():
    assert len(usual_orders(12)) > 12 and usual_orders(4)[0][0] == "shifted by 1"


def test_axes_that_are_none_are_refused():
    for words in ("x,y", "x,x,z", "up,right,z", ""):
        with pytest.raises(ParameterError) as caught:
            axes_matrix(words)
        assert caught.value.code == "bad-axes"


def test_large_photographs_take_no_time(figure):
    large = np.repeat(np.repeat(figure.images, 12, axis=1), 12, axis=2)
    mask = np.repeat(np.repeat(figure.mask, 12, axis=0), 12, axis=1)
    began = time.process_time()
    assert find_mistakes(large, figure.lights.directions, mask) == ()
    assert time.process_time() - began < 3


def test_solve_says_it_in_one_line_before_it_solves_and_the_option_mends_it(
    tmp_path, figure, capsys
):
    from photostereo.capture import write_archive
    from photostereo.cli.info import report_state
    from photostereo.cli.terminal import Terminal

    file = write_archive(figure, tmp_path / "figure.npz")
    upside_down = write_archive(
        replace(figure, lights=figure.lights.directions * [1, -1, 1]), tmp_path / "down.npz"
    )
    report_state(Terminal(), ps.Pipeline(upside_down))
    said = capsys.readouterr().out.splitlines()
    finding = by_code(ps.diagnose(ps.Pipeline(upside_down).capture).findings)["light-axes"]
    assert finding.values["axes"] == "x,-y,z"
    assert [line for line in said if finding.rendered("terminal") in line] == [
        f"Warning: {finding.rendered('terminal')}"
    ]
    report_state(Terminal(), ps.Pipeline(file))
    assert "Warning: " not in capsys.readouterr().out
    turned = ps.Pipeline(file, reverse_lights=True).capture
    assert np.allclose(turned.lights.directions, -figure.lights.directions)
    assert "light-directions-reversed" in by_code(turned.origin.notes)


@pytest.mark.parametrize(
    ("truly", "given", "advised"),
    [
        ("x,-y,z", {"lights_axes": "y,x,z"}, "--lights-axes x,-y,z instead of y,x,z"),
        ("x,y,z", {"lights_axes": "x,-y,z"}, "Leave out --lights-axes"),
        ("y,x,z", {"lights_axes": "-x,y,z"}, "--lights-axes y,x,z instead of -x,y,z"),
        ("-x,-y,-z", {"lights_axes": "x,-y,z"}, "--reverse-lights instead of the axes given"),
        ("x,y,z", {"reverse_lights": True}, "Leave out --lights-axes and --reverse-lights"),
    ],
)
def test_wrong_axes_given_are_replaced_by_the_right_option(tmp_path, figure, truly, given, advised):
    """What is advised is what to write, not what to add to what was written."""
    from photostereo.capture import load, write_archive

    written = figure.lights.directions @ axes_matrix(truly).T
    file = write_archive(replace(figure, lights=written), tmp_path / "figure.npz")
    said = ps.diagnose(load(file, **given)).findings[0].rendered("terminal")
    assert advised in said
    if "--lights-axes" in advised and not advised.startswith("Leave"):
        assert "light-axes" not in by_code(ps.diagnose(load(file, lights_axes=truly)).findings)


def test_photographs_on_disk_are_checked_as_well(figure):
    from photostereo.pipeline.budget import glance

    large = replace(figure, lights=figure.lights.directions * [1, -1, 1])
    assert ps.diagnose(glance(large)).findings[0].code == "light-axes"
    assert "light-axes" not in by_code(ps.diagnose(glance(figure)).findings)


def test_nobody_is_told_to_undo_a_curve_that_was_undone() -> None:
    scene = render_scene("figure", size=96, lights=random_lights(14, max_angle=50, rng=1))
    curved = scene.images ** (1 / 2.2)
    assert "tone-curve" in by_code(find_mistakes(curved, scene.lights.directions, scene.mask))
    found = find_mistakes(curved, scene.lights.directions, scene.mask, straightened=True)
    assert "tone-curve" not in by_code(found)


@pytest.mark.parametrize("axes", ["x,-y,z", "-x,y,z"])
def test_estimated_lights_name_the_axes_of_a_solid(axes: str) -> None:
    scene = render_scene("vase", size=64, lights=dome_lights(10), reflectance="ggx")
    given = scene.lights.directions
    right, mirrored = (
        judge_axes(scene.images, given @ axes_matrix(a), scene.mask) for a in ("x,y,z", axes)
    )
    assert right is not None and right.axes == "x,y,z" and right.degrees < 15
    assert mirrored is not None and mirrored.axes == axes and mirrored.given_degrees > 25
    relief = render_scene("relief", size=64, lights=dome_lights(10))
    assert judge_axes(relief.images, relief.lights.directions, relief.mask) is None


def test_estimated_lights_speak_if_the_surface_does_not() -> None:
    opinion = Opinion("x,-y,z", 40.0, 3.0)
    found = compare_axes(None, opinion, "")
    assert found is not None and found.code == "light-axes" and found.values["axes"] == "x,-y,z"
    assert compare_axes(found, Opinion("x,y,z", 3.0, 3.0), "") is None
    assert compare_axes(None, opinion, "x,-y,z").remedy == "default-axes"
    assert compare_axes(None, None, "") is None
