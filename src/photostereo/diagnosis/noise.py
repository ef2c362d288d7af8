"""``Noise``: estimate the noise of photographs without knowing the truth.

How to separate noise from the object? Texture is the same in all photographs, shadows and highlights are smooth in
space, noise is neither. So subtract the least-squares matte fit from each photograph (removes texture), then take a second
difference over 2 × 2 blocks, ``(a − b − c + d) / 2`` (zero on anything linear along a row or a column, unit gain for
white noise). The squares are summed over the photographs, because a normal is fitted to all of them, and a lost
entry disturbs it like noise of the same variance; their median over the blocks ignores the edges of
shadows and highlights.

- **Photons.** Photon noise grows with the light. The median of the differences over pixels of similar brightness gives the
  noise at each brightness; read noise is what remains in the dark.
- **Steps.** Eight bits leave few levels. If the noise is smaller than a step, neighbors fall on the same level and
  the filter gives zero, yet each value is off by up to half a step: its variance is step²/12.
- **Blocks.** JPEG removes fine noise and leaves errors that are correlated over 8 × 8 pixels. They show as jumps that are
  larger, or smaller, at every eighth column and row of the file (:func:`has_blocks`); a second difference over eight
  pixels, from block to block, measures them. They count in the advice and are not a model misfit, but they do not
  count for λ and μ: a dictionary cannot remove errors that are correlated over a patch.

References
----------
J. Immerkær, Fast noise variance estimation, CVIU 64(2), 1996, doi:10.1006/cviu.1996.0060.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import (
    BoolArray,
    Float32,
    Float64,
    FloatArray,
    Indices,
    gray_from_rgb,
)
from photostereo.lights.lights import Lights
from photostereo.runtime.arrays import Array, cast, contiguous, is_tensor, like, namespace, to_numpy
from photostereo.runtime.illumination import gram_of, least_squares, some_lights, without_matte
from photostereo.runtime.quantiles import (
    MAD_TO_SIGMA,
    interpolate,
    median,
    quantiles,
    row_quantiles,
)

# Samples are evenly spread and have up to twice as many members.
#: Number of 2 × 2 blocks for the noise estimate: the median is then accurate to 1 %.
BLOCKS = 10_000
#: Number of 2 × 2 blocks for noise by brightness, about 2500 in each class.
BLOCKS_BY_BRIGHTNESS = 20_000
#: Number of pixels for counting levels.
LEVELS_FROM = 20_000
#: Number of pixels for measuring the signal.
SAMPLED = 30_000
#: Photographs are quantized if each level occurs this often in the sample.
VALUES_PER_LEVEL = 8
#: Number of brightness classes.
CLASSES = 8
#: Side of the blocks of JPEG files, in pixels.
JPEG_SIDE = 8
#: Blocks are detected if their effect on the jumps is this many times that of anything else (about the 0.1 % point of the
#: F distribution with eight and six degrees of freedom).
BLOCK_EVIDENCE = 20.0
#: Fewest photographs to examine for blocks.
LEAST_EXAMINED = 12
#: More are examined up to this number of values.
MOST_VALUES = 1 << 20
#: Half the number of rows that are examined ...
BAND = 96
#: ... and of columns.
ACROSS = 512
#: Jumps beyond this quantile are shadow edges; they are clipped to it.
EDGES = 0.9
#: Rows per crop if the pixels are a sample (:mod:`photostereo.solver.tiles`). Pairs of rows across the boundary of a
#: crop are always skipped, sample or not.
CROP = 32

#: Mean intensities of pixels, increasing, and the noise variance of an intensity of such a pixel.
NoiseTable = tuple[Float64, Float64]


@dataclass(eq=False)
class Noise:
    """The noise of intensities; each figure is measured once, on first access.

    Three photographs leave no residual; then the intensities themselves are filtered, and fine texture counts as noise.
    """

    pixels: Any  #: (N, d) intensities of the pixels of a mask
    lights: NDArray[Any]  #: (3, d) or (N, 3, d)
    mask: BoolArray
    #: (N,) factor by which removing the fall-off of near lights increased the variance
    amplified: Float32 | None = None

    @classmethod
    def of_images(cls, images: FloatArray, lights: Lights, mask: BoolArray) -> Noise:
        """Noise of photographs (d, H, W) or (d, H, W, 3), without copying them.

        Near lights are treated as distant: the resulting misfit is smooth, and second differences remove it.
        """
        return cls(MaskPixels(np.asarray(images), mask), lights.matrix, mask)

    @cached_property
    def sigma(self) -> float:
        """Standard deviation of one intensity's error from noise and steps; 0 if the mask contains no 2 × 2 block."""
        return float(np.sqrt(max(self._power(), self.step**2 / 12.0)))

    @cached_property
    def step(self) -> float:
        """Distance between the levels of the photographs if there are few; else 0."""
        return step_of_levels(self.pixels[:: max(1, len(self.pixels) // LEVELS_FROM)])

    @cached_property
    def has_blocks(self) -> bool:
        """Whether the 8 × 8 blocks of JPEG compression were detected."""
        return self.has_residual and has_blocks(self.pixels, self.lights, self.mask)

    @cached_property
    def over_blocks(self) -> float:
        """Like :attr:`sigma`, but including noise that neighbors share; never smaller."""
        return max(self.sigma, float(np.sqrt(self._power(shared=True))))

    @property
    def has_residual(self) -> bool:
        """Whether a matte fit leaves a residual; with three photographs it does not."""
        return bool(self.lights.shape[-1] > 3)

    def variances(self, sigma: float) -> Array:
        """Return the variance of an intensity of each pixel (N,) if ``sigma`` is typical: removing the fall-off of near
        lights increased it unevenly."""
        typical = cast(namespace(self.pixels).full_like(self.pixels[:, 0], sigma**2), "float32")
        if self.amplified is None:
            return typical
        return typical * like(self.amplified / np.median(self.amplified), typical)

    def by_brightness(self, *, blocks: bool = True) -> NoiseByBrightness:
        """Noise of pixels by brightness; with ``blocks`` also from block to block, if there are any."""
        coarse = self._table(shared=True) if blocks and self.has_blocks else None
        return NoiseByBrightness(self._table(), coarse)

    def estimate(self, control: Control = SILENT) -> NoiseEstimate:
        """Summarize the noise for the advice."""
        sigma = self.sigma
        control.check()
        if control.aside(lambda: self.has_blocks):
            sigma = self.over_blocks
        control.check()
        sample = np.asarray(self.pixels[:: max(1, len(self.pixels) // SAMPLED)])
        power = float(np.einsum("nj,nj->n", sample, sample).sum(dtype=np.float64)) / sample.size
        # The measured power includes the noise.
        signal = max(power - sigma**2, 0.0)
        with np.errstate(divide="ignore"):
            snr_db = float(10 * np.log10(signal / sigma**2)) if sigma > 0 else float("inf")
        normals = least_squares(sample, self.lights).astype(np.float64)
        return NoiseEstimate(
            sigma=sigma,
            snr_db=snr_db,
            expected_error=_expected_error(sigma, normals, self.lights),
            from_residual=self.has_residual,
            step=self.step,
            blocks=self.has_blocks,
        )

    def _differences(self, most: int, shared: bool) -> tuple[Indices, Array]:
        """``(a − b − c + d) / 2`` (squares, d) at the corners of evenly spread squares, and the pixel indices of corners a.

        Without their matte fit, if that leaves a residual. Uses about ``most`` squares, up to twice as many. The
        corners are neighbors, or eight apart for noise that is ``shared`` by neighbors. Neighbors in four blocks of a JPEG
        share none either, and a shadow edge is unlikely to run between them.
        """
        mask = self.mask
        pixels = self.pixels
        meet = shared and self.has_blocks
        k = JPEG_SIDE if shared and not meet else 1
        whole = mask[:-k, :-k] & mask[:-k, k:] & mask[k:, :-k] & mask[k:, k:]
        if meet:  # squares that touch four blocks and lie within one crop of a sample
            rows, columns = np.ogrid[: whole.shape[0], : whole.shape[1]]
            whole &= (rows % JPEG_SIDE == JPEG_SIDE - 1) & (rows % CROP != CROP - 1)
            whole &= columns % JPEG_SIDE == JPEG_SIDE - 1
        places = np.flatnonzero(whole)
        if not places.size:
            return places, np.empty((0, self.lights.shape[-1]))
        rows, columns = np.divmod(places[:: max(1, places.size // most)], whole.shape[1])
        number = np.cumsum(mask.ravel(), dtype=np.int32).reshape(mask.shape) - 1
        corners = ((0, 0), (0, k), (k, 0), (k, k))
        chosen = np.stack([number[rows + down, columns + right] for down, right in corners]).astype(
            np.intp
        )
        a, b, c, d = like(chosen, pixels)
        detail = cast(0.5 * (pixels[a] - pixels[b] - pixels[c] + pixels[d]), "float64")
        # Filtering and taking residuals commute: one is linear over pixels, the other over photographs.
        if self.has_residual:
            detail = without_matte(detail, some_lights(self.lights, chosen[0]))
        return chosen[0], detail

    def _power(self, *, shared: bool = False) -> float:
        """σ² from second differences."""
        detail = self._differences(BLOCKS, shared)[1]
        if not len(detail):
            return 0.0
        freedom = detail.shape[1] - 3 if self.has_residual else detail.shape[1]
        return median((detail * detail).sum(1)) / chi_square_quantile(freedom, 0.5)

    def _table(self, *, shared: bool = False) -> NoiseTable | None:
        """Noise by brightness; None if there is no residual or the mask contains no block."""
        a, detail = self._differences(BLOCKS_BY_BRIGHTNESS, shared)
        if not self.has_residual or not len(detail):
            return None
        detail = abs(detail) / np.sqrt(1.0 - 3.0 / self.lights.shape[-1])
        if self.amplified is not None:
            detail = detail / like(np.sqrt(self.amplified[a])[:, None], detail)
        brightness = _brightness(self.pixels[like(a, detail)])
        edges = quantiles(brightness, np.linspace(0, 1, CLASSES + 1).tolist())
        middle = 0.5 * (edges[1:] + edges[:-1])
        parts = [
            detail[(brightness >= low) & (brightness <= high)]
            for low, high in pairwise(edges.tolist())
        ]
        filled = [len(inside) > 0 for inside in parts]  # some are empty if blocks are few
        medians = [
            row_quantiles(inside.reshape(1, -1), 0.5)[0, 0] for inside in parts if len(inside)
        ]
        found = (
            MAD_TO_SIGMA * to_numpy(namespace(detail).stack(medians))
        ) ** 2  # one copy from the GPU
        return np.asarray(middle[filled], np.float64), np.maximum(found, self.step**2 / 12.0)


class NoiseByBrightness(NamedTuple):
    """Noise of pixels by brightness: read noise, photons, steps and blocks in one table each."""

    #: noise between neighboring pixels; None if it cannot be measured
    fine: NoiseTable | None = None
    #: noise from one block of a JPEG file to the next; None without such blocks
    coarse: NoiseTable | None = None

    def at(self, pixels: Array, amplified: Float32 | None = None) -> PixelNoise:
        """Noise of (N, d) intensities as the camera recorded them, or ``amplified``."""
        more = 1.0 if amplified is None else like(amplified, pixels)
        fine, coarse = (
            None
            if table is None
            else cast(interpolate(_brightness(pixels), *table), "float32") * more
            for table in (self.fine, self.coarse)
        )
        return PixelNoise(
            namespace(pixels).zeros_like(pixels[:, 0]) if fine is None else fine, coarse
        )


class PixelNoise(NamedTuple):
    """Variance (N,) of one intensity of each pixel from fine noise, and from block to block if there are blocks."""

    fine: Array
    coarse: Array | None = None


@dataclass(frozen=True)
class NoiseEstimate:
    """The noise of photographs in a few numbers."""

    #: root mean square error of one intensity from noise, steps and blocks, in the units of the photographs
    sigma: float
    #: 10 log10(mean intensity² / σ²) inside the mask; infinite without noise, -infinite without signal
    snr_db: float
    #: the median angle in degrees by which this noise alone turns a least-squares normal
    expected_error: float
    #: False if three photographs left no residual, so that fine texture counts as noise
    from_residual: bool
    step: float = 0.0  #: distance between levels if there are few; else 0
    blocks: bool = False  #: whether the 8 × 8 blocks of JPEG compression were detected


class MaskPixels:
    """Photographs (d, H, W) or (d, H, W, 3), accessed as (N, d) gray intensities of their mask pixels without a copy."""

    def __init__(self, images: NDArray[Any], mask: BoolArray) -> None:
        self._flat = images.reshape(len(images), mask.size, *images.shape[3:])
        self._index = np.flatnonzero(mask)

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        values = self._flat[:, self._index[rows]]
        values = gray_from_rgb(values) if values.ndim == 3 else values
        return np.ascontiguousarray(values.T)


def _brightness(pixels: Array) -> Array:
    return pixels.clip(0.0).mean(1)


@cache
def chi_square_quantile(freedom: int, share: float) -> float:
    """Quantile of the χ² distribution: the value that this share of the variables does not exceed.

    Half of it is where the incomplete gamma function, a series of positive terms, reaches the share. SciPy's inverse of it
    takes a quarter of a second to import.
    """
    half = freedom / 2.0
    steps = half + np.arange(1.0, 200.0 + 8.0 * freedom)
    low = 0.0
    high = half + 10.0 * math.sqrt(half) + 20.0
    while low < (x := 0.5 * (low + high)) < high:
        series = 1.0 + float(np.cumprod(x / steps).sum())
        reached = half * math.log(x) - x - math.lgamma(half + 1.0) + math.log(series)
        low, high = (low, x) if reached >= math.log(share) else (x, high)
    return 2.0 * high


def step_of_levels(sample: Array) -> float:
    """Typical distance between the levels of a photograph, 0 if there are many; sample (pixels, d)."""
    sample = to_numpy(sample)
    steps: list[float] = []
    count, photographs = sample.shape
    for values in sample.T:
        # A subset rules out most photographs with many levels; sorting all values is slow.
        if VALUES_PER_LEVEL * len(np.unique(values[::4])) > count:
            continue
        levels, counts = np.unique(values, return_counts=True)
        if len(levels) > 2 and count >= VALUES_PER_LEVEL * len(levels):
            gaps = np.gradient(levels.astype(np.float64))
            order = np.argsort(gaps)
            half = np.searchsorted(np.cumsum(counts[order]), 0.5 * count)
            steps.append(float(gaps[order][min(half, len(gaps) - 1)]))
    if 2 * len(steps) > photographs:
        return float(np.median(steps))
    return 0.0


def _expected_error(sigma: float, sample: FloatArray, lights: FloatArray) -> float:
    """Median angle in degrees: the tangential part of σ² (L Lᵀ)⁻¹ over the length of each normal."""
    length = np.linalg.norm(sample, axis=1)
    sample = sample[length > 0]
    length = length[length > 0]
    if not length.size:
        return 0.0
    covariance = np.linalg.inv(gram_of(lights))
    unit = sample / length[:, None]
    tangential = np.trace(covariance) - np.einsum("ni,ij,nj->n", unit, covariance, unit)
    angle = np.degrees(np.arctan(sigma * np.sqrt(np.maximum(tangential, 0)) / length))
    return float(np.median(angle))


def has_blocks(pixels: Any, lights: FloatArray, mask: BoolArray) -> bool:
    """Whether the jumps of the matte residuals follow the 8 × 8 blocks of a JPEG, which start at the corner of the file.

    Errors are independent between blocks and smooth, or rippled, within them, so the power of a jump depends on its position
    in the block. It is measured relative to nearby jumps, because the object's roughness varies. A block is symmetric about
    its middle. The object's effect on the eight positions has no reason to be symmetric, so the asymmetric
    part shows how much of the rest may be due to chance: an analysis of variance.
    """
    rows, columns = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
    if min(len(rows), len(columns)) < 4 * JPEG_SIDE:
        return False
    # A band of rows around the middle of the object is enough.
    middle = rows[len(rows) // 2]
    center = columns[len(columns) // 2]
    top, left = (max(first, 0) // CROP * CROP for first in (middle - BAND, center - ACROSS))
    around = np.s_[top : middle + BAND, left : center + ACROSS]
    band = np.zeros_like(mask)
    band[around] = mask[around]
    inside = np.flatnonzero(band[mask])
    values = pixels[like(inside, pixels) if is_tensor(pixels) else inside]
    photographs = values.shape[1]
    enough = min(max(LEAST_EXAMINED, MOST_VALUES // max(len(values), 1)), photographs)
    chosen = np.linspace(0, photographs - 1, enough).astype(int)
    residual = contiguous(without_matte(values, some_lights(lights, inside), chosen).T)
    places = np.stack([_power_by_place(residual, band[around], axis) for axis in (0, 1)])
    if not np.isfinite(places).all():
        return False
    # Positions 0 and 6, 1 and 5, 2 and 4 are equivalent in the block; 3 is its middle, 7 the border.
    mirrored = places[:, [6, 5, 4, 3, 2, 1, 0, 7]]
    alike = 0.5 * (places + mirrored)
    apart = 0.5 * (places - mirrored)
    by_blocks = ((alike - alike.mean(axis=1, keepdims=True)) ** 2).sum() / 8.0
    by_chance = (apart**2).sum() / 6.0
    return bool(by_blocks > BLOCK_EVIDENCE * by_chance + 1e-6)


def _power_by_place(residual: Array, band: BoolArray, axis: int) -> FloatArray:
    """(8,) mean power of jumps to the next pixel by position in a block, relative to that of nearby jumps.

    ``residual`` (photographs, n) belongs to the n pixels of ``band``; NaN where a position has no jumps.
    """
    number = np.full(band.shape, -1)
    number[band] = np.arange(residual.shape[1])
    here, there = (number[:-1], number[1:]) if axis == 0 else (number[:, :-1], number[:, 1:])
    both = (here >= 0) & (there >= 0)
    if axis == 0:
        both[CROP - 1 :: CROP] = False
    if not both.any():
        return np.full(JPEG_SIDE, np.nan)
    xp = namespace(residual)
    squares = (
        residual[:, like(there[both], residual)] - residual[:, like(here[both], residual)]
    ) ** 2
    widest = row_quantiles(squares, EDGES)
    power = np.full(both.shape, np.nan)
    power[both] = to_numpy(
        (xp.minimum(squares, widest) / xp.where(widest > 0, widest, 1.0)).mean(0)
    )
    # One period with its ends at half weight: every position counts once, and equally on both sides.
    periods = np.lib.stride_tricks.sliding_window_view(power, JPEG_SIDE + 1, axis)
    middle = np.take(periods, JPEG_SIDE // 2, -1)
    around = (periods[..., :-1] + periods[..., 1:]).mean(-1) / 2.0
    known = around > 0
    place = (np.nonzero(known)[axis] + JPEG_SIDE // 2) % JPEG_SIDE
    count = np.bincount(place, minlength=JPEG_SIDE)
    total = np.bincount(place, middle[known] / around[known], JPEG_SIDE)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
