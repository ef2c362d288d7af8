"""Lights that a light file leaves open, entirely or in part, from the photographs; and the file that is written of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import photostereo as ps
from photostereo.cli.root import app
from photostereo.core.errors import CaptureError, ParameterError
from photostereo.core.findings import by_code
from photostereo.io.png import write_png
from photostereo.lights.files.reading import read_lights
from photostereo_lab.scenes import dome_lights, render_scene

COUNT = 8
LIGHTS = dome_lights(COUNT, max_angle=45)
STRENGTHS = np.linspace(0.7, 1.3, COUNT)
STRENGTHS /= np.exp(np.log(STRENGTHS).mean())


def angles(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.degrees(np.arccos(np.clip((a * b).sum(axis=1), -1, 1)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vase with a mask, under lights of unequal strengths; no light file."""
    scene = render_scene("vase", size=96, lights=LIGHTS)
    place = tmp_path_factory.mktemp("open") / "vase"
    place.mkdir()
    for number, image in enumerate(scene.images):
        write_png(
            place / f"a{number}.png",
            (np.clip(0.6 * STRENGTHS[number] * image, 0, 1) * 65535).astype(np.uint16),
        )
    write_png(place / "mask.png", (scene.mask * 255).astype(np.uint8))
    return place


@pytest.fixture(scope="module")
def estimated(folder: Path) -> ps.Capture:
    return ps.load(folder, align="off")


def with_file(folder: Path, place: Path, lines: list[str]) -> Path:
    copy = place / "copy"
    shutil.copytree(folder, copy)
    (copy / "lights.csv").write_text("\n".join(["file,x,y,z,intensity", *lines]) + "\n")
    return copy


def row(number: int, *, direction: bool = True, strength: bool = True) -> str:
    x, y, z = (f"{v:.6f}" for v in LIGHTS[number]) if direction else ("", "", "")
    return f"a{number}.png,{x},{y},{z},{f'{STRENGTHS[number]:.5f}' if strength else ''}"


def test_without_a_light_file_everything_is_estimated_and_said(estimated: ps.Capture) -> None:
    assert estimated.origin is not None and estimated.origin.layout == "photographs alone"
    assert "strengths-vary" in by_code(estimated.origin.notes)
    assert set(estimated.lights.source) == {"estimated"}
    assert angles(estimated.lights.directions, LIGHTS).mean() < 15
    calibration = estimated.origin.calibration
    assert calibration is not None and not calibration.balls and calibration.picture is not None
    assert calibration.relief_factor is not None and 1 <= calibration.relief_factor < 3
    facts = calibration.facts()
    assert facts["found_from"] == ["estimated"] and 0 < facts["expected_error_degrees"] < 15
    assert "lights-estimated" in by_code(estimated.origin.notes)


def test_the_terminal_says_once_that_lights_are_estimated(folder: Path, tmp_path: Path) -> None:
    words = [
        "solve",
        str(folder),
        "-m",
        "ls",
        "-o",
        str(tmp_path / "out"),
        "--no-surface",
        "--no-report",
    ]
    said = CliRunner().invoke(app, words).output.splitlines()
    assert sum("estimated" in line for line in said if "info" not in line) == 1


def test_lights_that_are_not_in_the_file_are_estimated(folder: Path, tmp_path: Path) -> None:
    """Rows with empty cells, and photographs that the file does not name."""
    rows = [row(n) for n in range(COUNT - 2)] + [row(COUNT - 2, direction=False, strength=False)]
    capture = ps.load(with_file(folder, tmp_path, rows), align="off")
    known = slice(0, COUNT - 2)
    np.testing.assert_allclose(capture.lights.directions[known], LIGHTS[known], atol=1e-5)
    assert capture.lights.source == ("lights.csv",) * (COUNT - 2) + ("estimated",) * 2
    assert angles(capture.lights.directions, LIGHTS).max() < 20
    ratio = capture.lights.strengths / STRENGTHS
    assert (
        np.abs(ratio / ratio[0] - 1)[known].max() < 1e-4
        and np.abs(ratio / ratio[0] - 1).max() < 0.3
    )
    # The photographs are divided by them once.
    full = ps.load(
        folder,
        align="off",
        lights=with_file(folder, tmp_path / "full", [row(n) for n in range(COUNT)]),
    )
    middle = capture.mask & (capture.images.min(axis=0) > 0.02)
    factor = (capture.images[:, middle] / full.images[:, middle]).mean(axis=1)
    np.testing.assert_allclose(factor, STRENGTHS / capture.lights.strengths * factor[0], rtol=2e-3)


def test_strengths_alone_may_be_open(folder: Path, tmp_path: Path) -> None:
    rows = [row(n, strength=n < 4) for n in range(COUNT)]
    capture = ps.load(with_file(folder, tmp_path, rows), align="off")
    np.testing.assert_allclose(capture.lights.directions, LIGHTS, atol=1e-5)
    assert np.abs(capture.lights.strengths / STRENGTHS - 1).max() < 0.05


def test_strengths_of_the_file_may_be_ignored(folder: Path, tmp_path: Path) -> None:
    wrong = [row(n).rsplit(",", 1)[0] + ",1.0" for n in range(COUNT)]
    place = with_file(folder, tmp_path, wrong)
    assert np.ptp(ps.load(place, align="off").lights.strengths) == 0
    found = ps.load(place, align="off", lights_strengths="unknown").lights
    assert np.abs(found.strengths / STRENGTHS - 1).max() < 0.05 and found.has_strengths
    with pytest.raises(ParameterError, check=lambda e: e.code == "unknown-strengths"):
        ps.load(place, lights_strengths="perhaps")


def test_the_command_writes_a_file_that_serves_another_capture(
    folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "found.csv"
    result = CliRunner().invoke(
        app, ["lights", str(folder), "--unknown", "--out", str(out), "--quiet"]
    )
    assert result.exit_code == 0, result.output
    assert out.with_suffix(".png").stat().st_size > 1000
    table = read_lights(out)
    assert table.errors is not None and (table.errors > 0).all()
    other = tmp_path / "other"
    other.mkdir()
    for number, file in enumerate(sorted(folder.glob("a*.png"))):
        shutil.copy(file, other / f"b{number}.png")
    again = ps.load(other, lights=out, align="off")
    np.testing.assert_allclose(again.lights.directions, table.vectors, atol=1e-5)
    assert (
        set(again.lights.source) == {"estimated"} and np.isfinite(again.lights.expected_error).all()
    )
    assert "lights-of-others" in by_code(again.origin.notes)


def test_lights_that_cannot_be_estimated_are_refused(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "alike"
    place.mkdir()
    for number in range(6):
        shutil.copy(folder / "a0.png", place / f"a{number}.png")
    shutil.copy(folder / "mask.png", place / "mask.png")
    with pytest.raises(CaptureError):
        ps.load(place, align="off")
