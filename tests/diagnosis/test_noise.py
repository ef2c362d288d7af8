"""Steps of eight bits and blocks of JPEG are told from noise, and count as what they are."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from photostereo.diagnosis import noise as noise_module
from photostereo.diagnosis.noise import VALUES_PER_LEVEL, Noise, step_of_levels
from photostereo.diagnosis.noise_fields import more_noise, noise_fields
from photostereo.solver.tiles import choose_sample
from photostereo_lab.corruptions import add_gaussian
from photostereo_lab.scenes import dome_lights, render_scene


@pytest.fixture(scope="module")
def relief():
    return render_scene("relief", size=128, lights=dome_lights(8), cast_shadows=False)


def measure(capture):
    return Noise.of_images(capture.images, capture.lights, capture.mask).estimate()


def quantized(capture, levels):
    return replace(capture, images=(np.round(capture.images * levels) / levels).astype(np.float32))


def test_eight_bits_are_told_from_noise(relief) -> None:
    found = measure(quantized(relief, 255))
    assert found.step == pytest.approx(1 / 255, rel=0.01)
    error = np.std(quantized(relief, 255).images - relief.images)
    assert found.sigma == pytest.approx(error, rel=0.2)
    assert not found.blocks


@pytest.mark.parametrize("sigma", [0.002, 0.01])
def test_noise_above_the_steps_is_measured_as_it_is(relief, sigma) -> None:
    fine, coarse = (
        measure(quantized(add_gaussian(relief, sigma, rng=0), top)) for top in (65535, 255)
    )
    assert fine.step < 1e-4 and not fine.blocks and not coarse.blocks
    assert fine.sigma == pytest.approx(sigma, rel=0.1)
    assert coarse.sigma == pytest.approx(np.hypot(sigma, 1 / 255 / np.sqrt(12)), rel=0.15)


@pytest.mark.parametrize("quality", [50, 75])
def test_blocks_of_jpeg_are_seen(relief, quality) -> None:
    noisy = add_gaussian(relief, 0.01, rng=0)
    pictures = np.clip(np.round(noisy.images * 255), 0, 255).astype(np.uint8)
    files = [
        cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
        for picture in pictures
    ]
    read = np.stack([cv2.imdecode(file, cv2.IMREAD_GRAYSCALE) for file in files]) / np.float32(255)
    compressed = replace(relief, images=read.astype(np.float32))
    found = measure(compressed)
    assert found.blocks
    error = float(np.std(compressed.images - relief.images))
    assert 0.5 * error < found.sigma < 2.0 * error


def as_jpeg(images: np.ndarray) -> np.ndarray:
    """Read back from files of quality 90, in the intensities that a camera would store."""
    pictures = np.round(255 * np.clip(images, 0, 1) ** (1 / 2.2)).astype(np.uint8)
    files = [
        cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 90])[1] for picture in pictures
    ]
    return (
        np.stack([cv2.imdecode(f, cv2.IMREAD_GRAYSCALE) for f in files]) / np.float32(255)
    ) ** 2.2


def test_blocks_are_seen_in_a_sample_whose_crops_lie_one_below_the_other() -> None:
    noisy = add_gaussian(render_scene("coin", size=320, lights=dome_lights(8)), 0.002, rng=0)
    sample = choose_sample(noisy.mask, crops=60)
    found = [
        noise_module.has_blocks(
            images.reshape(8, -1)[:, sample.index].T, noisy.lights.matrix, sample.mask
        )
        for images in (noisy.images, as_jpeg(noisy.images))
    ]
    assert found == [False, True]


def test_edges_of_shadows_are_no_noise_that_blocks_share() -> None:
    """Pixels eight apart, across the edges, would make it twice as large."""
    clean = render_scene("figure", size=128, lights=dome_lights(20), cast_shadows=True)
    read = as_jpeg(add_gaussian(clean, 0.01, rng=0).images)[:, clean.mask].T
    noise = Noise(read, clean.lights.matrix, clean.mask)
    error = float(np.std(read - clean.images[:, clean.mask].T))
    assert noise.has_blocks
    assert np.sqrt(noise.by_brightness().at(read).coarse.mean()) == pytest.approx(error, rel=0.3)


def test_blocks_under_noise_are_told_by_many_photographs(monkeypatch) -> None:
    """Blocks of 0.4 times the noise: twelve of 48 photographs do not tell them, all do; noise alone is no block."""
    lights, mask = dome_lights(48).T, np.ones((64, 64), bool)
    seen, white, by_twelve = [], [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        noise = rng.normal(0.0, 0.01, (64, 64, 48))
        steps = np.kron(rng.normal(0.0, 0.004, (8, 8, 48)), np.ones((8, 8, 1)))
        seen.append(noise_module.has_blocks((noise + steps).reshape(-1, 48), lights, mask))
        white.append(noise_module.has_blocks(noise.reshape(-1, 48), lights, mask))
        with monkeypatch.context() as patch:
            patch.setattr(noise_module, "MOST_VALUES", 0)
            by_twelve.append(noise_module.has_blocks((noise + steps).reshape(-1, 48), lights, mask))
    assert sum(seen) >= 3 and not any(white) and sum(by_twelve) < sum(seen)


@pytest.mark.parametrize(
    "levels", [(16,) * 5, (16, 16, 16, 4000, 4000), (16, 16, 4000, 4000, 4000), (250, 251) * 3]
)
def test_steps_are_told_without_sorting_everything(levels) -> None:
    """The short cuts change nothing: all photographs sorted, the median of the steps of those with few levels."""
    rng = np.random.default_rng(0)
    sample = np.stack([rng.integers(0, n, 2000) / n for n in levels], axis=1).astype(np.float32)
    few = [
        n
        for n, values in zip(levels, sample.T, strict=True)
        if len(values) >= VALUES_PER_LEVEL * len(set(values))
    ]
    expected = np.median([1 / n for n in few]) if 2 * len(few) > len(levels) else 0.0
    assert step_of_levels(sample) == pytest.approx(expected, rel=1e-6)


#: Five lights, as columns.
CROSS = np.array(
    [[0.0, 0.5, 0.0, -0.5, 0.0], [0.0, 0.0, 0.5, 0.0, -0.5], [1.0, 0.9, 0.9, 0.9, 0.9]]
)


def test_texture_is_no_noise_and_smooth_noise_is_measured_over_blocks() -> None:
    rng = np.random.default_rng(0)
    texture, mask = (
        rng.uniform(0.2, 1.0, (4096, 1)) * np.array([[0.1, 0.2, 0.9]]),
        np.ones((64, 64), bool),
    )
    noise = Noise(texture @ CROSS + rng.normal(0, 0.05, (4096, 5)), CROSS, mask)
    of_pixels = noise.by_brightness().at(noise.pixels)
    assert noise.sigma == pytest.approx(0.05, abs=0.005) and not noise.has_blocks
    assert (
        of_pixels.fine.mean() ** 0.5 == pytest.approx(0.05, abs=0.005) and of_pixels.coarse is None
    )
    smooth = Noise(
        np.kron(rng.normal(0, 0.05, (8, 8, 5)), np.ones((8, 8, 1))).reshape(-1, 5), CROSS, mask
    )
    assert smooth.sigma < 0.01 and smooth.over_blocks == pytest.approx(0.05, abs=0.005)


def test_blocks_are_told_from_fine_noise() -> None:
    rng = np.random.default_rng(0)
    fine, mask = rng.normal(0, 0.01, (64, 64, 5)), np.ones((64, 64), bool)
    jumps = fine + np.kron(rng.normal(0, 0.01, (8, 8, 5)), np.ones((8, 8, 1)))
    assert [
        noise_module.has_blocks(noise.reshape(-1, 5), CROSS, mask) for noise in (fine, jumps)
    ] == [
        False,
        True,
    ]


def test_fields_of_noise_have_the_correlation_and_the_power_of_the_noise() -> None:
    rng = np.random.default_rng(0)
    surface = rng.uniform(0.2, 1.0, (2500, 1)) * np.array([[0.1, 0.2, 0.9]])
    noise = np.repeat(rng.normal(0, 0.01, (1250, 5)), 2, axis=0)  # pairs of pixels share it
    fields = noise_fields(surface @ CROSS + noise, CROSS, 0.01)
    np.testing.assert_allclose(fields[::2], fields[1::2])
    assert (fields**2).mean() == pytest.approx(1.0, abs=0.05)
    more = more_noise(0.5 * CROSS[2] + noise, CROSS, 0.01)
    np.testing.assert_allclose(more[::2], more[1::2], atol=1e-8)
    assert np.sqrt((more**2).mean()) == pytest.approx(0.01, abs=0.005)
