"""Several exposures of one light become one linear photograph."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import tifffile
from PIL import Image
from PIL.TiffImagePlugin import IFDRational

from photostereo.capture import load
from photostereo.core.conventions import srgb_from_linear
from photostereo.core.errors import CaptureError
from photostereo.core.findings import by_code
from photostereo.io.camera import Shot
from photostereo.photographs.brackets import find_brackets, merge_exposures
from photostereo_lab.scenes import dome_lights, render_scene

TIMES = ((1, 400), (1, 100), (1, 25))


@pytest.fixture(scope="module")
def scene():
    """Radiance over a range that no single exposure holds."""
    capture = render_scene("sphere", size=40, lights=dome_lights(5))
    return capture, 4.0 * capture.images / capture.images.max()


def photograph(radiance, seconds, rng):
    """Linear values as a sensor gives them: full scale 1 at a radiance of 4 in 1/400 s, shot and read noise."""
    value = radiance / 4 * (seconds[0] / seconds[1]) * 400
    noisy = value + rng.normal(0, 1, value.shape) * np.sqrt(1e-5 + 1e-4 * value)
    return np.clip(noisy, 0, 1)


def write_folder(folder, scene, names, lights, *, kind="jpg"):
    capture, radiance = scene
    rng = np.random.default_rng(0)
    for (light, bracket), name in names.items():
        value = photograph(radiance[light], TIMES[bracket], rng)
        if kind == "jpg":
            stored = np.rint(255 * srgb_from_linear(value.astype(np.float32))).astype(np.uint8)
            exif = Image.Exif()
            exif.get_ifd(0x8769).update({0x829A: IFDRational(*TIMES[bracket]), 0x8827: 200})
            Image.fromarray(stored).save(folder / f"{name}.jpg", quality=100, exif=exif)
        else:
            stored = np.rint(65535 * value).astype(np.uint16)
            extra = [(0x829A, 5, 1, TIMES[bracket], True), (0x8827, 3, 1, 200, True)]
            tifffile.imwrite(
                folder / f"{name}.tif", stored, photometric="minisblack", extratags=extra
            )
    np.savetxt(folder / "lights.txt", lights)
    cv2.imwrite(str(folder / "mask.png"), 255 * capture.mask.astype(np.uint8))


def order(kind):
    pairs = [(light, bracket) for light in range(5) for bracket in range(3)]
    if kind == "series":
        pairs = [(light, bracket) for bracket in range(3) for light in range(5)]
    if (
        kind == "names"
    ):  # a different sequence each time is only told by the names, sorted as written
        return {
            (light, bracket): f"lamp{light}_{(bracket + light) % 3}" for light, bracket in pairs
        }
    return {pair: f"img{place:03d}" for place, pair in enumerate(pairs)}


@pytest.mark.parametrize("kind", ["jpg", "tif"])
@pytest.mark.parametrize("how", ["one line each", "same lines", "series", "names"])
def test_exposures_of_a_light_are_merged(tmp_path, scene, how, kind):
    capture, radiance = scene
    lights = (
        np.repeat(capture.lights.directions, 3, axis=0)
        if how == "same lines"
        else capture.lights.directions
    )
    write_folder(tmp_path, scene, order(how), lights, kind=kind)
    found = load(tmp_path)
    assert len(found) == 5 and np.allclose(
        found.lights.directions, capture.lights.directions, atol=1e-6
    )
    assert by_code(found.origin.notes)["brackets-merged"].values["lights"] == 5
    inside = capture.mask & (radiance > 0.02).all(axis=0)
    ratio = found.images[:, inside] / radiance[:, inside]
    spread = np.abs(ratio / np.median(ratio) - 1)
    assert np.median(spread) < 0.012
    assert np.percentile(spread, 99) < 0.08


def test_a_merged_photograph_beats_each_of_its_exposures():
    rng = np.random.default_rng(1)
    radiance = np.geomspace(0.002, 4, 4000).reshape(50, 80).astype(np.float32)
    shots = [photograph(radiance, time, rng).astype(np.float32) for time in TIMES]
    merged = merge_exposures(shots, [1, 4, 16], shots)

    def errors(values, scale):
        return np.sqrt(np.mean((4 * values / scale / radiance - 1) ** 2, axis=1))

    each = np.array([errors(shot, scale) for shot, scale in zip(shots, (1, 4, 16), strict=True)])
    # Where the best exposure is nearly clipped the next one is taken, which is noisier.
    assert np.median(errors(merged, 1) / each.min(axis=0)) < 1.01
    assert (errors(merged, 1).mean() < each.mean(axis=1)).all()


def test_weights_are_the_inverse_variances():
    """Against the closed form, two exposures of a pixel."""
    value, times = 0.2, np.array([1.0, 3.0])
    variance = (1 + value * times / 0.01) / times**2
    stored = [np.full((1, 1), 0.21, np.float32), np.full((1, 1), 0.594, np.float32)]
    estimates = np.array([0.21, 0.198])
    expected = (estimates / variance).sum() / (1 / variance).sum()
    assert abs(float(merge_exposures(stored, times, stored)[0, 0]) - expected) < 2e-4


def test_clipped_everywhere_is_as_bright_as_the_shortest_says():
    white = np.ones((2, 2), np.float32)
    assert np.allclose(merge_exposures([white, white], [1, 4], [white, white]), 1)


def test_what_is_not_a_bracket_is_left_alone():
    files = [Path(f"{k}.jpg") for k in range(8)]
    lights = np.random.default_rng(0).normal(size=(8, 3))
    changing = [Shot(seconds=0.01 * (1 + k % 2)) for k in range(8)]
    assert find_brackets(files, changing, lights) is None  # a line for each, and all different
    assert find_brackets(files, [Shot()] * 8, lights[:4]) is None  # no times: nobody knows
    assert (
        find_brackets(files, [Shot(seconds=0.01)] * 8, lights[:4]) is None
    )  # not exposed differently
    assert find_brackets(files, changing, lights[:3]) is None  # eight photographs of three lights
    assert find_brackets(files, changing) == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_without_times_the_error_tells_of_brackets(tmp_path, scene):
    capture, _ = scene
    for place in range(10):
        cv2.imwrite(str(tmp_path / f"{place}.png"), np.full((8, 8), 90, np.uint8))
    np.savetxt(tmp_path / "lights.txt", capture.lights.directions)
    with pytest.raises(CaptureError, check=lambda e: e.code == "lights-count"):
        load(tmp_path)
