"""Stages are computed once, and again only if something they depend on has changed."""

from __future__ import annotations

import hashlib
import json
import weakref

import numpy as np
import pytest

import photostereo as ps
from photostereo.capture import write_diligent
from photostereo.core.errors import OutputError, ParameterError
from photostereo.core.findings import by_code
from photostereo.io import camera, images
from photostereo.photographs import protocol
from photostereo.pipeline import write_results
from photostereo.report import page
from photostereo_lab.scenes import render_scene


@pytest.fixture
def folder(tmp_path):
    """A capture in color on disk."""
    return write_diligent(render_scene("vase", size=48, color=True), tmp_path / "vasePNG")


@pytest.fixture
def decoded(monkeypatch):
    """The names of the files that are decoded, in their order."""
    names: list[str] = []

    def counting(path, **options):
        names.append(path.name)
        return images.decode_image(path, **options)

    monkeypatch.setattr(protocol, "decode_image", counting)
    return names


def test_everything_is_computed_once(folder, decoded):
    pipeline = ps.Pipeline(folder, method="ls")
    stages = [
        pipeline.capture,
        pipeline.loaded,
        pipeline.diagnosis,
        pipeline.solution,
        pipeline.surface,
    ]
    again = [
        pipeline.capture,
        pipeline.loaded,
        pipeline.diagnosis,
        pipeline.solution,
        pipeline.surface,
    ]
    assert all(one is other for one, other in zip(stages, again, strict=True))
    assert sorted(decoded) == sorted(set(decoded))
    assert len(decoded) == 20


@pytest.mark.parametrize("lights", ["given", "estimated"])
def test_a_solve_reads_headers_and_photographs_once_and_renders_one_page(
    folder, decoded, tmp_path, monkeypatch, lights
):
    headers, pages = [], []
    honest_head, honest_page = camera.read_shot, page.render_page
    monkeypatch.setattr(
        protocol, "read_shot", lambda path: headers.append(path.name) or honest_head(path)
    )
    monkeypatch.setattr(
        page, "render_page", lambda *a, **k: pages.append(a) or honest_page(*a, **k)
    )
    if lights == "estimated":  # photographs alone: looked at for a ball, the mask and the lights
        for file in [
            *folder.glob("*.txt"),
            *folder.glob("*.mat"),
            *folder.glob("*.json"),
            folder / "mask.png",
        ]:
            file.unlink()
    pipeline = ps.Pipeline(folder, method="dlnet", parameters={"max_iter": 2})
    pipeline.write(tmp_path / "out")
    assert ("lights-estimated" in by_code(pipeline.capture.origin.notes)) == (lights == "estimated")
    assert sorted(headers) == sorted(decoded) == [f"{number:03d}.png" for number in range(1, 21)]
    assert len(pages) == 1


def test_another_mask_does_not_read_the_photographs_again(folder, decoded):
    pipeline = ps.Pipeline(folder, method="ls")
    first = pipeline.solution
    decoded.clear()
    mask = np.zeros((48, 48), dtype=bool)
    mask[20:30, 20:30] = True
    pipeline.configure(mask=mask)
    assert np.array_equal(pipeline.solution.mask, mask)
    assert pipeline.solution.albedo.shape == first.albedo.shape == (48, 48, 3)
    assert not decoded
    np.testing.assert_allclose(pipeline.solution.normals[mask], first.normals[mask], atol=1e-5)
    assert np.array_equal(
        pipeline.solution.normals, ps.solve(ps.load(folder, mask=mask), "ls").normals
    )


def test_another_method_keeps_the_photographs_and_the_diagnosis(folder, decoded):
    pipeline = ps.Pipeline(folder, method="ls", color=True)
    capture, diagnosis, first = pipeline.loaded, pipeline.diagnosis, pipeline.solution
    decoded.clear()
    pipeline.configure(method="pls", parameters={"p": 3})
    assert pipeline.solution is not first and pipeline.solution.parameters["p"] == 3
    assert pipeline.diagnosis is diagnosis and pipeline.loaded is capture and not decoded
    # Parameters belong to their method.
    assert pipeline.configure(method="ls").settings.parameters == {}
    pipeline.configure(seed=4)
    assert pipeline.settings.method == "ls"


def test_photographs_are_released_once_the_page_has_them(folder, tmp_path, monkeypatch):
    pipeline, alive = ps.Pipeline(folder, method="ls"), []
    watched = weakref.ref(pipeline.loaded)
    honest = write_results.shown_on_page
    monkeypatch.setattr(
        write_results, "shown_on_page", lambda surface: alive.append(watched()) or honest(surface)
    )
    page = pipeline.write(tmp_path / "out").folder / "report.html"
    assert alive == [None]
    assert page.read_text(encoding="utf-8").count('"words"') == 20  # it shows them nevertheless
    assert pipeline.loaded.in_memory


def test_settings_of_later_stages_keep_the_earlier_ones(folder):
    pipeline = ps.Pipeline(folder, method="ls")
    solution, surface = pipeline.solution, pipeline.surface
    pipeline.configure(report=False, flip_y=True, pixel_size="0.1mm")
    assert pipeline.solution is solution and pipeline.surface is surface
    pipeline.configure(surface_method="simchony")
    assert pipeline.solution is solution and pipeline.surface is not surface
    pipeline.configure(images=8)
    assert len(pipeline.capture) == 8 and pipeline.solution is not solution


def test_results_are_those_of_the_functions(folder, tmp_path):
    written = ps.Pipeline(folder, method="pls", report=False).write(tmp_path / "out")
    expected = ps.solve(ps.load(folder), "pls")
    assert np.array_equal(ps.Reconstruction.load(written.folder).normals, expected.normals)
    surface = ps.integrate(expected.normals, expected.mask)
    assert np.array_equal(
        np.load(tmp_path / "out" / "depth.npy"), surface.depth.astype(np.float32), equal_nan=True
    )


def test_files_are_hashed_while_they_are_read(folder, tmp_path, monkeypatch):
    """The digests of the summary are those of the files, and no photograph is opened for them."""
    monkeypatch.setattr(
        write_results, "file_digest", lambda path: pytest.fail(f"{path} is read again")
    )
    written = ps.Pipeline(folder, method="ls", surface=False, report=False).write(tmp_path / "out")
    photographs = written.summary["provenance"]["photographs"]
    assert len(photographs) == 20
    for facts in photographs:
        assert facts["sha256"] == hashlib.sha256((folder / facts["file"]).read_bytes()).hexdigest()
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == written.summary


def test_a_capture_in_memory_goes_the_same_way(tmp_path):
    scene = render_scene("sphere", size=32)
    written = ps.Pipeline(scene, method="ls", surface=False, report=False).write(tmp_path / "out")
    assert "provenance" not in written.summary
    assert np.array_equal(np.load(tmp_path / "out" / "normals.npy"), ps.solve(scene, "ls").normals)


def test_what_is_wrong_is_said_before_the_work(folder, tmp_path, decoded):
    with pytest.raises(ParameterError) as caught:
        ps.Pipeline(folder, metod="ls")
    assert caught.value.code == "unknown-setting"
    with pytest.raises(ParameterError):
        ps.Pipeline(folder, method="lss").write(tmp_path / "out")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").touch()
    with pytest.raises(OutputError):
        ps.Pipeline(folder).write(tmp_path / "out")
    assert not decoded


def test_parameters_of_a_method_are_not_settings(folder):
    """Both have a seed: that of the settings chooses photographs, that of a dictionary its first atoms."""
    with pytest.raises(ParameterError) as caught:
        ps.Pipeline(folder, method="pls", p=3)
    assert (caught.value.code, caught.value.values) == ("parameter-not-a-setting", {"name": "p"})
    with pytest.raises(ParameterError) as caught:
        ps.Pipeline(folder, method="dlnet", seed=5)
    assert caught.value.code == "seed-without-images"
    pipeline = ps.Pipeline(
        folder, method="dlnv", images=8, seed=5, parameters={"seed": 3, "max_iter": 2}
    )
    assert len(pipeline.capture) == 8
    assert pipeline.solution.parameters["seed"] == 3 and pipeline.settings.seed == 5
    assert pipeline.configure(method="ls").settings.parameters == {}


@pytest.mark.parametrize("method", ["ls", "auto"])
def test_a_folder_that_exists_is_reported_before_photographs_are_decoded(
    folder, tmp_path, decoded, monkeypatch, method
):
    monkeypatch.chdir(tmp_path)
    name = "vase-ls" if method == "ls" else "vase-dlnet"
    (tmp_path / name).mkdir()
    (tmp_path / name / "normals.npy").touch()
    with pytest.raises(OutputError) as caught:
        ps.Pipeline(folder, method=method).write()
    assert caught.value.file.name == name
    assert not decoded


def test_a_path_in_the_place_of_a_capture_is_explained(folder):
    with pytest.raises(ParameterError) as caught:
        ps.solve(str(folder))
    assert caught.value.code == "needs-a-capture"


def test_the_movement_of_the_camera_is_estimated_once(folder):
    pipeline = ps.Pipeline(folder, method="ls")
    assert pipeline.alignment.is_still
    assert pipeline.configure(method="pls").alignment is pipeline.alignment


def test_the_scale_counts_for_lights_in_millimeters(folder):
    """As for ``load``: the size is that of a pixel of the capture."""
    positions = 300 * ps.load(folder).lights.directions
    rows = [f"{number:03d}.png,{x},{y},{z}" for number, (x, y, z) in enumerate(positions, 1)]
    (folder / "near.csv").write_text("\n".join(["file,mm_x,mm_y,mm_z", *rows]))
    options = {"lights": folder / "near.csv", "pixel_size": "1mm", "scale": 0.5}
    found = ps.Pipeline(folder, method="ls", **options).capture.lights
    assert found.is_near
    np.testing.assert_array_equal(found.positions, ps.load(folder, **options).lights.positions)
