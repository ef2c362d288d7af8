"""The correction in torch; :mod:`photostereo.reflectance.learned.context.correct` is the same for the pixels of a mask."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from photostereo.lab.training.context.examples import FINE, Examples


def corrected(answer: Tensor, examples: Examples) -> tuple[Tensor, Tensor]:
    """Unit normals (S, 3, SIZE, SIZE) and the logarithm of their expected error, from corrections of cells (S, 4, G, G)."""
    cover = (examples.maps[:, -1:] > 0).float()
    fine = functional.interpolate(
        torch.cat([answer * cover, cover], 1), scale_factor=FINE, mode="bilinear", align_corners=False
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
