"""The compiled loops behind :class:`photostereo.dictionary.patches.PatchGrid`.

Both loops write each output once, from one thread, so their results do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

from numba import njit, prange
from numpy.typing import NDArray

Array = NDArray[Any]


@njit(cache=True, parallel=True)  # type: ignore[untyped-decorator]
def gather_patches(
    n: Array, pixel_index: Array, window_rows: Array, window_cols: Array, windows: Array, add: bool
) -> None:
    """``windows[j, c, y, x] = n[pixel at (row_j + y, col_j + x), c]``, zero outside the mask; or ``+=``."""
    w_y, w_x = windows.shape[2], windows.shape[3]
    for j in prange(window_rows.size):
        row, col = window_rows[j], window_cols[j]
        for y in range(w_y):
            for x in range(w_x):
                pixel = pixel_index[row + y, col + x]
                if pixel >= 0:
                    for c in range(3):
                        if add:
                            windows[j, c, y, x] += n[pixel, c]
                        else:
                            windows[j, c, y, x] = n[pixel, c]
                elif not add:
                    for c in range(3):
                        windows[j, c, y, x] = 0


@njit(cache=True, parallel=True)  # type: ignore[untyped-decorator]
def sum_over_patches(
    windows: Array,
    window_index: Array,
    positions: Array,
    first_row: Array,
    last_row: Array,
    first_col: Array,
    last_col: Array,
    out: Array,
) -> None:
    """``out[pixel, c]`` = the sum of that pixel's value over all the windows that cover it."""
    for pixel in prange(positions.shape[0]):
        row, col = positions[pixel, 0], positions[pixel, 1]
        x_sum, y_sum, z_sum = 0.0, 0.0, 0.0
        for a in range(first_row[pixel], last_row[pixel]):
            for b in range(first_col[pixel], last_col[pixel]):
                j = window_index[a, b, 0]
                y = row - window_index[a, b, 1]
                x = col - window_index[a, b, 2]
                x_sum += windows[j, 0, y, x]
                y_sum += windows[j, 1, y, x]
                z_sum += windows[j, 2, y, x]
        out[pixel, 0] = x_sum
        out[pixel, 1] = y_sum
        out[pixel, 2] = z_sum
