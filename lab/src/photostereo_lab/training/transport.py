"""How light reaches a pixel: past occluders, from other parts of the object, from a table, a wall, the room."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn import functional

from photostereo_lab.training.tensors import fused, uniform

AZIMUTHS = 32
STEPS = 20
#: Heights below this are outside the object, where nothing rises.
NOWHERE = -5.0


@torch.no_grad()  # type: ignore[untyped-decorator]
def find_horizons(heights: Tensor) -> Tensor:
    """Elevation of the horizon in radians, (S, A, G, G), of heights (S, G, G) in units of half the frame."""
    size = heights.shape[1]
    spacing = 2.0 / (size - 1)
    axis = torch.linspace(-1, 1, size, device=heights.device)
    rows, columns = torch.meshgrid(axis, axis, indexing="ij")
    found = []
    distances = [
        spacing * (1.4 + (size * 0.75 - 1.4) * (k / (STEPS - 1)) ** 2) for k in range(STEPS)
    ]
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
    """Return the larger of ``rise`` and the slope to the places (G, G) at a distance."""
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


PATCHES = 16  # along a side
MARCH = 6  # samples between two patches, to test for occluders
BOUNCES = 4  # between patches; in a white hollow a few percent of the light is left after them


@dataclass
class Patches:
    """Coarse pieces of S surfaces, Q of each."""

    points: Tensor  # (S, Q, 3)
    facing: Tensor  # (S, Q, 3) unit normals
    area: Tensor  # (S, Q), 0 if empty
    free: Tensor  # (S, Q, Q) whether two of them see each other
    factors: Tensor  # (S, Q, Q) share of the second's light that reaches the first

    def __getitem__(self, index: Tensor | slice) -> Patches:
        return Patches(*(getattr(self, f.name)[index] for f in fields(self)))

    def seen_from(
        self, points: Tensor, normals: Tensor, cells: Tensor, size: int
    ) -> tuple[Tensor, Tensor]:
        """Directions (S, P, Q, 3) from pixels to patches, and the share of a patch's light on a matte pixel that faces it.

        ``cells`` (S, P) are the indices of the pixels in a frame of ``size`` pixels.
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
            coarse[:, None],
            torch.stack([between[..., 0], -between[..., 1]], -1),
            align_corners=False,
        )[:, 0]
        free = free * (found - between[..., 2] < 0.08)
    patches = Patches(points, facing, area, free, free)
    ones = torch.arange(PATCHES, device=heights.device) * cell
    cells = (ones[:, None] * size + ones).reshape(1, -1).expand(count, -1)
    ray, factors = patches.seen_from(points, facing, cells, size)
    patches.factors = (ray * facing[:, :, None]).sum(-1).clamp_min(0) * factors
    return patches


def radiosity(patches: Patches, direct: Tensor, albedo: Tensor) -> Tensor:
    """Light from the patches (S, d, 3, Q), from direct irradiance (S, d, G, G) and albedo (S, 3, G, G), zero outside."""
    cell = direct.shape[-1] // PATCHES
    cover = (
        functional.avg_pool2d((albedo.amax(1, keepdim=True) > 0).float(), cell)
        .flatten(2)
        .clamp_min(1e-3)
    )
    arriving = functional.avg_pool2d(direct, cell).flatten(2) / cover  # (S, d, Q)
    paint = (functional.avg_pool2d(albedo, cell).flatten(2) / cover)[:, None]  # (S, 1, 3, Q)
    given = total = arriving[:, :, None] * paint
    for _ in range(BOUNCES - 1):
        given = torch.einsum("sqk,sdck->sdcq", patches.factors, given) * paint
        total = total + given
    return total


#: Number of directions that represent all.
DIRECTIONS = 32
#: Shares of scenes with a table, a wall, a little light from all directions, and much of it.
TABLE, WALL, AMBIENT, ROOM_LIGHT = 0.6, 0.2, 0.6, 0.04


def sphere(device: torch.device | str) -> Tensor:
    """Directions (E, 3) that cover the sphere evenly, rotated at random about the line of sight."""
    number = torch.arange(DIRECTIONS, device=device) + 0.5
    z = 1 - 2 * number / DIRECTIONS
    azimuth = number * math.pi * (1 + 5**0.5) + 6.2832 * torch.rand((), device=device)
    across = torch.sqrt(1 - z * z)
    return torch.stack([across * torch.cos(azimuth), across * torch.sin(azimuth), z], -1)


def radiance(lights: Tensor, directions: Tensor) -> Tensor:
    """Light from each direction (S, d, 3, E) under lights (S, d, 3): 1 is a white surface that faces the light."""
    count, device = len(lights), lights.device
    u = uniform(count, device)
    # Tables are below the object, or behind it if the camera looks down; some pictures are rotated.
    azimuth = math.pi / 2 + torch.where(u() < 0.7, 0.3 * torch.randn_like(u()), u(0, 6.2832))
    tilt = u(0, math.pi / 2)
    table = torch.cat(
        [
            torch.cos(azimuth) * torch.cos(tilt),
            torch.sin(azimuth) * torch.cos(tilt),
            torch.sin(tilt),
        ],
        -1,
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
