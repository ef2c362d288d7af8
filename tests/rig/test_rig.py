"""A prepared rig: the same normals as least squares, robust to one bad photograph, and nothing is allocated."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import photostereo as ps
from photostereo.rig.rig import FLOOR, ROUNDS
from photostereo_lab.scenes import dome_lights, render_scene


@pytest.fixture(scope="module")
def capture() -> ps.Capture:
    return render_scene("figure", size=96, lights=dome_lights(8), reflectance="ggx")


def stored(capture: ps.Capture, bits: int = 16) -> np.ndarray:
    top = 2**bits - 1
    return np.rint(top * np.clip(capture.images, 0, 1)).astype(np.uint8 if bits == 8 else np.uint16)


def test_least_squares_is_the_pseudo_inverse(capture: ps.Capture) -> None:
    images = stored(capture)
    part = ps.Rig(capture.lights).solve(images)
    scaled = np.einsum("cd,dhw->hwc", np.linalg.pinv(capture.lights.directions), images / 65535.0)
    length = np.linalg.norm(scaled, axis=-1)
    np.testing.assert_allclose(part.albedo, length, atol=1e-6)
    bright = length > 0.01
    unit = scaled[bright] / length[bright, None]
    np.testing.assert_allclose(part.normals[bright], unit, atol=1e-5)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32])
def test_stored_numbers_of_every_kind(kind: type) -> None:
    lights = dome_lights(5)
    normal = np.array([0.0, 0.6, 0.8])
    top = 1.0 if kind is np.float32 else np.iinfo(kind).max
    images = (top * 0.5 * np.maximum(lights @ normal, 0))[:, None, None] * np.ones((5, 3, 4))
    part = ps.Rig(lights).solve(images.astype(kind))
    np.testing.assert_allclose(part.normals, np.broadcast_to(normal, (3, 4, 3)), atol=0.02)
    np.testing.assert_allclose(part.albedo, 0.5, atol=0.01)


def test_strengths_are_divided_out() -> None:
    lights = dome_lights(6)
    strengths = np.linspace(0.6, 1.5, 6)
    normal = np.array([0.28, 0.0, 0.96])
    images = (0.4 * strengths * (lights @ normal)).astype(np.float32)[:, None, None]
    for method in ("ls", "l1"):
        part = ps.Rig(ps.Lights(lights, strengths=strengths), method=method).solve(images)
        np.testing.assert_allclose(part.normals[0, 0], normal, atol=1e-4)
        np.testing.assert_allclose(part.albedo[0, 0], 0.4, atol=1e-4)


def test_one_bad_photograph_does_not_matter() -> None:
    lights = dome_lights(8)
    normal = np.array([0.28, 0.0, 0.96])
    images = np.tile((0.5 * (lights @ normal)).astype(np.float32)[:, None, None], (1, 2, 2))
    images[3] = 1.0  # a highlight
    part = ps.Rig(lights, method="l1").solve(images)
    assert np.degrees(np.arccos((part.normals @ normal).clip(-1, 1))).max() < 0.2
    plain = ps.Rig(lights).solve(images)
    assert np.degrees(np.arccos((plain.normals @ normal).clip(-1, 1))).min() > 2


def test_reweighting_solves_its_equations(capture: ps.Capture) -> None:
    """Compared with the same rounds in NumPy, one pixel at a time."""
    images = capture.images.astype(np.float32)
    lights = capture.lights.directions
    part = ps.Rig(capture.lights, method="l1").solve(images)
    rows, columns = np.nonzero(capture.mask)
    for k in range(0, len(rows), 401):
        values = images[:, rows[k], columns[k]].astype(np.float64)
        x = np.linalg.pinv(lights) @ values
        least = max(FLOOR * values.max(), 1e-30)
        for _ in range(ROUNDS):
            weights = least / np.maximum(np.abs(values - lights @ x), least)
            x = np.linalg.solve((lights.T * weights) @ lights, (lights.T * weights) @ values)
        np.testing.assert_allclose(
            part.normals[rows[k], columns[k]], x / np.linalg.norm(x), atol=2e-3
        )


def test_ambient_light_is_subtracted(capture: ps.Capture) -> None:
    images = capture.images.astype(np.float32)
    dark = np.linspace(0, 0.2, images[0].size, dtype=np.float32).reshape(images[0].shape)
    for method in ("ls", "l1"):
        clean = ps.Rig(capture.lights, method=method).solve(images)
        part = ps.Rig(capture.lights, method=method, ambient=dark).solve(images + dark)
        np.testing.assert_allclose(part.albedo, clean.albedo, atol=3e-4)


def test_a_batch_is_its_parts(capture: ps.Capture) -> None:
    rig = ps.Rig.of(capture)
    images = stored(capture, 8)
    batch = rig.solve(np.stack([images, images[::-1]]))
    np.testing.assert_array_equal(batch.normals[1], rig.solve(images[::-1]).normals)
    assert (batch.normals[:, ~capture.mask] == 0).all()


def test_nothing_is_allocated_per_part(capture: ps.Capture) -> None:
    rig = ps.Rig(capture.lights)
    images = np.tile(stored(capture, 8), (1, 4, 4))
    part = rig.solve(images)
    tracemalloc.start()
    assert rig.solve(images, out=part) is part
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000 < part.albedo.nbytes


def test_gradients_are_those_of_a_plane() -> None:
    normal = np.array([-0.3, 0.2, 1.0]) / np.linalg.norm([-0.3, 0.2, 1.0])
    lights = dome_lights(6)
    images = (0.5 * (lights @ normal)).astype(np.float32)[:, None, None]
    right, up = ps.Rig(lights).solve(images).gradients
    np.testing.assert_allclose([right[0, 0], up[0, 0]], [0.3, -0.2], atol=1e-5)


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_a_saved_rig_is_the_same(tmp_path: Path, capture: ps.Capture, suffix: str) -> None:
    rig = ps.Rig(capture.lights, method="l1")
    ps.save_rig(rig, tmp_path / f"rig{suffix}")
    loaded = ps.load_rig(tmp_path / f"rig{suffix}")
    images = stored(capture)
    assert loaded.method == "l1"
    np.testing.assert_array_equal(loaded.solve(images).normals, rig.solve(images).normals)


def test_a_mask_needs_an_archive(tmp_path: Path, capture: ps.Capture) -> None:
    rig = ps.Rig.of(capture)
    with pytest.raises(ps.ParameterError) as error:
        ps.save_rig(rig, tmp_path / "rig.json")
    assert error.value.code == "rig-needs-npz"
    ps.save_rig(rig, tmp_path / "rig.npz")
    np.testing.assert_array_equal(ps.load_rig(tmp_path / "rig.npz").mask, capture.mask)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: ps.Rig(dome_lights(5), method="best"), "unknown-rig-method"),
        (lambda: ps.Rig([[1, 0, 1], [-1, 0, 1], [0.5, 0, 1]]), "rig-coplanar"),
        (lambda: ps.Rig(dome_lights(5)).solve(np.zeros((4, 8, 8), np.uint8)), "rig-images"),
        (lambda: ps.Rig(dome_lights(5)).solve(np.zeros((8, 8), np.uint8)), "rig-images"),
        (
            lambda: ps.Rig(dome_lights(5), np.ones((4, 4), bool)).solve(np.zeros((5, 8, 8))),
            "rig-frame",
        ),
    ],
)
def test_mistakes_are_explained(make, code: str) -> None:
    with pytest.raises(ps.ParameterError) as error:
        make()
    assert error.value.code == code


def test_a_file_that_is_no_rig(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[1, 2]")
    with pytest.raises(ps.CaptureError) as error:
        ps.load_rig(tmp_path / "x.json")
    assert error.value.code == "not-a-rig"
