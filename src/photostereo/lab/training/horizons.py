"""Cast shadows through horizons: for every pixel and a ring of azimuths, how steeply the surface rises in that direction.

A light is hidden if it stands below the horizon. The horizon is computed once for a surface and serves any number of lights.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from photostereo.lab.training.fusing import fused

AZIMUTHS = 32
STEPS = 20
#: Where an object ends, nothing rises: such heights are below this.
NOWHERE = -5.0


@torch.no_grad()  # type: ignore[untyped-decorator]
def find_horizons(heights: Tensor) -> Tensor:
    """Elevation of the horizon in radians, (S, A, G, G), of heights (S, G, G) in units of half the frame."""
    size = heights.shape[1]
    spacing = 2.0 / (size - 1)
    axis = torch.linspace(-1, 1, size, device=heights.device)
    rows, columns = torch.meshgrid(axis, axis, indexing="ij")
    found = []
    distances = [spacing * (1.4 + (size * 0.75 - 1.4) * (k / (STEPS - 1)) ** 2) for k in range(STEPS)]
    for number in range(AZIMUTHS):
        azimuth = 2 * math.pi * number / AZIMUTHS
        rise = torch.full_like(heights, -3.0)
        for distance in distances:
            shift = distance * torch.tensor(
                [math.cos(azimuth), -math.sin(azimuth), 1.0], device=heights.device
            )
            rise = _risen(rise, heights, columns + shift[0], rows + shift[1], shift[2])
        found.append(torch.atan(rise))
    return torch.stack(found, 1)


@fused
def _risen(rise: Tensor, heights: Tensor, x: Tensor, y: Tensor, distance: Tensor) -> Tensor:
    """The larger of ``rise`` and the slope to the places (G, G) at a distance."""
    there = functional.grid_sample(
        heights[:, None],
        torch.stack([x, y], -1).expand(len(heights), -1, -1, -1),
        padding_mode="border",
        align_corners=True,
    )[:, 0]
    inside = (x.abs() <= 1) & (y.abs() <= 1) & (there > NOWHERE)
    return torch.where(inside, torch.maximum(rise, (there - heights) / distance), rise)


def visibility(horizons: Tensor, lights: Tensor, elevation: Tensor, soft: Tensor) -> Tensor:
    """Share of each light that arrives, (S, d, G, G), by its azimuth, its elevation at each pixel and the
    half-width ``soft`` of the penumbra in radians.
    """
    place = torch.atan2(lights[..., 1], lights[..., 0]) / (2 * math.pi) % 1.0 * AZIMUTHS
    first = place.floor()
    share = (place - first)[..., None, None]
    scene = torch.arange(len(lights), device=lights.device)[:, None]
    low = horizons[scene, first.long() % AZIMUTHS]
    high = horizons[scene, (first.long() + 1) % AZIMUTHS]
    return torch.sigmoid((elevation - torch.lerp(low, high, share)) / soft)
