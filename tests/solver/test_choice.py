"""Words in the place of a method's name: what they stand for, and that the result says why."""

from __future__ import annotations

import json

import pytest

import photostereo as ps
from photostereo.batch.settings import check_settings
from photostereo.core.errors import ParameterError
from photostereo.pipeline.settings import Settings
from photostereo.solver.auto_method import INTENSITIES, SECONDS, choose
from photostereo.solver.methods import find_method, method_for
from photostereo.solver.reconstruction import Reconstruction
from photostereo_lab.scenes import dome_lights, render_scene


@pytest.fixture(scope="module")
def capture() -> ps.Capture:
    return render_scene("sphere", size=24, lights=dome_lights(6))


def test_words_stand_for_methods(capture) -> None:
    assert find_method("best").name == find_method("auto").name == "dlnet"
    assert find_method("fast").name == "dlsr"
    assert method_for(capture, "fast")[0].name == "dlsr"
    assert method_for(capture, "ls") == (find_method("ls"), None)
    assert method_for(capture, find_method("pls"))[0].name == "pls"
    with pytest.raises(ParameterError) as caught:
        find_method("bst")
    assert caught.value.code == "unknown-method"


def test_auto_goes_by_the_size_of_the_work() -> None:
    """Up to five minutes of one core for the best method, and only for as many photographs as the network knows."""
    assert choose("auto", 45_200, 96).name == choose("auto", 612 * 512, 96).name == "dlnet"
    large = choose("auto", 24_000_000, 60)
    assert large.name == "dlsr" and large.why.code == "chosen-by-size"
    assert large.why.values["minutes"] == pytest.approx(12, abs=0.1)
    assert choose("auto", 1000, 3).name == choose("auto", 1000, 201).name == "dlsr"
    assert choose("best", 24_000_000, 60).name == "dlnet"
    assert choose("auto", 12_000_000, 48).name == "dlnet"
    assert abs(INTENSITIES * SECONDS - 5 * 60) < 1


def test_the_result_says_which_was_taken_and_why(capture, tmp_path) -> None:
    result = ps.solve(capture, max_iter=1)
    assert result.method == "dlnet" and result.chosen == str(choose("auto").why)
    ps.write_report(tmp_path / "report.html", result, capture)
    assert f"<dd>dlnet, {result.chosen}</dd>" in (tmp_path / "report.html").read_text(
        encoding="utf-8"
    )
    result.save(tmp_path)
    assert Reconstruction.load(tmp_path).chosen == result.chosen
    assert json.loads((tmp_path / "summary.json").read_text())["chosen"] == result.chosen
    assert ps.solve(capture, "ls").chosen == ""


def test_in_parts_it_is_the_same_choice(capture, monkeypatch) -> None:
    monkeypatch.setattr("photostereo.solver.auto_method.INTENSITIES", 100)
    assert ps.solve(capture, max_iter=1).method == "dlsr"
    large = ps.solve(capture, "auto", max_iter=1, crops=4)
    why = choose("auto", capture.pixel_count, len(capture)).why
    assert why is not None and why.code == "chosen-by-size"
    assert large.method == "dlsr" and large.chosen == str(why)


def test_a_batch_takes_words() -> None:
    assert Settings().method == "auto"
    check_settings(Settings().changed(method="fast"))
    with pytest.raises(ParameterError):
        check_settings(Settings().changed(method="faster"))
