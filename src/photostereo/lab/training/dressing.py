"""Materials over a whole surface: two that pass into one another, paint of several scales, dirt in hollow places."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from photostereo.lab.training.heights import smooth_noise
from photostereo.lab.training.materials import Materials, draw_materials


def dress(heights: Tensor, mask: Tensor) -> tuple[Materials, Tensor]:
    """Materials of all S · G · G pixels, and their diffuse albedo (S, 3, G, G), zero outside the mask."""
    count, size = heights.shape[:2]
    device = heights.device

    def u(low: float = 0.0, high: float = 1.0) -> Tensor:
        return low + (high - low) * torch.rand(count, 1, 1, device=device)

    one, two = draw_materials(count, device), draw_materials(count, device)
    scale = torch.where(
        u() < 0.5, smooth_noise(count, size, 4, device), smooth_noise(count, size, 12, device)
    )
    blend = torch.sigmoid(u(3, 30) * (scale - 0.7 * torch.randn(count, 1, 1, device=device))) * (u() < 0.6)
    fine = torch.where(
        u() < 0.5, smooth_noise(count, size, 10, device), smooth_noise(count, size, 30, device)
    )
    fine = torch.where(u() < 0.3, torch.tanh(6 * fine), fine)
    paint = torch.exp(u(0, 0.6) * (u() < 0.7) * fine).clamp(0.1, 3.0)
    filled = torch.where(mask, heights, torch.zeros_like(heights))[:, None]
    share = functional.avg_pool2d(mask.float()[:, None], 9, 1, 4)
    hollow = functional.avg_pool2d(filled, 9, 1, 4) / share.clamp_min(0.05) - filled
    paint = paint * torch.exp(-(u(0, 25) * (u() < 0.25)) * hollow[:, 0].clamp(0, 0.1))
    owner = torch.arange(count, device=device).repeat_interleave(size * size)
    materials = one[owner].blended(two[owner], blend.reshape(-1, 1))
    materials.base = (materials.base * paint.reshape(-1, 1)).clamp_max(1.0)
    albedo = materials.diffuse_albedo().reshape(count, size, size, 3).permute(0, 3, 1, 2)
    return materials, albedo.clamp_max(0.95) * mask[:, None]
