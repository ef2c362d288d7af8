"""Figures for a paper: the pixels of the results, one scale for all errors, text as text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from photostereo.cli import app
from photostereo.core.errors import CaptureError, ParameterError
from photostereo.diagnosis.metrics import angular_error
from photostereo.solver.solve import solve
from photostereo_lab.commands.figure import parse_light, parse_zoom
from photostereo_lab.paper.figure import Column, draw_figure, picture_of_normals
from photostereo_lab.paper.gather import columns_of
from photostereo_lab.scenes import dome_lights, render_scene
from photostereo_lab.sweeps.store import Store


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, np.ndarray]:
    capture = render_scene("vase", size=48, lights=dome_lights(8), reflectance="ggx")
    folder = tmp_path_factory.mktemp("results")
    for method in ("ls", "l1"):
        (folder / method).mkdir()
        solve(capture, method=method).save(folder / method)
    np.save(folder / "truth.npy", capture.truth)
    return folder, capture


def pictures(axes) -> list[np.ndarray]:
    return [np.asarray(image.get_array()) for image in axes.get_images()]


def test_panels_hold_the_pixels_of_the_results(made) -> None:
    folder, capture = made
    columns = [*columns_of(folder / "ls", None)[0], *columns_of(folder / "l1", None)[0]]
    zoom = parse_zoom("16,12,10,8")
    figure = draw_figure(columns, truth=capture.truth, zooms=[zoom], lights=[(0.0, 0.0, 1.0)])
    panels = [axes for axes in figure.axes if axes.get_images()]
    assert len(panels) == 3 + 3 + 2 + 3, "normals, close-ups, errors (not of the truth), relit"
    whole = picture_of_normals(columns[0].normals, columns[0].mask)
    (close,) = pictures(panels[4])
    assert np.array_equal(close, np.clip(whole[zoom], 0, 1))
    rows, cols = np.nonzero(capture.mask)
    frame = np.s_[rows.min() : rows.max() + 1, cols.min() : cols.max() + 1]
    for panel, column in zip(panels[6:8], columns, strict=True):
        expected = angular_error(column.normals, capture.truth, capture.mask)
        assert np.array_equal(pictures(panel)[0], expected[frame], equal_nan=True)
        assert panel.texts[0].get_text() == f"mean {np.nanmean(expected[capture.mask]):.2f}°"
    scales = {image.get_clim() for panel in panels[6:8] for image in panel.get_images()}
    assert len(scales) == 1, "one color bar for all"
    widths = {round(panel.get_position().width, 9) for panel in panels}
    assert len(widths) == 1


def test_the_command_writes_vector_text(made, tmp_path: Path) -> None:
    folder, _ = made
    arguments = [
        "figure",
        str(folder / "ls"),
        str(folder / "l1"),
        "--truth",
        str(folder / "truth.npy"),
    ]
    arguments += ["--zoom", "16,12,10,8", "--relit=-1,1,1.5", "--quiet"]
    for suffix in ("svg", "pdf", "png"):
        out = tmp_path / f"figure.{suffix}"
        done = CliRunner().invoke(app, [*arguments, "--out", str(out)], catch_exceptions=False)
        assert done.exit_code == 0
        assert out.stat().st_size > 1000
    text = (tmp_path / "figure.svg").read_text()
    for words in (">ground truth<", ">SR (L1)<", ">angular error<"):
        assert words in text
    pdf = (tmp_path / "figure.pdf").read_bytes()
    assert b"/TrueType" in pdf or b"/CIDFontType2" in pdf
    assert b"/Type3" not in pdf


def test_a_sweep_gives_the_maps_that_it_has_kept(made, tmp_path: Path) -> None:
    _, capture = made
    store = Store(tmp_path)
    with pytest.raises(CaptureError) as caught:
        columns_of(tmp_path, None)
    assert caught.value.code == "no-maps"
    row = dict.fromkeys(("fingerprint", "reference", "task", "versions", "host"), "")
    row |= {
        "hash": "abc",
        "capture": "vase",
        "corruption": "none",
        "level": 0,
        "method": "ls",
        "status": "done",
    }
    row |= {name: {} for name in ("parameters", "settled", "extra", "stages", "versions", "host")}
    store._database.put("trials", row)
    (tmp_path / "arrays").mkdir()
    np.savez(
        tmp_path / "arrays" / "abc.npz",
        normals=capture.truth,
        truth=capture.truth,
        mask=capture.mask,
    )
    (column,), truth = columns_of(tmp_path, None)
    assert column.name == "LS"
    assert np.array_equal(column.normals, capture.truth)
    assert np.array_equal(truth, capture.truth)
    assert columns_of(tmp_path, ["ls"])[0]
    with pytest.raises(CaptureError):
        columns_of(tmp_path, ["rpca"])


@pytest.mark.parametrize("text", ["1,2,3", "a,b,c,d", "-1,0,5,5", "0,0,1,9", ""])
def test_close_ups_that_are_none(text: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_zoom(text)
    assert caught.value.code in ("not-a-zoom", "not-numbers")


def test_nonsense_is_reported(made, tmp_path: Path) -> None:
    folder, capture = made
    column = Column("one", capture.truth, capture.mask)
    command = ["figure", str(folder / "ls"), "--out", str(tmp_path / "figure.doc")]
    for code, wrong in {
        "not-a-light": lambda: parse_light("0,0,-1"),
        "zoom-outside": lambda: draw_figure([column], zooms=[parse_zoom("40,40,20,20")]),
        "other-size": lambda: draw_figure([column], truth=capture.truth[:-1]),
        "figure-format": lambda: CliRunner().invoke(app, command, catch_exceptions=False),
    }.items():
        with pytest.raises(ParameterError) as caught:
            wrong()
        assert caught.value.code == code
    assert not any(tmp_path.iterdir())
