"""What files say about themselves: resolution and conventions, read by other libraries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

from photostereo.core.errors import ParameterError
from photostereo.core.units import PixelSize
from photostereo.results import Job, SurfaceChoice, write_surface
from photostereo.results.export import export_result
from photostereo.results.maps import write_normal_png
from photostereo.solver.solve import solve
from photostereo_lab.scenes import render_scene

from .conftest import as_result


@pytest.fixture(scope="module")
def written(bumps, tmp_path_factory) -> tuple[Path, dict]:
    pytest.importorskip("OpenEXR", reason="the extra exr is not installed")
    folder = tmp_path_factory.mktemp("surface")
    formats = ("ply", "stl", "obj", "glb")
    result = as_result(bumps.normals, bumps.mask, bumps.albedo)
    choice = SurfaceChoice("poisson", formats, "0.1mm", exr=True)
    facts = write_surface(Job(folder, result, choice))
    return folder, facts


def test_every_file_is_told(written) -> None:
    folder, facts = written
    assert facts["files"] == sorted(path.name for path in folder.iterdir())
    assert set(facts["files"]) == set(facts["conventions"])
    assert (facts["pixel_size"], facts["unit"]) == (0.1, "mm")
    assert facts["textured"]["triangles"] == facts["triangles"] < 50_000, (
        "a small surface stays whole"
    )


def test_tiff_has_resolution_and_words(written) -> None:
    with tifffile.TiffFile(written[0] / "depth.tiff") as file:
        tags = file.pages[0].tags
        assert tags["ResolutionUnit"].value == 3  # centimeters
        for name in ("XResolution", "YResolution"):
            top, bottom = tags[name].value
            assert top / bottom == pytest.approx(100.0)
        assert "mm" in tags["ImageDescription"].value
    with Image.open(written[0] / "depth.tiff") as picture:
        assert picture.mode == "F"
        assert picture.info["dpi"][0] == pytest.approx(254.0)


def test_exr_has_resolution_and_words(written) -> None:
    import OpenEXR

    for name, word in (("depth.exr", "Heights in mm"), ("normals.exr", "OpenGL")):
        with OpenEXR.File(str(written[0] / name)) as file:
            header = file.header()
            assert header["xDensity"] == pytest.approx(254.0)
            assert word in header["comments"]


def test_png_has_resolution_and_words(written, bumps, tmp_path: Path) -> None:
    normals = tmp_path / "normals.png"
    write_normal_png(normals, bumps.normals, bumps.mask, size=PixelSize.of("0.1mm"))
    for path, word in ((written[0] / "depth.png", "low ="), (normals, "green up (OpenGL)")):
        with Image.open(path) as picture:
            picture.load()
            assert picture.info["dpi"][0] == pytest.approx(254.0)
            assert word in picture.info["Description"]


def test_unknown_size_is_not_invented(bumps, tmp_path: Path) -> None:
    result = as_result(bumps.normals, bumps.mask, bumps.albedo)
    facts = write_surface(Job(tmp_path, result, SurfaceChoice(formats=())))
    assert facts["unit"] == "pixel"
    assert "pixels" in facts["conventions"]["depth.tiff"]
    with tifffile.TiffFile(tmp_path / "depth.tiff") as file:
        assert file.pages[0].tags["ResolutionUnit"].value == 1  # none
    with Image.open(tmp_path / "depth.png") as picture:
        assert "dpi" not in picture.info
    assert np.array_equal(
        tifffile.imread(tmp_path / "depth.tiff"), np.load(tmp_path / "depth.npy"), equal_nan=True
    )
    assert PixelSize.of(None).meters == 0.001


@pytest.mark.parametrize("size", ["1nm", "1000m"])
def test_extreme_pixel_sizes_fit_into_every_format(tmp_path, size):
    pytest.importorskip("OpenEXR", reason="the extra exr is not installed")
    scene = render_scene("sphere", size=16)
    kinds = ["glb", "obj", "ply", "stl", "tiff", "exr", "ptm", "relight"]
    facts = export_result(tmp_path, solve(scene, "ls"), kinds, pixel_size=size)
    assert {Path(name).suffix for name in facts["files"]} >= {
        ".glb",
        ".obj",
        ".ply",
        ".stl",
        ".tiff",
        ".exr",
        ".ptm",
    }


@pytest.mark.parametrize("size", ["1e-8", "1e-300mm", "1e8mm", -1.0, 0, float("nan"), float("inf")])
def test_impossible_pixel_sizes_are_refused_before_the_work(size):
    with pytest.raises(ParameterError):
        PixelSize.of(size)
