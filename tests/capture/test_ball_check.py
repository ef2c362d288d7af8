"""A ball in the photographs checks a light file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from photostereo.capture import Capture, load
from photostereo.diagnosis.diagnose import diagnose
from photostereo.io.png import write_png
from photostereo_lab.scenes import dome_lights
from tests.ball_scenes.balls import shoot_table
from tests.ball_scenes.studio import Ball, Studio

LIGHTS = dome_lights(12, max_angle=55)


def turned(degrees: float) -> np.ndarray:
    angle = np.radians(degrees)
    turn = np.array(
        [[1, 0, 0], [0, np.cos(angle), -np.sin(angle)], [0, np.sin(angle), np.cos(angle)]]
    )
    return LIGHTS @ turn.T


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("table")
    shoot = shoot_table([Ball("black", 300, 60, 24)], scene="figure", lights=LIGHTS)
    for number, image in enumerate(shoot.images):
        write_png(place / f"{number:02d}.png", np.rint(image * 65535).astype(np.uint16))
    assert shoot.capture is not None
    write_png(place / "mask.png", shoot.capture.mask.astype(np.uint8) * 255)
    return place


def read(folder: Path, lights: np.ndarray) -> Capture:
    lines = [",".join(map(str, row)) for row in lights]
    (folder / "lights.csv").write_text("\n".join(["x,y,z", *lines]))
    return load(folder)


def test_a_right_light_file_is_confirmed(folder: Path) -> None:
    capture = read(folder, LIGHTS)
    assert capture.origin is not None and capture.origin.ball_check is not None
    check = capture.origin.ball_check
    assert check.agrees and not check.suspects and check.usual < 1.5
    assert capture.lights.expected_error.max() == pytest.approx(check.usual)
    assert not any(finding.is_mistake for finding in diagnose(capture).findings)


def test_a_turned_light_file_is_doubted(folder: Path) -> None:
    capture = read(folder, turned(20.0))
    assert capture.origin is not None and capture.origin.ball_check is not None
    assert (
        capture.origin.ball_check.usual == pytest.approx(19, abs=4)
        and not capture.origin.ball_check.agrees
    )
    effects = [finding.effect for finding in diagnose(capture).findings if finding.is_mistake]
    assert max(effects) > 12


def test_a_single_wrong_light_is_named(folder: Path) -> None:
    lights = LIGHTS.copy()
    lights[4] = turned(-25.0)[4]
    capture = read(folder, lights)
    assert capture.origin is not None and capture.origin.ball_check is not None
    check = capture.origin.ball_check
    assert (
        check.agrees and check.suspects == (4,) and check.finding.code == "ball-doubts-some-lights"
    )
    assert check.apart[4] == pytest.approx(np.degrees(np.arccos(lights[4] @ LIGHTS[4])), abs=1.5)


@pytest.mark.parametrize("scene", ["sphere", "vase"])
def test_a_round_object_is_no_ball(scene: str, tmp_path: Path) -> None:
    shoot = shoot_table([], size=(160, 240), scene=scene, lights=LIGHTS, studio=Studio(table=0.3))
    for number, image in enumerate(shoot.images):
        write_png(tmp_path / f"{number:02d}.png", np.rint(image * 65535).astype(np.uint16))
    assert shoot.capture is not None
    write_png(tmp_path / "mask.png", shoot.capture.mask.astype(np.uint8) * 255)
    capture = read(tmp_path, LIGHTS)
    assert capture.origin is not None and capture.origin.ball_check is None
