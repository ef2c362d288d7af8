"""``photostereo compare RESULT RESULT``: results that are there already, on one page."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from photostereo.capture import write_archive
from photostereo.cli import app
from photostereo.core.errors import CaptureError, PhotostereoError
from photostereo.diagnosis.metrics import angular_error
from photostereo.report.pictures import frame_around
from photostereo.solver.solve import solve
from photostereo_lab.paper.gather import columns_of
from photostereo_lab.scenes import dome_lights, render_scene

HOSTILE = '<img src=x onerror=alert(1)> & "l1"'


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two results of one capture in folders of one's own naming, and the capture."""
    capture = render_scene("vase", size=48, lights=dome_lights(8), reflectance="ggx")
    folder = tmp_path_factory.mktemp("results")
    made = []
    for name, method in (("plain", "ls"), (HOSTILE, "l1")):
        (folder / name).mkdir()
        made.append(solve(capture, method=method))
        if method == "l1":  # a mask of its own, narrower than the other
            cols = np.nonzero(capture.mask)[1]
            mask = capture.mask & (np.arange(48) > cols.min() + 4)
            capture = replace(capture, mask=mask)
            made[-1] = replace(made[-1], mask=mask)
        made[-1].save(folder / name)
        np.save(folder / name / "depth.npy", np.where(capture.mask, 3.0 * np.arange(48), np.nan))
    np.save(folder / "truth.npy", capture.truth)
    return folder, made, capture


def compare(*words: str | Path) -> str:
    done = CliRunner().invoke(
        app, ["compare", *map(str, words)], catch_exceptions=False, env={"COLUMNS": "200"}
    )
    assert done.exit_code == 0
    return done.output


def data_of(page: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    return json.loads(found.group(1))


def test_two_results_stand_on_one_page(results, tmp_path: Path) -> None:
    folder, made, capture = results
    out = tmp_path / "both"
    said = compare(folder / "plain", folder / HOSTILE, "--out", out, "--pixel-size", "0.2mm")
    angle = angular_error(made[1].normals, made[0].normals, capture.mask)[capture.mask].mean()
    assert "angle to plain" in said and f"{angle:.2f}°" in said
    page = (out / "report.html").read_text()
    assert "<img src=x" not in page and "&lt;img src=x" in page
    view = data_of(page)["relight"]
    assert [view["sets"][key]["title"] for key in ("r0", "r1")] == ["plain", HOSTILE]
    assert view["pixel"] == {"size": 0.2, "unit": "mm"} and "truth" not in view["sets"]
    # What a served page needs lies beside it.
    for key, result in zip(("r0", "r1"), made, strict=True):
        beside = out / view["sets"][key]["folder"]
        assert np.array_equal(np.load(beside / "normals.npy"), result.normals)
        assert (beside / "depth.npy").is_file()
        # The server cuts its tiles around the same pixels as the page.
        mask = np.load(beside / "mask.npy")
        assert np.array_equal(mask, capture.mask)
        assert [frame_around(mask).cols.start, frame_around(mask).rows.start] == view["origin"]


def test_each_result_says_what_it_expects_of_itself(results, tmp_path: Path) -> None:
    folder, _, _ = results
    for name in ("plain", HOSTILE):
        shutil.copytree(folder / name, tmp_path / name)
    place = tmp_path / "plain" / "summary.json"
    opinion = {"degrees": 7.31, "grade": "fair"}
    place.write_text(json.dumps(json.loads(place.read_text()) | {"expected_error": opinion}))
    said = compare(
        tmp_path / "plain",
        tmp_path / HOSTILE,
        "--out",
        tmp_path / "both",
        "--truth",
        folder / "truth.npy",
    )
    assert "7.3°, fair" in said
    assert re.findall(
        r'data-value="7.31"|data-value="Infinity"', (tmp_path / "both" / "report.html").read_text()
    )
    copied = json.loads((tmp_path / "both" / "1-plain" / "summary.json").read_text())
    assert copied["expected_error"] == opinion
    latex = (tmp_path / "both" / "comparison.tex").read_text()
    assert r"7.3$^\circ$, fair" in latex and latex.count(r"\textbf") == 1


@pytest.mark.parametrize("order", [1, -1])
def test_a_gray_result_and_one_in_color(tmp_path: Path, order: int) -> None:
    capture = render_scene("sphere", size=32, lights=dome_lights(8), color=True)
    for name, photographs in (("color", capture), ("gray", capture.gray())):
        (tmp_path / name).mkdir()
        solve(photographs, "ls").save(tmp_path / name)
    assert np.load(tmp_path / "color" / "albedo.npy").ndim == 3
    compare(*[tmp_path / name for name in ("color", "gray")[::order]], "--out", tmp_path / "both")
    assert (tmp_path / "both" / "report.html").is_file()


def test_a_figure_of_a_comparison_with_truth(tmp_path: Path) -> None:
    """The folder of true normals is the reference, not one of the results."""
    capture = render_scene("sphere", size=32, lights=dome_lights(8))
    write_archive(capture, tmp_path / "capture.npz")
    compare(tmp_path / "capture.npz", "--methods", "ls,l1", "--out", tmp_path / "both")
    assert (tmp_path / "both" / "truth" / "normals.npy").is_file()
    columns, truth = columns_of(tmp_path / "both", None)
    assert len(columns) == 2 and truth is not None and truth.shape == (32, 32, 3)
    words = ["figure", str(tmp_path / "both"), "--out", str(tmp_path / "figure.png")]
    assert CliRunner().invoke(app, words, catch_exceptions=False).exit_code == 0


SPOILS = {
    "normals flat": ("normals", np.zeros((48, 48), np.float32)),
    "normals not finite": ("normals", np.full((48, 48, 3), np.nan, np.float32)),
    "normals of text": ("normals", np.zeros((48, 48, 3), "U4")),
    "albedo of one channel": ("albedo", np.ones((48, 48, 1), np.float32)),
    "mask of another size": ("mask", np.ones((48, 24), bool)),
    "empty mask": ("mask", np.zeros((48, 48), bool)),
    "depth of another size": ("depth", np.ones((24, 48), np.float32)),
    "infinite depth": ("depth", np.full((48, 48), 1e30, np.float32)),
    "atoms not finite": ("extras", np.full((4, 4), np.nan, np.float32)),
}


@pytest.mark.parametrize("spoil", SPOILS)
def test_damaged_results_are_refused_at_the_door(results, tmp_path: Path, spoil: str) -> None:
    folder, _, _ = results
    shutil.copytree(folder / "plain", tmp_path / "plain")
    name, array = SPOILS[spoil]
    np.save(tmp_path / "plain" / f"{name}.npy", array)
    if name == "extras":
        np.savez(tmp_path / "plain" / "extras.npz", array_atoms=array)
    with pytest.raises(CaptureError) as caught:
        compare(tmp_path / "plain", folder / HOSTILE, "--out", tmp_path / "out")
    assert caught.value.code == "damaged-result"
    assert tmp_path / "plain" in (caught.value.file, caught.value.file.parent)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"method": 3},
        {"seconds": []},
        {"history": {}},
        {"history": [{"x": 1}]},
        {"iterations": "many"},
        {"surface": 5},
    ],
)
def test_a_damaged_summary_is_refused_at_the_door(results, tmp_path: Path, change: dict) -> None:
    folder, _, _ = results
    shutil.copytree(folder / "plain", tmp_path / "plain")
    summary = tmp_path / "plain" / "summary.json"
    summary.write_text(json.dumps({**json.loads(summary.read_text()), **change}))
    with pytest.raises(CaptureError) as caught:
        compare(tmp_path / "plain", folder / HOSTILE, "--out", tmp_path / "out")
    assert caught.value.code == "damaged-result"


def test_with_a_truth_they_are_judged(results, tmp_path: Path) -> None:
    folder, made, capture = results
    out = tmp_path / "judged"
    said = compare(
        folder / "plain", folder / HOSTILE, "--truth", folder / "truth.npy", "--out", out
    )
    for result in made:
        assert (
            f"{angular_error(result.normals, capture.truth, capture.mask)[capture.mask].mean():.2f}°"
            in said
        )
    assert "truth" in data_of((out / "report.html").read_text())["relight"]["sets"]


def test_what_cannot_be_compared_is_told(results, tmp_path: Path) -> None:
    folder, _, _ = results
    small = tmp_path / "small"
    small.mkdir()
    solve(render_scene("vase", size=32, lights=dome_lights(8)), method="ls").save(small)
    for words, code in (
        ([folder / "plain"], "one-result"),
        ([folder / "plain", tmp_path], "not-a-result"),
        ([folder / "plain", small], "sizes-differ"),
        ([folder / "plain", folder / HOSTILE, "--methods", "ls"], "not-for-results"),
        ([folder / "plain", folder / HOSTILE, "--truth", tmp_path / "none.npy"], "missing-file"),
    ):
        with pytest.raises(PhotostereoError) as caught:
            compare(*words, "--out", tmp_path / "out")
        assert caught.value.code == code
    assert not (tmp_path / "out").exists()
