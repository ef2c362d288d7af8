"""Lights estimated from the photographs alone, against closed forms and exact symmetries."""

from __future__ import annotations

import io
import zipfile
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from photostereo.core.errors import CaptureError, ParameterError
from photostereo.io.network_weights import SHIPPED, Weights
from photostereo.io.network_weights import read_weights as read_any_weights
from photostereo.lights.unknown import network as weights_module
from photostereo.lights.unknown.crops import SYMMETRIES, Thumbnails, crop_photographs
from photostereo.lights.unknown.estimate import UnknownLights, estimate_lights
from photostereo_lab import scenes


def read_weights(path: Path) -> Weights:
    shapes = {
        name: values.shape for name, values in weights_module.shipped_weights().arrays.items()
    }
    return read_any_weights(path, lambda arrays: shapes)


def dome(count: int) -> np.ndarray:
    """Lights on a spiral over the hemisphere."""
    k = np.arange(count) + 0.5
    elevation, azimuth = np.arcsin(0.35 + 0.6 * k / count), k * np.pi * (3 - np.sqrt(5))
    flat = np.stack([np.cos(azimuth), np.sin(azimuth)], axis=1) * np.cos(elevation)[:, None]
    return np.concatenate([flat, np.sin(elevation)[:, None]], axis=1)


def angles(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.degrees(np.arctan2(np.linalg.norm(np.cross(a, b), axis=1), (a * b).sum(axis=1)))


LIGHTS = dome(8)
STRENGTHS = np.exp(0.3 * np.sin(np.arange(8)))


@cache
def matte_ball() -> Thumbnails:
    """A ball in closed form: two albedos, lights of unequal strength."""
    size = 200
    axis = (np.arange(size) - (size - 1) / 2) / 90
    x, y = np.meshgrid(axis, -axis)
    mask = x**2 + y**2 < 1
    normals = np.stack([x, y, np.sqrt(np.maximum(1 - x**2 - y**2, 0))], axis=-1)
    shading = np.maximum(np.einsum("hwk,dk->dhw", normals, LIGHTS), 0) * STRENGTHS[:, None, None]
    albedo = np.where(np.arange(size) // 25 % 2, 0.8, 0.5)
    return crop_photographs(shading * albedo, mask)


@cache
def estimate_of_ball() -> UnknownLights:
    return estimate_lights(matte_ball())


def test_a_matte_ball_in_closed_form() -> None:
    found = estimate_of_ball()
    assert angles(found.directions, LIGHTS).max() < 9  # a light at 23° above the horizon
    assert angles(found.directions, LIGHTS).mean() < 4.5
    true = STRENGTHS / np.exp(np.log(STRENGTHS).mean())
    assert np.abs(found.strengths / true - 1).max() < 0.15
    assert np.exp(np.log(found.strengths).mean()) == pytest.approx(1)
    assert found.verdict.usable and not found.verdict.is_flat


def test_the_order_of_the_photographs_does_not_matter() -> None:
    ball, order = matte_ball(), np.array([3, 1, 7, 0, 2, 6, 5, 4])
    found = estimate_lights(Thumbnails(ball.images[order], ball.mask))
    np.testing.assert_allclose(found.directions, estimate_of_ball().directions[order], atol=1e-4)
    np.testing.assert_allclose(found.strengths, estimate_of_ball().strengths[order], rtol=1e-4)


@pytest.mark.parametrize("symmetry", [SYMMETRIES[2], SYMMETRIES[5]], ids=["turned", "mirrored"])
def test_lights_turn_with_the_photographs(symmetry) -> None:
    ball = matte_ball()
    turned = Thumbnails(symmetry.of_pictures(ball.images), symmetry.of_pictures(ball.mask[None])[0])
    found = estimate_lights(turned)
    expected = estimate_of_ball().directions @ symmetry.matrix.T
    np.testing.assert_allclose(found.directions, expected, atol=1e-4)


def test_brightness_does_not_matter() -> None:
    found = estimate_lights(Thumbnails(matte_ball().images * 37, matte_ball().mask))
    np.testing.assert_allclose(found.directions, estimate_of_ball().directions, atol=1e-4)


def test_known_directions_are_kept() -> None:
    known = np.full((8, 3), np.nan)
    known[:5] = 2 * LIGHTS[:5]
    found = estimate_lights(matte_ball(), known=known)
    np.testing.assert_allclose(found.directions[:5], LIGHTS[:5], atol=1e-6)
    assert (found.expected_error_degrees[:5] == 0).all() and (
        found.expected_error_degrees[5:] > 0
    ).all()
    assert angles(found.directions[5:], LIGHTS[5:]).max() < 5
    with pytest.raises(CaptureError) as caught:
        estimate_lights(matte_ball(), known=LIGHTS[:5])
    assert caught.value.code == "lights-count"


def test_the_expected_error_is_about_the_true_one() -> None:
    """Rendered by the package's own scenes, which the network was not trained on."""
    true, expected = [], []
    for shape in ("figure", "vase"):
        for reflectance in ("lambertian", "ggx"):
            capture = scenes.render_scene(shape, size=96, lights=dome(10), reflectance=reflectance)
            found = estimate_lights(crop_photographs(capture.photographs.frames(), capture.mask))
            true.append(angles(found.directions, capture.lights.directions).mean())
            expected.append(found.expected_error)
    assert 0.5 < np.mean(expected) / np.mean(true) < 2
    assert max(true) < 12


def flat_board(relief: float, lights: np.ndarray) -> Thumbnails:
    rng = np.random.default_rng(1)
    albedo = rng.uniform(0.3, 0.9, (120, 120))
    slopes = relief * rng.standard_normal((2, 120, 120))
    normals = np.stack([slopes[0], slopes[1], np.ones((120, 120))], axis=-1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    images = np.maximum(np.einsum("hwk,dk->dhw", normals, lights), 0) * albedo
    return crop_photographs(images, np.ones((120, 120), dtype=bool))


def test_a_board_without_relief_is_unusable() -> None:
    verdict = estimate_lights(flat_board(0.0, dome(8))).verdict
    assert not verdict.usable and "all-alike" in verdict.reasons


def test_a_single_light_is_unusable() -> None:
    images = np.repeat(matte_ball().images[:1], 6, axis=0)
    assert not estimate_lights(Thumbnails(images, matte_ball().mask)).verdict.usable


def test_photographs_that_do_not_belong_together_are_unusable() -> None:
    """Half of a ball's, half of something else's: bright where the ball is dark, and in patches."""
    ball = matte_ball()
    patches = (
        np.random.default_rng(0).uniform(0, 1, (4, 8, 8)).repeat(12, axis=1).repeat(12, axis=2) ** 3
    )
    images = ball.images.copy()
    images[::2] = patches[..., None] * ball.mask[..., None]
    verdict = estimate_lights(Thumbnails(images, ball.mask)).verdict
    assert not verdict.usable and {"not-one-object", "large-error"} & set(verdict.reasons)


@pytest.mark.parametrize("count", [0, 3])
def test_too_few_photographs(count: int) -> None:
    with pytest.raises(CaptureError) as caught:
        estimate_lights(Thumbnails(matte_ball().images[:count], matte_ball().mask))
    assert caught.value.code == "too-few-photographs"


def test_black_photographs() -> None:
    with pytest.raises(CaptureError) as caught:
        estimate_lights(Thumbnails(np.zeros_like(matte_ball().images), matte_ball().mask))
    assert caught.value.code == "black-photographs"


def test_crops_are_averages_over_the_mask() -> None:
    """A large photograph of a plane gives its values exactly, whatever is beside the mask; gray equals color."""
    rows, columns = np.mgrid[:900, :1200].astype(np.float32)
    plane = 0.2 + 0.3 * rows / 900 + 0.1 * columns / 1200
    mask = (rows - 400) ** 2 + (columns - 700) ** 2 < 300**2
    photograph = np.where(mask, plane, 50).astype(np.float32)
    gray = crop_photographs([photograph], mask)
    color = crop_photographs([np.stack([photograph] * 3, axis=-1)], mask)
    np.testing.assert_array_equal(gray.images, color.images)
    side = 601 * 1.11
    pixel = np.argwhere(gray.mask)
    where = (pixel + 0.5) / 96 * side - side / 2
    expected = 0.2 + 0.3 * (400 + where[:, 0]) / 900 + 0.1 * (700 + where[:, 1]) / 1200
    assert np.abs(gray.images[0, gray.mask, 0] - expected).max() < 0.005
    with pytest.raises(CaptureError):
        crop_photographs([photograph], np.zeros_like(mask))
    thin = np.zeros_like(mask)
    thin[400, :] = True
    with pytest.raises(CaptureError):
        crop_photographs([photograph], thin)


# The weights.


def archive(**changes: np.ndarray | None) -> io.BytesIO:
    """The shipped archive with some arrays replaced, added or (None) left out."""
    path = files(weights_module.__package__) / SHIPPED
    with np.load(io.BytesIO(path.read_bytes())) as shipped:
        arrays = dict(shipped)
    arrays = {name: values for name, values in (arrays | changes).items() if values is not None}
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file


DAMAGE = {
    "a number changed": {"known.bias": np.ones(160, np.float16)},
    "an array missing": {"known.bias": None},
    "an array too many": {"extra": np.zeros(3, np.float16)},
    "another shape": {"known.bias": np.zeros(159, np.float16)},
    "another type": {"known.bias": np.zeros(80, np.float32)},
    "far too large": {"known.bias": np.zeros(10_000_000, np.float16)},
    "not a number": {"known.bias": np.full(160, np.nan, np.float16)},
    "no digest": {"digest": None},
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_weights_are_refused(tmp_path, damage: str) -> None:
    path = tmp_path / "weights.npz"
    path.write_bytes(archive(**DAMAGE[damage]).getvalue())
    with pytest.raises(ParameterError):
        read_weights(path)


def test_weights_that_are_no_archive_are_refused(tmp_path) -> None:
    whole = archive().getvalue()
    for name, content in {
        "cut": whole[: len(whole) // 2],
        "empty": b"",
        "text": b"PK\x03\x04 no",
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ParameterError):
            read_weights(tmp_path / name)
    with pytest.raises(ParameterError):
        read_weights(tmp_path / "missing.npz")
    with zipfile.ZipFile(tmp_path / "pickle.npz", "w") as file:
        for name in weights_module.shipped_weights().arrays:
            file.writestr(f"{name}.npy", b"\x80\x04N.")
        file.writestr("digest.npy", b"\x80\x04N.")
    with pytest.raises(ParameterError):
        read_weights(tmp_path / "pickle.npz")


def test_the_shipped_weights_are_small_and_whole() -> None:
    path = files(weights_module.__package__) / SHIPPED
    assert len(path.read_bytes()) <= 4_000_000
    assert weights_module.shipped_weights().digest == weights_module.SHIPPED_DIGEST
