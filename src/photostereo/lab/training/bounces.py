"""Light that parts of an object throw on each other: several bounces between coarse patches, the last one glossy."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn import functional

PATCHES = 16  # along a side
MARCH = 6  # samples between two patches, to see whether something stands between
BOUNCES = 4  # between patches; what is left after them in a white hollow is a few percent


@dataclass
class Patches:
    """Coarse pieces of S surfaces, Q of each."""

    points: Tensor  # (S, Q, 3)
    facing: Tensor  # (S, Q, 3) unit normals
    area: Tensor  # (S, Q), 0 if nothing is there
    free: Tensor  # (S, Q, Q) whether nothing stands between two of them
    factors: Tensor  # (S, Q, Q) how much of what the second gives off meets the first

    def __getitem__(self, index: Tensor | slice) -> Patches:
        return Patches(*(getattr(self, f.name)[index] for f in fields(self)))

    def seen_from(self, points: Tensor, normals: Tensor, cells: Tensor, size: int) -> tuple[Tensor, Tensor]:
        """Directions (S, P, Q, 3) from pixels to the patches, and how much a matte pixel that faces a patch gets of it.

        ``cells`` (S, P) are the numbers of the pixels in a frame of ``size`` pixels.
        """
        apart = self.points[:, None] - points[:, :, None]
        squared = apart.square().sum(-1) + 1e-6
        ray = apart * torch.rsqrt(squared)[..., None]
        meeting = (-(ray * self.facing[:, None]).sum(-1)).clamp_min(0)
        share = meeting * self.area[:, None] / (torch.pi * squared + self.area[:, None])
        patch = cells // size * PATCHES // size * PATCHES + cells % size * PATCHES // size
        share = share * self.free[torch.arange(len(cells), device=cells.device)[:, None], patch]
        received = ((ray * normals[:, :, None]).sum(-1).clamp_min(0) * share).sum(-1, keepdim=True)
        return ray, share / received.clamp_min(1.0)


@torch.no_grad()  # type: ignore[untyped-decorator]
def exchange(heights: Tensor, normals: Tensor, mask: Tensor, places: Tensor) -> Patches:
    """The patches of surfaces with places (S, G · G, 3)."""
    count, size = heights.shape[:2]
    cell = size // PATCHES
    weight = mask.float()[:, None]
    cover = functional.avg_pool2d(weight, cell)
    maps = places.mT.reshape(count, 3, size, size)
    middle = functional.avg_pool2d(maps * weight, cell) / cover.clamp_min(1e-3)
    facing = functional.avg_pool2d(normals.permute(0, 3, 1, 2), cell)
    points = middle.flatten(2).mT
    facing = functional.normalize(facing.flatten(2).mT, dim=-1)
    there = cover.flatten(1)
    area = (2.0 / PATCHES) ** 2 * there * (there > 0.05) / facing[..., 2].clamp_min(0.15)
    apart = points[:, None] - points[:, :, None]
    coarse = torch.where(cover[:, 0] > 0.3, middle[:, 2], torch.full_like(middle[:, 2], -9.0))
    free = torch.ones_like(apart[..., 0])
    for number in range(MARCH):
        share = (number + 0.5) / MARCH
        between = points[:, :, None] + share * apart
        found = functional.grid_sample(
            coarse[:, None], torch.stack([between[..., 0], -between[..., 1]], -1), align_corners=False
        )[:, 0]
        free = free * (found - between[..., 2] < 0.08)
    patches = Patches(points, facing, area, free, free)
    ones = torch.arange(PATCHES, device=heights.device) * cell
    cells = (ones[:, None] * size + ones).reshape(1, -1).expand(count, -1)
    ray, factors = patches.seen_from(points, facing, cells, size)
    patches.factors = (ray * facing[:, :, None]).sum(-1).clamp_min(0) * factors
    return patches


def radiosity(patches: Patches, direct: Tensor, albedo: Tensor) -> Tensor:
    """What the patches give off (S, d, 3, Q), from direct irradiance (S, d, G, G) and albedo (S, 3, G, G), zero outside."""
    cell = direct.shape[-1] // PATCHES
    cover = functional.avg_pool2d((albedo.amax(1, keepdim=True) > 0).float(), cell).flatten(2).clamp_min(1e-3)
    arriving = functional.avg_pool2d(direct, cell).flatten(2) / cover  # (S, d, Q)
    paint = (functional.avg_pool2d(albedo, cell).flatten(2) / cover)[:, None]  # (S, 1, 3, Q)
    given = total = arriving[:, :, None] * paint
    for _ in range(BOUNCES - 1):
        given = torch.einsum("sqk,sdck->sdcq", patches.factors, given) * paint
        total = total + given
    return total
