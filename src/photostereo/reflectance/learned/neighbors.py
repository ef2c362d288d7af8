"""Average neighbors that cannot be distinguished within the noise.

The photographs of one pixel are d numbers. If two pixels of a small window differ by no more than the noise explains
(their mean squared difference, averaged over the 3 × 3 pixels around each, is near 2σ²), they show the same surface for
all that can be measured, and their average has less noise. This is non-local means on stacks:

    y_i ← Σ_j w_ij y_j / Σ_j w_ij,    w_ij = exp(−max(0, D_ij − σ_i² − σ_j²) / (h σ_i²))

With clean photographs every weight but a pixel's own vanishes, and nothing changes.

h shrinks with the number of photographs. Noise differs from one photograph to the next, and a normal is disturbed by three
of its d parts, 3σ²/d of its power. Two normals differ in all photographs, and nothing of that averages out. So the
difference between pixels that count as one is limited to a few times 3σ²/d.

References
----------
A. Buades, B. Coll, J.-M. Morel, A non-local algorithm for image denoising, CVPR 2005, doi:10.1109/CVPR.2005.38.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.runtime.loops import shared

#: Half the side of the window.
REACH = 3
#: h is SOFTNESS / d, and at most SOFTEST.
SOFTNESS, SOFTEST = 5.0, 0.25
#: Pixels whose difference exceeds the noise by this many h σ² have no weight.
CUTOFF = 8.0


def half_window(reach: int = REACH) -> list[tuple[int, int]]:
    """The displacements (down, right) of one half of the window; the others are their opposites.

    >>> half_window(1)
    [(0, 1), (1, -1), (1, 0), (1, 1)]
    """
    ahead = [(0, right) for right in range(1, reach + 1)]
    return ahead + [(down, right) for down in range(1, reach + 1) for right in range(-reach, reach + 1)]


def average_neighbors(
    pixels: NDArray[np.float32],
    guide: NDArray[np.float32],
    mask: NDArray[np.bool_],
    noise: NDArray[np.float32],
    control: Control = SILENT,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Averages of (N, ...) values over neighbors similar in ``guide`` (N, d), and the share (N,) of the noise that is left.

    ``noise`` (N,) is the variance of one value of the guide.
    """
    scale = np.float32(min(SOFTNESS / guide.shape[1], SOFTEST))
    height, width = mask.shape
    # A margin around the picture: every neighbor has a place.
    framed = np.pad(mask, REACH)
    index = np.full(framed.shape, -1, np.int32)
    index[framed] = np.arange(len(guide))
    control.check()
    flat = np.ascontiguousarray(pixels.reshape(len(pixels), -1), dtype=np.float32)
    result, total, squares = flat.copy(), np.ones(len(flat), np.float32), np.ones(len(flat), np.float32)
    guide = np.ascontiguousarray(guide, dtype=np.float32)
    control.check()
    distance = np.zeros((height + 2 * REACH, width + 2 * REACH), np.float32)
    known, smooth = np.zeros_like(distance), np.full_like(distance, -1.0)
    displacements = half_window()
    control.stage("neighbors", len(displacements))
    for down, right in displacements:
        _distances(guide, index, down, right, distance, known)
        _smooth(distance, known, smooth)
        _gather(flat, index, down, right, smooth, noise, scale, result, total, squares)
        control.advance()
    result /= total[:, None]
    return result.reshape(pixels.shape), squares / total**2


@shared(of="index", fastmath=True)  # type: ignore[untyped-decorator]
def _distances(
    first: int, last: int, guide: Any, index: Any, down: int, right: int, distance: Any, known: Any
) -> None:
    """Mean squared difference between each pixel and the displaced one, and whether both exist."""
    height, width = index.shape
    for r in range(max(first, REACH), min(last, height - REACH)):
        for c in range(REACH, width - REACH):
            i, j = index[r, c], index[r + down, c + right]
            both = i >= 0 and j >= 0
            total = np.float32(0.0)
            if both:
                for k in range(guide.shape[1]):
                    step = guide[i, k] - guide[j, k]
                    total += step * step
            distance[r, c] = total / np.float32(guide.shape[1])
            known[r, c] = np.float32(1.0) if both else np.float32(0.0)


@shared(of="distance", fastmath=True, error_model="numpy")  # type: ignore[untyped-decorator]
def _smooth(first: int, last: int, distance: Any, known: Any, smooth: Any) -> None:
    """Mean over the 3 × 3 pixels around each, of those that have a distance; −1 if the pixel itself has none."""
    height, width = distance.shape
    for r in range(max(first, REACH), min(last, height - REACH)):
        for c in range(REACH, width - REACH):
            total, count = np.float32(0.0), np.float32(0.0)
            for s in range(r - 1, r + 2):
                total += distance[s, c - 1] + distance[s, c] + distance[s, c + 1]
                count += known[s, c - 1] + known[s, c] + known[s, c + 1]
            smooth[r, c] = total / count if known[r, c] > 0 else np.float32(-1.0)


@shared(of="index", fastmath=True)  # type: ignore[untyped-decorator]
def _gather(
    first: int,
    last: int,
    flat: Any,
    index: Any,
    down: int,
    right: int,
    smooth: Any,
    noise: Any,
    scale: Any,
    result: Any,
    total: Any,
    squares: Any,
) -> None:
    """Add the displaced neighbor and its opposite: the distance to the opposite is that of the opposite to this pixel."""
    height, width = index.shape
    for r in range(max(first, REACH), min(last, height - REACH)):
        for c in range(REACH, width - REACH):
            p = index[r, c]
            if p < 0:
                continue
            reach = scale * noise[p]
            for side in range(2):
                near = smooth[r, c] if side == 0 else smooth[r - down, c - right]
                if near < 0:
                    continue
                excess = max(near - np.float32(2.0) * noise[p], np.float32(0.0))
                if excess < np.float32(CUTOFF) * reach:
                    weight = np.exp(-excess / reach)
                    other = index[r + down, c + right] if side == 0 else index[r - down, c - right]
                    for k in range(flat.shape[1]):
                        result[p, k] += weight * flat[other, k]
                    total[p] += weight
                    squares[p] += weight * weight
