"""What the learned model does before and around its network: the same on tensors as in NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from photostereo.core.control import Control
from photostereo.diagnosis.noise import Noise, has_blocks, step_of_levels
from photostereo.lights.exposure import estimate_strengths
from photostereo.reflectance.learned.matte import fit_both, misfits_around
from photostereo.reflectance.learned.neighbors import average_neighbors
from photostereo.runtime.arrays import find_device, matmul_precision, to_numpy
from photostereo.runtime.quantiles import (
    interpolate,
    known_medians,
    median,
    quantiles,
    row_quantiles,
)
from photostereo.solver.solve import solve
from photostereo_lab.corruptions import add_gaussian
from photostereo_lab.scenes import dome_lights, render_scene


@pytest.fixture(scope="module")
def scene():
    """A glossy sphere with noise, cut by the frame, and one photograph brighter than stated."""
    capture = render_scene("sphere", size=60, lights=dome_lights(16), reflectance="ggx")
    capture = replace(capture, mask=capture.mask & (np.arange(60) < 50))
    images = add_gaussian(capture, 0.01, rng=0).images.copy()
    images[3] *= 1.4
    return capture.with_images(images)


@pytest.fixture
def put(device):
    return find_device(device).put


@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_order_statistics_are_those_of_numpy(count, put) -> None:
    rng = np.random.default_rng(count)
    values = rng.normal(size=(count, 3))
    shares = [0.0, 0.37, 0.5, 0.99, 1.0]
    np.testing.assert_allclose(
        quantiles(put(values), shares), np.quantile(values, shares), rtol=1e-12
    )
    assert median(put(values)) == pytest.approx(np.median(values), rel=1e-12)
    rows = np.ascontiguousarray(values.T)
    np.testing.assert_allclose(
        to_numpy(row_quantiles(put(rows), 0.9)),
        np.quantile(rows, 0.9, axis=1, keepdims=True),
        rtol=1e-12,
    )
    holes = np.where(rng.random(values.shape) < 0.4, np.nan, values)
    holes[0] = values[0]
    np.testing.assert_allclose(known_medians(holes), np.nanmedian(holes, axis=0), rtol=1e-12)
    assert np.isnan(known_medians(np.full((3, 1), np.nan)))


def test_interpolation_is_that_of_numpy(put) -> None:
    x = np.linspace(-1.0, 4.0, 51).astype(np.float32)  # with the places themselves
    for places in ([0.0, 1.0, 1.0, 3.0], [2.0]):
        values = np.array([5.0, -1.0, 2.0, 7.0])[: len(places)]
        expected = np.interp(x, places, values)
        np.testing.assert_allclose(
            to_numpy(interpolate(put(x), np.array(places), values)), expected, atol=1e-6
        )


def test_noise_steps_and_blocks_are_the_same(scene, put) -> None:
    lights, mask, pixels = scene.lights.matrix, scene.mask, scene.pixels()
    there = put(pixels)
    for here, found in zip(
        Noise(pixels, lights, mask).by_brightness().fine,
        Noise(there, lights, mask).by_brightness().fine,
        strict=True,
    ):
        np.testing.assert_allclose(found, here, rtol=1e-5)
    assert Noise(there, lights, mask).sigma == pytest.approx(Noise(pixels, lights, mask).sigma)
    eight_bits = np.round(pixels * 255) / np.float32(255)
    assert step_of_levels(put(eight_bits)) == step_of_levels(eight_bits) > 0
    assert step_of_levels(there) == step_of_levels(pixels) == 0
    rng = np.random.default_rng(0)
    whole = np.ones((64, 64), bool)
    coarse = np.kron(rng.normal(0, 0.01, (8, 8, 16)), np.ones((8, 8, 1))) + rng.normal(
        0, 0.01, (64, 64, 16)
    )
    assert has_blocks(put(coarse.reshape(-1, 16)), lights, whole)
    assert not has_blocks(there, lights, mask)


@pytest.mark.parametrize("width", [2, 3, 5])
def test_a_few_pixels_tell_their_noise(width, put) -> None:
    """Fewer blocks than classes of brightness: a class without any is left out."""
    lights, mask = dome_lights(6).T, np.ones((2, width), bool)
    pixels = np.random.default_rng(0).random((2 * width, 6), dtype=np.float32)
    for places, variances in (
        Noise(pixels, lights, mask).by_brightness().fine,
        Noise(put(pixels), lights, mask).by_brightness().fine,
    ):
        assert len(places) == len(variances) >= 1
        assert np.isfinite(places).all() and (variances > 0).all()


def test_misfits_strengths_and_averages_are_the_same(scene, put) -> None:
    lights, mask, pixels = scene.lights.matrix, scene.mask, scene.pixels()
    there = put(pixels)
    noise = Noise(pixels, lights, mask).by_brightness().at(pixels).fine
    assert noise.any()
    found, expected = (
        estimate_strengths(*parts).factors
        for parts in ((there, lights, put(noise)), (pixels, lights, noise))
    )
    assert np.flatnonzero(expected != 1.0).tolist() == [3]
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    for a, b in zip(
        misfits_around(fit_both(there, lights, put(noise)), put(noise), mask),
        misfits_around(fit_both(pixels, lights, noise), noise, mask),
        strict=True,
    ):
        np.testing.assert_allclose(to_numpy(a), b, atol=1e-3)
    colors = np.stack([pixels, 2 * pixels], -1)
    (quiet, share), (wanted, left) = (
        average_neighbors(put(colors), there, mask, put(noise)),
        average_neighbors(colors, pixels, mask, noise),
    )
    np.testing.assert_allclose(to_numpy(quiet), wanted, atol=1e-5)
    np.testing.assert_allclose(to_numpy(share), left, rtol=1e-4)
    assert left.min() < 0.5  # something was averaged


def test_steps_of_uneven_levels_are_the_same(put) -> None:
    rng = np.random.default_rng(0)
    levels = (np.arange(40) / 40.0) ** 2.2
    few, many = levels[rng.integers(0, 40, (2000, 5))], rng.random((2000, 5))
    for sample in (
        few,
        np.hstack([few, many[:, :3]]),
        np.hstack([few[:, :2], many[:, :3]]),
        few[:, :1] * 0,
    ):
        assert step_of_levels(put(sample)) == pytest.approx(step_of_levels(sample), rel=1e-12)


def test_a_solve_is_exact_whatever_precision_is_set_around_it(device) -> None:
    capture = add_gaussian(render_scene("sphere", size=40, lights=dome_lights(8)), 0.01, rng=0)
    seen = []
    control = Control()
    control.stage = lambda *anything: seen.append(torch.get_float32_matmul_precision())
    expected = solve(capture, "dlnet", device=device, max_iter=2).normals
    torch.set_float32_matmul_precision("high")
    try:
        found = solve(capture, "dlnet", device=device, max_iter=2, control=control).normals
        assert torch.get_float32_matmul_precision() == "high"  # the program's own choice is kept
    finally:
        torch.set_float32_matmul_precision("highest")
    assert set(seen) == {"highest"}
    assert np.array_equal(found, expected)


@pytest.mark.skipif(
    not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="torch is older"
)
@pytest.mark.parametrize("chosen", ["none", "ieee", "tf32"])
def test_a_precision_that_was_set_for_one_library_is_kept(chosen) -> None:
    library = torch.backends.cuda.matmul
    before, library.fp32_precision = library.fp32_precision, chosen
    try:
        with matmul_precision("highest"):
            assert library.fp32_precision == "ieee"
        assert library.fp32_precision == chosen
    finally:
        library.fp32_precision = before


@pytest.mark.parametrize("count", [3, 12])
def test_no_rounding_turns_the_outline_around(count, device) -> None:
    """Three photographs leave no misfit, and no noise: all of the matte fit is believed, and no more than all of it."""
    capture = render_scene("sphere", size=32, lights=dome_lights(count), reflectance="ggx")
    capture = add_gaussian(capture, 0.01, rng=0) if count == 3 else capture
    expected, found = solve(capture, "net"), solve(capture, "net", device=device)
    assert np.isfinite(found.maps["spread"]).all()
    assert np.abs(found.normals - expected.normals).max() < 1e-3


@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("method", ["net", "dlnet"])
def test_whole_solves_are_the_same(method, color, device) -> None:
    capture = render_scene(
        "sphere", size=48, lights=dome_lights(12), reflectance="ggx", color=color
    )
    capture = add_gaussian(capture, 0.01, rng=0)
    options = {"max_iter": 4} if method == "dlnet" else {}
    expected, found = (
        solve(capture, method, **options),
        solve(capture, method, device=device, **options),
    )
    apart = np.linalg.norm((expected.normals - found.normals)[capture.mask], axis=1)
    assert np.degrees(apart.mean()) < 0.01
    np.testing.assert_allclose(found.albedo, expected.albedo, atol=2e-3)
    np.testing.assert_allclose(found.maps["spread"], expected.maps["spread"], rtol=0.01, atol=0.01)
