"""Photographs that viewers turn are turned, and so are masks; results and albedo follow."""

from __future__ import annotations

import json

import cv2
import numpy as np
import pytest
from PIL import Image, ImageOps

from photostereo.capture import load
from photostereo.capture.loading import read_lazily
from photostereo.capture.options import ReadOptions
from photostereo.cli.root import app
from photostereo.core.conventions import srgb_from_linear
from photostereo.core.errors import CaptureError
from photostereo.core.findings import by_code
from photostereo.diagnosis.metrics import angular_error
from photostereo.photographs.develop import upright
from photostereo.pipeline.pipeline import Pipeline
from photostereo_lab.scenes import dome_lights, render_scene

LIGHTS = dome_lights(8)


@pytest.fixture(scope="module")
def pictures() -> np.ndarray:
    """(d, 60, 80, 3) of eight bits."""
    scene = render_scene("vase", size=(60, 80), lights=LIGHTS, color=True, texture="glaze")
    return np.rint(np.clip(0.5 * scene.images, 0, 1) * 255).astype(np.uint8)


def write(folder, pictures, orientation=1, suffix=".png"):
    folder.mkdir()
    for number, picture in enumerate(pictures):
        exif = Image.Exif()
        exif[0x0112] = orientation
        Image.fromarray(picture).save(folder / f"{number}{suffix}", exif=exif)
    (folder / "lights.csv").write_text(
        "x,y,z\n" + "\n".join(",".join(map(str, row)) for row in LIGHTS)
    )
    return folder


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_stand_as_viewers_show_them(orientation):
    picture = Image.fromarray(np.arange(6, dtype=np.uint8).reshape(2, 3))
    picture.getexif()[0x0112] = orientation
    expected = np.asarray(ImageOps.exif_transpose(picture))
    assert np.array_equal(upright(np.asarray(picture), orientation), expected)


@pytest.mark.parametrize("mask_lies", [False, True])
def test_mask_and_results_follow(tmp_path, pictures, mask_lies):
    mask = np.zeros((60, 80), np.uint8)
    mask[5:50, 10:40] = 255
    turned = upright(mask, 6)
    folder = write(tmp_path / "phone", pictures, 6)
    cv2.imwrite(str(folder / "mask.png"), mask if mask_lies else turned)
    capture = load(folder, color=True)
    assert capture.frame == (80, 60) and np.array_equal(capture.mask, turned > 0)
    plain = load(write(tmp_path / "plain", pictures), color=True)
    assert np.array_equal(capture.images[3], upright(plain.images[3], 6))
    assert "orientation-undone" in by_code(capture.origin.notes)


def test_every_result_has_a_mask_to_give_back_and_colors(tmp_path, pictures):
    folder = write(tmp_path / "thing", pictures)
    pipeline = Pipeline(
        folder, method="ls", mask="bright", crop=(4, 2, 70, 50), surface=False, report=False
    )
    out = pipeline.write(tmp_path / "out").folder
    assert pipeline.solution.albedo.ndim == 3  # though least squares looks at gray values
    in_color = Pipeline(
        folder, method="ls", mask="bright", crop=(4, 2, 70, 50), color=True
    ).solution
    assert np.abs(pipeline.solution.albedo - in_color.albedo).max() < 1e-4
    mask = cv2.imread(str(out / "mask.png"), cv2.IMREAD_UNCHANGED)
    assert mask.shape == (60, 80)
    again = load(folder, mask=out / "mask.png", crop=(4, 2, 70, 50))
    assert np.array_equal(again.mask, pipeline.mask)
    assert json.loads((out / "summary.json").read_text())["photographs"]["left_out"] == []


def test_the_mask_command_writes_one_that_is_used(tmp_path, pictures, capsys):
    folder = write(tmp_path / "thing", pictures)
    app(["mask", str(folder)], standalone_mode=False)
    assert "mask.png" in capsys.readouterr().out
    assert not load(folder).mask.all()


def test_photographs_are_called_colored_whatever_the_method_looks_at(tmp_path, pictures, capsys):
    folder = write(tmp_path / "thing", pictures)
    words = ["--method", "ls", "--no-surface", "--no-report", "--out", str(tmp_path / "out")]
    app(["solve", str(folder), *words], standalone_mode=False)
    assert "80 × 60 pixels, in color" in capsys.readouterr().out


def test_info_answers_without_lights(tmp_path, pictures, capsys):
    folder = write(tmp_path / "thing", pictures)
    (folder / "lights.csv").write_text("x,y,z\n0,0,1\n")
    app(["info", str(folder), "--json"], standalone_mode=False)
    facts = json.loads(capsys.readouterr().out)
    assert (facts["photographs"], facts["channels"]) == (8, "RGB")
    assert facts["problem"]["code"] == "lights-count"


def test_azimuth_and_elevation(tmp_path, pictures):
    folder = write(tmp_path / "thing", pictures)
    x, y, z = LIGHTS.T
    angles = np.degrees(np.stack([np.arctan2(y, x), np.arcsin(z)], axis=1))
    rows = [f"{k}.png,{a},{e}" for k, (a, e) in enumerate(angles)]
    (folder / "lights.csv").write_text("\n".join(["file,azimuth,elevation", *rows]))
    np.testing.assert_allclose(load(folder).lights.directions, LIGHTS, atol=1e-6)


def test_heic(tmp_path, pictures):
    heif = pytest.importorskip("pillow_heif")
    linear, folder = write(tmp_path / "linear", pictures), write(tmp_path / "thing", pictures)
    for number, picture in enumerate(
        np.rint(255 * srgb_from_linear(pictures / 255)).astype(np.uint8)
    ):
        (folder / f"{number}.png").unlink()
        heif.from_pillow(Image.fromarray(picture)).save(folder / f"{number}.heic", quality=95)
    capture = read_lazily(folder, ReadOptions(color=True))
    assert capture.is_color and capture.frame == (60, 80)
    assert "srgb-undone" in by_code(capture.origin.notes)
    true, found = (Pipeline(place, method="ls").solution for place in (linear, folder))
    seen = pictures.max(axis=(0, 3)) > 60
    assert angular_error(found.normals, true.normals, seen)[seen].mean() < 1.5
    (folder / "3.heic").write_bytes((folder / "3.heic").read_bytes()[:200])
    with pytest.raises(CaptureError) as caught:
        load(folder, strict=True)
    assert caught.value.code in ("damaged-image", "unreadable-file")
