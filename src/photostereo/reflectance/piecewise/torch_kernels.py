"""The piecewise-linear model's kernels on torch tensors: the functions of :mod:`.kernels`.

The loops there run pixel by pixel; here every line runs over all the pixels of a batch. All is in double
precision: it is done once per capture, and every later iteration stands on these statistics.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.reflectance.piecewise.kernels import RIDGE, Reduced
from photostereo.reflectance.piecewise.statistics import PiecewiseStatistics
from photostereo.reflectance.projection import project, squared_lengths, tensor_batches
from photostereo.runtime.arrays import like

Tensor = Any


def statistics(
    pixels: Tensor, lights: NDArray[Any], p: int, from_minimum: bool = False
) -> PiecewiseStatistics:
    """T = CᵀC and Q = CᵀLᵀ of every pixel."""
    import torch

    directions = like(np.asarray(lights.T, dtype=np.float64), pixels)
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
        cross[part] = C @ directions
    diagonal = gram.diagonal(dim1=1, dim2=2)
    diagonal += RIDGE * diagonal.sum(1, keepdim=True)
    return PiecewiseStatistics(gram, cross, usable)


def eliminate_slopes(
    stats: PiecewiseStatistics, pixels: Tensor, lights: NDArray[Any], gamma: float
) -> Reduced:
    """Minimize over the slopes once and for all; what is left is quadratic in n. See :class:`.model.Piecewise`."""
    import torch

    p = stats.gram.shape[1]
    usable, rows, cols = stats.usable, *np.triu_indices(3)
    lights_gram = like(lights @ lights.T, stats.gram)
    ones = torch.ones_like(stats.cross[:, :, :1])
    X = cholesky_solve(_or_identity(stats.gram, usable), torch.cat([stats.cross, ones], 2))
    # M = T + γ 11ᵀ by Sherman and Morrison, as in the compiled kernel.
    sums, total = X[:, :, :3].sum(1), X[:, :, 3].sum(1)
    share = gamma / (1.0 + gamma * total)
    offset = (share * p)[:, None] * X[:, :, 3]
    slope = X[:, :, :3] - (share[:, None] * X[:, :, 3])[:, :, None] * sums[:, None, :]
    linear = (share * p)[:, None] * sums
    hessian = lights_gram + share[:, None, None] * sums[:, :, None] * sums[:, None, :]
    hessian = hessian - stats.cross.transpose(1, 2) @ X[:, :, :3]
    # Where the curve cannot be told, the Lambertian model: a = 1.
    hessian = torch.where(usable[:, None, None], hessian, lights_gram)
    return Reduced(
        hessian=hessian[:, rows, cols].contiguous(),
        linear=torch.where(usable[:, None], linear, project(pixels, lights)),
        constant=torch.where(usable, share * p * p, squared_lengths(pixels)),
        slopes_of_normals=slope * usable[:, None, None],
        slopes_offset=torch.where(usable[:, None], offset, torch.ones_like(offset)),
    )


def constrained_fit(
    stats: PiecewiseStatistics, lights_gram: NDArray[Any], fallback: Tensor
) -> tuple[Tensor, Tensor]:
    """Normals and slopes under the exact constraint 1ᵀa = p; the fallback where the curve cannot be told."""
    import torch

    p, usable = stats.gram.shape[1], stats.usable
    projected = stats.cross @ like(np.linalg.inv(lights_gram), stats.cross)
    S = stats.gram - projected @ stats.cross.transpose(1, 2)
    X = cholesky_solve(_or_identity(S, usable), torch.ones_like(S[:, :, :1]))[:, :, 0]
    slopes = p * X / X.sum(1, keepdim=True)
    normals = torch.einsum("npk,np->nk", projected, slopes)
    return (
        torch.where(usable[:, None], normals, fallback),
        torch.where(usable[:, None], slopes, torch.ones_like(slopes)),
    )


def cholesky_solve(A: Tensor, B: Tensor) -> Tensor:
    """Solve A X = B for many small symmetric positive definite A (n, p, p) and B (n, p, c), p steps each way.

    A pivot that rounding made negative is lifted to 1e-300, as the compiled kernel does.

    >>> import torch
    >>> A = torch.tensor([[[4.0, 2.0], [2.0, 3.0]]])
    >>> cholesky_solve(A, A @ torch.tensor([[[1.0], [2.0]]])).flatten().tolist()
    [1.0, 2.0]
    """
    A, X = A.clone(), B.clone()
    p = A.shape[1]
    for k in range(p):
        if k:
            A[:, k:, k] -= (A[:, k:, :k] * A[:, k, None, :k]).sum(2)
        A[:, k, k] = A[:, k, k].clamp(min=1e-300).sqrt()
        A[:, k + 1 :, k] /= A[:, k, k, None]
    for k in range(p):
        if k:
            X[:, k] -= (A[:, k, :k, None] * X[:, :k]).sum(1)
        X[:, k] /= A[:, k, k, None]
    for k in reversed(range(p)):
        if k + 1 < p:
            X[:, k] -= (A[:, k + 1 :, k, None] * X[:, k + 1 :]).sum(1)
        X[:, k] /= A[:, k, k, None]
    return X


def _or_identity(matrices: Tensor, usable: Tensor) -> Tensor:
    import torch

    identity = torch.eye(matrices.shape[1], dtype=matrices.dtype, device=matrices.device)
    return torch.where(usable[:, None, None], matrices, identity)
