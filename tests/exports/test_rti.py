"""RTI files, read by readers written from the published descriptions, show the pictures of the result."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from photostereo.exports.pixel_size import PixelSize
from photostereo.exports.relighting import BASES, fit_lights, relight, spread_lights
from photostereo.exports.rti_files import encode_ptm, encode_relight


def show_ptm(data: bytes, u: float, v: float) -> np.ndarray:
    """The picture of a PTM under a light, by the description of the format: C = L · RGB, rows bottom up."""
    version, kind, width, height, scales, biases, payload = data.split(b"\n", 6)
    assert (version, kind) == (b"PTM_1.2", b"PTM_FORMAT_LRGB")
    w, h = int(width), int(height)
    scale = np.array([float(word) for word in scales.split()])
    bias = np.array([int(word) for word in biases.split()])
    assert len(payload) == 9 * w * h
    bytes_ = np.frombuffer(payload, np.uint8)
    a = (bytes_[: 6 * w * h].reshape(h, w, 6).astype(float) - bias) * scale
    luminance = (
        a[..., 0] * u * u + a[..., 1] * v * v + a[..., 2] * u * v + a[..., 3] * u + a[..., 4] * v + a[..., 5]
    )
    rgb = bytes_[6 * w * h :].reshape(h, w, 3)
    return np.clip(luminance[..., None] * rgb / 255, 0, 255)[::-1]


def show_relight(folder: Path, u: float, v: float, suffix: str) -> np.ndarray:
    """The picture of a relight folder under a light: Σ b_k(u, v) · (c − bias) · scale per channel."""
    info = json.loads((folder / "info.json").read_text())
    assert (info["type"], info["colorspace"], info["nplanes"]) == ("hsh", "rgb", 27)
    (material,) = info["materials"]
    w = np.sqrt(1 - u * u - v * v)
    phi, s = np.arctan2(v, u), np.sqrt(w - w * w)
    one, two = np.sqrt(6 / np.pi), np.sqrt(30 / np.pi)
    weights = [
        1 / np.sqrt(2 * np.pi),
        one * np.cos(phi) * s,
        np.sqrt(3 / (2 * np.pi)) * (2 * w - 1),
        one * np.sin(phi) * s,
        two * np.cos(2 * phi) * (w * w - w),
        two * np.cos(phi) * (2 * w - 1) * s,
        np.sqrt(5 / (2 * np.pi)) * (1 - 6 * w + 6 * w * w),
        two * np.sin(phi) * (2 * w - 1) * s,
        two * np.sin(2 * phi) * (w * w - w),
    ]
    total = np.zeros((info["height"], info["width"], 3))
    for k, weight in enumerate(weights):
        plane = cv2.imread(str(folder / f"plane_{k}.{suffix}"))[..., ::-1] / 255.0
        bias, scale = (np.array(material[name][3 * k : 3 * k + 3]) for name in ("bias", "scale"))
        total += weight * (plane - bias) * scale
    return np.clip(255 * total, 0, 255)


@pytest.fixture(scope="module")
def shallow(bumps):
    """The relief of the other tests, flattened to that of a coin, so that little of it turns from the light."""
    normals = bumps.normals * np.array([0.25, 0.25, 1.0])
    length = np.linalg.norm(normals, axis=-1, keepdims=True)
    return normals / np.where(length > 0, length, 1), bumps.albedo, bumps.mask


LIGHTS = spread_lights(12, 30.0)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("name", ["bumps", "shallow"])
def test_ptm_is_its_polynomial_to_two_levels(request, name: str, linear: bool) -> None:
    given = request.getfixturevalue(name)
    normals, albedo, mask = given if name == "shallow" else (given.normals, given.albedo, given.mask)
    model = fit_lights(normals, albedo, mask, linear=linear)
    data = encode_ptm(model)
    for light in LIGHTS:
        exact = model.coefficients @ BASES["ptm"](light[None])[0]
        wanted = np.clip(exact[..., None] * model.colour, 0, 255)
        assert np.abs(show_ptm(data, *light[:2]) - wanted).max() < 2.0


def test_ptm_of_a_coin_shows_our_picture(shallow) -> None:
    """A quadratic follows √(1 − u² − v²) to 2 % only: so far, and no further, is the picture from ours."""
    data = encode_ptm(fit_lights(*shallow, linear=True))
    off = [
        np.abs(show_ptm(data, *one[:2]) - 255 * relight(*shallow, one, linear=True))[shallow[2]]
        for one in LIGHTS
    ]
    assert np.mean(off) < 3.0
    assert np.max(off) < 0.04 * 255
    # The light from the right must brighten what faces right, that from above what faces up.
    right = show_ptm(data, 0.5, 0.0) - show_ptm(data, -0.5, 0.0)
    up = show_ptm(data, 0.0, 0.5) - show_ptm(data, 0.0, -0.5)
    inside = shallow[2]
    for difference, axis in ((right, 0), (up, 1)):
        assert np.corrcoef(difference[inside][:, 1], shallow[0][inside][:, axis])[0, 1] > 0.95


def test_relight_of_a_coin_equals_our_picture(shallow, tmp_path: Path) -> None:
    for name, content in encode_relight(
        fit_lights(*shallow, basis="hsh", linear=True), PixelSize.of("0.1mm")
    ).items():
        (tmp_path / name).write_bytes(content)
    assert json.loads((tmp_path / "info.json").read_text())["pixelSizeInMM"] == 0.1
    for light in LIGHTS:
        ours = 255 * relight(*shallow, light, linear=True)
        assert np.abs(show_relight(tmp_path, *light[:2], "png") - ours)[shallow[2]].max() < 2.0
        assert np.abs(show_relight(tmp_path, *light[:2], "jpg") - ours)[shallow[2]].mean() < 2.0


def test_relight_as_the_eye_sees_it(bumps, tmp_path: Path) -> None:
    model = fit_lights(bumps.normals, bumps.albedo, bumps.mask, basis="hsh")
    for name, content in encode_relight(model, PixelSize()).items():
        (tmp_path / name).write_bytes(content)
    off = []
    for light in LIGHTS:
        ours = 255 * relight(bumps.normals, bumps.albedo, bumps.mask, light)
        off.append(np.abs(show_relight(tmp_path, *light[:2], "png") - ours)[bumps.mask])
    assert np.mean(off) < 5.0
