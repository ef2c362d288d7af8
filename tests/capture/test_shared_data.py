"""The readers on real captures: the published least-squares figures come out; each folder is described."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from photostereo.capture import calibrate, load, write_diligent
from photostereo.core.errors import CaptureError
from photostereo.core.findings import by_code

#: Mean and median angular error of least squares, as published with the benchmark.
PUBLISHED = {
    "ball": (4.10, 2.41),
    "cat": (8.41, 6.52),
    "bear": (8.39, 6.18),
    "pot2": (14.65, 11.60),
    "reading": (19.80, 12.50),
    "cow": (25.60, 26.32),
}


def least_squares(capture):
    """N = Y pinv(L), with nothing of the package's own."""
    return capture.images[:, capture.mask].T.astype(np.float64) @ np.linalg.pinv(
        capture.lights.matrix
    )


def angles(normals, capture):
    truth = capture.truth[capture.mask].astype(np.float64)
    result = np.degrees(
        np.arctan2(np.linalg.norm(np.cross(normals, truth), axis=1), (normals * truth).sum(axis=1))
    )
    return np.where(truth.any(axis=1), result, 90.0)


def assert_untouched(capture):
    """The camera stood still, every photograph is used, and the room was dark."""
    origin = capture.origin
    assert origin.alignment.is_still and not origin.alignment.uncertain.any() and not origin.faults
    assert not {"room-light", "camera-moved", "not-aligned"} & by_code(origin.notes).keys()


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("item", [6, 7, 9])
def test_what_shifts_with_the_light_on_a_fixed_dome_is_still(data_dir, item):
    """Threads of a canvas, leaves of clay and a glossy coin."""
    alignment = load(data_dir / "rti" / "real" / f"item{item}").origin.alignment
    assert alignment.is_still and not alignment.uncertain.any() and alignment.follows_light


@pytest.mark.data
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_figures(data_dir, name):
    capture = load(data_dir / "diligent" / "pmsData" / f"{name}PNG")
    assert (capture.name, len(capture), capture.origin.bit_depth) == (name, 96, 16)
    assert_untouched(capture)
    error = angles(least_squares(capture), capture)
    # The published figures have two decimals.
    assert error.mean() == pytest.approx(PUBLISHED[name][0], abs=0.0051)
    assert np.median(error) == pytest.approx(PUBLISHED[name][1], abs=0.0051)
    unknown = by_code(capture.origin.notes).get("truth-unknown")
    assert unknown.values["count"] == 73 if name == "pot2" else unknown is None


@pytest.mark.data
@pytest.mark.parametrize("name", ["ball", "reading"])
def test_without_the_clip_the_figures_differ(data_dir, name, tmp_path):
    """Why the reader clips: if this test fails, the clip has become needless."""
    from photostereo.photographs.developed import open_files

    place = data_dir / "diligent" / "pmsData" / f"{name}PNG"
    capture = load(place)
    strengths = np.loadtxt(place / "light_intensities.txt")
    free = open_files([place / file for file in capture.origin.files], intensities=strengths).all()
    assert free[:, capture.mask].max() > 2
    normals = free[:, capture.mask].T.astype(np.float64) @ np.linalg.pinv(capture.lights.matrix)
    assert angles(normals, capture).mean() - PUBLISHED[name][0] > 0.05


@pytest.mark.data
def test_written_and_read_again_the_figures_stay(data_dir, tmp_path):
    capture = load(data_dir / "diligent" / "pmsData" / "readingPNG")
    again = load(write_diligent(capture, tmp_path / "reading"))
    # Half a step of 16 bits, and the rounding of float32.
    assert np.abs(again.images - capture.images).max() <= capture.images.max() * (
        1 / 131070 + 1.2e-7
    )
    assert angles(least_squares(again), again).mean() == pytest.approx(19.80, abs=0.0051)


@pytest.mark.data
@pytest.mark.parametrize(("name", "frame"), [("cat", (640, 500)), ("hippo", (580, 580))])
@pytest.mark.parametrize("lights", ["refined", "directions"])
def test_harvard(data_dir, name, frame, lights):
    capture = load(data_dir / "harvard" / name, lights=lights)
    assert (len(capture), capture.frame, capture.origin.bit_depth) == (20, frame, 8)
    assert_untouched(capture)
    assert 0.5 < capture.mask.mean() < 0.6
    assert not capture.mask[:10].any()
    normals = least_squares(capture)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    # The axes: the outline faces outwards, left to the left and top to the top, and everything faces the
    # camera.
    rows, cols = np.nonzero(capture.mask)
    assert np.corrcoef(cols, normals[:, 0])[0, 1] > 0.3
    assert (normals[:, 2] > 0).mean() > 0.99
    top = [
        normals[(cols == c) & (rows < rows[cols == c].min() + 4), 1].mean()
        for c in np.unique(cols)[20:-20:10]
    ]
    assert np.mean(top) > 0.2
    turned = capture.take(np.random.default_rng(0).permutation(20))
    again = least_squares(turned)
    np.testing.assert_allclose(
        again / np.linalg.norm(again, axis=1, keepdims=True), normals, atol=1e-9
    )


@pytest.mark.data
def test_harvard_strengths_make_the_photographs_agree_better(data_dir):
    def misfit(capture):
        values = capture.images[:, capture.mask].astype(np.float64).T
        return np.linalg.norm(
            values - least_squares(capture) @ capture.lights.matrix
        ) / np.linalg.norm(values)

    place = data_dir / "harvard" / "cat"
    assert misfit(load(place, lights="refined", mask="auto")) < misfit(
        load(place, lights="directions", mask="auto")
    )


@pytest.mark.data
def test_lights_of_a_capture_without_any_are_estimated(data_dir, tmp_path):
    place = tmp_path / "cat"  # away from the chrome ball beside it
    shutil.copytree(data_dir / "uw" / "cat", place)
    estimated = load(place)
    truth = calibrate(data_dir / "uw" / "cat").lights.directions
    off = np.degrees(np.arccos(np.clip((estimated.lights.directions * truth).sum(axis=1), -1, 1)))
    assert off.mean() < 12 and set(estimated.lights.source) == {"estimated"}
    assert "lights-estimated" in by_code(estimated.origin.notes)
    with pytest.raises(CaptureError, check=lambda e: e.code == "several-captures"):
        load(data_dir / "diligent" / "pmsData")
    # With lights from elsewhere it loads, and its mask is found under its own name.
    rng = np.random.default_rng(0)
    np.savetxt(tmp_path / "lights.txt", rng.normal(size=(12, 3)) * 0.3 + np.array([0, 0, 1]))
    capture = load(place, lights=tmp_path / "lights.txt")
    assert len(capture) == 12
    assert_untouched(capture)
    assert capture.origin.files[2] == "cat.2.png"
    assert 0.05 < capture.mask.mean() < 0.9
