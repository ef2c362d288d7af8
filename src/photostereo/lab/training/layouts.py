"""Where the lights stand: random rectangles, cones and rings of directions, far or near."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def draw_lights(sets: int, count: int, device: torch.device | str) -> Tensor:
    """Directions (sets, count, 3): a rectangle (half), a cone of 25 to 80 degrees, or rings, a little off center."""

    def u(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(sets, *shape, device=device)

    offset = torch.randn(sets, 1, 2, device=device) * 0.12
    extent = torch.cat([u(0.35, 1.1, 1, 1), u(0.35, 1.1, 1, 1)], -1)
    rectangle = u(-1, 1, count, 2) * extent + offset
    rectangle = functional.normalize(torch.cat([rectangle, torch.ones_like(rectangle[..., :1])], -1), dim=-1)

    widest = torch.cos(torch.deg2rad(u(25, 80, 1)))
    cosine = 1 - u(0, 1, count) * (1 - widest)
    rings = torch.cos(torch.acos(widest) * torch.ceil(u(0, 1, count) * 3) / 3)
    cosine = torch.where(u(0, 1, 1) < 0.3, rings, cosine).clamp(0.05, 1)
    azimuth = u(0, 6.2832, count)
    sine = torch.sqrt((1 - cosine**2).clamp_min(0))
    cone = torch.stack([sine * torch.cos(azimuth), sine * torch.sin(azimuth), cosine], -1)
    cone = functional.normalize(cone + torch.cat([offset, torch.zeros_like(offset[..., :1])], -1), dim=-1)
    chosen = torch.where(u(0, 1, 1, 1) < 0.5, rectangle, cone)
    return functional.normalize(torch.cat([chosen[..., :2], chosen[..., 2:].clamp_min(0.05)], -1), dim=-1)


def seen_from(lights: Tensor, place: Tensor, distance: Tensor) -> tuple[Tensor, Tensor]:
    """Direction and strength of lights (B, d, 3) at ``distance`` (B, 1) object radii, from places (B, 3)."""
    ray = lights * distance[..., None] - place[:, None]
    squared = ray.square().sum(-1)
    return ray * torch.rsqrt(squared)[..., None], distance**2 / squared


def draw_distances(sets: int, device: torch.device | str) -> Tensor:
    """Distances (sets, 1) in object radii: near, 10 to 60, in a third, otherwise as good as infinite."""
    near = 10 * 6 ** torch.rand(sets, 1, device=device)
    return torch.where(torch.rand(sets, 1, device=device) < 0.35, near, torch.full_like(near, 1e4))


def jittered(lights: Tensor, degrees: float = 1.5, strength: float = 0.05) -> tuple[Tensor, Tensor]:
    """Directions off by up to about ``degrees`` and strengths (B, d, 1) off by ``strength``, as calibration leaves them."""
    amount = torch.rand(lights.shape[0], 1, 1, device=lights.device) * torch.pi / 180 * degrees
    wrong = functional.normalize(lights + torch.randn_like(lights) * amount * 0.7, dim=-1)
    amount = torch.rand(lights.shape[0], 1, 1, device=lights.device) * strength
    return wrong, 1 + amount * torch.randn_like(lights[..., :1])
