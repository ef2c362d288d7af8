"""The set network of :mod:`photostereo.reflectance.learned.constants` in torch, with gradients, for training."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from photostereo.reflectance.learned import constants as c
from photostereo.reflectance.learned.torch_network import begin, normalized, refine


class RmsLinear(nn.Module):  # type: ignore[misc]
    """x ↦ hardswish(g · (Wx + b + context) / rms + c): one layer."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, width)
        self.gain = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        y = self.linear(x)
        if context is not None:
            y = y + context
        scale = torch.rsqrt(y.float().square().mean(-1, keepdim=True) + c.TINY_LAYER).to(y.dtype)
        return functional.hardswish(y * scale * self.gain + self.shift)


class Stage(nn.Module):  # type: ignore[misc]
    """One pass over the set."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = RmsLinear(c.FEATURES, width)
        self.second = RmsLinear(width, width)
        self.context = nn.Linear(2 * width, width)
        self.third = RmsLinear(width, width)
        self.fourth = RmsLinear(width, width)
        self.head = RmsLinear(2 * width, width)
        self.out = nn.Linear(width, 4)
        nn.init.normal_(self.out.weight, std=1e-2)
        nn.init.zeros_(self.out.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.second(self.first(tokens))
        x = self.fourth(self.third(x, self.context(pooled(x))[:, None]))
        return self.out(self.head(pooled(x))).float()


class SetNetwork(nn.Module):  # type: ignore[misc]
    """Map intensities (B, d, 3) and lights (B, d, 3) or (d, 3) to unit normals and the logarithm of the expected
    error, refined in ``stages`` with ``width`` numbers per token.
    """

    def __init__(self, width: int = 96, stages: int = 2) -> None:
        super().__init__()
        self.width = width
        self.stages = nn.ModuleList(Stage(width) for _ in range(stages))

    def forward(self, colors: Tensor, lights: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return (normals, log of the expected angle in radians) after every stage."""
        gray, colors = normalized(colors)
        normal, log_error = begin(gray, lights)
        answers = []
        for stage in self.stages:
            answers.append(refine(gray, colors, lights, normal.detach(), log_error.detach(), stage))
            normal, log_error = answers[-1]
        return answers


def pooled(x: Tensor) -> Tensor:
    """Pool mean and maximum over the photographs: (B, d, W) to (B, 2W)."""
    return torch.cat([x.mean(1), x.amax(1)], -1)
