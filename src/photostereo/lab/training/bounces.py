"""Light that parts of an object throw on each other: two diffuse bounces between coarse patches."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

PATCHES = 16  # along a side
MARCH = 6  # samples between two patches, to see whether something stands between


@torch.no_grad()  # type: ignore[untyped-decorator]
def exchange(heights: Tensor, normals: Tensor, mask: Tensor) -> Tensor:
    """Form factors (S, Q, Q) from patch to patch: how much of what the second gives off meets the first."""
    size = heights.shape[1]
    cell = size // PATCHES
    weight = mask.float()[:, None]
    cover = functional.avg_pool2d(weight, cell)
    axis = torch.linspace(-1, 1, size, device=heights.device)
    rows, columns = torch.meshgrid(axis, axis, indexing="ij")
    places = torch.stack([columns.expand_as(heights), -rows.expand_as(heights), heights], 1)
    middle = functional.avg_pool2d(places * weight, cell) / cover.clamp_min(1e-3)
    facing = functional.avg_pool2d(normals.permute(0, 3, 1, 2), cell)
    points = middle.flatten(2).mT
    facing = functional.normalize(facing.flatten(2).mT, dim=-1)
    area = (2.0 / PATCHES) ** 2 * cover.flatten(1) / facing[..., 2].clamp_min(0.15)
    apart = points[:, None] - points[:, :, None]
    squared = apart.square().sum(-1) + 1e-6
    ray = apart / torch.sqrt(squared)[..., None]
    leaving = (ray * facing[:, :, None]).sum(-1).clamp_min(0)
    meeting = (-(ray * facing[:, None]).sum(-1)).clamp_min(0)
    factors = leaving * meeting * area[:, None] / (torch.pi * squared + area[:, None])
    coarse = torch.where(cover[:, 0] > 0.3, middle[:, 2], torch.full_like(middle[:, 2], -9.0))
    free = torch.ones_like(squared)
    for number in range(MARCH):
        share = (number + 0.5) / MARCH
        between = points[:, :, None] + share * apart
        found = functional.grid_sample(
            coarse[:, None], torch.stack([between[..., 0], -between[..., 1]], -1), align_corners=False
        )[:, 0]
        free = free * (found - between[..., 2] < 0.08)
    factors = factors * free * (cover.flatten(1) > 0.05)[:, :, None]
    return factors / factors.sum(-1, keepdim=True).clamp_min(1.0)


def bounced(factors: Tensor, direct: Tensor, albedo: Tensor, size: int) -> Tensor:
    """Irradiance by neighbors (S, d, 3, G, G) from direct irradiance (S, d, G, G) and albedo (S, 3, G, G), zero outside."""
    count, photographs = direct.shape[:2]
    cell = size // PATCHES
    arriving = functional.avg_pool2d(direct, cell).flatten(2)  # (S, d, Q)
    paint = functional.avg_pool2d(albedo, cell).flatten(2)  # (S, 3, Q)
    cover = functional.avg_pool2d((albedo.amax(1, keepdim=True) > 0).float(), cell).flatten(2).clamp_min(1e-3)
    paint = paint / cover
    given = (arriving / cover)[:, :, None] * paint[:, None]  # (S, d, 3, Q)
    once = torch.einsum("sqk,sdck->sdcq", factors, given)
    twice = torch.einsum("sqk,sdck->sdcq", factors, once * paint[:, None])
    total = (once + twice).reshape(count, photographs * 3, PATCHES, PATCHES)
    total = functional.interpolate(total, size=(size, size), mode="bilinear", align_corners=False)
    return total.reshape(count, photographs, 3, size, size)
