"""Make maps that wrap: cut a sample where its end continues in its beginning.

1. *Flatten*: waves of the height longer than a third of the sample are removed. They would repeat
   with every tile, which the eye sees first, and they belong to how the sample lay.
2. *Period*: the length of the tile is where the sample resembles itself most (autocorrelation), so
   that a weave continues in step.
3. *Seam*: the end of the sample overlaps its beginning. The cut between them follows the path along
   which they differ least (dynamic programming), and only fine detail changes there at once; what
   is wider than a part of the overlap is blended over all of it.

Blending everything over the overlap, which needs no path, shows as a band of another texture: two
patterns that are out of step give a third one.

References
----------
A. A. Efros, W. T. Freeman, "Image Quilting for Texture Synthesis and Transfer", SIGGRAPH 2001,
doi:10.1145/383259.383296.
P. J. Burt, E. H. Adelson, "A Multiresolution Spline with Application to Image Mosaics", ACM TOG
2(4), 1983, doi:10.1145/245.247.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray, Float32, Float64
from photostereo.core.errors import ParameterError
from photostereo.results.choice import LEAST_TEXELS, MOST_TEXELS
from photostereo.runtime.loops import njit

#: Waves of the height longer than this share of the sample are removed from a tile.
LONGEST_WAVE = 1 / 3
#: Least and largest length of a tile, as a share of the sample. The rest is the overlap: at least a
#: seventh, for the seam to find its way.
SHORTEST_TILE = 0.6
LONGEST_TILE = 0.86
#: What a shorter tile costs, per share of the sample, in units of the dissimilarity (0 is the same,
#: 1 unrelated). Without a period, the longest tile is best.
SHORTNESS = 1.0
#: Blended over the overlap: what is wider than this share of it.
WIDE_SHARE = 0.1
#: Half the width of the transition of fine detail, in pixels.
FEATHER = 2.0
#: Side of the patches that :func:`seam_visibility` compares, as a share of the sample, and its
#: limits in pixels.
PATCH_SHARE = 1 / 16
LEAST_PATCH = 9
MOST_PATCH = 32
#: Number of patches along each seam, and as many elsewhere.
PATCHES = 24
#: Pictures are reduced to about this side before patches are compared.
COMPARED_SIDE = 600
#: A smaller spread of slopes, or of the brightness relative to its mean, is not seen, and not
#: compared as if it were the material.
LEAST_SLOPE = 0.02
LEAST_STAIN = 0.1
#: Differences of this size, in standard deviations of the material, are not seen.
UNSEEN = 0.15


def largest_rectangle(mask: BoolArray) -> tuple[slice, slice]:
    """Return rows and columns of the largest rectangle inside a mask.

    Raises an error if it is narrower than 32 pixels.
    """
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
    """Return top, bottom, left and right of the largest rectangle inside a mask.

    For every row, it is the largest rectangle in the histogram of mask pixels above it, found with
    a stack.
    """
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


def make_tileable(maps: Float64, *, square: bool = False) -> tuple[Float64, float]:
    """Cut a tile that wraps in both directions from a sample.

    Parameters
    ----------
    maps : (h, w, k) array
        The first two are the slopes dz/dcol and dz/drow of the height; then color and others.
    square : bool
        Make a square tile of a square sample.

    Returns
    -------
    tile : (h', w', k) array
        A smaller stack of maps. A tile may begin anywhere: it begins where the step from the
        previous column is most typical.
    visibility : float
        How much the seams stand out; see :func:`seam_visibility`.
    """
    sample = _without_long_waves(maps, "nearest")
    features = _features(sample, sample)
    width = _costs_of_lengths(features)
    height = _costs_of_lengths(np.swapaxes(features, 0, 1))
    if square:
        width = height = width + height
    across = _wrap_columns(sample, _length(width, sample.shape[1]), closed=False)
    turned = np.swapaxes(across.tile, 0, 1)
    down = _wrap_columns(turned, _length(height, sample.shape[0]), closed=True)
    tile = np.swapaxes(down.tile, 0, 1)
    # Where the seams run: those of the columns were cut to the rows of the tile.
    rows = np.arange(tile.shape[0])
    seams = [
        np.stack([rows, across.seam[rows]], axis=1),
        np.stack([down.seam, np.arange(tile.shape[1])], axis=1),
    ]
    visibility = seam_visibility(sample, tile, np.concatenate(seams))
    # Again, because the error of the slopes adds up around the tile.
    tile = _without_long_waves(tile, "wrap")
    for axis, slope in ((1, 0), (0, 1)):
        start = _ordinary_place(np.swapaxes(tile, 1, axis), slope)
        tile = np.roll(tile, -start, axis=axis)
    return np.ascontiguousarray(tile), visibility


def _without_long_waves(maps: Float64, mode: str) -> Float64:
    """Remove the long waves of the height from its slopes; ``mode`` is that of SciPy's filters."""
    from scipy.ndimage import gaussian_filter

    # The Gaussian filter of this standard deviation halves the wave; see surface/topography.py.
    sigma = 0.187 * LONGEST_WAVE * min(maps.shape[:2])
    result = maps.copy()
    for slope in (0, 1):
        result[..., slope] -= gaussian_filter(maps[..., slope], sigma, mode=mode)
    return result


@dataclass(frozen=True, eq=False)
class _Wrapped:
    tile: Float64  #: (h, length, k)
    seam: NDArray[np.int64]  #: (h,), the column of the cut in each row


def _wrap_columns(maps: Float64, length: int, *, closed: bool) -> _Wrapped:
    """Cut a tile with a number of columns that wraps; a ``closed`` seam ends where it begins."""
    from scipy.ndimage import gaussian_filter

    features = _features(maps, maps)
    overlap = maps.shape[1] - length
    # Columns of the tile that the sample has twice: as its beginning, and after the tile's end.
    difference = ((features[:, :overlap] - features[:, length:]) ** 2).sum(axis=-1)
    seam = least_path(difference, closed=closed)
    fine_share = _step(np.arange(overlap) - seam[:, None], FEATHER)[..., None]
    wide_share = _step(np.arange(overlap) - 0.5 * (overlap - 1), 0.5 * overlap)[None, :, None]
    sigma = max(1.0, WIDE_SHARE * overlap)
    edges = ("wrap" if closed else "nearest", "nearest", "nearest")
    wide = gaussian_filter(maps, (sigma, sigma, 0.0), mode=edges)
    fine = maps - wide
    tile = maps[:, :length].copy()
    tile[:, :overlap] = (
        wide_share * wide[:, :overlap]
        + (1.0 - wide_share) * wide[:, length:]
        + fine_share * fine[:, :overlap]
        + (1.0 - fine_share) * fine[:, length:]
    )
    return _Wrapped(tile, seam)


def _step(distance: NDArray[np.generic], reach: float) -> Float64:
    """Return a smooth step from 0 at −reach to 1 at +reach."""
    share = np.clip(0.5 + 0.5 * np.asarray(distance, np.float64) / reach, 0.0, 1.0)
    return np.asarray(share * share * (3.0 - 2.0 * share))


def _features(maps: Float64, sample: Float64) -> Float64:
    """Return what is compared (h, w, 3): slopes and brightness.

    They are in units of their spread in a sample.
    """

    def of(values: Float64) -> Float64:
        return np.dstack([values[..., :2], values[..., 2:5].mean(axis=-1)])

    usual = of(sample)
    mean = usual.mean(axis=(0, 1))
    slope_col, slope_row, brightness = usual.std(axis=(0, 1))
    slope = max(np.hypot(slope_col, slope_row), LEAST_SLOPE)
    brightness = max(brightness, LEAST_STAIN * mean[2], 1e-9)
    return np.asarray((of(maps) - mean) / np.array([slope, slope, brightness]))


def _length(costs: Float64, side: int) -> int:
    """Return the best length of a tile, for this side of a sample.

    ``costs`` are those of :func:`_costs_of_lengths`.
    """
    return _lengths(side)[0] + int(np.argmin(costs))


def _lengths(side: int) -> range:
    """Return the possible lengths of a tile."""
    first = max(1, round(SHORTEST_TILE * side))
    return range(first, max(first + 1, round(LONGEST_TILE * side) + 1))


def _costs_of_lengths(features: Float64) -> Float64:
    """Return how bad each length of a tile, in columns, is: least where a sample repeats itself."""
    width = features.shape[1]
    # Products of all pairs of columns that are n apart, for every n, by Fourier transforms.
    spectrum = np.fft.rfft(features, 2 * width, axis=1)
    power = (np.abs(spectrum) ** 2).sum(axis=(0, 2))
    product = np.fft.irfft(power)[:width]
    energy = np.cumsum((features**2).sum(axis=(0, 2)))
    lengths = np.array(_lengths(width))
    begin = energy[width - 1 - lengths]
    end = energy[-1] - energy[lengths - 1]
    # 0 for a perfect repetition, 1 for unrelated columns.
    difference = 1.0 - 2.0 * product[lengths] / np.maximum(begin + end, 1e-12)
    return np.asarray(difference - SHORTNESS * lengths / width)


def least_path(cost: Float64, *, closed: bool = False) -> NDArray[np.int64]:
    """Return the column per row of the path from the top to the bottom with the least cost.

    Parameters
    ----------
    cost : (h, w) array
        Cost of every pixel. The path moves by at most one column per row.
    closed : bool
        The path ends beside the column where it begins, because the rows wrap.
    """
    if not closed:
        return _path(cost)
    # A free path over two turns shows where the closed one passes.
    begin = _path(np.concatenate([cost, cost]))[len(cost)]
    fenced = np.concatenate([cost, cost[:1]])
    outside = np.arange(cost.shape[1]) != begin
    fenced[0, outside] = np.inf
    fenced[-1, outside] = np.inf
    return _path(fenced)[:-1]


def _path(cost: Float64) -> NDArray[np.int64]:
    total = cost.copy()
    for row in range(1, len(total)):
        framed = np.pad(total[row - 1], 1, constant_values=np.inf)
        total[row] += np.minimum(np.minimum(framed[:-2], framed[2:]), framed[1:-1])
    path = np.empty(len(cost), dtype=np.int64)
    path[-1] = np.argmin(total[-1])
    for row in range(len(total) - 2, -1, -1):
        first = max(0, path[row + 1] - 1)
        path[row] = first + np.argmin(total[row, first : path[row + 1] + 2])
    return path


def seam_visibility(sample: Float64, tile: Float64, seam: NDArray[np.int64]) -> float:
    """Return how much the seams of a tile stand out: 1 is not at all, 2 is a texture of their own.

    A patch on the seam is compared with all patches of the sample, and the difference from the
    nearest one with that of patches elsewhere in the sample from their own nearest neighbors: a
    seam that looks like another place of the material is invisible. (The step across the edge of a
    tile says nothing: it is inside the sample.)

    Parameters
    ----------
    sample : (h, w, k) array
        Maps of the sample, as for :func:`make_tileable`.
    tile : (h', w', k) array
        Maps of the tile.
    seam : (n, 2) array
        Rows and columns of the seams in the tile.
    """
    side = int(np.clip(PATCH_SHARE * min(sample.shape[:2]), LEAST_PATCH, MOST_PATCH))
    scale = min(1.0, COMPARED_SIDE / max(sample.shape[:2]))
    patch = max(LEAST_PATCH, round(side * scale))
    known = _reduced(_features(sample, sample), scale)
    wrapped = np.pad(_features(tile, sample), ((side, side), (side, side), (0, 0)), mode="wrap")
    cut = _reduced(wrapped, scale)
    # Evenly along the seams, and elsewhere by the golden ratio, which never repeats.
    chosen = seam[np.linspace(0, len(seam) - 1, 2 * PATCHES).astype(int)]
    at_seam = [
        _nearest(known, cut, round((row + side) * scale), round((col + side) * scale), patch)
        for row, col in chosen
    ]
    span = np.array(known.shape[:2]) - patch
    golden = np.arange(1, PATCHES + 1)[:, None] * [0.7548776662, 0.5698402910] % 1.0
    elsewhere = [
        _nearest(known, known, row, col, patch, apart=True)
        for row, col in (golden * span).astype(int) + patch // 2
    ]
    return float((np.mean(at_seam) + UNSEEN) / (np.mean(elsewhere) + UNSEEN))


def _reduced(features: Float64, scale: float) -> Float32:
    import cv2

    size = (round(features.shape[1] * scale), round(features.shape[0] * scale))
    return np.asarray(cv2.resize(features.astype(np.float32), size, interpolation=cv2.INTER_AREA))


def _nearest(
    known: Float32, picture: Float32, row: int, col: int, side: int, *, apart: bool = False
) -> float:
    """Return the difference of a patch from its nearest neighbor, in standard deviations.

    Parameters
    ----------
    known : (h, w, k) array
        Where to look, of unit variance.
    picture : (h', w', k) array
        The picture with the patch.
    row, col : int
        The middle of the patch.
    side : int
        Its side.
    apart : bool
        The patch is from ``known`` itself: neighbors that overlap with it do not count.
    """
    import cv2

    top = int(np.clip(row - side // 2, 0, picture.shape[0] - side))
    first = int(np.clip(col - side // 2, 0, picture.shape[1] - side))
    patch = picture[top : top + side, first : first + side]
    squares = np.zeros((known.shape[0] - side + 1, known.shape[1] - side + 1))
    for plane, part in zip(cv2.split(known), cv2.split(patch), strict=True):
        squares += cv2.matchTemplate(plane, part, cv2.TM_SQDIFF)
    if apart:
        near = np.s_[max(0, top - side) : top + side, max(0, first - side) : first + side]
        squares[near] = np.inf
    return float(np.sqrt(max(0.0, squares.min()) / patch[..., 0].size))


def _ordinary_place(tile: Float64, slope: int) -> int:
    """Return the column of a wrapping tile with the most typical step into it.

    A tile may begin anywhere.
    """
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
    """Resample a square stack of maps by cubic splines.

    Parameters
    ----------
    maps : (s, s, k) array
        The maps.
    size : int
        The new side, from 32 to 8192.
    wrap : bool
        The maps wrap, and still do.
    """
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
    """Return the mean step across the edge of a tile, relative to that between neighbors.

    The neighbors are columns (axis 1) or rows (axis 0).
    """
    values = np.asarray(picture, dtype=np.float64)
    inner = float(np.abs(np.diff(values, axis=axis)).mean())
    seam = np.abs(np.take(values, 0, axis=axis) - np.take(values, -1, axis=axis)).mean()
    return float(seam) / inner if inner > 0 else 1.0


def integrate_periodic(slope_col: Float64, slope_row: Float64) -> Float64:
    """Integrate periodic slopes to periodic heights: least squares, by Fourier transforms.

    The step between two pixels is the mean of their slopes. The mean slope is dropped, since it
    would not wrap.
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
