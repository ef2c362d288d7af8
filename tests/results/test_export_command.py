"""``photostereo export`` and ``solve --material``: every format from one command, whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from photostereo.cli import app
from photostereo.core.errors import ParameterError
from photostereo.results.formats import FORMATS, check_formats
from photostereo.solver.solve import solve
from photostereo_lab.scenes import dome_lights, render_scene


@pytest.fixture(scope="module")
def result(tmp_path_factory) -> Path:
    capture = render_scene("relief", size=64, lights=dome_lights(8), color=True)
    folder = tmp_path_factory.mktemp("results") / "relief-ls"
    folder.mkdir()
    solve(capture, method="ls").save(folder)
    return folder


def test_everything_at_once(result: Path, tmp_path: Path) -> None:
    pytest.importorskip("OpenEXR", reason="the extra exr is not installed")
    before = {path.name: path.read_bytes() for path in result.iterdir()}
    out = tmp_path / "out"
    arguments = [
        "export",
        str(result),
        "--to",
        ",".join(FORMATS),
        "--out",
        str(out),
        "--pixel-size",
        "50um",
    ]
    done = CliRunner().invoke(app, [*arguments, "--tileable", "--quiet"], catch_exceptions=False)
    assert done.exit_code == 0
    found = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    facts = json.loads((out / "summary.json").read_text())
    assert facts["files"] == [
        name for name in found if name not in ("summary.json", ".photostereo.json")
    ]
    assert facts["surface"]["pixel_size"] == 0.05
    for name in (
        "mesh.glb",
        "mesh.obj",
        "mesh.ply",
        "mesh.stl",
        "depth.tiff",
        "depth.exr",
        "normals.exr",
    ):
        assert name in found
    assert all(
        name in facts["conventions"] or name.startswith("relight/") for name in facts["files"]
    )
    assert "relief.ptm" in found and "relight/info.json" in found
    assert "material/relief_Normal_OpenGL.png" in found
    assert json.loads((out / "material" / "relief.json").read_text())["tileable"]
    assert {path.name: path.read_bytes() for path in result.iterdir()} == before, (
        "the result stays as it is"
    )
    with pytest.raises(OSError) as caught:
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert caught.value.code == "output-exists"


def test_nonsense_is_told_before_anything_is_written(result: Path, tmp_path: Path) -> None:
    with pytest.raises(ParameterError) as caught:
        check_formats(["relihgt"])
    assert caught.value.code == "unknown-format"
    assert caught.value.code == "unknown-format"
    assert check_formats([" ", "GLB", ".glb"]) == ["glb"]
    with pytest.raises(ParameterError) as caught:
        CliRunner().invoke(
            app,
            ["export", str(result), "--to", " ", "--out", str(tmp_path / "out")],
            catch_exceptions=False,
        )
    assert caught.value.code == "no-format"
    for arguments in (["--to", "fbx"], ["--pixel-size", "wide"], ["--surface-method", "magic"]):
        with pytest.raises(ParameterError):
            CliRunner().invoke(
                app,
                ["export", str(result), "--out", str(tmp_path / "out"), *arguments],
                catch_exceptions=False,
            )
    assert not any(tmp_path.iterdir())


def test_solve_writes_a_material(tmp_path: Path) -> None:
    from photostereo.capture.layouts.archive import write_archive

    capture = render_scene("relief", size=64, lights=dome_lights(8), color=True)
    write_archive(capture, tmp_path / "relief.npz")
    arguments = [
        "solve",
        str(tmp_path / "relief.npz"),
        "-m",
        "ls",
        "--color",
        "--pixel-size",
        "0.1mm",
    ]
    done = CliRunner().invoke(
        app, [*arguments, "-o", str(tmp_path / "out"), "--tileable", "-q"], catch_exceptions=False
    )
    assert done.exit_code == 0
    (facts,) = (tmp_path / "out" / "material").glob("*.json")
    said = json.loads(facts.read_text())
    assert said["tileable"] and said["roughness"].startswith("measured")
    assert np.all(np.array(said["pixels"]) < 64)
    # What every file means is in the summary, and the page offers it.
    out = tmp_path / "out"
    files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    told = set(json.loads((out / "summary.json").read_text())["conventions"])
    assert files - told == {".photostereo.json", "report.html", "summary.json"}
    page = (out / "report.html").read_text()
    for name in told:
        assert f'href="{name}"' in page
