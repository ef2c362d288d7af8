"""Sparse regression in torch operations, all pixels at once: for tensors that are not on a GPU.

The functions have the arguments of the compiled loops (:mod:`.kernels`, :mod:`.absolute_kernels`) and of ``sparse.cu``; L is
(1, 3, d) or (N, 3, d).
"""

from __future__ import annotations

from typing import Any

import torch

Tensor = Any

#: Slack of a multiplier in the proof that a fit is optimal, and the smallest residual and slope that count.
SLACK, NOTHING = 1e-9, 1e-12


def sbl_em(Y, L, scale, noise, prior_variance, tol, settled, max_iter, n, iterations, weights) -> None:  # type: ignore[no-untyped-def]
    """Expectation maximization of sparse Bayesian learning, as :func:`.kernels.sbl_em`."""
    lit, L = scale > 0, L.double()
    y = Y.double() / scale.where(lit, torch.ones_like(scale))[:, None]
    x, gamma = torch.zeros_like(n), torch.ones_like(y)
    ridge = torch.eye(3, dtype=torch.float64) / prior_variance
    step = torch.full_like(scale, float("inf"))
    iterations[:] = 0
    open_ = lit.nonzero()[:, 0]
    for it in range(max_iter):
        if not len(open_):
            break
        g, values, P = gamma[open_], y[open_], _of(L, open_)
        v = 1.0 / (g + noise)
        covariance = torch.linalg.inv((v[:, None] * P) @ P.mT + ridge)
        found = _projected(v * values, P)[:, None] @ covariance
        step[open_] = (found[:, 0] - x[open_]).abs().amax(1)
        x[open_] = found[:, 0]
        ended = step[open_] < tol
        iterations[open_[ended]] = it + 1
        spread = (P * (covariance @ P)).sum(1)
        k = g * v
        g = (k * (k * ((values - _shading(x[open_], P)).square() + spread) + noise)).clamp(min=1e-10)
        gamma[open_[~ended]] = g[~ended]
        open_ = open_[~ended]
    iterations[open_] = torch.where(step[open_] < settled, max_iter, -max_iter)
    n[:] = x * scale[:, None]
    if len(weights) == len(Y):
        weights[:] = torch.where(lit[:, None], noise / (noise + gamma), 1.0)


def l1_regression(Y, L, start, floor, tol, max_iter, n, iterations) -> None:  # type: ignore[no-untyped-def]
    """Reweighted least squares, then an exact descent along edges, as :func:`.absolute_kernels.l1_regression`."""
    top = Y.abs().amax(1).double()
    top = top.where(top > 0, torch.ones_like(top))[:, None]
    y, x, L = Y.double() / top, start / top, L.double()
    for _ in range(max_iter):
        r = y - _shading(x, L)
        w = 1.0 / r.abs().clamp(min=floor)
        x = x + torch.linalg.solve((w[:, None] * L) @ L.mT, _projected(w * r, L))
    basis = (y - _shading(x, L)).abs().topk(3, largest=False).indices
    steps = torch.full_like(iterations, max_iter)
    open_ = torch.arange(len(y))
    for _ in range(4 * L.shape[2]):
        P, chosen = _of(L, open_), basis[open_]
        rows = P.mT.expand(len(open_), -1, -1).take_along_dim(chosen[:, :, None], 1)
        usable = torch.linalg.det(rows).abs() > SLACK
        open_, rows, chosen, P = open_[usable], rows[usable], chosen[usable], _of(P, usable)
        if not len(open_):
            break
        values = y[open_]
        x[open_] = torch.linalg.solve(rows, values.gather(1, chosen))
        r = (values - _shading(x[open_], P)).scatter(1, chosen, 0.0)
        r = torch.where(r.abs() < NOTHING, 0.0, r)
        multipliers = torch.linalg.solve(rows.mT, _projected(r.sign(), P))
        largest, leaving = multipliers.abs().max(1)
        # Along this edge the leaving residual grows and the others of the basis stay zero.
        side = torch.zeros_like(multipliers).scatter(
            1, leaving[:, None], multipliers.gather(1, leaving[:, None]).sign()
        )
        slopes = _shading(torch.linalg.solve(rows, side), P).scatter(1, chosen, 0.0)
        slopes = torch.where(slopes.abs() < NOTHING, 0.0, slopes)
        resisting = (slopes.abs() * (r == 0)).sum(1)
        falls = 1.0 - largest + resisting < -SLACK
        # The cost falls until the slopes of the residuals that changed their sign outweigh it.
        times = torch.where(r * slopes > 0, r / slopes, float("inf"))
        ordered, order = times.sort(1)
        slope = (1.0 - largest + resisting)[:, None] + 2.0 * slopes.abs().gather(1, order).cumsum(1)
        place = (slope >= 0).int().argmax(1, keepdim=True)
        entering = order.gather(1, place)
        falls &= ordered.gather(1, place)[:, 0].isfinite()
        steps[open_] += 1
        open_, leaving, entering = open_[falls], leaving[falls], entering[falls]
        basis[open_] = basis[open_].scatter(1, leaving[:, None], entering)
    steps[open_] *= -1
    iterations[:] = steps
    n[:] = x * top


def reweigh(Y, L, n, threshold, redescending, gram, moment, rest) -> None:  # type: ignore[no-untyped-def]
    """Weights at the normals n and what the next solve needs of them, as :func:`.kernels.reweigh`."""
    y, limit = Y.double(), threshold[:, None]
    L = L.double()
    squared = (y - _shading(n, L)).square()
    outlier = (squared > limit) & (limit > 0)
    w = torch.where(outlier, limit / squared, 1.0)
    dual = -limit * torch.log(w)
    if not redescending:
        w = w.sqrt()
        dual = torch.where(outlier, (limit * squared).sqrt() - limit, 0.0)
    a, b = torch.triu_indices(3, 3)
    gram[:] = _projected(w, L[:, a] * L[:, b])
    moment[:] = _projected(w * y, L)
    rest[:] = (w * y * y + dual).sum(1)


def _of(L: Tensor, which: Tensor) -> Tensor:
    """The lights of some of the pixels."""
    return L if len(L) == 1 else L[which]


def _shading(normals: Tensor, L: Tensor) -> Tensor:
    return normals @ L[0] if len(L) == 1 else (normals[:, None] @ L)[:, 0]


def _projected(values: Tensor, L: Tensor) -> Tensor:
    return values @ L[0].T if len(L) == 1 else (L @ values[:, :, None])[:, :, 0]
