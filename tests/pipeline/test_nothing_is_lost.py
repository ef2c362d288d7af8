"""Once a capture is solved, its result is written whatever else fails."""

from __future__ import annotations

import json

import numpy as np
import pytest

import photostereo as ps
from photostereo.capture import write_diligent
from photostereo.core.errors import CaptureError
from photostereo.pipeline import pipeline as pipeline_module
from photostereo.pipeline import write_results
from photostereo.report import page
from photostereo.results import surface_files
from photostereo_lab.scenes import dome_lights, render_scene

#: Parts of the output: where the function is that makes it, what the failure is called, and a file that is then missing.
PARTS = {
    "surface": (pipeline_module, "integrate", "surface", "depth.npy"),
    "meshes": (surface_files, "write_surface", "depth and meshes", "mesh.ply"),
    "pictures": (write_results, "write_pictures", "pictures", "normals.png"),
    "page": (page, "prepare_report", "page", "report.html"),
    "evidence": (page, "capture_evidence", "contact sheet", None),
    "expected": (pipeline_module, "assess", "expected error", None),
    "provenance": (write_results, "provenance", "provenance", None),
    "mask": (write_results, "write_png", "description of the photographs", "mask.png"),
    "libraries": (write_results, "import_module", "loading of libraries", None),
}
#: Files of other parts that are missing as well.
DEPENDING = {"surface": {"mesh.ply"}, "meshes": {"depth.npy"}}
#: Files that every result has.
ALWAYS = {"normals.npy", "albedo.npy", "mask.npy", "summary.json"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    scene = render_scene("vase", size=32, lights=dome_lights(6), color=True)
    return write_diligent(scene, tmp_path_factory.mktemp("scene") / "vasePNG")


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_fails_is_named_and_the_rest_is_written(folder, tmp_path, monkeypatch, part):
    module, function, name, file = PARTS[part]
    errors = [RuntimeError("nobody foresaw this"), MemoryError(), CaptureError("x", code="x")]
    error = errors[sorted(PARTS).index(part) % len(errors)]

    def fail(*values: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(module, function, fail)
    written = ps.Pipeline(folder, method="ls").write(tmp_path / "out")
    files = {path.name for path in written.folder.iterdir()}
    others = {entry[3] for key, entry in PARTS.items() if key != part} - {None}
    others -= DEPENDING.get(part, set())
    assert ALWAYS | others <= files and file not in files
    summary = json.loads((written.folder / "summary.json").read_text())
    (failure,) = summary["missing_parts"]
    assert failure["code"] == "part-missing" and failure["values"]["part"] == name
    assert type(error).__name__ in failure["values"]["error"]
    assert [finding.code for finding in written.warnings] == ["part-missing"]
    assert set(summary["conventions"]) <= files
    assert np.array_equal(
        ps.Reconstruction.load(written.folder).normals, ps.solve(ps.load(folder), "ls").normals
    )


def test_without_arrays_there_is_no_result(folder, tmp_path, monkeypatch):
    def fail(*values: object) -> None:
        raise RuntimeError("the disk is gone")

    monkeypatch.setattr(ps.Reconstruction, "save", fail)
    with pytest.raises(RuntimeError):
        ps.Pipeline(folder, method="ls").write(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_complete_result_has_no_failures(folder, tmp_path):
    written = ps.Pipeline(folder, method="ls").write(tmp_path / "out")
    assert "missing_parts" not in written.summary and written.warnings == ()
