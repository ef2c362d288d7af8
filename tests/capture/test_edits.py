"""Corrections beside the photographs are applied by everything that reads a capture, and by nothing if they are bad."""

from __future__ import annotations

import json

import cv2
import numpy as np
import pytest

import photostereo as ps
from photostereo.capture.edits import EDITS_FILE, Edits, read_edits, write_edits
from photostereo.core.errors import CaptureError
from photostereo.core.findings import by_code


def paint_mask(folder, name="photostereo-mask.png"):
    mask = np.zeros((12, 9), np.uint8)
    mask[3:9, 2:7] = 255
    (folder / name).write_bytes(cv2.imencode(".png", mask)[1].tobytes())
    return mask > 0


def test_everything_is_applied_by_python_and_by_the_pipeline(folder, shots):
    mask = paint_mask(folder)
    write_edits(
        folder,
        Edits(
            "photostereo-mask.png", leave_out=("shot2.png",), moved_lights={"shot3.png": (0, 3, 4)}
        ),
    )
    left = np.delete(shots.lights, 1, axis=0)
    left[1] = (0, 0.6, 0.8)
    for capture in (ps.load(folder), ps.Pipeline(folder, method="ls").capture):
        assert len(capture) == 10 and "shot2.png" not in capture.origin.files
        assert np.array_equal(capture.mask, mask)
        np.testing.assert_allclose(capture.lights.directions, left, atol=1e-12)
        assert capture.lights.source[1] == "moved by hand"
        assert by_code(capture.origin.notes)["edited-by-hand"].values["file"] == EDITS_FILE


def test_they_can_be_ignored_and_options_come_first(folder):
    paint_mask(folder)
    write_edits(folder, Edits("photostereo-mask.png", leave_out=("shot2.png",)))
    plain = ps.load(folder, edits=False)
    assert len(plain) == 11 and plain.mask.all()
    assert ps.load(folder, mask="full").mask.all() and len(ps.load(folder, mask="full")) == 10
    assert len(ps.load(folder, leave_out=["shot1.png"])) == 9


def test_a_name_that_no_photograph_has_is_reported(folder):
    notes = by_code(
        ps.load(folder, leave_out=["shot2.png", "shot2.jpg"], keep=["shto3.png"]).origin.notes
    )
    assert notes["no-such-photograph"].values["names"] == "shot2.jpg, shto3.png"
    assert notes["no-such-photograph"].severity == "problem"
    assert "no-such-photograph" not in by_code(
        ps.load(folder, leave_out=["shot2.png"]).origin.notes
    )


def test_a_pipeline_notices_changes_when_it_is_configured(folder):
    pipeline = ps.Pipeline(folder, method="ls")
    assert len(pipeline.capture) == 11
    write_edits(folder, Edits(leave_out=("shot2.png",)))
    assert len(pipeline.configure().capture) == 10
    write_edits(folder, Edits())
    assert not (folder / EDITS_FILE).exists()
    assert len(pipeline.configure().capture) == 11


def test_what_is_read_is_what_was_written(folder):
    edits = Edits("m.png", "estimate", (1.5, 2, 30), ("a.png",), {"b.png": (0.0, 0.6, 0.8)})
    write_edits(folder, edits)
    assert read_edits(folder) == edits


@pytest.mark.parametrize(
    "facts",
    [
        {},
        [],
        {"photostereo-edits": 2},
        {"photostereo-edits": 1, "mask": "../secret.png"},
        {"photostereo-edits": 1, "mask": "/etc/passwd"},
        {"photostereo-edits": 1, "lights": "a/../../b"},
        {"photostereo-edits": 1, "circle": [1, 2]},
        {"photostereo-edits": 1, "circle": [1, 2, -3]},
        {"photostereo-edits": 1, "leave_out": "all"},
        {"photostereo-edits": 1, "moved_lights": {"a": [0, 0, 0]}},
        {"photostereo-edits": 1, "moved_lights": {"a": [1, 2]}},
    ],
)
def test_bad_files_are_refused(folder, facts):
    (folder / EDITS_FILE).write_text(json.dumps(facts))
    with pytest.raises(CaptureError) as caught:
        ps.load(folder)
    assert caught.value.code == "bad-edits" and caught.value.file.name == EDITS_FILE


def test_a_photograph_without_a_light_can_be_left_out(folder, shots):
    extra = folder / "shot12.png"
    extra.write_bytes((folder / "shot1.png").read_bytes())
    with pytest.raises(CaptureError):
        ps.load(folder)
    assert len(ps.load(folder, leave_out=["shot12.png"])) == 11


def test_corrections_are_summarized_in_words():
    edits = Edits(lights="estimate", leave_out=("a.jpg", "b.jpg"), circle=(120, 80, 30.5))
    assert edits.describe() == "lights estimated, ball marked by hand, 2 photographs left out"
    assert (
        Edits(mask="full", moved_lights={"a.jpg": (0, 0.6, 0.8)}).describe()
        == "mask, 1 light moved"
    )
    assert Edits.from_dict(edits.as_dict()) == edits
