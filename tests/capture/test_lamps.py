"""Folders of photographs without a light file: the lamps are found from a ball."""

from __future__ import annotations

import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

import photostereo as ps
from photostereo.capture.layouts.folder import find_ball_series
from photostereo.capture.loading import read_lazily
from photostereo.capture.options import ReadOptions
from photostereo.cli import app
from photostereo.core.errors import CaptureError, ParameterError
from photostereo.core.findings import by_code
from photostereo.lights.files.reading import read_lights
from photostereo_lab.scenes import dome_lights

from ..ball_scenes.balls import Shoot, shoot_table
from ..ball_scenes.studio import Ball, Studio


def angles(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.degrees(np.arctan2(np.linalg.norm(np.cross(a, b), axis=1), (a * b).sum(axis=1)))


def write(shoot: Shoot, folder: Path, stem: str = "shot") -> Path:
    folder.mkdir(parents=True)
    for number, image in enumerate(shoot.images, start=1):
        stored = np.rint(image * 65535).astype(np.uint16)
        (folder / f"{stem}{number}.png").write_bytes(cv2.imencode(".png", stored)[1].tobytes())
    return folder


@pytest.fixture(scope="module")
def shoot() -> Shoot:
    return shoot_table(
        [Ball("black", 195.3, 60.7, 34)],
        size=(130, 240),
        scene="vase",
        lights=dome_lights(10, max_angle=45),
        strengths=np.linspace(0.7, 1.3, 10),
        studio=Studio(table=0.03, second=0.0, window=0.3),
    )


@pytest.fixture(scope="module")
def folder(shoot: Shoot, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(shoot, tmp_path_factory.mktemp("captures") / "vase")


def test_a_folder_with_a_ball_is_a_capture(folder: Path, shoot: Shoot) -> None:
    capture = ps.load(folder)
    assert angles(capture.lights.directions, shoot.lights).mean() < 0.8
    calibration = capture.origin.calibration
    assert calibration is not None and calibration.in_frame
    assert np.abs(calibration.lights.strengths / shoot.strengths - 1).max() < 0.05
    assert not (capture.mask & calibration.balls_mask()).any()
    overlap = (capture.mask & shoot.capture.mask).sum() / (capture.mask | shoot.capture.mask).sum()
    assert overlap > 0.9
    assert "lights-from-ball" in by_code(capture.origin.notes)


def test_a_series_of_its_own_beside_the_object(folder: Path, shoot: Shoot, tmp_path: Path) -> None:
    ball = shoot_table(
        [Ball("mirror", 70.2, 66.4, 45)],
        size=(130, 140),
        scene=None,
        lights=shoot.lights,
        studio=Studio(table=0.03),
    )
    thing = write(
        shoot_table([], size=(130, 130), scene="vase", lights=shoot.lights), tmp_path / "thing", "t"
    )
    write(ball, tmp_path / "chrome", "b")
    found = ps.calibrate(thing)
    assert not found.in_frame and found.files[0] == "t1.png"
    assert angles(found.lights.directions, shoot.lights).mean() < 0.6
    shutil.move(tmp_path / "chrome", tmp_path / "elsewhere")
    assert set(ps.load(thing, align="off").lights.source) == {"estimated"}
    again = ps.load(thing, ball=tmp_path / "elsewhere")
    np.testing.assert_allclose(again.lights.directions, found.lights.directions, atol=1e-6)
    np.testing.assert_allclose(
        ps.load(thing, lights=tmp_path / "elsewhere").lights.directions, again.lights.directions
    )
    (tmp_path / "elsewhere" / "b3.png").unlink()
    with pytest.raises(
        CaptureError, check=lambda e: e.code == "ball-series-count" and e.file.name == "elsewhere"
    ):
        ps.load(thing, ball=tmp_path / "elsewhere")


def test_series_that_disagree_are_doubted(shoot: Shoot, tmp_path: Path) -> None:
    thing = write(
        shoot_table([], size=(130, 130), scene="vase", lights=shoot.lights), tmp_path / "thing", "t"
    )
    for name, lights in (("chrome", shoot.lights), ("mirror", np.roll(shoot.lights, 1, axis=0))):
        ball = [Ball("mirror", 70.2, 66.4, 45)]
        series = shoot_table(
            ball, size=(130, 140), scene=None, lights=lights, studio=Studio(table=0.03)
        )
        write(series, tmp_path / name, "b")
        found = ps.calibrate(thing)
        assert ("balls-disagree" in by_code(found.warnings)) is (name == "mirror")
    off = angles(found.lights.directions, shoot.lights)
    assert (
        found.lights.source[0] == "shiny ball at 70,66 in chrome and shiny ball at 70,66 in mirror"
    )
    assert (found.lights.expected_error > 0.5 * off).all() and len(found.suspects) > 5


@pytest.mark.parametrize("name", ["Kugel", "b"])
def test_a_folder_of_a_ball_is_known_by_its_name_or_by_what_it_shows(
    name: str, shoot: Shoot, tmp_path: Path
) -> None:
    plain = shoot_table([], size=(130, 130), scene="vase", lights=shoot.lights)
    thing = write(plain, tmp_path / "thing", "t")
    ball = [Ball("mirror", 70.2, 66.4, 45)]
    series = shoot_table(
        ball, size=(130, 140), scene=None, lights=shoot.lights, studio=Studio(table=0.03)
    )
    write(series, thing / name, "b")
    found = ps.calibrate(thing)
    assert set(found.lights.source) == {f"shiny ball at 70,66 in {name}"}
    assert angles(found.lights.directions, shoot.lights).mean() < 1.0
    # A photograph is missing: the folder cannot be used, and is not ignored in silence.
    (thing / name / "b3.png").unlink()
    options = ReadOptions(align="off", mask="full")
    notes = by_code(read_lazily(thing, options, need_lights=False).origin.notes)
    assert ("ball-folder-unused" in notes) is (name == "Kugel")


def test_scans_side_by_side_are_not_balls_of_each_other(folder: Path, tmp_path: Path) -> None:
    for name in ("s1", "s2", "_3"):
        shutil.copytree(folder, tmp_path / name)
    photographs = sorted((tmp_path / "s1").glob("*.png"))
    assert find_ball_series(tmp_path / "s1", photographs) == []


def test_command_writes_a_file_that_is_read_again(
    folder: Path, shoot: Shoot, tmp_path: Path
) -> None:
    copy = shutil.copytree(folder, tmp_path / "vase")
    result = CliRunner().invoke(app, ["lights", str(copy)])
    assert result.exit_code == 0, result.output
    table = read_lights(copy / "lights.csv", count=10)
    assert table.files[0] == "shot1.png" and (tmp_path / "vase-lights.png").stat().st_size > 1000
    assert angles(table.vectors, shoot.lights).mean() < 0.8
    capture = ps.load(copy)
    assert capture.origin.layout == "folder"
    other = shutil.copytree(folder, tmp_path / "other")
    np.testing.assert_allclose(
        ps.load(other, lights=copy).lights.directions, capture.lights.directions
    )
    result = CliRunner().invoke(app, ["lights", str(copy)])
    assert result.exception.code == "output-exists"


def test_the_ball_leaves_the_mask_when_the_light_file_is_read_back(
    folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(folder, tmp_path / "vase")
    calibrated = ps.load(copy)
    assert CliRunner().invoke(app, ["lights", str(copy), "--quiet"]).exit_code == 0
    again = ps.load(copy)
    assert again.origin.calibration is None
    balls = calibrated.origin.calibration.balls_mask()
    assert not (again.mask & balls).any() and not ps.load(copy, mask="full").mask[balls].any()
    overlap = (again.mask & calibrated.mask).sum() / (again.mask | calibrated.mask).sum()
    assert overlap > 0.97
    other = shutil.copytree(
        folder, tmp_path / "other"
    )  # where nobody knows that its ball stands there, too
    assert ps.load(other, lights=copy).mask.all()


def test_the_circle_may_be_given(folder: Path, shoot: Shoot) -> None:
    found = ps.calibrate(folder, circle=(195.3, 60.7, 34))
    assert angles(found.lights.directions, shoot.lights).mean() < 0.6
    result = CliRunner().invoke(app, ["lights", str(folder), "--circle", "12,twelve"])
    assert isinstance(result.exception, ParameterError) and result.exception.code == "not-numbers"


@pytest.mark.data
def test_washington(data_dir: Path) -> None:
    reference = read_lights(data_dir / "uw" / "lights.txt").vectors
    capture = ps.load(data_dir / "uw" / "cat")
    assert angles(capture.lights.directions, reference).max() < 1.0
    calibration = capture.origin.calibration
    assert (
        calibration.lights.strengths_source == "matte ball"
        and np.abs(calibration.lights.strengths - 1).max() < 0.05
    )


@pytest.mark.data
def test_washington_without_its_mask(data_dir: Path, tmp_path: Path) -> None:
    """The outline that the photographs show is a pixel from the mask behind the reference: one degree."""
    (tmp_path / "chrome").mkdir()
    for file in (data_dir / "uw" / "chrome").glob("chrome.*.png"):
        if "mask" not in file.name:
            (tmp_path / "chrome" / file.name).symlink_to(file)
    found = ps.calibrate(tmp_path / "chrome")
    error = angles(found.lights.directions, read_lights(data_dir / "uw" / "lights.txt").vectors)
    assert error.mean() < 1.0 and error.max() < 1.2


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(("name", "probe"), [("cat", "LightProbe-1"), ("hippo", "LightProbe-2")])
def test_harvard(data_dir: Path, name: str, probe: str) -> None:
    place = data_dir / "harvard" / name
    found = ps.calibrate(place, ball=place / probe)
    reference = np.loadtxt(place / probe / "light_directions.txt").T
    assert angles(found.lights.directions, reference).mean() < 1.5
