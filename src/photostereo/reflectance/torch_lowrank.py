"""The elementwise half of robust PCA on torch tensors; the functions of :mod:`.lowrank_kernels`."""

from __future__ import annotations

from typing import Any

Tensor = Any


def shrink_and_ascend(
    D: Tensor,
    A: Tensor,
    X: Tensor,
    dual: Tensor,
    observed: Tensor,
    lam: float,
    mu: float,
    mu_next: float,
    residual: Tensor,
) -> None:
    """As :func:`.lowrank_kernels.shrink_and_ascend`: ``dual``, ``X`` and ``residual`` are overwritten."""
    z = D - A + dual / mu
    new = (mu * z).clamp(-lam, lam)
    if len(observed) == len(D):
        new = new * observed
    residual.copy_((new - dual).square_().sum(1) / (mu * mu))
    dual.copy_(new)
    X.copy_(new.mul_(1.0 / mu + 1.0 / mu_next).add_(D).sub_(z))


def subtract_scaled(X: Tensor, dual: Tensor, mu: float, out: Tensor) -> None:
    """``out = X − Λ/μ``, in the type of ``out``."""
    out.copy_(X - dual / mu)


def lit(Y: Tensor, floor: float, observed: Tensor) -> None:
    """Fill ``observed`` with ``y_j > floor · max(y)`` of each pixel: what is darker counts as shadow."""
    darkest = floor * Y.double().amax(1, keepdim=True)
    observed.copy_(Y.gt(darkest))
