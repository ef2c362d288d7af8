"""Random numbers for many scenes at once, angles, and many small operations of a GPU as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps

import torch
from torch import Tensor

Uniform = Callable[..., Tensor]


def uniform(count: int, device: torch.device | str, axes: int = 1) -> Uniform:
    """Draws ``u(low, high, *shape)``: numbers between two bounds, ``count`` times a shape, by default a one per axis."""

    def draw(low: float = 0.0, high: float = 1.0, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(count, *(shape or (1,) * axes), device=device)

    return draw


def angles(a: Tensor, b: Tensor) -> Tensor:
    """Angle in radians between unit vectors, well behaved at 0."""
    return 2.0 * torch.atan2((a - b).norm(dim=-1).clamp_min(1e-7), (a + b).norm(dim=-1).clamp_min(1e-7))


@contextmanager
def seeded(seed: int, device: torch.device | str) -> Iterator[None]:
    """The same random numbers whenever the block is entered; those outside go on as if it had not been."""
    with torch.random.fork_rng(devices=[device] if str(device).startswith("cuda") else []):
        torch.manual_seed(seed)
        yield


def fused(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """On a GPU, a function of tensors in one kernel instead of some dozen: they would cost more than the network."""
    compiled = cache(lambda: torch.compile(function, dynamic=True))

    @wraps(function)
    def call(*values: Tensor) -> Tensor:
        result: Tensor = compiled()(*values) if values[0].is_cuda else function(*values)
        return result

    return call
