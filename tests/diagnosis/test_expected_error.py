"""The error that a method expects of itself, and its grade."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from photostereo.diagnosis.expected_error import FAIR, GOOD, ExpectedError, expected_error
from photostereo.diagnosis.metrics import angular_error
from photostereo.pipeline.save import save
from photostereo.scenes import dome_lights, render_scene
from photostereo.solver.solve import solve


@pytest.fixture(scope="module")
def solved():
    scene = render_scene("figure", size=64, lights=dome_lights(12), reflectance="ggx")
    return scene, solve(scene, "net")


def test_it_is_the_mean_inside_the_mask(solved):
    _, result = solved
    spread = np.full(result.mask.shape, 1000.0, np.float32)  # outside, nothing counts
    spread[result.mask] = np.linspace(2, 8, int(result.mask.sum()))
    found = expected_error(replace(result, maps={"spread": spread}))
    assert found.degrees == pytest.approx(5.0) and found.about == "5°"


def test_it_is_of_the_size_of_the_true_error(solved):
    scene, result = solved
    true = angular_error(result.normals, scene.truth, result.mask)[result.mask].mean()
    assert true / 3 < expected_error(result).degrees < 3 * true


def test_a_method_without_an_estimate_has_none(solved):
    scene, result = solved
    assert expected_error(solve(scene, "ls")) is None
    unknown = np.full(result.mask.shape, np.nan, np.float32)
    assert expected_error(replace(result, maps={"spread": unknown})) is None


def test_grades_begin_where_they_say():
    degrees = [0, GOOD, np.nextafter(GOOD, 90), FAIR, np.nextafter(FAIR, 90), 60]
    assert [ExpectedError(d).grade for d in degrees] == ["good", "good", "fair", "fair", "poor", "poor"]


def test_the_summary_has_it(solved, tmp_path):
    scene, result = solved
    for name, one in (("net", result), ("ls", solve(scene, "ls"))):
        save(one, tmp_path / name, scene, surface=None, report=False)
    told = json.loads((tmp_path / "net" / "summary.json").read_text())["expected_error"]
    assert told == {
        "degrees": round(expected_error(result).degrees, 2),
        "grade": expected_error(result).grade,
    }
    assert json.loads((tmp_path / "ls" / "summary.json").read_text())["expected_error"] is None
