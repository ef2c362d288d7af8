"""What stands around an object and throws light back: a table below or behind it, a wall; and light from everywhere."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

#: Directions that stand for all.
DIRECTIONS = 32
#: Shares of scenes with a table, a wall, a little light from everywhere, much of it.
TABLE, WALL, AMBIENT, ROOM_LIGHT = 0.5, 0.2, 0.4, 0.04


def sphere(device: torch.device | str) -> Tensor:
    """Directions (E, 3) that cover the sphere evenly, turned at random about the line of sight."""
    number = torch.arange(DIRECTIONS, device=device) + 0.5
    z = 1 - 2 * number / DIRECTIONS
    azimuth = number * math.pi * (1 + 5**0.5) + 6.2832 * torch.rand((), device=device)
    across = torch.sqrt(1 - z * z)
    return torch.stack([across * torch.cos(azimuth), across * torch.sin(azimuth), z], -1)


def radiance(lights: Tensor, directions: Tensor) -> Tensor:
    """What comes from each direction (S, d, 3, E) under lights (S, d, 3): 1 is a white surface that faces the light."""
    count, device = len(lights), lights.device

    def u(low: float = 0.0, high: float = 1.0) -> Tensor:
        return low + (high - low) * torch.rand(count, 1, device=device)

    # Tables lie below the object, or behind it if the camera looks down; some pictures are turned.
    azimuth = math.pi / 2 + torch.where(u() < 0.7, 0.3 * torch.randn_like(u()), u(0, 6.2832))
    tilt = u(0, math.pi / 2)
    table = torch.cat(
        [torch.cos(azimuth) * torch.cos(tilt), torch.sin(azimuth) * torch.cos(tilt), torch.sin(tilt)], -1
    )
    wall = functional.normalize(torch.randn(count, 3, device=device), dim=-1)
    wall = torch.cat([wall[:, :2], wall[:, 2:].abs()], -1)
    total = torch.zeros(count, lights.shape[1], 3, len(directions), device=device)
    for facing, often, brightest in ((table, TABLE, 0.9), (wall, WALL, 0.6)):
        color = (0.6 + 0.4 * torch.rand(count, 3, device=device)) * u(0, brightest) * (u() < often)
        lit = (lights * facing[:, None]).sum(-1).clamp_min(0)
        below = torch.sigmoid(-(directions * facing[:, None]).sum(-1) / 0.12)  # (S, E)
        total = total + lit[:, :, None, None] * color[:, None, :, None] * below[:, None, None]
    ambient = u(0, 0.04) * (u() < AMBIENT) + u(0.04, 0.5) * (u() < ROOM_LIGHT)
    return total + ambient[..., None, None]
