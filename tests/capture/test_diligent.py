"""The DiLiGenT layout: read by its recipe, written so that reading gives the capture again."""

from __future__ import annotations

import json
from dataclasses import replace

import cv2
import numpy as np
import pytest
from scipy.io import savemat

from photostereo.capture import Capture, load, write_diligent
from photostereo.core.conventions import GRAY_WEIGHTS
from photostereo.core.errors import CaptureError, OutputError
from photostereo.core.findings import by_code, sentences
from photostereo_lab.corruptions import add_gaussian, add_poisson


@pytest.fixture
def official(tmp_path, shots):
    """A folder as the benchmark's authors would make it."""
    place = tmp_path / "owlPNG"
    files = shots.write(place, stem="0")
    strengths = np.random.default_rng(5).uniform(0.3, 3, size=(11, 3))
    shots.write_lights(place, "light_directions.txt")
    np.savetxt(place / "light_intensities.txt", strengths, fmt="%.17g")
    # Not in the order of their names: the list counts.
    order = [4, 0, 1, 2, 3, 10, 9, 8, 7, 6, 5]
    (place / "filenames.txt").write_text("\n".join(files[k].name for k in order) + "\n")
    mask = np.zeros((12, 9), np.uint8)
    mask[3:10, 2:8] = 255
    cv2.imwrite(str(place / "mask.png"), mask)
    normals = np.random.default_rng(6).normal(size=(12, 9, 3))
    savemat(place / "Normal_gt.mat", {"Normal_gt": normals})
    return place, strengths, order, mask > 0, normals


def test_recipe(official, shots):
    place, strengths, order, mask, normals = official
    capture = load(place)
    gray = (shots.stored[order] / 65535.0 / strengths[:, None, None, :]) @ np.array(GRAY_WEIGHTS)
    assert gray.max() > 1
    np.testing.assert_allclose(capture.images, np.clip(gray, 0, 1), rtol=1e-6)
    np.testing.assert_allclose(capture.lights.directions, shots.lights, atol=1e-15)
    np.testing.assert_array_equal(capture.mask, mask)
    np.testing.assert_array_equal(capture.truth, normals.astype(np.float32))
    assert capture.name == "owl"
    assert capture.origin.layout == "DiLiGenT"
    assert capture.origin.bit_depth == 16
    assert capture.origin.files[0] == "05.png"
    assert capture.origin.notes == ()


def test_color_has_the_gray_values_of_gray(official):
    place = official[0]
    np.testing.assert_allclose(load(place, color=True).gray().images, load(place).images, rtol=1e-6)


def test_what_may_be_missing(official):
    place = official[0]
    for name in ("filenames.txt", "mask.png", "Normal_gt.mat"):
        (place / name).unlink()
    capture = load(place)
    assert capture.origin.files == tuple(f"0{number}.png" for number in range(1, 12))
    assert capture.mask.all()
    assert capture.truth is None
    (place / "filenames.txt").write_text("01.png\n")
    (place / "light_intensities.txt").unlink()
    with pytest.raises(
        CaptureError,
        check=lambda e: e.code == "no-strengths" and e.file.name == "light_intensities.txt",
    ):
        load(place)


def test_notes_on_eight_bits_and_unknown_truth(official, shots):
    place, _, _, _, normals = official
    shots.write(place, stem="0", bits=8)
    normals[5, 5] = np.nan
    normals[6, 6] = 0
    savemat(place / "Normal_gt.mat", {"Normal_gt": normals})
    capture = load(place)
    assert capture.origin.bit_depth == 8
    notes = by_code(capture.origin.notes)
    assert notes["few-bits"].values["bits"] == 8 and notes["truth-unknown"].values["count"] == 2
    assert np.isfinite(capture.truth).all()


def test_bad_truth_and_lists(official):
    place = official[0]
    savemat(place / "Normal_gt.mat", {"Normal_gt": np.ones((12, 8, 3))})
    with pytest.raises(
        CaptureError, check=lambda e: e.code == "truth-size" and e.file.name == "Normal_gt.mat"
    ):
        load(place)
    savemat(place / "Normal_gt.mat", {"N": np.ones((12, 9, 3))})
    with pytest.raises(CaptureError) as caught:
        load(place)
    assert caught.value.code == "unreadable-file"
    (place / "Normal_gt.mat").write_bytes(b"not a matlab file")
    with pytest.raises(CaptureError) as caught:
        load(place)
    assert (caught.value.code, caught.value.file.name) == ("unreadable-file", "Normal_gt.mat")
    (place / "Normal_gt.mat").unlink()
    names = (place / "filenames.txt").read_text()
    (place / "filenames.txt").write_text(names.replace("07.png", "77.png"))
    with pytest.raises(CaptureError) as caught:
        load(place, strict=True)
    assert (caught.value.code, caught.value.file.name) == ("missing-file", "77.png")
    (place / "filenames.txt").write_text(names[names.index("\n") + 1 :])
    with pytest.raises(CaptureError, check=lambda e: e.code == "lights-count"):
        load(place)


@pytest.mark.parametrize("color", [False, True])
def test_round_trip_is_exact_to_half_a_step(tmp_path, capture, color):
    if color:
        rgb = np.random.default_rng(0).gamma(1, 1, size=(*capture.images.shape, 3))
        capture = replace(capture, images=rgb)
    assert capture.images.max() > 2
    again = load(write_diligent(capture, tmp_path / "out"), color=color)
    step = capture.images.max() / 65535
    assert np.abs(again.images.astype(np.float64) - capture.images).max() <= 0.5 * step * (1 + 1e-4)
    assert again.name == "thing"
    np.testing.assert_array_equal(again.lights.directions, capture.lights.directions)
    for label in ("mask", "truth", "truth_depth", "truth_albedo"):
        np.testing.assert_array_equal(getattr(again, label), getattr(capture, label), err_msg=label)


def test_second_round_trip_changes_nothing(tmp_path, capture):
    once = load(write_diligent(capture, tmp_path / "once"))
    twice = load(write_diligent(once, tmp_path / "twice"))
    for name in ("001.png", "005.png", "mask.png", "light_directions.txt"):
        assert (tmp_path / "once" / name).read_bytes() == (
            tmp_path / "twice" / name
        ).read_bytes(), name
    np.testing.assert_allclose(twice.images, once.images, rtol=1e-6)


def test_values_of_heavy_noise_survive(tmp_path, capture):
    noisy = add_poisson(replace(capture, images=np.clip(capture.images, 0, 1)), 5, rng=0)
    assert noisy.images.max() > 1
    again = load(write_diligent(noisy, tmp_path / "out"))
    assert np.abs(again.images - noisy.images).max() <= noisy.images.max() / 131070 * (1 + 1e-4)
    assert again.images.max() == pytest.approx(noisy.images.max(), rel=1e-6)


def test_other_tools_can_read_what_we_write(tmp_path, capture):
    """By the benchmark's recipe without the clip, using nothing of ours."""
    place = write_diligent(capture, tmp_path / "out")
    names = (place / "filenames.txt").read_text().split()
    strengths = np.loadtxt(place / "light_intensities.txt")
    for name, strength, expected in zip(names, strengths, capture.images, strict=True):
        picture = cv2.imread(str(place / name), cv2.IMREAD_UNCHANGED)
        assert picture.dtype == np.uint16 and picture.shape == (12, 9, 3)
        np.testing.assert_allclose(
            picture[..., ::-1] / 65535 / strength, expected[..., None].repeat(3, 2), atol=5e-5
        )


def test_negative_values_become_zero_and_are_counted(tmp_path, capture):
    noisy = add_gaussian(capture, 1.0, rng=0)
    negative = int((noisy.images < 0).sum())
    again = load(write_diligent(noisy, tmp_path / "out"))
    np.testing.assert_allclose(
        again.images, np.maximum(noisy.images, 0), atol=noisy.images.max() / 131000
    )
    assert any(str(note).startswith(f"{negative} negative") for note in again.origin.notes)


def test_noise_is_remembered(tmp_path, folder):
    noisy = add_poisson(load(folder), 20, rng=0)
    again = load(write_diligent(noisy, tmp_path / "out"))
    assert "Poisson noise at 20 dB was added" in sentences(again.origin.notes)


def test_black_capture(tmp_path, capture):
    again = load(write_diligent(replace(capture, images=np.zeros((5, 12, 9))), tmp_path / "out"))
    assert not again.images.any()


def test_writing_is_all_or_nothing(tmp_path, capture, monkeypatch):
    place = write_diligent(capture, tmp_path / "out")
    before = {file.name: file.read_bytes() for file in place.iterdir()}
    with pytest.raises(OutputError) as caught:
        write_diligent(capture, place)
    assert caught.value.code == "output-exists"

    def fail(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("scipy.io.savemat", fail)
    with pytest.raises(KeyboardInterrupt):
        write_diligent(capture, place, force=True)
    assert {file.name: file.read_bytes() for file in place.iterdir()} == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_many_photographs_keep_their_order(tmp_path):
    lights = np.random.default_rng(0).normal(size=(1002, 3)) + np.array([0, 0, 2])
    images = np.linspace(0, 1, 1002)[:, None, None] * np.ones((1, 2, 2))
    again = load(write_diligent(Capture(images=images, lights=lights), tmp_path / "out"))
    assert again.origin.files[0] == "0001.png"
    assert np.abs(again.images - images).max() < 1e-5


def test_damaged_description(tmp_path, capture):
    place = write_diligent(capture, tmp_path / "out")
    assert json.loads((place / "photostereo.json").read_text())["clip_gray"] is False
    (place / "photostereo.json").write_text("{")
    with pytest.raises(CaptureError) as caught:
        load(place)
    assert (caught.value.code, caught.value.file.name) == ("invalid-json", "photostereo.json")
