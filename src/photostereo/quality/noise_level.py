"""How noisy the photographs are, without knowing the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from photostereo.conventions import BoolArray, FloatArray

#: Median absolute deviation to standard deviation of a normal distribution.
MAD_TO_SIGMA = 1.482602218505602
#: Enough 2 × 2 blocks for a steady median in each brightness class.
SAMPLE_BLOCKS = 1_500_000
BRIGHTNESS_CLASSES = 12


@dataclass(frozen=True)
class NoiseEstimate:
    """Noise of the photographs; see :func:`estimate_noise`.

    Attributes
    ----------
    sigma : root mean square noise, in the units of the photographs
    snr_db : 10 log10(mean intensity² / σ²) inside the mask; infinite without noise, -infinite without signal
    expected_error : the median angle in degrees by which this noise alone turns a least-squares normal
    from_residual : False where three photographs left no residual, so fine texture counts as noise
    """

    sigma: float
    snr_db: float
    expected_error: float
    from_residual: bool


def estimate_noise(images: FloatArray, lights: FloatArray, mask: BoolArray) -> NoiseEstimate:
    """Noise level of gray photographs (d, H, W) under lights (d, 3).

    What is noise and what is the object? Texture is the same in all photographs, shadows and highlights are
    smooth in space, noise is neither. So: take from each photograph its least-squares matte fit ``Lᵀ n``
    (removes texture), then the second difference over 2 × 2 blocks, ``(r00 − r01 − r10 + r11) / 2`` (removes
    what is smooth, keeps white noise at its standard deviation), and measure by the median absolute deviation
    (edges of shadows are outliers). A residual of d photographs has lost the variance ``h_jj`` of the fit,
    ``h = Lᵀ (L Lᵀ)⁻¹ L``; it is put back. The noise of photons grows with brightness, so the deviation is
    taken in classes of fitted brightness and averaged as power.

    Fails where noise is correlated between neighbours (strong JPEG compression, demosaicing): the figure is
    then too low. Texture finer than two pixels on a shiny object makes it too high.

    References
    ----------
    J. Immerkær, Fast noise variance estimation, CVIU 64(2), 1996, doi:10.1006/cviu.1996.0060.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> lights = np.array([[0, 0, 1], [0.6, 0, 0.8], [0, 0.6, 0.8], [-0.6, 0, 0.8], [0, -0.6, 0.8]])
    >>> images = np.broadcast_to(lights[:, 2, None, None], (5, 64, 64)) + rng.normal(0, 0.02, (5, 64, 64))
    >>> round(estimate_noise(images, lights, np.ones((64, 64), bool)).sigma, 2)
    0.02
    """
    lights = np.asarray(lights, dtype=np.float64)
    count = len(images)
    inverse = np.linalg.pinv(lights)  # 3 × d
    normals = np.tensordot(inverse.astype(np.float32), np.asarray(images, np.float32), axes=1)  # 3 × H × W
    leverage = np.einsum("jk,kj->j", lights, inverse)
    from_residual = count > 3
    blocks = mask[:-1, :-1] & mask[1:, :-1] & mask[:-1, 1:] & mask[1:, 1:]
    details, brightness = [], []
    for j in _spread_choice(count, max(1, int(blocks.sum()))):
        fitted = np.tensordot(lights[j].astype(np.float32), normals, axes=1)
        keep = 1.0 - leverage[j]
        if from_residual and keep < 0.05:
            continue  # nearly interpolated: its residual says nothing
        signal = images[j] - fitted if from_residual else images[j]
        detail = (signal[:-1, :-1] - signal[1:, :-1] - signal[:-1, 1:] + signal[1:, 1:])[blocks] * 0.5
        details.append(detail / np.sqrt(keep) if from_residual else detail)
        brightness.append(fitted[:-1, :-1][blocks])
    power = _power_by_brightness(np.concatenate(details), np.concatenate(brightness)) if details else 0.0
    index = np.flatnonzero(mask)
    sample = np.asarray(images).reshape(count, -1)[:, index[:: max(1, len(index) // 30_000)]]
    # The noise itself is part of what was measured.
    signal_power = max(float(np.mean(sample.astype(np.float64) ** 2)) - power, 0.0)
    sigma = float(np.sqrt(power))
    return NoiseEstimate(
        sigma=sigma,
        snr_db=_decibels(signal_power, power),
        expected_error=_expected_error(sigma, normals[:, mask], lights),
        from_residual=from_residual,
    )


def _decibels(signal: float, noise: float) -> float:
    if noise <= 0:
        return float("inf")
    return float(10 * np.log10(signal / noise)) if signal > 0 else float("-inf")


def _spread_choice(count: int, blocks: int) -> list[int]:
    """Photographs spread evenly over the capture, as many as the sample needs."""
    wanted = int(np.clip(SAMPLE_BLOCKS // blocks, 6, count)) if count > 6 else count
    return sorted({round(position) for position in np.linspace(0, count - 1, wanted)})


def _power_by_brightness(details: NDArray[np.floating], brightness: NDArray[np.floating]) -> float:
    if details.size == 0:
        return 0.0
    sample = brightness[:: max(1, brightness.size // 100_000)]
    edges = np.unique(np.quantile(sample, np.linspace(0, 1, BRIGHTNESS_CLASSES + 1)[1:-1]))
    labels = np.digitize(brightness, edges)
    total = 0.0
    for label in range(len(edges) + 1):
        inside = details[labels == label]
        if inside.size:
            total += inside.size * (MAD_TO_SIGMA * float(np.median(np.abs(inside)))) ** 2
    return total / details.size


def _expected_error(sigma: float, normals: FloatArray, lights: FloatArray) -> float:
    """Median angle in degrees: the tangential part of σ² (L Lᵀ)⁻¹ over the length of each normal."""
    sample = normals[:, :: max(1, normals.shape[1] // 20_000)].astype(np.float64)
    length = np.linalg.norm(sample, axis=0)
    sample, length = sample[:, length > 0], length[length > 0]
    if not length.size:
        return 0.0
    covariance = np.linalg.inv(lights.T @ lights)
    unit = sample / length
    tangential = np.trace(covariance) - np.einsum("in,ij,jn->n", unit, covariance, unit)
    angle = np.degrees(np.arctan(sigma * np.sqrt(np.maximum(tangential, 0)) / length))
    return float(np.median(angle))
