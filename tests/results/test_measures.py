"""What inspection asks for, as files: slope, gradients, curvature, contrast, heights and profiles."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import tifffile
from typer.testing import CliRunner

from photostereo.cli import app
from photostereo.core.errors import OutputError, ParameterError
from photostereo.results.formats.measures import encode, symmetric_limits

from .conftest import as_result

RADIUS = 90.0


@pytest.fixture(scope="module")
def ball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the result of a ball with a radius of 90 pixels, and no surface."""
    row, col = np.mgrid[:101, :121]
    x, y = (col - 60) / RADIUS, (50 - row) / RADIUS
    mask = np.hypot(x, y) < 0.5
    normals = np.dstack([x, y, np.sqrt(np.maximum(1 - x**2 - y**2, 0))]) * mask[..., None]
    folder = tmp_path_factory.mktemp("measures") / "ball"
    folder.mkdir()
    as_result(normals.astype(np.float32), mask, mask.astype(np.float32)).save(folder)
    return folder


def decoded(path: Path) -> np.ndarray:
    """Read a TIFF as its own description says."""
    with tifffile.TiffFile(path) as file:
        codes = file.pages[0].asarray()
        text = file.pages[0].tags["ImageDescription"].value
    low, high = map(float, re.search(r"low = (\S+), high = (\S+);", text).groups())
    assert codes.dtype == np.uint16
    return np.where(codes > 0, low + (codes - 1.0) / 65534 * (high - low), np.nan)


def test_files_hold_the_numbers_of_a_ball(ball: Path, tmp_path: Path) -> None:
    arguments = ["export", str(ball), "--to", "slope,gradient,curvature,contrast"]
    out = tmp_path / "out"
    code = CliRunner().invoke(
        app, [*arguments, "--out", str(out), "--pixel-size", "0.1mm"], catch_exceptions=False
    )
    assert code.exit_code == 0
    mask = np.load(ball / "mask.npy")
    mean = decoded(out / "curvature_mean.tiff")
    assert (np.isfinite(mean) == mask).all()
    assert mean[mask] == pytest.approx(1 / 9.0, rel=1e-4)
    assert decoded(out / "curvature_gaussian.tiff")[mask] == pytest.approx(1 / 81.0, rel=1e-3)
    x = np.load(ball / "normals.npy")[..., 0][mask]
    z = np.load(ball / "normals.npy")[..., 2][mask]
    assert decoded(out / "gradient_x.tiff")[mask] == pytest.approx(-x / z, abs=2e-3)
    assert decoded(out / "slope.tiff")[mask] == pytest.approx(np.degrees(np.arccos(z)), abs=2e-3)
    assert np.nanmax(decoded(out / "contrast.tiff")) < 0.5
    facts = json.loads((out / "summary.json").read_text())
    assert set(facts["files"]) == set(facts["conventions"])
    assert "1/mm" in facts["conventions"]["curvature_mean.tiff"]
    OpenEXR = pytest.importorskip("OpenEXR", reason="the extra exr is not installed")
    with OpenEXR.File(str(out / "curvature.exr"), separate_channels=True) as file:
        exact = np.array(file.channels()["mean"].pixels)
    assert exact[mask] == pytest.approx(1 / 9.0, rel=1e-6)
    assert np.isnan(exact[~mask]).all()


def test_codes() -> None:
    picture = np.array([[-2.0, 0.0, 2.0], [np.nan, 5.0, -5.0]])
    assert encode(picture, -2.0, 2.0).tolist() == [[1, 32768, 65535], [0, 65535, 1]]
    assert symmetric_limits(np.zeros((3, 3))) == (-1.0, 1.0)


def test_measure_prints_iso_25178_and_writes_a_profile(ball: Path, tmp_path: Path) -> None:
    table = tmp_path / "profile.csv"
    arguments = [
        *("measure", str(ball), "--raw", "--pixel-size", "0.1mm", "--region", "30,20,60,60"),
        *("--profile", "25,50,95,50", "--out", str(table)),
    ]
    first = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    facts = json.loads(first.output)
    assert (facts["unit"], facts["pixels"]) == ("mm", 3600)
    row, col = np.mgrid[20:80, 30:90]
    z = 0.1 * np.sqrt(RADIUS**2 - (col - 60) ** 2 - (row - 50) ** 2)
    assert facts["sq"] == pytest.approx(z.std(), rel=1e-3)
    assert facts["sz"] == pytest.approx(np.ptp(z), rel=1e-3)
    assert facts["filter"] == "no form removed, no S-filter, no L-filter"
    line = np.loadtxt(table, delimiter=",", skiprows=1)
    expected = 0.1 * np.sqrt(RADIUS**2 - (line[:, 2] - 60) ** 2)
    assert line[:, 1] - line[35, 1] == pytest.approx(expected - expected[35], abs=1e-4)
    with pytest.raises(OutputError) as refused:
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert refused.value.code == "output-exists"
    leveled = ["--level", "30,50", "--level", "90,50", "--level", "60,20", "--l-filter", "2mm"]
    again = CliRunner().invoke(
        app, ["measure", str(ball), "--pixel-size", "0.1mm", *leveled], catch_exceptions=False
    )
    assert "plane through points removed, no S-filter, L-filter 2 mm" in again.output
    assert "Sa" in again.output and "Ssk" in again.output
    with pytest.raises(ParameterError) as caught:
        CliRunner().invoke(app, ["measure", str(ball), "--region", "1,2,3"], catch_exceptions=False)
    assert caught.value.code == "not-numbers"
