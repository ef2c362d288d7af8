"""Capture: validated, frozen, and its few operations."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.capture.capture import Capture, Origin
from photostereo.core.conventions import gray_from_rgb
from photostereo.core.errors import CaptureError

LIGHTS = np.array([[0, 0, 1], [0.5, 0, 1], [0, 0.5, 1], [-0.5, 0, 1], [0.1, -0.5, 1]], float)


def make(**changes) -> Capture:
    rng = np.random.default_rng(0)
    fields = {"images": rng.uniform(size=(5, 6, 7)), "lights": LIGHTS, "name": "thing", **changes}
    return Capture(**fields)


def test_lights_are_unit_and_arrays_are_read_only() -> None:
    capture = make()
    assert np.allclose(np.linalg.norm(capture.lights.directions, axis=1), 1)
    for array in (capture.images, capture.lights.directions, capture.mask):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        capture.name = "other"


def test_freezing_leaves_the_caller_s_array_writable() -> None:
    images = np.ones((5, 6, 7), dtype=np.float32)
    make(images=images)
    images[0] = 2  # must not raise


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"images": np.ones((2, 4, 4)), "lights": LIGHTS[:2]}, "too-few-photographs"),
        ({"lights": LIGHTS[:4]}, "lights-count"),
        ({"lights": np.vstack([LIGHTS, LIGHTS])}, "lights-count"),
        ({"lights": LIGHTS * np.array([[1], [0], [1], [1], [1]])}, "light-zero"),
        ({"lights": LIGHTS * np.array([1, 0, 1])}, "lights-coplanar"),
        ({"lights": np.where(LIGHTS == 0.1, np.nan, LIGHTS)}, "light-not-finite"),
        ({"images": np.full((5, 6, 7), np.nan)}, "photograph-not-finite"),
        ({"images": np.full((5, 6, 7), np.inf)}, "photograph-not-finite"),
        ({"images": np.ones((5, 6, 7, 2))}, "photographs-shape"),
        ({"mask": np.zeros((6, 7), bool)}, "empty-mask"),
        ({"mask": np.ones((5, 7), bool)}, "frame-mismatch"),
        ({"truth": np.ones((5, 5, 3))}, "frame-mismatch"),
        ({"truth_depth": np.ones((1, 1))}, "frame-mismatch"),
    ],
)
def test_errors_have_codes(changes: dict, code: str) -> None:
    with pytest.raises(CaptureError) as caught:
        make(**changes)
    assert caught.value.code == code


def test_take_draws_without_repetition_and_keeps_pairs() -> None:
    capture = make(origin=Origin(path=None, layout="x", files=tuple("abcde")))
    subset = capture.take(3, rng=0)
    again = capture.take(3, rng=0)
    assert np.array_equal(subset.images, again.images)
    for image, light, name in zip(
        subset.images, subset.lights.directions, subset.origin.files, strict=True
    ):
        index = "abcde".index(name)
        assert np.array_equal(image, capture.images[index])
        assert np.array_equal(light, capture.lights.directions[index])
    with pytest.raises(CaptureError, check=lambda e: e.code == "photograph-count"):
        capture.take(6)


def test_pixels_are_the_mask_pixels_in_row_major_order() -> None:
    mask = np.random.default_rng(2).uniform(size=(6, 7)) > 0.4
    capture = make(mask=mask)
    assert np.array_equal(capture.pixels(), capture.images[:, mask].T)
    assert np.allclose(capture.pixels(2.0), capture.images[:, mask].T / 2)


def test_pixels_of_more_than_one_block() -> None:
    """Pixels are transposed block by block; the last is a part, and a color is made gray on the way."""
    rng = np.random.default_rng(0)
    images, mask = rng.random((4, 70, 90, 3), dtype=np.float32), rng.random((70, 90)) < 0.8
    capture = Capture(
        images, np.array([[0, 0, 1], [0.5, 0, 1], [0, 0.5, 1], [-0.5, 0, 1]]), mask=mask
    )
    assert capture.pixel_count > 2 * 2048
    expected = gray_from_rgb(images)[:, mask].T / np.float32(0.7)
    np.testing.assert_allclose(capture.pixels(0.7), expected, rtol=1e-6)


def test_color_becomes_gray_by_the_published_weights() -> None:
    rgb = np.random.default_rng(3).uniform(size=(5, 6, 7, 3)).astype(np.float32)
    capture = make(images=rgb)
    gray = capture.gray()
    assert not gray.is_color and np.allclose(gray.images, gray_from_rgb(rgb), atol=1e-6)
    assert np.allclose(capture.pixels(), gray.pixels(), atol=1e-6)
    assert capture.intensity_scale() == pytest.approx(gray.intensity_scale(), rel=1e-5)


def test_digest_tells_content_not_names() -> None:
    images = np.random.default_rng(4).uniform(size=(5, 6, 7))
    first = make(images=images)
    assert make(images=images, name="other").digest == first.digest
    changed = images.copy()
    changed[0, 0, 0] += 1e-3
    assert make(images=changed).digest != first.digest
    assert make(images=images, lights=LIGHTS[::-1]).digest != first.digest


@pytest.mark.parametrize(("dtype", "largest"), [(np.uint8, 255.0), (np.uint16, 65535.0)])
def test_stored_numbers_are_divided_by_their_largest_value(dtype: type, largest: float) -> None:
    """As those of files are; numbers that are linear already stay as they are."""
    stored = np.random.default_rng(0).integers(1, 200, (4, 5, 6)).astype(dtype)
    lights = np.array([[1, 0, 2], [-1, 0, 2], [0, 1, 2], [0, -1, 2]], float)
    capture = Capture(images=stored, lights=lights, name="camera")
    assert capture.images == pytest.approx(stored / largest, rel=1e-6)
    for kept in (stored.astype(np.float32), stored.astype(np.int64).tolist()):
        assert (Capture(images=kept, lights=lights, name="linear").images == stored).all()
