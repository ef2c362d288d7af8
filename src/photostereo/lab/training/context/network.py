"""The context network in torch; :mod:`photostereo.reflectance.learned.context.network` is its form in NumPy."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from photostereo.reflectance.learned.context.features import CHANNELS
from photostereo.reflectance.learned.context.network import OUTPUTS, WIDTHS


def _layer(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, stride, 1)


class ContextNetwork(nn.Module):  # type: ignore[misc]
    """Maps (S, CHANNELS, G, G) to corrections (S, OUTPUTS, G, G)."""

    def __init__(self) -> None:
        super().__init__()
        fine, coarse = WIDTHS[:-1], WIDTHS[1:]
        self.enter = _layer(CHANNELS, WIDTHS[0])
        self.here = nn.ModuleList(_layer(width, width) for width in WIDTHS)
        self.down = nn.ModuleList(_layer(a, b, 2) for a, b in zip(fine, coarse, strict=True))
        self.up = nn.ModuleList(_layer(b, a) for a, b in zip(fine, coarse, strict=True))
        self.again = nn.ModuleList(_layer(width, width) for width in fine)
        self.leave = _layer(WIDTHS[0], OUTPUTS)
        with torch.no_grad():
            for part in (*self.here, *self.again, self.leave):
                part.weight.mul_(0.3)

    def forward(self, x: Tensor) -> Tensor:
        relu = functional.relu
        x = relu(self.enter(x))
        seen = []
        for level, here in enumerate(self.here):
            if level:
                x = relu(self.down[level - 1](x))
            x = relu(x + here(x))
            seen.append(x)
        for level in reversed(range(len(self.up))):
            x = relu(seen[level] + self.up[level](functional.interpolate(x, scale_factor=2, mode="nearest")))
            x = relu(x + self.again[level](x))
        y: Tensor = self.leave(x)
        return y
