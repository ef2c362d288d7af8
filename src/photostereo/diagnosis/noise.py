"""The noise of photographs, estimated without knowing the truth: used for λ, μ and the advice.

What is noise and what is the object? Texture is the same in all photographs, shadows and highlights are smooth in
space, noise is neither. So: take from each photograph its least-squares matte fit (removes texture), then a second
difference over 2 × 2 blocks, ``(a − b − c + d) / 2`` (zero on anything linear along a row or a column, unit gain for
white noise). The squares are summed over the photographs, because a normal is fitted to all of them, and an entry
that was lost disturbs it as noise of the same variance does; their median over the blocks leaves out the edges of
shadows and highlights.

Two kinds of error escape a high-pass filter, and are measured separately:

- **Steps.** Eight bits leave few levels. If noise is smaller than a step, neighbors fall on the same level and
  the filter gives zero, yet each value is wrong by up to half a step: its variance is step²/12.
- **Blocks.** JPEG removes fine noise and leaves errors that are correlated over 8 × 8 pixels. They show as jumps that are
  larger, or smaller, at every eighth column and row of the file; a second difference over eight pixels, from block
  to block, measures them. They count in the advice, but not for λ and μ: a dictionary cannot remove errors that are
  correlated over a patch.

References
----------
J. Immerkær, Fast noise variance estimation, CVIU 64(2), 1996, doi:10.1006/cviu.1996.0060.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray, FloatArray, gray_from_rgb
from photostereo.diagnosis.blocks import has_blocks
from photostereo.runtime.arrays import Array, cast, like, to_numpy
from photostereo.runtime.illumination import shading, some_lights, without_matte
from photostereo.runtime.order import median

#: 2 × 2 blocks that the noise is estimated on, up to twice as many, evenly spread.
BLOCKS = 10_000
#: Pixels that the signal is measured on, up to twice as many, evenly spread.
SAMPLED = 30_000
#: Photographs are quantized if each of their levels occurs this often in the sample.
VALUES_PER_LEVEL = 8
#: Pixels whose residuals the noise is read from, up to twice as many.
RESIDUALS_FROM = 20_000
#: The share of the residuals that the noise is read from, and where that quantile of |x| lies for a Gaussian.
INLIER_SHARE, INLIER_QUANTILE = 2 / 3, 0.9674
#: The same for the entries that saw light; and the residual below which an entry was fitted exactly.
LIT_SHARE, LIT_QUANTILE, FITTED = 1 / 3, 0.4307, 1e-6


@dataclass(frozen=True)
class NoiseEstimate:
    """Noise of the photographs; see :func:`estimate_noise`."""

    #: root mean square error of one intensity from noise, steps and blocks, in the units of the photographs
    sigma: float
    #: 10 log10(mean intensity² / σ²) inside the mask; infinite without noise, -infinite without signal
    snr_db: float
    #: the median angle in degrees by which this noise alone turns a least-squares normal
    expected_error: float
    #: False if three photographs left no residual, so that fine texture counts as noise
    from_residual: bool
    step: float = 0.0  #: distance between the levels of the photographs if they have few; else 0
    blocks: bool = False  #: whether the 8 × 8 blocks of JPEG compression were detected


def noise_of_intensities(pixels: Array, lights: NDArray[Any], mask: BoolArray) -> float:
    """σ, the standard deviation of one intensity's error from noise and steps: what λ and μ are chosen from.

    Three photographs leave no residual; then the intensities (N, d) themselves are filtered, and fine texture
    counts as noise. Returns 0 if the mask holds no 2 × 2 block.

    >>> rng = np.random.default_rng(0)
    >>> lights = np.array([[0.0, 0.5, 0.0, -0.5, 0.0], [0.0, 0.0, 0.5, 0.0, -0.5], [1.0, 0.9, 0.9, 0.9, 0.9]])
    >>> texture = rng.uniform(0.2, 1.0, (2500, 1)) * np.array([[0.1, 0.2, 0.9]])
    >>> noisy = texture @ lights + rng.normal(0, 0.05, (2500, 5))
    >>> round(noise_of_intensities(noisy, lights, np.ones((50, 50), bool)), 2)
    0.05
    """
    return _measure(pixels, lights, mask)[0]


def noise_over_blocks(pixels: Array, lights: NDArray[Any], mask: BoolArray, measured: float = 0.0) -> float:
    """σ from pixels eight apart, or that of :func:`noise_of_intensities`, ``measured``, if it is larger.

    Noise that is correlated over the blocks of a JPEG escapes a filter over neighbors, not one from block to block.

    >>> rng = np.random.default_rng(0)
    >>> lights = np.array([[0.0, 0.5, 0.0, -0.5, 0.0], [0.0, 0.0, 0.5, 0.0, -0.5], [1.0, 0.9, 0.9, 0.9, 0.9]])
    >>> smooth = np.kron(rng.normal(0, 0.05, (8, 8, 5)), np.ones((8, 8, 1))).reshape(-1, 5)
    >>> mask = np.ones((64, 64), bool)
    >>> noise_of_intensities(smooth, lights, mask) < 0.01, round(noise_over_blocks(smooth, lights, mask), 2)
    (True, 0.05)
    """
    return max(measured, float(np.sqrt(_power(pixels, lights, mask, distance=8))))


def estimate_noise(images: FloatArray, lights: FloatArray, mask: BoolArray) -> NoiseEstimate:
    """The noise of gray photographs (d, H, W) under lights (d, 3), for the advice.

    >>> rng = np.random.default_rng(0)
    >>> lights = np.array([[0, 0, 1], [0.6, 0, 0.8], [0, 0.6, 0.8], [-0.6, 0, 0.8], [0, -0.6, 0.8]])
    >>> images = np.broadcast_to(lights[:, 2, None, None], (5, 64, 64)) + rng.normal(0, 0.02, (5, 64, 64))
    >>> round(estimate_noise(images, lights, np.ones((64, 64), bool)).sigma, 2)
    0.02
    """
    lights = np.asarray(lights, dtype=np.float64)
    flat = np.asarray(images).reshape(len(images), -1)
    index = np.flatnonzero(mask)
    pixels = MaskPixels(np.asarray(images), mask)
    sigma, step = _measure(pixels, lights.T, mask)
    blocks = len(images) > 3 and has_blocks(pixels, lights.T, mask)
    if blocks:
        sigma = max(sigma, float(np.sqrt(_power(pixels, lights.T, mask, distance=8))))
    sample = np.take(flat, index[:: max(1, len(index) // SAMPLED)], axis=1)
    power = float(np.einsum("jn,jn->n", sample, sample).sum(dtype=np.float64)) / sample.size
    # The noise itself is part of what was measured.
    signal = max(power - sigma**2, 0.0)
    normals = (np.linalg.pinv(lights).astype(sample.dtype) @ sample).astype(np.float64)
    return NoiseEstimate(
        sigma=sigma,
        snr_db=_decibels(signal, sigma**2),
        expected_error=_expected_error(sigma, normals, lights),
        from_residual=len(images) > 3,
        step=step,
        blocks=blocks,
    )


class MaskPixels:
    """Photographs (d, H, W) or (d, H, W, 3), read as the (N, d) gray intensities of their mask pixels without a copy."""

    def __init__(self, images: NDArray[Any], mask: BoolArray, scale: float = 1.0) -> None:
        self._flat = images.reshape(len(images), mask.size, *images.shape[3:])
        self._index, self._scale = np.flatnonzero(mask), scale

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        values = self._flat[:, self._index[rows]]
        values = gray_from_rgb(values) if values.ndim == 3 else values
        if self._scale != 1.0:
            values = values / np.float32(self._scale)
        return np.ascontiguousarray(values.T)


def _measure(pixels: Any, lights: FloatArray, mask: BoolArray) -> tuple[float, float]:
    """σ of noise and steps, and the step between levels."""
    power = _power(pixels, lights, mask, distance=1)
    step = step_of_levels(pixels[:: max(1, len(pixels) // (2 * BLOCKS))])
    return float(np.sqrt(max(power, step**2 / 12.0))), step


def second_differences(
    pixels: Any, lights: FloatArray, mask: BoolArray, *, distance: int = 1, most: int = BLOCKS
) -> tuple[NDArray[np.intp], Array]:
    """``(a − b − c + d) / 2`` (blocks, d) of the corners of evenly spread blocks, and which pixels the corners a are.

    Without their matte fit, where more than three photographs leave a residual of it. ``distance`` is that between the
    corners; about ``most`` blocks are looked at, up to twice as many.
    """
    k = distance
    whole = mask[:-k, :-k] & mask[:-k, k:] & mask[k:, :-k] & mask[k:, k:]
    places = np.flatnonzero(whole)
    if not places.size:
        return places, np.empty((0, lights.shape[-1]))
    rows, columns = np.divmod(places[:: max(1, places.size // most)], whole.shape[1])
    number = np.cumsum(mask.ravel(), dtype=np.int32).reshape(mask.shape) - 1
    corners = ((0, 0), (0, k), (k, 0), (k, k))
    chosen = np.stack([number[rows + down, columns + right] for down, right in corners]).astype(np.intp)
    a, b, c, d = like(chosen, pixels)
    detail = cast(0.5 * (pixels[a] - pixels[b] - pixels[c] + pixels[d]), "float64")
    # Filtering and taking residuals commute: one is linear over the pixels, the other over the photographs.
    if lights.shape[-1] > 3:
        detail = without_matte(detail, some_lights(lights, chosen[0]))
    return chosen[0], detail


def _power(pixels: Any, lights: FloatArray, mask: BoolArray, distance: int) -> float:
    """σ² from the second differences of pixels so far apart."""
    from scipy.special import gammaincinv

    detail = second_differences(pixels, lights, mask, distance=distance)[1]
    if not len(detail):
        return 0.0
    freedom = detail.shape[1] - 3 if detail.shape[1] > 3 else detail.shape[1]
    middle = median((detail * detail).sum(1))
    # 2 gammaincinv(k / 2, 1/2) is the median of χ² with k degrees of freedom.
    return middle / (2.0 * float(gammaincinv(freedom / 2.0, 0.5)))


def step_of_levels(sample: Array) -> float:
    """The typical distance between the levels of a photograph, 0 if there are many; sample (pixels, d)."""
    sample = to_numpy(sample)
    steps: list[float] = []
    count, photographs = sample.shape
    for number, values in enumerate(sample.T):
        if 2 * (len(steps) + photographs - number) <= photographs:
            return 0.0  # most have many levels, whatever the others have
        # A part of the values rules out most photographs with many levels; sorting them all is slow.
        if VALUES_PER_LEVEL * len(np.unique(values[::4])) > count:
            continue
        levels, counts = np.unique(values, return_counts=True)
        if len(levels) > 2 and count >= VALUES_PER_LEVEL * len(levels):
            gaps = np.gradient(levels.astype(np.float64))
            order = np.argsort(gaps)
            half = np.searchsorted(np.cumsum(counts[order]), 0.5 * count)
            steps.append(float(gaps[order][min(half, len(gaps) - 1)]))
    return float(np.median(steps)) if 2 * len(steps) > photographs else 0.0


def residual_step(count: int) -> int:
    """Every n-th of this many pixels suffices for :func:`noise_of_residuals`."""
    return max(1, count // RESIDUALS_FROM)


def noise_of_residuals(pixels: Array, lights: Array, normals: Array) -> float:
    """Standard deviation of an inlier's noise over the capture, from the residuals of a robust (least-absolute)
    fit.

    What is an outlier does not disturb a robust model and must not count as noise. Two readings of |r|, each
    scaled as for Gaussian noise, and each too large where it fails, so the smaller one counts: the value that two
    thirds of them do not exceed, which outliers and the errors of the model inflate; and the value that a third of
    the entries that saw light do not exceed, which is inflated where photons are so few that most entries saw
    none. (The median over all entries would then see no noise at all.) A least-absolute fit leaves three residuals
    of every pixel at zero; they are left out.

    >>> from photostereo.core.control import Control
    >>> from photostereo.reflectance.sparse.model import LeastAbsolute
    >>> rng = np.random.default_rng(0)
    >>> L = rng.normal(size=(3, 20))
    >>> y = rng.normal(0, 0.05, (2000, 20))
    >>> round(noise_of_residuals(y, L, LeastAbsolute(y, L).alone(Control()).normals), 2)
    0.05
    """
    photographs = pixels.shape[1]
    residuals = np.abs(to_numpy(pixels - shading(normals, lights)))
    if residuals.size == 0:
        return 0.0
    share = min((3 + INLIER_SHARE * (photographs - 3)) / photographs, 1.0)
    noise = float(np.quantile(residuals, share)) / INLIER_QUANTILE
    lit = residuals[(to_numpy(pixels) > 0) & (residuals > FITTED)]
    if lit.size:
        noise = min(noise, float(np.quantile(lit, LIT_SHARE)) / LIT_QUANTILE)
    return noise


def noise_of_misfit(misfit: Array, freedom: int) -> float:
    """Standard deviation of an intensity from what a model's own fit leaves of each pixel.

    ``misfit`` (N,) is the sum of squared residuals over the ``freedom`` that the fit left; its median is that of
    a χ² variable. No noise can be larger than this: what the model explains is no noise to it.

    >>> rng = np.random.default_rng(0)
    >>> round(noise_of_misfit((rng.normal(0, 0.1, (5000, 7)) ** 2).mean(1), 7), 2)
    0.1
    """
    from scipy.special import gammaincinv

    middle = float(np.median(to_numpy(misfit)))
    return float(np.sqrt(middle * freedom / (2.0 * gammaincinv(freedom / 2.0, 0.5))))


def _decibels(signal: float, noise: float) -> float:
    if noise <= 0:
        return float("inf")
    return float(10 * np.log10(signal / noise)) if signal > 0 else float("-inf")


def _expected_error(sigma: float, sample: FloatArray, lights: FloatArray) -> float:
    """Median angle in degrees: the tangential part of σ² (L Lᵀ)⁻¹ over the length of each normal."""
    length = np.linalg.norm(sample, axis=0)
    sample, length = sample[:, length > 0], length[length > 0]
    if not length.size:
        return 0.0
    covariance = np.linalg.inv(lights.T @ lights)
    unit = sample / length
    tangential = np.trace(covariance) - np.einsum("in,ij,jn->n", unit, covariance, unit)
    angle = np.degrees(np.arctan(sigma * np.sqrt(np.maximum(tangential, 0)) / length))
    return float(np.median(angle))
