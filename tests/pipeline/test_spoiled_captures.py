"""What goes wrong with a phone, from files to the grade: an object on a table with a ball, spoiled in the usual ways."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import cv2
import numpy as np
import pytest

from photostereo.capture import Capture, load
from photostereo.core.findings import by_code
from photostereo.lights.exposure import describe_correction
from photostereo.pipeline.pipeline import Pipeline
from photostereo.runtime.arrays import CPU
from photostereo.solver import tiles
from tests.ball_scenes.phone import PhoneCapture, phone_scene, photograph_table

FRAME, COUNT = (240, 360), 12
#: A third of the photographs moved by 1.4 % of the width, and one by less.
MOVES = {1: (5.0, 0.0), 4: (5.0, 0.0), 7: (5.0, 0.0), 10: (5.0, 0.0), 8: (2.2, -1.5)}


@pytest.fixture(scope="module")
def scene() -> Capture:
    return phone_scene("figure", size=384, count=COUNT, rng=1)


@pytest.fixture(scope="module")
def table(scene: Capture) -> PhoneCapture:
    return photograph_table(scene, frame=FRAME, rng=2)


def write(
    table: PhoneCapture, folder: Path, moves: Mapping[int, tuple[float, float]] | None = None
) -> Path:
    for number, data in enumerate(table.files):
        if moves and number in moves:
            x, y = moves[number]
            picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
            onto = np.array([[1, 0, x], [0, 1, y]])
            picture = cv2.warpAffine(
                picture, onto, FRAME[::-1], flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
            )
            data = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 95])[1].tobytes()
        (folder / f"IMG_{number:02d}.jpg").write_bytes(data)
    return folder


def degrees(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.degrees(np.arccos(np.clip((a * b).sum(axis=-1), -1, 1)))


def test_a_moved_camera_does_not_turn_the_lights_of_the_ball(
    table: PhoneCapture, tmp_path: Path
) -> None:
    capture = load(write(table, tmp_path, MOVES))
    assert capture.origin is not None and capture.origin.alignment is not None
    assert np.flatnonzero(capture.origin.alignment.corrected.any(axis=1)).tolist() == sorted(MOVES)
    assert "camera-moved" in by_code(capture.origin.notes)
    assert "strengths-vary" not in by_code(capture.origin.notes)
    assert degrees(capture.lights.directions, table.lights).max() < 3


def test_a_drifting_camera_is_followed(table: PhoneCapture, tmp_path: Path) -> None:
    drift = {number: (0.6 * number, -0.3 * number) for number in range(COUNT)}
    capture = load(write(table, tmp_path, drift))
    assert capture.origin is not None and capture.origin.alignment is not None
    found = capture.origin.alignment.moves[:, :2]
    moved = np.array([drift[number] for number in range(COUNT)])
    assert np.abs(found - found.mean(axis=0) - moved + moved.mean(axis=0)).max() < 0.3
    assert "camera-moved" in by_code(capture.origin.notes)


def test_a_result_of_a_moved_camera_is_not_called_good(
    table: PhoneCapture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If movement is seen, but too uncertain to be undone."""
    monkeypatch.setattr("photostereo.photographs.alignment.alignment.AGREEING", 1.01)
    pipeline = Pipeline(write(table, tmp_path, MOVES), method="net", scale=0.5)
    assert pipeline.expected is not None and pipeline.expected.grade != "good"
    assert "displaced-photographs" in by_code(pipeline.expected.reasons)
    lights = pipeline.capture.lights
    off, moved = degrees(lights.directions, table.lights), sorted(MOVES)
    assert 0.5 < lights.expected_error[moved].mean() / off[moved].mean() < 2
    assert lights.expected_error[moved].min() > lights.expected_error.min() + 3


@pytest.mark.parametrize("name", ["lights.csv", "thing.lp"])
def test_a_falling_exposure_is_corrected_and_said(
    scene: Capture, name: str, tmp_path: Path
) -> None:
    gains = np.linspace(1, 0.55, COUNT)
    table = photograph_table(scene, frame=FRAME, gains=gains, rng=2)
    folder, between = write(table, tmp_path), "," if name.endswith("csv") else " "
    head = "file,x,y,z" if name.endswith("csv") else str(COUNT)
    lines = [
        between.join([f"IMG_{k:02d}.jpg", *map(str, light)]) for k, light in enumerate(table.lights)
    ]
    (folder / name).write_text("\n".join([head, *lines]))
    pipeline = Pipeline(folder, method="ls", mask="auto", scale=0.5)
    factors = pipeline.solution.strengths
    assert factors is not None
    found = np.asarray(factors) / np.mean(factors)
    assert np.abs(found / (gains / gains.mean()) - 1).max() < 0.12
    said = describe_correction(factors)
    assert said is not None and said.code == "exposure-corrected"
    assert said.values["span"] == pytest.approx(0.45, abs=0.06)


@pytest.mark.parametrize("last", [0.55, 1.0, 1.5])
def test_a_changing_exposure_is_said_if_a_ball_gives_the_lights(
    scene: Capture, last: float, tmp_path: Path
) -> None:
    gains = np.linspace(1, last, COUNT)
    table = photograph_table(scene, frame=FRAME, gains=gains, rng=2)
    pipeline = Pipeline(write(table, tmp_path), method="ls", surface=False, report=False)
    assert pipeline.capture.origin is not None
    said, varies = by_code(pipeline.capture.origin.notes), last != 1.0
    assert ("strengths-vary" in said) is varies
    if varies:  # shadows on the table darken low lights
        span = said["strengths-vary"].values["span"]
        assert span == pytest.approx(1 - gains.min() / gains.max(), abs=0.1)
    summary = pipeline.write(tmp_path / "out").summary
    assert summary["strengths"]["corrected"] is varies


@pytest.mark.parametrize("named", [True, False])
def test_a_photograph_with_the_lights_off_is_subtracted(
    scene: Capture, named: bool, tmp_path: Path
) -> None:
    folder = write(photograph_table(scene, frame=FRAME, ambient=0.25, rng=2), tmp_path)
    off = photograph_table(scene, frame=FRAME, ambient=0.25, room_only=True, rng=2).files[0]
    (folder / ("ambient.jpg" if named else "IMG_99.jpg")).write_bytes(off)
    capture = load(folder)
    assert capture.origin is not None and len(capture) == COUNT
    assert "ambient-subtracted" in by_code(capture.origin.notes)


@pytest.mark.parametrize(("shape", "looks"), [("vase", {"texture": "marble"}), ("figure", {})])
def test_light_of_the_room_is_estimated_from_the_shadows(
    shape: str, looks: dict[str, str], tmp_path: Path
) -> None:
    scene, images = phone_scene(shape, size=384, count=COUNT, reflectance="ggx", rng=4, **looks), []
    for share in (0.0, 0.25):
        (tmp_path / str(share)).mkdir()
        capture = load(
            write(photograph_table(scene, frame=FRAME, ambient=share, rng=2), tmp_path / str(share))
        )
        assert capture.origin is not None
        assert ("room-light" in by_code(capture.origin.notes)) is (share > 0)
        images.append(capture.images)
    dark, lit = images
    left = np.median(lit - dark) / np.median(dark[:, capture.mask])
    assert abs(left) < 0.1  # of a quarter


def test_copies_blurred_and_dark_photographs_are_left_out(
    table: PhoneCapture, tmp_path: Path
) -> None:
    folder = write(table, tmp_path)
    (folder / "IMG_03 (1).jpg").write_bytes(table.files[3])
    blurred = cv2.GaussianBlur(
        cv2.imdecode(np.frombuffer(table.files[5], np.uint8), cv2.IMREAD_COLOR), (0, 0), 5
    )
    cv2.imwrite(str(folder / "IMG_05.jpg"), blurred)
    cv2.imwrite(str(folder / "IMG_09.jpg"), np.full((*FRAME, 3), 2, np.uint8))
    capture = load(folder)
    assert capture.origin is not None
    faults = {fault.file: fault.reason for fault in capture.origin.faults}
    assert faults.pop("IMG_05.jpg") == "blurred" and faults.pop("IMG_09.jpg") in (
        "dark",
        "light-off",
    )
    assert faults == {"IMG_03 (1).jpg": "duplicate"}  # the copy, though its name comes first


@pytest.mark.parametrize(("method", "channels"), [("ls", 1), ("net", 3)])
def test_a_solve_in_bands_expects_the_same_error(
    table: PhoneCapture, method: str, channels: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(table, tmp_path)
    whole = Pipeline(folder, method=method)
    (height, width), model = whole.capture.frame, whole.method.model
    row = tiles.bytes_of_row(
        width, COUNT, channels, prior=0, colors=channels == 3, workspace=model.workspace
    )
    memory = tiles.OF_THE_PROGRAM + height * width * tiles.OF_A_RESULT + row * (80 + 2 * tiles.HALO)
    assert len(tiles.bands_of(whole.capture, whole.method, {}, CPU, memory)) > 1
    monkeypatch.setattr("photostereo.pipeline.budget.LOADED", 0)  # the photographs stay on disk
    bands = Pipeline(folder, method=method, memory=memory, surface=False, report=False)
    assert whole.expected is not None and bands.expected is not None
    assert bands.expected.degrees == pytest.approx(whole.expected.degrees, rel=0.3)
