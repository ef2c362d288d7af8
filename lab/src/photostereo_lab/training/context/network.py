"""The context network in torch and its correction; :mod:`photostereo.reflectance.learned.context` has the versions
that a solve uses."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from photostereo.reflectance.learned.context.features import CHANNELS
from photostereo.reflectance.learned.context.network import OUTPUTS, WIDTHS
from photostereo_lab.training.context.examples import FINE, Examples


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
            x = relu(
                seen[level]
                + self.up[level](functional.interpolate(x, scale_factor=2, mode="nearest"))
            )
            x = relu(x + self.again[level](x))
        y: Tensor = self.leave(x)
        return y


def corrected(answer: Tensor, examples: Examples) -> tuple[Tensor, Tensor]:
    """Unit normals (S, 3, SIZE, SIZE) and the logarithm of their expected error, from corrections of cells (S, 4, G, G)."""
    cover = (examples.maps[:, -1:] > 0).float()
    fine = functional.interpolate(
        torch.cat([answer * cover, cover], 1),
        scale_factor=FINE,
        mode="bilinear",
        align_corners=False,
    )
    fine = fine[:, :-1] / fine[:, -1:].clamp_min(1e-3)
    network, matte = examples.network.float(), examples.matte.float()
    shifted = functional.normalize(network[:, :3] + fine[:, :3], dim=1, eps=1e-6)
    sure = torch.exp(-(network[:, 3:] + 2 * fine[:, 3:]).clamp(-14, 14))
    also = torch.exp(-matte[:, 3:])
    moved = (shifted - network[:, :3]).square().sum(1, keepdim=True)
    weight = 1 / (1 / torch.minimum(sure, torch.exp(-network[:, 3:])) + moved)
    normals = functional.normalize(shifted * weight + matte[:, :3] * also, dim=1, eps=1e-12)
    return normals, -0.5 * torch.log(sure + also)[:, 0]
