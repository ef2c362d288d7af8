"""Average neighbors on torch tensors: the function of :mod:`.neighbors`, on a GPU in two launches for each row of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.reflectance.learned import neighbors
from photostereo.reflectance.learned.neighbors import CUTOFF, REACH, SOFTEST, SOFTNESS
from photostereo.runtime.arrays import like

Tensor = Any

_THREADS = 256


def average_neighbors(
    pixels: Tensor, guide: Tensor, mask: NDArray[np.bool_], noise: Tensor, control: Control = SILENT
) -> tuple[Tensor, Tensor]:
    """Averages of (N, ...) values over neighbors similar in ``guide`` (N, d), and the share (N,) of the noise left."""
    if not pixels.is_cuda:
        values, similar, variance = (part.numpy() for part in (pixels, guide, noise))
        averages, share = neighbors.average_neighbors(values, similar, mask, variance, control)
        return torch.from_numpy(averages), torch.from_numpy(share)
    from photostereo.runtime.cuda_kernels import compile_kernel, device_of

    reach, scale = REACH, min(SOFTNESS / guide.shape[1], SOFTEST)
    control.stage("neighbors", 2 * reach + 1)
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
