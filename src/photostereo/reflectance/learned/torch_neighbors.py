"""Average neighbors on torch tensors: the function of :mod:`.neighbors`, all pixels at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import avg_pool2d

from photostereo.core.control import SILENT, Control
from photostereo.reflectance.learned.neighbors import CUTOFF, REACH, SOFTEST, SOFTNESS
from photostereo.reflectance.projection import tensor_batches
from photostereo.runtime.arrays import like

Tensor = Any

_THREADS = 256


def average_neighbors(
    pixels: Tensor, guide: Tensor, mask: NDArray[np.bool_], noise: Tensor, control: Control = SILENT
) -> tuple[Tensor, Tensor]:
    """Averages of (N, ...) values over neighbors similar in ``guide`` (N, d), and the share (N,) of the noise left."""
    reach, scale = REACH, min(SOFTNESS / guide.shape[1], SOFTEST)
    control.stage("neighbors", 2 * reach + 1)
    if pixels.is_cuda:
        return _fused(pixels, guide, mask, noise, reach, scale, control)
    # A frame of nothing around the picture: every neighbor has a place.
    framed = np.pad(mask, reach)
    numbers = np.full(framed.shape, -1)
    numbers[framed] = np.arange(len(guide))
    places, index = (like(part, pixels) for part in (np.flatnonzero(framed), numbers.ravel()))
    flat = pixels.reshape(len(pixels), -1).contiguous()
    result, total, squares = flat.clone(), torch.ones_like(noise), torch.ones_like(noise)
    picture = torch.zeros(2, framed.size, dtype=torch.float32, device=pixels.device)
    for down in range(-reach, reach + 1):
        for right in range(-reach, reach + 1):
            if (down, right) == (0, 0):
                continue
            other = index[places + (down * framed.shape[1] + right)]
            there = other >= 0
            other = other.clamp(min=0)
            # The distances, and which pixels have one; both as means over 3 x 3 pixels.
            picture[0, places] = torch.where(there, _distances(guide, other), 0.0)
            picture[1, places] = there.float()
            distance, count = avg_pool2d(picture.view(2, 1, *framed.shape), 3, 1, 1).view(2, -1)[:, places]
            excess = (distance / count.clamp(min=1e-6) - 2.0 * noise).clamp(min=0.0)
            width = scale * noise
            alike = there & (excess < CUTOFF * width)
            weight = torch.where(alike, torch.exp(-excess / torch.where(alike, width, 1.0)), 0.0)
            for part in tensor_batches(flat):
                result[part].addcmul_(weight[part, None], flat[other[part]])
            total += weight
            squares += weight * weight
        control.advance()
    result /= total[:, None]
    return result.view(pixels.shape), squares / total**2


def _fused(
    pixels: Tensor,
    guide: Tensor,
    mask: NDArray[np.bool_],
    noise: Tensor,
    reach: int,
    scale: float,
    control: Control,
) -> tuple[Tensor, Tensor]:
    """The same in two launches for each row of neighbors, ``neighbors.cu``."""
    from photostereo.runtime.cuda_kernels import compile_kernel, device_of

    flat, guide, noise = pixels.reshape(len(pixels), -1).contiguous(), guide.contiguous(), noise.contiguous()
    places = like(np.flatnonzero(mask).astype(np.int32), pixels)
    index = torch.full((mask.size,), -1, dtype=torch.int32, device=pixels.device)
    index[places] = torch.arange(len(places), dtype=torch.int32, device=pixels.device)
    distance = torch.full((2 * reach + 1, mask.size), -1.0, dtype=torch.float32, device=pixels.device)
    result, total, squares = flat.clone(), torch.ones_like(noise), torch.ones_like(noise)
    blocks = min(-(-len(flat) * 32 // _THREADS), 1 << 20)
    with device_of(pixels):
        distances, gather = (
            compile_kernel("photostereo.reflectance.learned", "neighbors.cu", name, CUTOFF=f"{CUTOFF}f")
            for name in ("distances", "gather")
        )
        for down in range(-reach, reach + 1):
            size = (*mask.shape, down, reach)
            compared = (guide, index, places, distance, len(flat), guide.shape[1])
            distances.launch(blocks, _THREADS, (*compared, *size))
            added = (flat, index, places, distance, noise, result, total, squares)
            gather.launch(blocks, _THREADS, (*added, float(scale), len(flat), flat.shape[1], *size))
            control.advance()
    result /= total[:, None]
    return result.view(pixels.shape), squares / total**2


def _distances(guide: Tensor, other: Tensor) -> Tensor:
    """Mean squared difference between each pixel and another."""
    parts = [(guide[part] - guide[other[part]]).square_().mean(1) for part in tensor_batches(guide)]
    return torch.cat(parts)
