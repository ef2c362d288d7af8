"""The statistics of the piecewise-linear model on torch tensors, as in :mod:`.kernels`, in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.reflectance.piecewise.elimination import RIDGE, PiecewiseStatistics
from photostereo.reflectance.projection import tensor_batches
from photostereo.runtime.arrays import like
from photostereo.runtime.illumination import some_lights

Tensor = Any


def statistics(
    pixels: Tensor, lights: NDArray[Any], p: int, from_minimum: bool = False
) -> PiecewiseStatistics:
    """T = CᵀC and Q = CᵀLᵀ of every pixel."""
    import torch

    directions = like(np.asarray(lights.swapaxes(-1, -2), dtype=np.float64), pixels)
    piece = torch.arange(p, device=pixels.device, dtype=torch.float64)
    gram = torch.empty(len(pixels), p, p, dtype=torch.float64, device=pixels.device)
    cross = torch.empty(len(pixels), p, 3, dtype=torch.float64, device=pixels.device)
    usable = torch.empty(len(pixels), dtype=torch.bool, device=pixels.device)
    for part in tensor_batches(pixels, copies=p):
        y = pixels[part].double()
        low, high = y.amin(1), y.amax(1)
        usable[part] = (high > 0) & (high > low)
        base = low if from_minimum else torch.zeros_like(low)
        step = (high - base) / p
        ends = base[:, None] + (piece + 1) * step[:, None]
        starts = base[:, None] + piece * step[:, None]
        starts[:, 0] = starts[:, 0].clamp(max=0.0)  # the curve starts at the origin
        C = (y[:, None, :] - starts[:, :, None]).clamp(min=0.0).minimum((ends - starts)[:, :, None])
        C *= usable[part][:, None, None]
        gram[part] = C @ C.transpose(1, 2)
        cross[part] = C @ some_lights(directions, part)
    diagonal = gram.diagonal(dim1=1, dim2=2)
    diagonal += RIDGE * diagonal.sum(1, keepdim=True)
    return PiecewiseStatistics(gram, cross, usable)
