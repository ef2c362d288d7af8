"""Flat objects as height fields: coins, carvings, folds, boards, whole frames, heaps seen from above; many nearly flat.

Heights z(x, y) over [−1, 1]² are (S, G, G) tensors.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from photostereo_lab.training.tensors import uniform

#: Share of reliefs that are nearly flat.
FLAT = 0.45


def smooth_noise(sets: int, size: int, cells: int, device: torch.device | str) -> Tensor:
    """Smooth random fields with about ``cells`` bumps across, standard deviation near 1."""
    coarse = torch.randn(sets, 1, cells + 3, cells + 3, device=device)
    return (
        functional.interpolate(coarse, size=(size, size), mode="bicubic", align_corners=True)[:, 0]
        * 1.3
    )


def fractal(sets: int, size: int, device: torch.device | str, finest: int = 32) -> Tensor:
    """Smooth noise of several scales, each set with its own roughness."""
    rough = 0.3 + 0.55 * torch.rand(sets, 1, 1, device=device)
    total, weight, cells = torch.zeros(sets, size, size, device=device), torch.ones_like(rough), 2
    while cells <= finest:
        total = total + weight * smooth_noise(sets, size, cells, device)
        weight, cells = weight * rough, cells * 2
    return total


def draw_heights(sets: int, size: int, device: torch.device | str) -> Tensor:
    """Heights (S, G, G) in units of half the frame."""
    u = uniform(sets, device, 2)
    axis = torch.linspace(-1, 1, size, device=device)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    ground = -u(0.0, 1.2) * (u(0, 1) < 0.7)
    blobs = torch.full((sets, size, size), -9.0, device=device)
    for number in range(9):
        turn = u(0, 3.1416)
        dx, dy = x - u(-0.75, 0.75) * min(1, number), y - u(-0.75, 0.75) * min(1, number)
        rx, ry = u(0.15, 0.55) + 0.35 * (number == 0), u(0.15, 0.55) + 0.35 * (number == 0)
        a = (torch.cos(turn) * dx + torch.sin(turn) * dy) / rx
        b = (torch.cos(turn) * dy - torch.sin(turn) * dx) / ry
        dome = torch.sqrt((1 - a * a - b * b).clamp_min(0)) * u(0.3, 1.3) * torch.sqrt(rx * ry) + u(
            -0.15, 0.25
        ) * (number > 0)
        dome = torch.where(a * a + b * b < 1, dome, torch.full_like(dome, -9.0))
        dome = torch.where(
            u(0, 1) < (1.0 if number == 0 else 0.6), dome, torch.full_like(dome, -9.0)
        )
        blobs = torch.maximum(blobs, dome)

    turn = u(0, 3.1416)
    along, across = (
        torch.cos(turn) * y - torch.sin(turn) * x,
        torch.cos(turn) * x + torch.sin(turn) * y,
    )
    profile = u(0.25, 0.6)
    for frequency in (1.5, 3.0, 6.0, 12.0):
        profile = profile + u(-1, 1) * 0.22 / frequency * torch.sin(frequency * along + u(0, 6.28))
    squared = profile.clamp_min(0.05) ** 2 - across**2
    solid = torch.where(
        (squared > 0) & (along.abs() < u(0.6, 0.95)),
        torch.sqrt(squared.clamp_min(0)),
        torch.full_like(squared, -9.0),
    )

    folds = (
        fractal(sets, size, device, 8) * u(0.5, 2.0)
        + u(1, 5) * (torch.cos(turn) * x + torch.sin(turn) * y)
    ).sin()
    folds = torch.where(u(0, 1) < 0.5, folds.abs(), folds) * u(0.05, 0.3)
    relief = fractal(sets, size, device) * u(0.02, 0.16)
    terraces = (
        0.15 * torch.sigmoid(8 * smooth_noise(sets, size, 4, device) * u(0.3, 2.0)) * u(0.2, 2.0)
        + relief * 0.3
    )

    pick = torch.rand(sets, 1, 1, device=device)
    shape = torch.where(
        pick < 0.36, blobs, torch.where(pick < 0.6, solid, torch.where(pick < 0.75, folds, relief))
    )
    shape = torch.where(pick > 0.92, terraces, shape)
    standing = shape > -5
    detail = fractal(sets, size, device) * torch.exp(u(-5.5, -2.6))
    carved = smooth_noise(sets, size, 6, device).clamp_min(0.3) * -u(0.0, 0.12) * (u(0, 1) < 0.3)
    flat = ground + 0.02 * smooth_noise(sets, size, 5, device) * (u(0, 1) < 0.5)
    heights = torch.where(standing, shape + detail + carved, flat)
    # The edge of an occluding contour is a steep slope a pixel wide, not a step.
    blurred = functional.avg_pool2d(
        functional.pad(heights[:, None], (1, 1, 1, 1), mode="replicate"), 3, 1
    )[:, 0]
    return torch.lerp(heights, blurred, 0.3)


def slopes(heights: Tensor, spacing: float) -> Tensor:
    """Unit normals (S, G, G, 3) by central differences."""
    padded = functional.pad(heights[:, None], (1, 1, 1, 1), mode="replicate")[:, 0]
    dx = (padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]) / (2 * spacing)
    dy = (padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]) / (2 * spacing)
    return functional.normalize(torch.stack([-dx, -dy, torch.ones_like(dx)], -1), dim=-1)


def draw_reliefs(
    count: int, size: int, device: torch.device | str
) -> tuple[Tensor, Tensor, Tensor]:
    """Heights (S, G, G), normals (S, G, G, 3), y up, and masks (S, G, G); row 0 is the top."""
    u = uniform(count, device, 2)
    axis = torch.linspace(-1, 1, size, device=device)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    # Plateaus with soft edges, like struck or carved letters and figures.
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
    # Nothing is exactly flat or exactly parallel to the image plane.
    bulge = u(-0.15, 0.3) * (u(0, 1) < 0.4)
    heights = (
        heights + (x * u(-1, 1) + y * u(-1, 1)) * 0.1 * (u(0, 1) < 0.6) - bulge * (x * x + y * y)
    )
    mask, rim = _outlines(count, x, y, device)
    heights = heights + rim * depth.clamp_min(0.02) * (u(0, 1) < 0.4)
    # Canvases, paper, varnish, worn coins: slopes of a few degrees or less.
    heights = heights * torch.exp(-u(0.0, 4.0) * (u(0, 1) < FLAT))
    normals = slopes(heights, 2.0 / (size - 1))
    normals = torch.stack(
        [normals[..., 0], -normals[..., 1], normals[..., 2]], -1
    )  # rows run down, y up
    return (
        torch.where(mask, heights, torch.full_like(heights, -9.0)),
        normals * mask[..., None],
        mask,
    )


def _outlines(
    count: int, x: Tensor, y: Tensor, device: torch.device | str
) -> tuple[Tensor, Tensor]:
    """Masks that fill the frame except for the margin, and the raised rim along them."""
    u = uniform(count, device, 2)
    reach = 1 / (1.05 + 0.12 * torch.rand(count, 1, 1, device=device))
    aspect = torch.where(u(0, 1) < 0.4, torch.ones_like(reach), u(0.5, 1.0))
    wide = u(0, 1) < 0.5
    a, b = (
        x / torch.where(wide, reach, reach * aspect),
        y / torch.where(wide, reach * aspect, reach),
    )
    box = torch.maximum(a.abs(), b.abs())
    disc = torch.sqrt(a * a + b * b)
    worn = disc + 0.12 * smooth_noise(count, x.shape[-1], 4, device)
    pick = u(0, 1)
    level = torch.where(pick < 0.45, box, torch.where(pick < 0.72, disc, worn / 0.85))
    rim = torch.exp(-(((level - 0.93) / 0.05) ** 2))
    # Never empty: a small disc is always included.
    return (level < 1) | (disc < 0.3), rim
