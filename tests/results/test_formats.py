"""One file per export format."""

from __future__ import annotations

import json
import struct
import subprocess
import sys

import numpy as np
import pytest

from photostereo.results.export import export_result
from photostereo.results.formats import FORMATS, MESHES, SURFACE_FILES
from photostereo.results.formats.material import make_material
from photostereo.solver.solve import solve
from photostereo_lab.scenes import dome_lights, render_scene


@pytest.fixture(scope="module")
def result():
    return solve(render_scene("relief", size=48, lights=dome_lights(8), color=True), "ls")


NEW_FORMAT = """
from photostereo.results.formats.format import Format


def write(job):
    job.write(f"{job.stem}.csv", str(job.result.mask.sum()).encode())
    return {f"{job.stem}.csv": "The number of pixels."}


FORMAT = Format(title="Count", purpose="number of pixels, for a test", write=write)
"""


def test_a_new_format_is_one_file_and_one_line(result, tmp_path):
    """The command, its help and what it prints follow from them."""
    (tmp_path / "formats").mkdir()
    (tmp_path / "formats" / "count.py").write_text(NEW_FORMAT)
    (tmp_path / "result").mkdir()
    result.save(tmp_path / "result")
    program = """
import importlib.util, sys
from photostereo.results import choice
choice.FORMAT_NAMES += ("count",)  # the line
package = importlib.util.find_spec("photostereo.results.formats")
package.submodule_search_locations.append(sys.argv.pop(1))  # the file
module = importlib.util.module_from_spec(package)
sys.modules[package.name] = module
package.loader.exec_module(module)
from photostereo.cli import main
main()
"""

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "formats"), "export", *arguments],
            cwd=tmp_path,
            text=True,
            capture_output=True,
            check=True,
        ).stdout

    assert "count" in run("--help")
    output = run("result", "--to", "count,stl", "--out", "out")
    assert "Count: number of pixels, for a test" in output
    assert "STL:   full mesh, for slicers" in output
    assert (tmp_path / "out" / "relief.csv").read_text() == str(result.mask.sum())
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["files"] == ["depth.npy", "depth.png", "depth.tiff", "mesh.stl", "relief.csv"]
    assert summary["conventions"]["relief.csv"] == "The number of pixels."


def test_what_formats_declare_is_what_they_write(result, tmp_path):
    kinds = [name for name, one in FORMATS.items() if one.of_surface and name != "exr"]
    facts = export_result(tmp_path, result, kinds)
    assert set(facts["files"]) <= SURFACE_FILES
    assert {file for name in kinds for file in FORMATS[name].files} <= set(facts["files"])
    assert set(MESHES) == {"glb", "obj", "ply", "stl"}
    assert all(FORMATS[name].name == name for name in MESHES)


@pytest.mark.parametrize("name", ["relief", "Tablet 12 <b>ü</b>"])
def test_objects_are_called_by_their_name(result, tmp_path, name):
    export_result(tmp_path, result, ["glb", "obj"], name=name)
    data = (tmp_path / "mesh.glb").read_bytes()
    (length,) = struct.unpack("<I", data[12:16])
    tree = json.loads(data[20 : 20 + length])
    assert [tree[kind][0]["name"] for kind in ("nodes", "meshes", "materials")] == [name] * 3
    label = "relief" if name == "relief" else "Tablet-12--b-ü--b"
    text = (tmp_path / "mesh.obj").read_text(encoding="utf-8")
    assert f"\no {label}\n" in text and f"usemtl {label}\n" in text
    assert f"newmtl {label}\n" in (tmp_path / "mesh.mtl").read_text(encoding="utf-8")


def test_base_color_keeps_the_measured_albedo():
    normals = np.broadcast_to([0.0, 0.0, 1.0], (40, 40, 3))
    albedo = np.full((40, 40), 0.3)
    albedo[:, 20:] = 0.6
    inside = np.ones((40, 40), bool)
    kept = make_material(normals, albedo, inside).albedo
    np.testing.assert_allclose(kept[..., 0], albedo, atol=1e-12)
    stretched = make_material(normals, albedo, inside, stretch=True).albedo
    np.testing.assert_allclose(stretched[..., 0], albedo / 0.6, atol=1e-12)
    # Brighter than white cannot be written.
    np.testing.assert_allclose(
        make_material(normals, 4 * albedo, inside).albedo[..., 0], albedo / 0.6, atol=1e-12
    )
