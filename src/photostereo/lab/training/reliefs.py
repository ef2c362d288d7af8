"""Flat things as height fields: coins, carvings, folds, boards, whole frames; many of them nearly plane."""

from __future__ import annotations

import torch
from torch import Tensor

from photostereo.lab.training.heights import draw_heights, fractal, slopes, smooth_noise


def draw_reliefs(count: int, size: int, device: torch.device | str) -> tuple[Tensor, Tensor, Tensor]:
    """Heights (S, G, G), normals (S, G, G, 3), y up, and masks (S, G, G); row 0 is the top."""

    def u(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(count, 1, 1, device=device)

    axis = torch.linspace(-1, 1, size, device=device)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    # Plateaus with soft edges, as struck or carved: letters, figures.
    plateau = torch.tanh(u(1, 8) * (smooth_noise(count, size, 5, device) + u(-0.5, 0.5)))
    letters = torch.tanh(u(2, 8) * (smooth_noise(count, size, 20, device) - u(0.2, 1.0)))
    figure = smooth_noise(count, size, 3, device).clamp_min(0) * 2
    struck = 0.5 * plateau + 0.3 * letters * (u(0, 1) < 0.5) + figure * u(0.0, 1.0)
    rough = fractal(count, size, device)
    turn = u(0, 3.1416)
    along = torch.cos(turn) * x + torch.sin(turn) * y
    folds = (fractal(count, size, device, 8) * u(0.5, 2.0) + u(2, 14) * along).sin()
    folds = torch.where(u(0, 1) < 0.5, folds.abs(), folds)
    piled = draw_heights(count, size, device) * 4
    kind = u(0, 1)
    shape = torch.where(kind < 0.35, struck, torch.where(kind < 0.62, rough, folds))
    depth = torch.exp(u(-4.6, -1.6))  # of the relief: 1 to 20 % of half the frame
    piled = piled.clamp_min(-0.8 * 4) * torch.exp(u(-1.2, 0.0)) / 4
    heights = torch.where(kind > 0.84, piled, shape * depth)
    heights = heights + fractal(count, size, device) * torch.exp(u(-7.5, -3.6))
    # Nothing is quite plane or quite square to the camera.
    bulge = u(-0.15, 0.3) * (u(0, 1) < 0.4)
    heights = heights + (x * u(-1, 1) + y * u(-1, 1)) * 0.1 * (u(0, 1) < 0.6) - bulge * (x * x + y * y)
    mask, rim = _outlines(count, x, y, device)
    heights = heights + rim * depth.clamp_min(0.02) * (u(0, 1) < 0.4)
    normals = slopes(heights, 2.0 / (size - 1))
    normals = torch.stack([normals[..., 0], -normals[..., 1], normals[..., 2]], -1)  # rows run down, y up
    return torch.where(mask, heights, torch.full_like(heights, -9.0)), normals * mask[..., None], mask


def _outlines(count: int, x: Tensor, y: Tensor, device: torch.device | str) -> tuple[Tensor, Tensor]:
    """Masks that fill the frame but for the margin, and the raised rim along them."""

    def u(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(count, 1, 1, device=device)

    reach = 1 / (1.05 + 0.12 * torch.rand(count, 1, 1, device=device))
    aspect = torch.where(u(0, 1) < 0.4, torch.ones_like(reach), u(0.5, 1.0))
    wide = u(0, 1) < 0.5
    a, b = x / torch.where(wide, reach, reach * aspect), y / torch.where(wide, reach * aspect, reach)
    box = torch.maximum(a.abs(), b.abs())
    disc = torch.sqrt(a * a + b * b)
    worn = disc + 0.12 * smooth_noise(count, x.shape[-1], 4, device)
    pick = u(0, 1)
    level = torch.where(pick < 0.45, box, torch.where(pick < 0.72, disc, worn / 0.85))
    rim = torch.exp(-(((level - 0.93) / 0.05) ** 2))
    # Never nothing: a small disc is always part of it.
    return (level < 1) | (disc < 0.3), rim
