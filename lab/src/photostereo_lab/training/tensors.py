"""Random numbers for many scenes at once, angles, and fused GPU kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps

import torch
from torch import Tensor

Uniform = Callable[..., Tensor]


def uniform(count: int, device: torch.device | str, axes: int = 1) -> Uniform:
    """Return a function ``u(low, high, *shape)`` that draws uniform numbers, ``count`` times a shape (default: ones)."""

    def draw(low: float = 0.0, high: float = 1.0, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(count, *(shape or (1,) * axes), device=device)

    return draw


def angles(a: Tensor, b: Tensor) -> Tensor:
    """Angle in radians between unit vectors, numerically stable at 0."""
    return 2.0 * torch.atan2(
        (a - b).norm(dim=-1).clamp_min(1e-7), (a + b).norm(dim=-1).clamp_min(1e-7)
    )


@contextmanager
def seeded(seed: int, device: torch.device | str) -> Iterator[None]:
    """Use the same random numbers whenever the block is entered; the stream outside is not affected."""
    with torch.random.fork_rng(devices=[device] if str(device).startswith("cuda") else []):
        torch.manual_seed(seed)
        yield


def fused(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """On a GPU, fuse a function of tensors into one kernel instead of dozens, which would cost more than the network."""
    compiled = cache(lambda: torch.compile(function, dynamic=True))

    @wraps(function)
    def call(*values: Tensor) -> Tensor:
        result: Tensor = compiled()(*values) if values[0].is_cuda else function(*values)
        return result

    return call
