"""Pixels of rendered objects: shadows that hang together, and light that neighbors throw back.

A pool holds the geometry of S height fields: P pixels each, lights, which part of each light arrives (rays
marched over the field, soft at the edges), and the form factors to a coarse grid of patches. The same
geometry is then shown several times with other materials, a subset of the lights and another sensor. The
neighbors' light is diffuse, colored, of two bounces: E₁ = E₀ + F ρ E₀, and at the pixel F_p ρ E₁.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from photostereo.lab.training.heights import draw_heights, slopes, smooth_noise
from photostereo.lab.training.layouts import draw_distances, draw_lights, jittered, seen_from
from photostereo.lab.training.materials import Materials, draw_materials, reflect
from photostereo.lab.training.pixels import Batch

PATCHES = 16  # along a side


@dataclass
class Pool:
    """Geometry of S scenes with P pixels and d lights each."""

    lights: Tensor  # (S, d, 3) as the calibration says
    directions: Tensor  # (S, P, d, 3) as they are
    strengths: Tensor  # (S, P, d)
    visible: Tensor  # (S, P, d)
    normals: Tensor  # (S, P, 3)
    cells: Tensor  # (S, P) index of the pixel in the field
    factors: Tensor  # (S, P, Q) form factors from pixel to patch
    between: Tensor  # (S, Q, Q) form factors from patch to patch
    arriving: Tensor  # (S, Q, d) light that reaches the patches directly
    size: int


def sample(heights: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Heights (S, ...) at places in [−1, 1], bilinear."""
    shape = x.shape
    places = torch.stack([x, y], -1).reshape(shape[0], 1, -1, 2)
    found = functional.grid_sample(
        heights[:, None], places, mode="bilinear", padding_mode="border", align_corners=True
    )
    return found.reshape(shape)


def march(heights: Tensor, start: Tensor, ray: Tensor, reach: Tensor, steps: int, first: float) -> Tensor:
    """How far the field rises above rays, as a slope: the largest (z_field − z_ray) / t over the steps.

    Parameters
    ----------
    heights : (S, G, G)
    start, ray : (S, ..., 3), points above the field and directions
    reach : (S, ...), the length of each ray
    steps : samples per ray, denser near the start
    first : distance of the first sample
    """
    worst = torch.full_like(reach, -1.0)
    for number in range(steps):
        t = first + (reach - first).clamp_min(0) * ((number + 0.5) / steps) ** 1.6
        above = sample(heights, start[..., 0] + t * ray[..., 0], start[..., 1] + t * ray[..., 1])
        worst = torch.maximum(worst, (above - start[..., 2] - t * ray[..., 2]) / t)
    return worst


def light_visibility(
    heights: Tensor, points: Tensor, lights: Tensor, soft: Tensor, spacing: float, steps: int
) -> Tensor:
    """Share of each light (S, P, d) that reaches points (S, P, 3) from directions (S, P, d, 3)."""
    start = points[:, :, None]
    top = heights.amax((1, 2))[:, None, None]
    flat = torch.sqrt((1 - lights[..., 2] ** 2).clamp_min(1e-4))
    reach = torch.minimum((top - start[..., 2]) / lights[..., 2].clamp_min(0.05), 2.8 / flat).clamp_min(
        2 * spacing
    )
    rise = march(heights, start, lights, reach, steps, 1.5 * spacing)
    return torch.sigmoid((-rise - 0.25 * soft) / soft)


def form_factors(
    heights: Tensor,
    points: Tensor,
    normals: Tensor,
    patches: Tensor,
    facing: Tensor,
    area: Tensor,
    spacing: float,
    steps: int,
) -> Tensor:
    """F (S, P, Q) from points with normals to patches with normals ``facing`` and areas, hidden ones left out."""
    apart = patches[:, None] - points[:, :, None]
    squared = apart.square().sum(-1) + 1e-6
    length = torch.sqrt(squared)
    ray = apart / length[..., None]
    leaving = (ray * normals[:, :, None]).sum(-1).clamp_min(0)
    meeting = (-(ray * facing[:, None]).sum(-1)).clamp_min(0)
    factors = leaving * meeting * area[:, None] / (torch.pi * squared + area[:, None])
    rise = march(heights, points[:, :, None].expand_as(apart), ray, 0.9 * length, steps, 1.5 * spacing)
    factors = factors * (rise < 0.08).float()
    return factors / factors.sum(-1, keepdim=True).clamp_min(1.0)


@torch.no_grad()  # type: ignore[untyped-decorator]
def draw_pool(
    scenes: int, pixels: int, photographs: int, device: torch.device | str, size: int = 96, steps: int = 36
) -> Pool:
    """Geometry of random scenes; steep and hollow places are taken more often than their area says."""
    spacing = 2.0 / (size - 1)
    heights = draw_heights(scenes, size, device)
    normals = slopes(heights, spacing)
    axis = torch.linspace(-1, 1, size, device=device)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    points = torch.stack([x.expand_as(heights), y.expand_as(heights), heights], -1)

    hollow = functional.avg_pool2d(heights[:, None], 13, 1, 6, count_include_pad=False)[:, 0] - heights
    tilt = normals[..., 2]
    weight = 1 + 2.5 * ((tilt < 0.5) & (tilt > 0.06)) + 2 * (hollow > 0.03) - 0.85 * (tilt > 0.9995)
    cells = torch.multinomial(
        weight.reshape(scenes, -1) * (tilt > 0.03).reshape(scenes, -1), pixels, replacement=True
    )

    def at(field: Tensor) -> Tensor:
        return torch.gather(field.reshape(scenes, -1, 3), 1, cells[..., None].expand(-1, -1, 3))

    place, normal = at(points), at(normals)
    lights = draw_lights(scenes, photographs, device)
    true, strength = jittered(lights)
    distance = draw_distances(scenes, device)
    directions, falloff = seen_from(
        true.repeat_interleave(pixels, 0), place.reshape(-1, 3), distance.repeat_interleave(pixels, 0)
    )
    directions = directions.reshape(scenes, pixels, photographs, 3)
    soft = torch.exp(-5.0 + 2.6 * torch.rand(scenes, 1, 1, device=device))
    above = place + 0.4 * spacing * normal
    visible = light_visibility(heights, above, directions, soft, spacing, steps)

    cell = size // PATCHES
    coarse = functional.avg_pool2d(
        torch.cat(
            [heights[:, None], (normals[..., :2] / tilt[..., None].clamp_min(0.1)).permute(0, 3, 1, 2)], 1
        ),
        cell,
    )
    facing = functional.normalize(
        torch.stack([coarse[:, 1], coarse[:, 2], torch.ones_like(coarse[:, 0])], -1), dim=-1
    ).reshape(scenes, -1, 3)
    middle = functional.avg_pool2d(torch.stack([x, y])[None], cell)[0].reshape(2, -1).T.expand(scenes, -1, -1)
    patches = torch.cat([middle, coarse[:, 0].reshape(scenes, -1, 1)], -1)
    area = (cell * spacing) ** 2 / facing[..., 2].clamp_min(0.15)
    lifted = patches + 1.5 * spacing * facing
    towards = true[:, None].expand(-1, patches.shape[1], -1, -1)
    arriving = light_visibility(heights, lifted, towards, soft, spacing, max(4, steps // 2))
    arriving = arriving * (facing[:, :, None] * true[:, None]).sum(-1).clamp_min(0)
    short = max(3, steps // 4)
    return Pool(
        lights=lights,
        directions=directions,
        strengths=falloff.reshape(scenes, pixels, photographs) * strength[:, None, :, 0],
        visible=visible,
        normals=normal,
        cells=cells,
        factors=form_factors(heights, above, normal, patches, facing, area, spacing, short),
        between=form_factors(heights, lifted, facing, patches, facing, area, spacing, short),
        arriving=arriving,
        size=size,
    )


@torch.no_grad()  # type: ignore[untyped-decorator]
def show_pool(pool: Pool, pixels: int, photographs: int) -> tuple[Tensor, Tensor, Tensor]:
    """Noise-free photographs of a pool with fresh materials: colors (S, P, d, 3), lights (S, d, 3), normals (S, P, 3)."""
    scenes, device = len(pool.lights), pool.lights.device
    chosen = torch.randint(0, pool.normals.shape[1] - pixels + 1, (1,)).item()
    some = slice(int(chosen), int(chosen) + pixels)
    which = torch.argsort(torch.rand(scenes, pool.lights.shape[1], device=device), 1)[:, :photographs]

    def pick(values: Tensor) -> Tensor:
        """The chosen lights of (S, P, d)."""
        return torch.gather(values, 2, which[:, None].expand(-1, values.shape[1], -1))

    normals = pool.normals[:, some].reshape(-1, 3)
    index = which[:, None, :, None].expand(-1, pixels, -1, 3)
    directions = torch.gather(pool.directions[:, some], 2, index).reshape(-1, photographs, 3)
    visible, strengths = pick(pool.visible[:, some]), pick(pool.strengths[:, some])
    materials, patch_albedo = _dress(pool, some)
    colors = reflect(materials, normals, directions).reshape(scenes, pixels, photographs, 3)

    direct = pick(pool.arriving)[..., None]  # (S, Q, d, 1)
    reflected = patch_albedo[:, :, None] * direct
    again = torch.einsum("sqk,skdc->sqdc", pool.between, reflected)
    reflected = patch_albedo[:, :, None] * (direct + again)
    near = torch.einsum("spk,skdc->spdc", pool.factors[:, some], reflected)
    ambient = (
        torch.rand(scenes, 1, 1, 1, device=device) * 0.05 * (torch.rand(scenes, 1, 1, 1, device=device) < 0.5)
    )
    albedo = materials.diffuse_albedo().reshape(scenes, pixels, 1, 3)
    colors = colors * visible[..., None] + albedo * (near + ambient)
    lights = torch.gather(pool.lights, 1, which[..., None].expand(-1, -1, 3))
    return colors * strengths[..., None], lights, pool.normals[:, some]


def _dress(pool: Pool, some: slice) -> tuple[Materials, Tensor]:
    """Two materials per scene that pass into one another, paint upon them, and the patches' albedo (S, Q, 3)."""
    scenes, pixels = pool.cells[:, some].shape
    device = pool.lights.device
    size = pool.size
    one, two = draw_materials(scenes, device), draw_materials(scenes, device)
    blend = torch.sigmoid(
        6 * (smooth_noise(scenes, size, 5, device) - 0.7 * torch.randn(scenes, 1, 1, device=device))
    )
    blend = blend * (torch.rand(scenes, 1, 1, device=device) < 0.6)
    paint = torch.exp(
        torch.rand(scenes, 1, 1, device=device) * 0.5 * smooth_noise(scenes, size, 14, device)
    ).clamp(0.2, 2.0)

    def at(field: Tensor) -> Tensor:
        return torch.gather(field.reshape(scenes, -1), 1, pool.cells[:, some]).reshape(-1, 1)

    owner = torch.arange(scenes, device=device).repeat_interleave(pixels)
    materials = one[owner].blended(two[owner], at(blend))
    materials.base = (materials.base * at(paint)).clamp_max(1.0)
    cell = size // PATCHES
    share = functional.avg_pool2d(blend[:, None], cell).reshape(scenes, -1, 1)
    shade = functional.avg_pool2d(paint[:, None], cell).reshape(scenes, -1, 1)
    albedo = torch.lerp(one.diffuse_albedo()[:, None], two.diffuse_albedo()[:, None], share) * shade
    return materials, albedo.clamp_max(0.95)


def flatten(colors: Tensor, lights: Tensor, normals: Tensor) -> Batch:
    """Scenes to a shuffled batch of pixels."""
    scenes, pixels, photographs, _ = colors.shape
    order = torch.randperm(scenes * pixels, device=colors.device)
    lights = lights[order // pixels]
    return colors.reshape(-1, photographs, 3)[order], lights, normals.reshape(-1, 3)[order]
