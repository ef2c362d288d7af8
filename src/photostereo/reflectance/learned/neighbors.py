"""Average neighbors that cannot be distinguished within the noise.

The photographs of one pixel are d numbers. If two pixels of a small window differ by no more than
the noise explains (their mean squared difference, averaged over the 3 × 3 pixels around each, is
near 2σ²), they are indistinguishable, and their average has less noise. This is non-local means on
stacks:

    y_i ← Σ_j w_ij y_j / Σ_j w_ij,    w_ij = exp(−max(0, D_ij − σ_i² − σ_j²) / (h σ_i²))

With clean photographs, all weights except a pixel's own vanish, and nothing changes.

h decreases with the number of photographs. Noise is independent between photographs, and only three
of its d components disturb a normal, 3σ²/d of its power. A difference between two normals appears
in all photographs and does not average out. So the difference between pixels that are averaged is
limited to a few times 3σ²/d.

References
----------
A. Buades, B. Coll, J.-M. Morel, A non-local algorithm for image denoising, CVPR 2005,
doi:10.1109/CVPR.2005.38.
"""

from __future__ import annotations

import numpy as np

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray
from photostereo.runtime.arrays import Array, cast, contiguous, is_tensor, like, to_numpy, zeros
from photostereo.runtime.loops import shared

#: Half the side of the window. A wider one costs more, and finds few pixels that are as similar.
REACH = 3
#: h is SOFTNESS / d: twice the 3σ²/d that disturbs a normal, roughly.
SOFTNESS = 5.0
#: The largest h, for few photographs.
SOFTEST = 0.25
#: Pixels whose difference exceeds the noise by this many h σ² have no weight: it would be below
#: exp(−8), and the exponential takes time.
CUTOFF = 8.0


def half_window() -> list[tuple[int, int]]:
    """Return displacements (down, right) of one half of the window; the others are opposite."""
    ahead = [(0, right) for right in range(1, REACH + 1)]
    across = range(-REACH, REACH + 1)
    return ahead + [(down, right) for down in range(1, REACH + 1) for right in across]


def average_neighbors(
    pixels: Array, guide: Array, mask: BoolArray, noise: Array, control: Control = SILENT
) -> tuple[Array, Array]:
    """Average values over similar neighbors.

    Parameters
    ----------
    pixels : array (N, ...)
        The values.
    guide : array (N, d)
        Neighbors are similar if these differ by no more than their noise explains.
    mask : array of bool (H, W)
        The positions of the pixels, row by row.
    noise : array (N,)
        Variance of a value of the guide.
    control : Control
        Progress and cancellation.

    Returns
    -------
    averages : array (N, ...)
    share : array (N,)
        Of the noise variance that remains.
    """
    # Colors are averaged with the weights of the gray guide, which has less noise.
    flat = contiguous(cast(pixels.reshape(len(pixels), -1), "float32"))
    guide = cast(guide, "float32")
    # A pixel is its own neighbor, of weight 1.
    result = flat + 0
    total = zeros((len(flat),), flat, "float32") + 1
    squares = total + 0
    control.check()
    arrays = (flat, guide, noise, result, total, squares)
    if is_tensor(flat) and flat.is_cuda:
        _on_gpu(mask, control, *arrays)
    else:
        _in_loops(mask, control, *(to_numpy(array) for array in arrays))
    result /= total[:, None]
    return result.reshape(pixels.shape), squares / total**2


def _in_loops(mask, control, flat, guide, noise, result, total, squares) -> None:  # type: ignore[no-untyped-def]
    """Add each pixel's neighbors to the sums of values, weights and squared weights."""
    scale = np.float32(min(SOFTNESS / guide.shape[1], SOFTEST))
    # A margin around the picture, so that every neighbor exists.
    framed = np.pad(mask, REACH)
    index = np.full(framed.shape, -1, np.int32)
    index[framed] = np.arange(len(guide))
    guide = np.ascontiguousarray(guide)
    control.check()
    distance = np.zeros(framed.shape, np.float32)
    present = np.zeros(framed.shape, np.float32)
    smooth = np.full(framed.shape, -1.0, np.float32)
    displacements = half_window()
    control.stage("neighbors", len(displacements))
    # Half of the window: the opposite displacement has the same distances.
    for down, right in displacements:
        _distances(guide, index, down, right, distance, present)
        _smooth(distance, present, smooth)
        _gather(flat, index, down, right, smooth, noise, scale, result, total, squares)
        control.advance()


def _on_gpu(mask, control, flat, guide, noise, result, total, squares) -> None:  # type: ignore[no-untyped-def]
    """Do the same on a GPU, in two launches for each row of neighbors."""
    import torch

    from photostereo.runtime.cuda_kernels import launch

    scale = float(min(SOFTNESS / guide.shape[1], SOFTEST))
    guide = guide.contiguous()
    noise = noise.contiguous()
    places = like(np.flatnonzero(mask).astype(np.int32), flat)
    index = torch.full((mask.size,), -1, dtype=torch.int32, device=flat.device)
    index[places] = torch.arange(len(places), dtype=torch.int32, device=flat.device)
    distance = torch.full((2 * REACH + 1, mask.size), -1.0, dtype=torch.float32, device=flat.device)
    count, photographs = guide.shape
    blocks = min(-(-count * 32 // 256), 1 << 20)
    constants = {"CUTOFF": f"{CUTOFF}f"}
    control.stage("neighbors", 2 * REACH + 1)
    for down in range(-REACH, REACH + 1):
        window = (*mask.shape, down, REACH)
        compared = (guide, index, places, distance, count, photographs, *window)
        launch(__package__, "neighbors.cu", "distances", constants, compared, blocks)
        arrays = (flat, index, places, distance, noise, result, total, squares)
        added = (*arrays, scale, count, flat.shape[1], *window)
        launch(__package__, "neighbors.cu", "gather", constants, added, blocks)
        control.advance()


@shared(of="index", fastmath=True)
def _distances(first, last, guide, index, down, right, distance, present):  # type: ignore[no-untyped-def]
    """Compute the mean squared difference between each pixel and the displaced one.

    Also whether both exist.
    """
    height, width = index.shape
    for r in range(max(first, REACH), min(last, height - REACH)):
        for c in range(REACH, width - REACH):
            i = index[r, c]
            j = index[r + down, c + right]
            both = i >= 0 and j >= 0
            total = np.float32(0.0)
            if both:
                for k in range(guide.shape[1]):
                    step = guide[i, k] - guide[j, k]
                    total += step * step
            distance[r, c] = total / np.float32(guide.shape[1])
            present[r, c] = np.float32(1.0) if both else np.float32(0.0)


@shared(of="distance", fastmath=True, error_model="numpy")
def _smooth(first, last, distance, present, smooth):  # type: ignore[no-untyped-def]
    """Average the distance over the 3 × 3 pixels around each that have one.

    The result is −1 if the pixel itself has none.
    """
    height, width = distance.shape
    for r in range(max(first, REACH), min(last, height - REACH)):
        for c in range(REACH, width - REACH):
            # A single pixel's distance is too noisy to decide; nine decide together.
            total = np.float32(0.0)
            count = np.float32(0.0)
            for s in range(r - 1, r + 2):
                total += distance[s, c - 1] + distance[s, c] + distance[s, c + 1]
                count += present[s, c - 1] + present[s, c] + present[s, c + 1]
            smooth[r, c] = total / count if present[r, c] > 0 else np.float32(-1.0)


@shared(of="index", fastmath=True)
def _gather(first, last, flat, index, down, right, smooth, noise, scale, result, total, squares):  # type: ignore[no-untyped-def]
    """Add the displaced neighbor and its opposite.

    Distances are symmetric, so both come from the same table.
    """
    height, width = index.shape
    for r in range(max(first, REACH), min(last, height - REACH)):
        for c in range(REACH, width - REACH):
            p = index[r, c]
            if p < 0:
                continue
            # h σ² of this pixel: what may differ without harm.
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
