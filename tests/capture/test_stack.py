"""Photographs on one linear scale: against the formula, evaluated plainly in float64."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import cv2
import numpy as np
import pytest
import tifffile

import photostereo.photographs.developed as photographs_module
import photostereo.photographs.protocol as protocol_module
from photostereo.core.conventions import GRAY_WEIGHTS, gray_from_rgb, linear_from_srgb
from photostereo.core.errors import CaptureError

WEIGHTS = np.array(GRAY_WEIGHTS)


@pytest.fixture
def strengths():
    return np.random.default_rng(1).uniform(0.3, 3, size=(11, 3))


@dataclass
class Stack:
    images: np.ndarray
    bit_depth: int
    notes: tuple[str, ...]


def read_stack(files, **options) -> Stack:
    source = photographs_module.open_files(files, **options)
    images = source.all()
    return Stack(images, source.bit_depth, source.notes)


def test_gray_is_the_weighted_sum_of_divided_channels(tmp_path, shots, strengths):
    result = read_stack(shots.write(tmp_path), intensities=strengths)
    expected = (shots.stored / 65535.0 / strengths[:, None, None, :]) @ WEIGHTS
    assert result.images.dtype == np.float32
    assert result.bit_depth == 16
    np.testing.assert_allclose(result.images, expected, rtol=1e-6)


def test_color(tmp_path, shots, strengths):
    result = read_stack(shots.write(tmp_path), intensities=strengths, color=True)
    np.testing.assert_allclose(
        result.images, shots.stored / 65535.0 / strengths[:, None, None, :], rtol=3e-7
    )


def test_gray_photographs_are_divided_by_the_luma_of_the_light(tmp_path, shots, strengths):
    files = shots.write(tmp_path, gray=True)
    expected = shots.stored[..., 1] / 65535.0 / (strengths @ WEIGHTS)[:, None, None]
    np.testing.assert_allclose(read_stack(files, intensities=strengths).images, expected, rtol=3e-7)
    assert read_stack(files, intensities=strengths, color=True).images.ndim == 3


def test_one_strength_per_light(tmp_path, shots, strengths):
    files = shots.write(tmp_path)
    single = read_stack(files, intensities=strengths[:, 0])
    triple = read_stack(files, intensities=np.repeat(strengths[:, :1], 3, axis=1))
    np.testing.assert_array_equal(single.images, triple.images)


@pytest.mark.parametrize("bits", [8, 16])
def test_srgb_is_undone_before_anything_else(tmp_path, shots, strengths, bits):
    result = read_stack(shots.write(tmp_path, bits=bits), intensities=strengths, srgb=True)
    stored, top = (shots.stored, 65535.0) if bits == 16 else (shots.stored >> 8, 255.0)
    expected = (linear_from_srgb(stored / top) / strengths[:, None, None, :]) @ WEIGHTS
    assert result.bit_depth == bits
    np.testing.assert_allclose(result.images, expected, rtol=1e-6)


def test_eight_bits_are_divided_by_255(tmp_path, shots):
    result = read_stack(shots.write(tmp_path, bits=8, gray=True))
    np.testing.assert_allclose(result.images, (shots.stored[..., 1] >> 8) / 255.0, rtol=2e-7)
    assert result.images.max() <= 1


def test_limit_clips_gray_and_keeps_color(tmp_path, shots, strengths):
    files = shots.write(tmp_path)
    free = read_stack(files, intensities=strengths, color=True).images.astype(np.float64)
    gray = read_stack(files, intensities=strengths, gray_limit=1.0).images
    color = read_stack(files, intensities=strengths, gray_limit=1.0, color=True).images.astype(
        np.float64
    )
    assert (free @ WEIGHTS > 1).any()
    np.testing.assert_allclose(gray, np.minimum(free @ WEIGHTS, 1), rtol=1e-6)
    np.testing.assert_allclose(gray_from_rgb(color), gray, rtol=1e-6)
    np.testing.assert_allclose(np.cross(free, color), 0, atol=1e-5)


def test_float_files_are_taken_as_they_are(tmp_path):
    values = np.random.default_rng(2).gamma(1, 2, size=(4, 6, 5, 3)).astype(np.float32)
    files = [tmp_path / f"{number}.tif" for number in range(4)]
    for file, image in zip(files, values, strict=True):
        tifffile.imwrite(file, image, photometric="rgb")
    result = read_stack(files, color=True)
    np.testing.assert_array_equal(result.images, values)
    assert result.bit_depth == 32


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_undefined_values_are_found_and_named(tmp_path, bad):
    values = np.ones((4, 6, 5), dtype=np.float32)
    values[2, 3, 1] = bad
    files = [tmp_path / f"shot{number}.tif" for number in range(4)]
    for file, image in zip(files, values, strict=True):
        tifffile.imwrite(file, image)
    with pytest.raises(
        CaptureError,
        check=lambda e: e.code == "photograph-not-finite" and e.file.name == "shot2.tif",
    ):
        read_stack(files)


def test_other_sizes_modes_and_depths(tmp_path, shots):
    files = shots.write(tmp_path)
    whole = files[4].read_bytes()
    small = type(shots)(shots.stored[:, :-1], shots.lights).write(tmp_path / "small")
    files[4].write_bytes(small[4].read_bytes())
    with pytest.raises(
        CaptureError, check=lambda e: e.code == "size-mismatch" and e.file.name == "shot5.png"
    ):
        read_stack(files)
    files[4].write_bytes(shots.write(tmp_path / "gray", gray=True)[4].read_bytes())
    with pytest.raises(
        CaptureError, check=lambda e: e.code == "mode-mismatch" and e.file.name == "shot5.png"
    ):
        read_stack(files)
    files[4].write_bytes(shots.write(tmp_path / "eight", bits=8)[4].read_bytes())
    mixed = read_stack(files)
    assert mixed.bit_depth == 16
    assert mixed.notes[0].code == "bit-depths-differ"
    files[4].write_bytes(whole)
    assert read_stack(files).notes == ()


def test_the_first_bad_photograph_is_named_whatever_finishes_first(tmp_path, shots):
    files = shots.write(tmp_path)
    for number in (3, 8):
        files[number].write_bytes(files[number].read_bytes()[:-30])
    for _ in range(5):
        with pytest.raises(CaptureError) as caught:
            read_stack(files)
        assert (caught.value.code, caught.value.file.name) == ("damaged-image", "shot4.png")


def test_threads_change_nothing(tmp_path, shots, strengths):
    files = shots.write(tmp_path)
    one = read_stack(files, intensities=strengths, workers=1).images
    np.testing.assert_array_equal(read_stack(files, intensities=strengths, workers=8).images, one)


def test_photographs_are_decoded_at_the_same_time(tmp_path, shots, monkeypatch):
    three = threading.Barrier(3, timeout=60)
    decode = protocol_module.decode_image

    def watched(path, **options):
        if not path.stem.endswith("1"):  # nine of the eleven: in threes, each waits for two others
            three.wait()
        return decode(path, **options)

    monkeypatch.setattr(protocol_module, "decode_image", watched)
    read_stack(shots.write(tmp_path), workers=3)


def test_another_size_is_told_by_the_header(tmp_path, monkeypatch):
    """Before any photograph but the first is decoded: the first may be the large one."""
    for name, side in (("a.png", 40), ("b.png", 8), ("c.jpg", 8)):
        cv2.imwrite(str(tmp_path / name), np.zeros((side, side), np.uint8))
    decoded = []
    decode = protocol_module.decode_image
    monkeypatch.setattr(
        protocol_module,
        "decode_image",
        lambda path, **_: decoded.append(path.name) or decode(path),
    )
    for other in ("b.png", "c.jpg"):
        with pytest.raises(CaptureError, check=lambda e: e.code == "size-mismatch"):
            photographs_module.open_files([tmp_path / "a.png", tmp_path / other])
    assert decoded == ["a.png", "a.png"]
