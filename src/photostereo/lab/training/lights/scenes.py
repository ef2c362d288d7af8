"""Scenes and their photographs.

Geometry is drawn in pools and shown several times, each time with other lights, materials and cameras.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from photostereo.lab.training.lights.bounces import bounced, exchange
from photostereo.lab.training.lights.dressing import dress
from photostereo.lab.training.lights.horizons import find_horizons, visibility
from photostereo.lab.training.lights.layouts import draw_directions, draw_distances, draw_strengths
from photostereo.lab.training.lights.reliefs import draw_reliefs
from photostereo.lab.training.lights.sensor import expose, imperfect
from photostereo.lab.training.lights.solids import draw_solids, see_solids
from photostereo.lab.training.materials import reflect
from photostereo.lights.unknown.architecture import SIDE

#: Share of solids with an outline; the others are reliefs.
SOLIDS = 0.72
#: A scene has an object on this share of the frame or more.
LEAST_AREA = 0.04


@dataclass
class Pool:
    """Geometry of S scenes on a grid of G × G pixels, y up, row 0 the top."""

    heights: Tensor  # (S, G, G) in units of half the frame, −9 outside
    normals: Tensor  # (S, G, G, 3)
    mask: Tensor  # (S, G, G)
    horizons: Tensor  # (S, A, G, G)
    factors: Tensor  # (S, Q, Q)
    relief: Tensor  # (S,) whether a scene is a relief

    def __getitem__(self, index: Tensor | slice) -> Pool:
        return Pool(
            self.heights[index], self.normals[index], self.mask[index], self.horizons[index],
            self.factors[index], self.relief[index],
        )  # fmt: skip


@dataclass
class Shot:
    """Photographs of S scenes under d lights, and the truth."""

    images: Tensor  # (S, d, 3, G, G), zero outside the mask
    mask: Tensor  # (S, G, G)
    lights: Tensor  # (S, d, 3) unit, at the center of the object
    strengths: Tensor  # (S, d) logarithms, mean 0
    normals: Tensor  # (S, 3, G, G), zero where unknown
    relief: Tensor  # (S,)


@torch.no_grad()  # type: ignore[untyped-decorator]
def draw_pool(count: int, device: torch.device | str, size: int = SIDE, solids: float = SOLIDS) -> Pool:
    """Random geometry, in random order."""
    outlined = round(count * solids)
    parts = []
    if outlined:
        parts.append(see_solids(draw_solids(outlined, device), size))
    if outlined < count:
        parts.append(draw_reliefs(count - outlined, size, device))
    heights, normals, mask = (torch.cat(values) for values in zip(*parts, strict=True))
    relief = torch.arange(count, device=device) >= outlined
    # What is hardly there (cut away to nothing) is replaced by another scene of the pool.
    good = mask.sum((1, 2)) > LEAST_AREA * size * size
    usable = torch.nonzero(good)[:, 0]
    other = usable[torch.randint(0, len(usable), (count,), device=device)]
    order = torch.where(good, torch.arange(count, device=device), other)
    order = order[torch.randperm(count, device=device)]
    heights, normals, mask, relief = heights[order], normals[order], mask[order], relief[order]
    return Pool(heights, normals, mask, find_horizons(heights), exchange(heights, normals, mask), relief)


@torch.no_grad()  # type: ignore[untyped-decorator]
def show(pool: Pool, photographs: int) -> Shot:
    """Photograph every scene of a pool."""
    count, size = pool.heights.shape[:2]
    device = pool.heights.device

    def u(low: float = 0.0, high: float = 1.0) -> Tensor:
        return low + (high - low) * torch.rand(count, 1, 1, 1, device=device)

    lights = draw_directions(count, photographs, device)
    strengths = draw_strengths(count, photographs, device)
    distance = draw_distances(count, device)[:, None, None]
    axis = torch.linspace(-1, 1, size, device=device)
    rows, columns = torch.meshgrid(axis, axis, indexing="ij")
    inside = pool.mask.float()
    middle = (pool.heights * inside).sum((1, 2), keepdim=True) / inside.sum((1, 2), keepdim=True)
    height = torch.where(pool.mask, pool.heights - middle, torch.zeros_like(pool.heights))
    places = torch.stack([columns.expand_as(height), -rows.expand_as(height), height], -1).reshape(
        count, -1, 1, 3
    )
    ray = (lights * distance)[:, None] - places  # (S, P, d, 3)
    squared = ray.square().sum(-1)
    ray = ray * torch.rsqrt(squared)[..., None]
    falloff = (distance**2 / squared).permute(0, 2, 1).reshape(count, photographs, size, size)
    elevation = torch.asin(ray[..., 2].clamp(-1, 1)).permute(0, 2, 1).reshape(count, photographs, size, size)
    soft = torch.exp(-4.6 + 2.4 * torch.rand(count, 1, 1, 1, device=device))
    arriving = visibility(pool.horizons, lights, elevation, soft) * falloff

    materials, albedo = dress(pool.heights, pool.mask)
    normals = pool.normals.reshape(-1, 3)
    colors = reflect(materials, normals, ray.reshape(-1, photographs, 3))
    colors = colors.reshape(count, size, size, photographs, 3).permute(0, 3, 4, 1, 2)
    cosine = (pool.normals.reshape(count, -1, 1, 3) * ray).sum(-1).clamp_min(0).permute(0, 2, 1)
    direct = cosine.reshape(count, photographs, size, size) * arriving
    again = bounced(pool.factors, direct, albedo, size) * (u() < 0.85)[..., None]
    sky = u(0, 0.04) * (u() < 0.4) * (0.4 + 0.6 * pool.normals[..., 2][:, None])
    image = colors * arriving[:, :, None] + albedo[:, None] * (again + sky[:, :, None])
    tint = 1 + 0.03 * torch.randn(count, photographs, 3, 1, 1, device=device) * (u() < 0.5)[..., None]
    image = image * strengths[..., None, None, None] * tint

    mask = imperfect(pool.mask)
    background = image.mean((1, 2, 3, 4), keepdim=True) * u(0, 1.0)[..., None]
    image = torch.where(pool.mask[:, None, None], image, background)
    image = torch.nan_to_num(expose(image, mask), nan=0.0, posinf=0.0)
    logs = torch.log(strengths)
    return Shot(
        image, mask, lights, logs - logs.mean(1, keepdim=True), pool.normals.permute(0, 3, 1, 2), pool.relief
    )


def mirrored(shot: Shot, turns: int, flip: bool) -> Shot:
    """The same photographs turned counterclockwise by right angles, and perhaps mirrored left to right first."""

    def moved(maps: Tensor) -> Tensor:
        return torch.rot90(maps.flip(-1) if flip else maps, turns, (-2, -1))

    matrix = symmetry(turns, flip, shot.lights.device)
    normals = torch.einsum("ij,sjhw->sihw", matrix, moved(shot.normals))
    return Shot(
        moved(shot.images), moved(shot.mask), shot.lights @ matrix.T, shot.strengths, normals, shot.relief
    )


def symmetry(turns: int, flip: bool, device: torch.device | str = "cpu") -> Tensor:
    """What a symmetry of the square makes of a vector, x right and y up: a 3 × 3 matrix."""
    turn = torch.tensor([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], device=device)
    matrix = torch.diag(torch.tensor([-1.0 if flip else 1.0, 1.0, 1.0], device=device))
    for _ in range(turns % 4):
        matrix = turn @ matrix
    return matrix
