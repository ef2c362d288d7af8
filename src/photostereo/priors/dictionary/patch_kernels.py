"""The compiled loops behind :class:`photostereo.priors.dictionary.patches.PatchGrid`.

The normals go through a picture of three planes (3, H, W), where a row of a patch is contiguous. Every output is
written by one thread, in a fixed order, so the results do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from photostereo.runtime.loops import njit, shared

Array = NDArray[Any]


@shared(of="pixel_index")  # type: ignore[untyped-decorator]
def paste(first: int, last: int, n: Array, pixel_index: Array, picture: Array) -> None:
    """The normals of the mask pixels as a picture (3, H, W), zero outside the mask."""
    for row in range(first, last):
        for col in range(picture.shape[2]):
            pixel = pixel_index[row, col]
            if pixel >= 0:
                for c in range(3):
                    picture[c, row, col] = n[pixel, c]
            else:
                for c in range(3):
                    picture[c, row, col] = 0


@shared(of="window_rows")  # type: ignore[untyped-decorator]
def cut(
    first: int, last: int, picture: Array, window_rows: Array, window_cols: Array, windows: Array
) -> None:
    """``windows[j, c, y, x] += picture[c, row_j + y, col_j + x]``."""
    w_y, w_x = windows.shape[2], windows.shape[3]
    for j in range(first, last):
        for c in range(3):
            for y in range(w_y):
                source = picture[c, window_rows[j] + y, window_cols[j] : window_cols[j] + w_x]
                target = windows[j, c, y]
                for x in range(w_x):
                    target[x] += source[x]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _sum_row(windows: Array, window_index: Array, row: int, line: Array) -> None:
    """``line[c, col]`` = the sum of what all the windows across this row of the picture hold there."""
    w_y, w_x = windows.shape[2], windows.shape[3]
    for c in range(3):
        for col in range(line.shape[1]):
            line[c, col] = 0
    for a in range(window_index.shape[0]):
        y = row - window_index[a, 0, 1]
        if 0 <= y < w_y:
            for b in range(window_index.shape[1]):
                j, left = window_index[a, b, 0], window_index[a, b, 2]
                if j >= 0:
                    for c in range(3):
                        target, source = line[c, left : left + w_x], windows[j, c, y]
                        for x in range(w_x):
                            target[x] += source[x]


@shared(of="pixel_index")  # type: ignore[untyped-decorator]
def pull_back(
    first: int,
    last: int,
    windows: Array,
    window_index: Array,
    pixel_index: Array,
    count: Array,
    n: Array,
    lam: float,
    lines: Array,
    out: Array,
) -> None:
    """λ times ``count n`` less the sum of that pixel's value over all the windows that cover it, for every mask pixel.

    ``lines`` (H, 3, W) is where each row of the picture collects its row of every window across it.
    """
    for row in range(first, last):
        line = lines[row]
        _sum_row(windows, window_index, row, line)
        for col in range(pixel_index.shape[1]):
            pixel = pixel_index[row, col]
            if pixel >= 0:
                for c in range(3):
                    out[pixel, c] = lam * (count[pixel] * n[pixel, c] - line[c, col])
