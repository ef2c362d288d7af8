"""The iteration of robust PCA on torch tensors; the functions of :mod:`.kernels`."""

from __future__ import annotations

from typing import Any

Tensor = Any


def begin(
    Y: Tensor, observed: Tensor, scale: float, mu: float, X: Tensor, dual: Tensor, grams: Tensor
) -> None:
    """As :func:`.kernels.begin`; all of the rows are one part."""
    dual.copy_(Y)
    dual.mul_(1.0 / scale if scale > 0 else 0.0)
    if len(observed) == len(Y):
        dual.mul_(observed)
    X.copy_(Y)
    X.add_(dual, alpha=1.0 / mu)
    grams[0] = X.T @ X


def sweep(
    Y: Tensor,
    X: Tensor,
    dual: Tensor,
    observed: Tensor,
    left: Tensor,
    right: Tensor,
    lam: float,
    mu: float,
    mu_next: float,
    residuals: Tensor,
    grams: Tensor,
) -> None:
    """As :func:`.kernels.sweep`: ``dual``, ``X``, ``residuals`` and ``grams`` are overwritten."""
    square = len(right) == 0 and left.shape[1] > 0
    z = Y - (X @ left if square else (X @ left) @ right) + dual / mu
    new = (mu * z).clamp(-lam, lam)
    if len(observed) == len(Y):
        new = new * observed
    residuals[0] = (new - dual).square_().sum() / (mu * mu)
    dual.copy_(new)
    X.copy_(new.mul_(1.0 / mu + 1.0 / mu_next).add_(Y).sub_(z))
    grams[0] = X.T @ X


def subtract_scaled(X: Tensor, dual: Tensor, mu: float, out: Tensor) -> None:
    """``out = X − Λ/μ``, in the type of ``out``."""
    out.copy_(X - dual / mu)


def lit(Y: Tensor, floor: float, observed: Tensor) -> None:
    """Fill ``observed`` with ``y_j > floor · max(y)`` of each pixel: what is darker counts as shadow."""
    darkest = floor * Y.double().amax(1, keepdim=True)
    observed.copy_(Y.gt(darkest))
