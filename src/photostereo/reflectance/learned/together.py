"""Neighbors that the noise cannot tell apart are looked at together.

The photographs of one pixel are d numbers. Where two pixels of a small window differ by no more than the noise
explains (their mean squared difference, averaged over the 3 × 3 pixels around each, is near 2σ²), they are the same
surface as far as anyone can tell, and their average has less noise. This is non-local means on stacks:

    y_i ← Σ_j w_ij y_j / Σ_j w_ij,    w_ij = exp(−max(0, D_ij − σ_i² − σ_j²) / (h σ_i²))

With clean photographs every weight but a pixel's own vanishes, and nothing changes.

h shrinks with the number of photographs. Noise differs from one photograph to the next, and a normal is disturbed by three
of its d parts, 3σ²/d of its power. Two normals differ in all photographs, and nothing of that averages out. So
what may lie between pixels that count as one is a few times 3σ²/d.

References
----------
A. Buades, B. Coll, J.-M. Morel, A non-local algorithm for image denoising, CVPR 2005, doi:10.1109/CVPR.2005.38.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.runtime.loops import njit, prange

#: Half the side of the window.
REACH = 3
#: h, how much more than noise may lie between pixels that are averaged: so much over d, and no more than the second.
SOFTNESS, SOFTEST = 5.0, 0.25


def together(
    pixels: NDArray[np.float32],
    guide: NDArray[np.float32],
    mask: NDArray[np.bool_],
    noise: NDArray[np.float32],
    reach: int = REACH,
    softness: float = SOFTNESS,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Averages of (N, ...) values over neighbors alike in ``guide`` (N, d), and the noise's share (N,) that is left.

    ``noise`` (N,) is the variance of one value of the guide.
    """
    scale = np.float32(min(softness / guide.shape[1], SOFTEST))
    index = np.full(mask.shape, -1, np.int64)
    index[mask] = np.arange(len(guide))
    flat = np.ascontiguousarray(pixels.reshape(len(pixels), -1), dtype=np.float32)
    result, total, squares = flat.copy(), np.ones(len(flat), np.float32), np.ones(len(flat), np.float32)
    guide = np.ascontiguousarray(guide, dtype=np.float32)
    rows, columns = np.nonzero(mask)
    distance, smooth = np.empty(mask.shape, np.float32), np.empty(len(flat), np.float32)
    for down in range(-reach, reach + 1):
        for right in range(-reach, reach + 1):
            if (down, right) != (0, 0):
                _distances(guide, index, down, right, distance)
                _smoothed(distance, rows, columns, smooth)
                _gather(
                    flat,
                    index,
                    rows,
                    columns,
                    down,
                    right,
                    smooth,
                    noise,
                    scale,
                    result,
                    total,
                    squares,
                )
    result /= total[:, None]
    return result.reshape(pixels.shape), squares / total**2


@njit(parallel=True, fastmath=True, cache=True)  # type: ignore[untyped-decorator]
def _distances(guide: Any, index: Any, down: int, right: int, distance: Any) -> None:
    """Mean squared difference between each pixel and the one so far away; −1 where there is none."""
    height, width = index.shape
    for r in prange(height):
        for c in range(width):
            distance[r, c] = np.float32(-1.0)
            if 0 <= r + down < height and 0 <= c + right < width:
                i, j = index[r, c], index[r + down, c + right]
                if i >= 0 and j >= 0:
                    total = np.float32(0.0)
                    for k in range(guide.shape[1]):
                        step = guide[i, k] - guide[j, k]
                        total += step * step
                    distance[r, c] = total / np.float32(guide.shape[1])


@njit(parallel=True, cache=True)  # type: ignore[untyped-decorator]
def _smoothed(distance: Any, rows: Any, columns: Any, smooth: Any) -> None:
    """Mean over the 3 × 3 pixels around each mask pixel, of those that have a distance."""
    height, width = distance.shape
    for p in prange(len(rows)):
        total, count = np.float32(0.0), 0
        for r in range(max(rows[p] - 1, 0), min(rows[p] + 2, height)):
            for c in range(max(columns[p] - 1, 0), min(columns[p] + 2, width)):
                if distance[r, c] >= 0:
                    total += distance[r, c]
                    count += 1
        smooth[p] = (
            total / np.float32(max(count, 1)) if distance[rows[p], columns[p]] >= 0 else np.float32(-1.0)
        )


@njit(parallel=True, fastmath=True, cache=True)  # type: ignore[untyped-decorator]
def _gather(
    flat: Any,
    index: Any,
    rows: Any,
    columns: Any,
    down: int,
    right: int,
    smooth: Any,
    noise: Any,
    scale: Any,
    result: Any,
    total: Any,
    squares: Any,
) -> None:
    for p in prange(len(rows)):
        if smooth[p] >= 0:
            excess = max(smooth[p] - np.float32(2.0) * noise[p], np.float32(0.0))
            reach = scale * noise[p]
            if excess < np.float32(8.0) * reach:
                weight = np.exp(-excess / reach)
                other = index[rows[p] + down, columns[p] + right]
                for k in range(flat.shape[1]):
                    result[p, k] += weight * flat[other, k]
                total[p] += weight
                squares[p] += weight * weight
