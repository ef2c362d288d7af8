"""The noise that λ and μ are chosen from: of every kind that disturbs a normal, and of nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.diagnosis.noise import Noise
from photostereo_lab.scenes import dome_lights

SIZE = 80


def matte(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Intensities without noise of a matte surface with random texture, its lights, its mask."""
    rng = np.random.default_rng(1)
    normals = rng.normal(0, 0.1, (SIZE * SIZE, 3)) + np.array([0.1, 0.2, 0.9])
    albedo = rng.uniform(0.2, 1.0, (SIZE * SIZE, 1))
    lights = dome_lights(count).T
    return (albedo * normals) @ lights, lights, np.ones((SIZE, SIZE), bool)


@pytest.mark.parametrize("count", [4, 5, 20, 96])
def test_gaussian_noise_is_measured_and_texture_is_not(count: int) -> None:
    clean, lights, mask = matte(count)
    assert Noise(clean, lights, mask).sigma < 1e-12
    noisy = clean + np.random.default_rng(0).normal(0, 0.03, clean.shape)
    assert Noise(noisy, lights, mask).sigma == pytest.approx(0.03, rel=0.03)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_lost_entries_count_with_their_variance(share: float) -> None:
    """They disturb a least-squares normal as noise of this variance does."""
    clean, lights, mask = matte(20)
    rng = np.random.default_rng(0)
    error = np.where(rng.random(clean.shape) < share, rng.choice([-1.0, 1.0], clean.shape), 0.0)
    found = Noise(clean + error, lights, mask).sigma
    assert found == pytest.approx(np.sqrt(share), rel=0.12)


def test_edges_of_shadows_do_not_count() -> None:
    """Each photograph of a smooth surface has a shadow of its own, over a quarter of the frame or more."""
    lights, mask = dome_lights(20).T, np.ones((SIZE, SIZE), bool)
    shaded = np.tile(np.array([0.1, 0.2, 0.9]) @ lights, (SIZE, SIZE, 1))
    for photograph in range(20):
        shaded[: 20 + 2 * photograph, :, photograph] *= 0.2
        shaded[:, : 20 + photograph, photograph] *= 0.2
    jumps = np.diff(shaded, axis=0)
    assert np.sqrt((jumps**2).mean() / 2) > 0.03  # what a plain difference would take for noise
    noisy = shaded.reshape(-1, 20) + np.random.default_rng(0).normal(0, 0.01, (SIZE * SIZE, 20))
    assert Noise(noisy, lights, mask).sigma == pytest.approx(0.01, rel=0.05)


def test_three_photographs_and_masks_without_a_block() -> None:
    clean, lights, mask = matte(3)
    smooth = np.ones_like(clean) + np.random.default_rng(0).normal(0, 0.02, clean.shape)
    assert Noise(smooth, lights, mask).sigma == pytest.approx(0.02, rel=0.05)
    line = np.zeros((SIZE, SIZE), bool)
    line[3] = True
    assert Noise(clean[:SIZE], lights, line).sigma == 0.0
