"""Many small operations of a GPU as one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps

import torch
from torch import Tensor


def fused(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """On a GPU, a function of tensors in one kernel instead of some dozen: they would cost more than the network."""
    compiled = cache(lambda: torch.compile(function, dynamic=True))

    @wraps(function)
    def call(*values: Tensor) -> Tensor:
        result: Tensor = compiled()(*values) if values[0].is_cuda else function(*values)
        return result

    return call
