"""The error that a method expects of itself, and its grade."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from photostereo.capture.capture import Origin
from photostereo.core.control import SILENT
from photostereo.core.findings import Finding, by_code
from photostereo.diagnosis.diagnose import diagnose
from photostereo.diagnosis.expected_error import (
    FACTORS,
    FAIR,
    GOOD,
    LEAST_TURN,
    ExpectedError,
    error_of_three,
    expected_error,
    factor_of_detail,
    factor_of_many,
)
from photostereo.diagnosis.exposure import least_squares_normals
from photostereo.diagnosis.metrics import angular_error
from photostereo.lights.lights import Lights
from photostereo.lights.turn import turn_of_lights
from photostereo.photographs.alignment.alignment import Alignment
from photostereo.pipeline.write_results import save
from photostereo.runtime.illumination import PixelLights
from photostereo.solver.estimate_error import assess
from photostereo.solver.prepared import prepare
from photostereo.solver.solve import solve
from photostereo_lab.corruptions import add_poisson
from photostereo_lab.scenes import dome_lights, render_scene


@pytest.fixture(scope="module")
def solved():
    scene = render_scene("figure", size=64, lights=dome_lights(12), reflectance="ggx")
    return scene, solve(scene, "net")


def test_it_is_the_mean_inside_the_mask(solved):
    _, result = solved
    spread = np.full(result.mask.shape, 1000.0, np.float32)  # outside, nothing counts
    spread[result.mask] = np.linspace(2, 8, int(result.mask.sum()))
    found = expected_error(replace(result, maps={"spread": spread}))
    assert found.degrees == pytest.approx(5.0)
    twice = expected_error(replace(result, maps={"spread": np.where(result.mask, 2 * spread, 0)}))
    assert twice.degrees == pytest.approx(2 * found.degrees)


def test_pixels_of_a_smooth_surface_expect_too_much_and_of_a_detailed_one_too_little():
    for name, low, high in (
        ("sphere", FACTORS[0], 0.8),
        ("relief", 1.05, FACTORS[1]),
        ("plane", 1.0, 1.0),
    ):
        scene = render_scene(name, size=64, lights=dome_lights(6))
        assert low <= factor_of_detail(scene.truth, scene.mask) <= high


def test_the_map_is_scaled_by_what_no_pixel_knows():
    """By the detail of the surface and by the number of photographs, in one piece and in bands."""
    scene = render_scene("sphere", size=64, lights=dome_lights(48), reflectance="ggx")
    prepared = prepare(scene, "net")
    fit = prepared.model.alone(SILENT)
    before = prepared.model.maps(fit.normals, fit.unknowns)["spread"].mean()
    for result in (solve(scene, "net"), solve(scene, "net", crops=100)):
        factor = factor_of_detail(result.normals, result.mask) * factor_of_many(48)
        assert abs(factor - 1) > 0.05
        assert result.maps["spread"][result.mask].mean() == pytest.approx(factor * before, rel=0.02)


def test_photographs_that_may_be_displaced_are_not_called_good(solved):
    scene, result = solved
    still = Alignment.still(12)
    for uncertain, grade in ((False, "good"), (True, "fair")):
        alignment = replace(still, uncertain=np.arange(12) == (3 if uncertain else 99))
        capture = replace(scene, origin=Origin(Path("x"), "test", 16, alignment=alignment))
        found = expected_error(result, findings=diagnose(capture, result).findings)
        assert (
            found.grade == grade
            and ("displaced-photographs" in by_code(found.reasons)) is uncertain
        )


def test_it_is_of_the_size_of_the_true_error(solved):
    scene, result = solved
    true = angular_error(result.normals, scene.truth, result.mask)[result.mask].mean()
    assert true / 3 < expected_error(result).degrees < 3 * true


def test_a_method_without_an_estimate_has_none(solved):
    scene, result = solved
    assert expected_error(solve(scene, "ls")) is None
    unknown = np.full(result.mask.shape, np.nan, np.float32)
    assert expected_error(replace(result, maps={"spread": unknown})) is None


@pytest.mark.parametrize("method", ["ls", "net", "sbl"])
def test_three_photographs_say_nothing_about_their_error(solved, method):
    """They fit some normal exactly: their residual of zero is no evidence."""
    scene, _ = solved
    three = scene.take([0, 4, 8])
    result = solve(three, method)
    true = angular_error(result.normals, three.truth, three.mask)[three.mask].mean()
    found = assess(result, three)
    assert true / 3 < found.degrees < 3 * true and found.grade != "good"
    assert "three-photographs" in by_code(found.reasons)
    assert error_of_three(np.eye(3)) < found.degrees  # at right angles


def test_grades_begin_where_they_say():
    degrees = [0, GOOD, np.nextafter(GOOD, 90), FAIR, np.nextafter(FAIR, 90), 60]
    assert [ExpectedError(d).grade for d in degrees] == [
        "good",
        "good",
        "fair",
        "fair",
        "do not trust",
        "do not trust",
    ]


def test_a_problem_is_never_called_good():
    assert ExpectedError(2.0, is_flawed=True).grade == "fair"
    assert ExpectedError(20.0, is_flawed=True).grade == "do not trust"


def test_the_summary_has_it(solved, tmp_path):
    scene, result = solved
    for name, one in (("net", result), ("ls", solve(scene, "ls"))):
        save(one, tmp_path / name, scene, surface=None, report=False)
    told = json.loads((tmp_path / "net" / "summary.json").read_text())["expected_error"]
    found = expected_error(result)
    assert (told["degrees"], told["grade"], told["words"]) == (
        round(found.degrees, 2),
        found.grade,
        found.words,
    )
    told = json.loads((tmp_path / "ls" / "summary.json").read_text())["expected_error"]
    true = angular_error(solve(scene, "ls").normals, scene.truth, scene.mask)[scene.mask].mean()
    assert (
        0.5 * true < told["degrees"] < 2 * true
    )  # least squares says nothing: a second opinion does


def test_a_turn_of_all_lights_is_seen_in_the_normals_alone(solved):
    scene, result = solved
    assert np.linalg.norm(turn_of_lights(result.normals, result.mask)) < LEAST_TURN
    for axis in np.eye(3):
        turn = Rotation.from_rotvec(12 * axis, degrees=True).as_matrix()
        turned = replace(scene, lights=scene.lights.directions @ turn.T)
        other = solve(turned, "net")
        np.testing.assert_allclose(turn_of_lights(other.normals, other.mask), 12 * axis, atol=6)
        found = expected_error(other)
        true = angular_error(other.normals, scene.truth, other.mask)[other.mask].mean()
        assert found.grade != "good" and true / 2 < found.degrees < 2 * true
        assert found.reasons[0].severity == "problem"


def test_lights_that_are_not_accurate_count(solved):
    scene, result = solved
    lights = Lights(scene.lights.directions, expected_error=np.full(12, 8.0))
    found = expected_error(result, lights)
    assert found.degrees > 8 and found.reasons[0].values["degrees"] == pytest.approx(8)


def test_reasons_are_those_that_matter(solved):
    scene = render_scene("figure", size=72, lights=dome_lights(12, max_angle=68), reflectance="ggx")
    found = assess(solve(scene, "ls"), scene)
    assert found.grade != "good" and found.reasons[0].code == "method-differs"
    _, result = solved
    found = expected_error(result, findings=[Finding("eight-bits", effect=0.06)], own=12.0)
    assert [reason.code for reason in found.reasons] == ["uncertain-normals"]
    doubt = Finding(
        "ball-doubts-some-lights",
        "problem",
        effect=1.5,
        names="3.png by 17°",
        degrees=0.8,
    )
    lights = Lights(scene.lights.directions, expected_error=np.full(12, 2.0))
    found = expected_error(result, lights, [doubt])
    assert [reason.code for reason in found.reasons] == ["ball-doubts-some-lights"]


def test_reasons_are_named_in_the_order_of_what_they_contribute(solved):
    scene, result = solved
    method = Finding("method-differs", effect=7.2, degrees=7.2)
    for degrees, codes in (
        (1.9, ["method-differs"]),
        (4.0, ["method-differs", "vague-lights"]),
        (9.0, ["vague-lights", "method-differs"]),
    ):
        lights = Lights(scene.lights.directions, expected_error=np.full(12, degrees))
        found = expected_error(result, lights, [method], own=10.0)
        assert [reason.code for reason in found.reasons] == codes


@pytest.mark.parametrize(
    ("spread", "codes"), [(4.0, ["method-differs"]), (9.0, ["uncertain-normals", "method-differs"])]
)
def test_the_method_is_blamed_for_its_part_only(solved, monkeypatch, spread, codes):
    scene, _ = solved
    own = float(np.hypot(spread, 6.0))
    monkeypatch.setattr(
        "photostereo.solver.estimate_error.second_opinion", lambda *about: (own, 6.0, 6.0)
    )
    found = assess(solve(scene, "ls"), scene, ())
    assert [reason.code for reason in found.reasons] == codes


def test_a_detected_mistake_is_not_called_good(solved):
    scene, _ = solved
    wrong = replace(scene, lights=scene.lights.directions * [1, -1, 1])
    found = assess(solve(wrong, "net"), wrong)
    assert found.grade == "do not trust" and any(reason.is_mistake for reason in found.reasons)


def test_lights_in_another_order_count_by_what_they_do():
    """One exchanged pair of twenty hardly matters; a shift by one does. Both are mistakes, and neither is good."""
    scene = render_scene(
        "sphere", size=64, lights=dome_lights(20), reflectance="ggx", texture="marble"
    )
    degrees, order = [], np.arange(20)
    for places in (np.r_[1, 0, 2:20], np.roll(order, 1)):
        wrong = replace(scene, lights=scene.lights.directions[places])
        result = solve(wrong, "net")
        found = assess(result, wrong)
        true = angular_error(result.normals, scene.truth, scene.mask)[scene.mask].mean()
        assert true / 2.5 < found.degrees < 2.5 * true
        degrees.append(found.degrees)
    assert degrees[1] > 4 * degrees[0]
    assert found.grade == "do not trust" and found.reasons[0].is_mistake


def test_a_prior_lowers_what_is_expected():
    scene = add_poisson(
        render_scene("sphere", size=64, lights=dome_lights(10), reflectance="ggx"), 8, rng=0
    )
    alone, with_prior = (solve(scene, name) for name in ("net", "dlnet"))
    assert expected_error(with_prior).degrees < expected_error(alone).degrees


def test_noise_on_a_gentle_relief_is_not_taken_for_a_turn():
    """Its curl fits a turn of several degrees; half of the picture, or a coarser one, contradicts it."""
    y, x = np.mgrid[220:-220:-1, :670] / 60.0
    # Heights 0.1 x + sin(x) cos(1.3 y) / 4
    slopes = 0.1 + np.cos(x) * np.cos(1.3 * y) / 4, -1.3 * np.sin(x) * np.sin(1.3 * y) / 4
    noise = np.random.default_rng(0).standard_normal((*x.shape, 3)) * [0.003, 0.006, 0.003]
    normals = np.stack([-slopes[0], -slopes[1], np.ones_like(x)], axis=2) + noise
    normals /= np.linalg.norm(normals, axis=2, keepdims=True)
    mask = np.ones(x.shape, bool)
    assert np.linalg.norm(turn_of_lights(normals, mask)) < LEAST_TURN
    turned = normals @ Rotation.from_rotvec([0, 10, 0], degrees=True).as_matrix().T
    np.testing.assert_allclose(turn_of_lights(turned, mask), [0, 10, 0], atol=3)


def test_displaced_photographs_of_fabric_are_not_taken_for_a_turn():
    """Their curl fits a turn of 60°, which every part of the picture confirms; undoing it leaves the curl."""
    scene = render_scene(
        "fabric", size=80, lights=dome_lights(14, max_angle=60), texture="uniform", rng=5
    )
    images, rng = scene.images.copy(), np.random.default_rng(5)
    for number in rng.permutation(14)[:7]:
        images[number] = np.roll(images[number], tuple(rng.integers(-3, 4, 2)), (0, 1))
    normals = least_squares_normals(images, PixelLights(scene.lights.matrix), scene.mask)
    assert not turn_of_lights(normals, scene.mask).any()
    tilted = scene.truth @ Rotation.from_rotvec([8, 0, 0], degrees=True).as_matrix().T
    np.testing.assert_allclose(turn_of_lights(tilted, scene.mask), [8, 0, 0], atol=3)
