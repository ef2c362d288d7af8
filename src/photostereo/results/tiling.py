"""Make pictures that wrap: blend the end of a sample into its beginning, so that copies join seamlessly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray, Float64
from photostereo.core.errors import ParameterError
from photostereo.results.choice import LEAST_TEXELS, MOST_TEXELS
from photostereo.runtime.loops import njit

#: Share of a side over which the two ends are blended, and the minimum number of pixels.
OVERLAP, LEAST_OVERLAP = 0.2, 8


def largest_rectangle(mask: BoolArray) -> tuple[slice, slice]:
    """Return rows and columns of the largest rectangle inside a mask; raise an error if narrower than 32 pixels."""
    top, bottom, left, right = _largest(np.ascontiguousarray(mask, dtype=np.bool_))
    height, width = int(bottom - top), int(right - left)
    if min(height, width) < LEAST_TEXELS:
        raise ParameterError(
            f"The largest rectangle inside the mask is {width} × {height} pixels; a material "
            f"needs at least {LEAST_TEXELS} × {LEAST_TEXELS}. Use a mask without holes.",
            code="sample-too-small",
            remedy="whole-frame",
            width=width,
            height=height,
            least=LEAST_TEXELS,
        )
    return slice(int(top), int(bottom)), slice(int(left), int(right))


@njit(cache=True)  # type: ignore[untyped-decorator]
def _largest(mask: BoolArray) -> tuple[int, int, int, int]:
    """Find, for every row, the largest rectangle in the histogram of mask pixels above it (with a stack)."""
    rows, cols = mask.shape
    height = np.zeros(
        cols + 1, dtype=np.int64
    )  # the last column stays empty and closes all open rectangles
    starts = np.zeros(cols + 1, dtype=np.int64)
    tall = np.zeros(cols + 1, dtype=np.int64)
    best, area = (0, 0, 0, 0), 0
    for row in range(rows):
        for col in range(cols):
            height[col] = height[col] + 1 if mask[row, col] else 0
        open_count = 0
        for col in range(cols + 1):
            start = col
            while open_count > 0 and tall[open_count - 1] >= height[col]:
                open_count -= 1
                start = starts[open_count]
                found = tall[open_count] * (col - start)
                if found > area:
                    area = found
                    best = (row + 1 - tall[open_count], row + 1, start, col)
            starts[open_count] = start
            tall[open_count] = height[col]
            open_count += 1
    return best


def make_tileable(maps: Float64) -> Float64:
    """Return a smaller stack of maps (h, w, k) that wraps in both directions.

    Along each axis the last fifth is blended into the first, preserving the variance: a plain mean of unrelated
    patterns would be flatter than the rest. A tile that wraps may begin anywhere: it begins where the step from the
    previous column is most typical. The first two maps are dz/dcol and dz/drow, whose size is the step in height.
    """
    across = _wrap_columns(maps)
    wrapped = np.swapaxes(_wrap_columns(np.swapaxes(across, 0, 1)), 0, 1)
    for axis, slope in ((1, 0), (0, 1)):
        wrapped = np.roll(
            wrapped, -_ordinary_place(np.swapaxes(wrapped, 1, axis), slope), axis=axis
        )
    return np.ascontiguousarray(wrapped)


def _wrap_columns(maps: Float64) -> Float64:
    overlap = max(LEAST_OVERLAP, round(OVERLAP * maps.shape[1]))
    cut = maps.shape[1] - overlap
    # After the last column, the tile continues as the sample does.
    share = np.linspace(0.0, 1.0, overlap + 2)[1:-1]
    share = (share * share * (3.0 - 2.0 * share))[None, :, None]
    mean = maps.mean(axis=(0, 1))
    begin, end = maps[:, :overlap] - mean, maps[:, cut:] - mean
    blended = (share * begin + (1.0 - share) * end) / np.sqrt(share**2 + (1.0 - share) ** 2)
    tile = maps[:, :cut].copy()
    tile[:, :overlap] = mean + blended
    return tile


def _ordinary_place(tile: Float64, slope: int) -> int:
    """Return the column of a wrapping tile with the most typical step into it: a tile may begin anywhere."""
    before = np.roll(tile, 1, axis=1)
    steps = np.abs(tile - before).mean(axis=0)
    heights = np.abs(tile[..., slope] + before[..., slope]).mean(axis=0)[:, None]
    steps = np.concatenate([steps, heights], axis=1)
    usual = steps.mean(axis=0)
    vary = usual > 1e-9  # ignore rounding of a constant map
    return int(np.argmin(np.abs(steps[:, vary] / usual[vary] - 1.0).max(axis=1, initial=0.0)))


def middle_square(maps: Float64) -> Float64:
    """The largest square in the middle of a stack of maps."""
    side = min(maps.shape[:2])
    top, left = ((length - side) // 2 for length in maps.shape[:2])
    return maps[top : top + side, left : left + side]


def resample_square(maps: Float64, size: int, *, wrap: bool) -> Float64:
    """Resample a square stack of maps by cubic splines; maps that wrap still do."""
    if not LEAST_TEXELS <= size <= MOST_TEXELS:
        raise ParameterError(
            f"A material must have {LEAST_TEXELS} to {MOST_TEXELS} texels along a side, not "
            f"{size}.",
            code="material-size",
            size=size,
            least=LEAST_TEXELS,
            most=MOST_TEXELS,
        )
    from scipy.ndimage import gaussian_filter, zoom

    shrink = len(maps) / size
    made = []
    for values in np.moveaxis(maps, -1, 0):
        if shrink > 1:  # blur by half a texel to avoid aliasing
            values = gaussian_filter(values, 0.5 * shrink, mode="wrap" if wrap else "nearest")
        mode = "grid-wrap" if wrap else "nearest"
        made.append(zoom(values, 1 / shrink, order=3, mode=mode, grid_mode=True))
    return np.stack(made, axis=-1)


def seam_ratio(picture: NDArray[np.generic], axis: int) -> float:
    """Ratio of the mean step across the seam to that between neighboring columns (axis 1) or rows (axis 0)."""
    values = np.asarray(picture, dtype=np.float64)
    inner = float(np.abs(np.diff(values, axis=axis)).mean())
    seam = np.abs(np.take(values, 0, axis=axis) - np.take(values, -1, axis=axis)).mean()
    return float(seam) / inner if inner > 0 else 1.0


def integrate_periodic(slope_col: Float64, slope_row: Float64) -> Float64:
    """Integrate periodic slopes to periodic heights: least squares, by Fourier transforms.

    The step between two pixels is the mean of their slopes. The mean slope is dropped, since it would not wrap.
    """
    height, width = slope_col.shape
    across = 0.5 * (slope_col + np.roll(slope_col, -1, axis=1))
    down = 0.5 * (slope_row + np.roll(slope_row, -1, axis=0))
    d_col = np.exp(2j * np.pi * np.fft.rfftfreq(width))[None, :] - 1.0
    d_row = np.exp(2j * np.pi * np.fft.fftfreq(height))[:, None] - 1.0
    power = np.abs(d_col) ** 2 + np.abs(d_row) ** 2
    power[0, 0] = 1.0
    spectrum = (np.conj(d_col) * np.fft.rfft2(across) + np.conj(d_row) * np.fft.rfft2(down)) / power
    spectrum[0, 0] = 0.0
    return np.fft.irfft2(spectrum, s=(height, width))
