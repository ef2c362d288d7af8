"""A helper that fails never ends the work: the result is written, and says so."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from photostereo.core.errors import PhotostereoError
from photostereo.io.png import write_png
from photostereo.pipeline.pipeline import Pipeline
from photostereo_lab.scenes import dome_lights, render_scene

LIGHTS = dome_lights(8, max_angle=55)
HELPERS = [
    "photostereo.capture.examine.find_brackets",
    "photostereo.capture.examine.find_duplicates",
    "photostereo.capture.examine.find_dark",
    "photostereo.capture.examine.find_blurred",
    "photostereo.capture.examine.find_alignment",
    "photostereo.capture.assemble.check_lights",
    "photostereo.capture.assemble.estimate_room_light",
    "photostereo.diagnosis.diagnose.find_mistakes",
    "photostereo.diagnosis.diagnose.relative_strengths",
    "photostereo.diagnosis.diagnose.find_near_lights",
    "photostereo.diagnosis.diagnose.unequal_photographs",
    "photostereo.diagnosis.diagnose.advise",
    "photostereo.diagnosis.expected_error.turn_of_lights",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place: Path = tmp_path_factory.mktemp("thing")
    scene = render_scene("figure", size=80, lights=LIGHTS, texture="marble")
    for number, image in enumerate(scene.images):
        stored = np.rint(np.clip(0.6 * image + 0.05, 0, 1) * 65535).astype(np.uint16)
        write_png(place / f"{number}.png", stored)
    rows = [",".join(map(str, light)) for light in LIGHTS]
    (place / "lights.csv").write_text("\n".join(["x,y,z", *rows]))
    return place


@pytest.mark.parametrize("error", [cv2.error("SHRT_MAX"), np.linalg.LinAlgError("Singular matrix")])
@pytest.mark.parametrize("helper", HELPERS)
def test_a_helper_that_fails_is_a_finding(
    folder: Path, helper: str, error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(helper, fail)
    out = tmp_path / "out"
    # The learned model expects an error of its own: no second solve.
    pipeline = Pipeline(folder, method="net", surface=False, report=False)
    pipeline.write(out)
    assert np.load(out / "normals.npy").shape == (80, 80, 3)
    summary = json.loads((out / "summary.json").read_text())
    assert pipeline.expected is not None and pipeline.capture.origin is not None
    findings = [
        *pipeline.capture.origin.notes,
        *pipeline.diagnosis.findings,
        *pipeline.expected.reasons,
    ]
    (failure,) = {finding for finding in findings if finding.code == "check-failed"}
    assert type(error).__name__ in failure.values["error"]
    if "capture" in helper:
        assert [fact["code"] for fact in summary["failed_checks"]] == ["check-failed"]


def test_the_mask_is_then_found_from_brightness_and_doubtful(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise IndexError("empty")

    monkeypatch.setattr("photostereo.masks.automatic.find_object", fail)
    capture = Pipeline(folder, method="ls", mask="auto").capture
    assert 0 < capture.mask.mean() < 1 and capture.origin is not None
    assert "mask-doubtful" in {note.code for note in capture.origin.notes}


def test_a_header_that_cannot_be_read_is_damaged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise IndexError("beyond the end")

    monkeypatch.setattr("photostereo.photographs.protocol.read_shot", fail)
    capture = Pipeline(folder, method="ls").capture
    assert capture.origin is not None
    assert "exif-damaged" in {note.code for note in capture.origin.notes}


def test_what_the_user_can_mend_still_ends_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise PhotostereoError("the user can mend this", code="mendable")

    monkeypatch.setattr("photostereo.capture.examine.find_blurred", fail)
    with pytest.raises(PhotostereoError) as caught:
        Pipeline(folder, method="ls").capture  # noqa: B018
    assert caught.value.code == "mendable"
