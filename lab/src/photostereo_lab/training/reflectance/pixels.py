"""Single pixels without a scene: a normal, a material, lights, and possible surroundings.

Up to three caps hide parts of the sky, never the camera, and reflect colored light; ground below, haze and
ambient light also reach pixels in shadow.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from photostereo_lab.training.layouts import (
    draw_directions,
    draw_distances,
    miscalibrated,
    seen_from,
)
from photostereo_lab.training.materials import draw_materials, reflect_uneven
from photostereo_lab.training.scenes import Pool, photograph
from photostereo_lab.training.tensors import uniform

#: Lights at unknown distances are at least 8 half frames away.
NEAREST = 8.0
#: A batch: colors (B, d, 3), lights (B, d, 3), true normals (B, 3).
Batch = tuple[Tensor, Tensor, Tensor]


def draw_normals(count: int, device: torch.device | str) -> Tensor:
    """Normals by projected area over the disc; one in four toward grazing."""
    radius = torch.sqrt(torch.rand(count, device=device))
    steep = 0.02 + 0.55 * torch.rand(count, device=device)
    radius = torch.where(
        torch.rand(count, device=device) < 0.25, torch.sqrt(1 - steep**2), radius
    ).clamp_max(0.9998)
    azimuth = 6.2832 * torch.rand(count, device=device)
    return torch.stack(
        [radius * torch.cos(azimuth), radius * torch.sin(azimuth), torch.sqrt(1 - radius**2)], -1
    )


def draw_pixels(count: int, photographs: int, device: torch.device | str) -> Batch:
    """Noise-free intensities of ``count`` unrelated pixels; the sensor is applied later."""
    normals = draw_normals(count, device)
    lights = draw_directions(count, photographs, device)
    true, strength = miscalibrated(lights)
    place = torch.randn(count, 1, 3, device=device) * torch.tensor([0.45, 0.45, 0.2], device=device)
    true, falloff = (
        part[:, 0] for part in seen_from(true, draw_distances(count, device, NEAREST), place)
    )
    materials = draw_materials(count, device)
    colors = reflect_uneven(materials, normals, true)
    mixed = count // 5  # worn or patchy: two materials in one pixel
    share = torch.rand(mixed, 1, 1, device=device) * 0.7
    second = reflect_uneven(draw_materials(mixed, device), normals[:mixed], true[:mixed])
    colors[:mixed] = torch.lerp(colors[:mixed], second, share)
    part = slice(mixed, mixed + count // 4)  # two facets in one pixel
    facet = functional.normalize(
        normals[part] + 0.5 * torch.randn_like(normals[part]) * torch.rand_like(normals[part, :1]),
        dim=-1,
    )
    facet = functional.normalize(
        torch.cat([facet[:, :2], facet[:, 2:].abs().clamp_min(0.05)], -1), dim=-1
    )
    share = torch.rand(len(facet), 1, device=device) * 0.5
    colors[part] = torch.lerp(
        colors[part], reflect_uneven(materials[part], facet, true[part]), share[..., None]
    )
    normals[part] = functional.normalize(torch.lerp(normals[part], facet, share), dim=-1)

    visible, bounce = _surroundings(count, normals, true, device)
    colors = colors * visible[..., None] + materials.diffuse_albedo()[:, None] * bounce
    colors = colors * (strength * falloff)[..., None]
    order = torch.randperm(count, device=device)
    return colors[order], lights[order], normals[order]


def _surroundings(
    count: int, normals: Tensor, lights: Tensor, device: torch.device | str
) -> tuple[Tensor, Tensor]:
    """Share of each light that arrives (B, d), and light from elsewhere (B, d, 3), relative to a white pixel."""
    u = uniform(count, device)
    visible = torch.ones_like(lights[..., 0])
    bounce = torch.zeros_like(lights)
    crowded = (u() < 0.55).float()
    for number in range(3):
        present = crowded * (u() < (1.0, 0.5, 0.3)[number]).float()
        # Walls are likely to be beside the pixel, more often on the side it does not face.
        azimuth = torch.atan2(normals[:, 1:2], normals[:, :1]) + 3.1416 * torch.randn(
            count, 1, device=device
        )
        tilt = u(0.35, 1.75)
        center = torch.cat(
            [
                torch.sin(tilt) * torch.cos(azimuth),
                torch.sin(tilt) * torch.sin(azimuth),
                torch.cos(tilt),
            ],
            -1,
        )
        radius = torch.minimum(u(0.1, 0.9), tilt - 0.08)
        angle = torch.acos((lights * center[:, None]).sum(-1).clamp(-0.9999, 0.9999))
        soft = torch.exp(u(-4.5, -1.6))
        visible = visible * (1 - present * torch.sigmoid((radius - angle) / soft))
        wall = functional.normalize(
            -center + 0.7 * torch.randn_like(center) + torch.tensor([0, 0, 0.6], device=device),
            dim=-1,
        )
        lit = (lights * wall[:, None]).sum(-1).clamp_min(0)
        reach = (normals * center).sum(-1, keepdim=True).clamp_min(0) * torch.sin(radius) ** 2
        color = (torch.rand(count, 3, device=device) * 0.5 + 0.5) * u(0.0, 0.9)
        bounce = bounce + (present * reach * lit)[..., None] * color[:, None]
    ground = (u() < 0.8).float() * u(0.0, 0.9) * (1 - normals[:, 2:]) / 2
    bounce = bounce + (ground * lights[..., 2])[..., None] * (
        0.6 + 0.4 * torch.rand(count, 1, 3, device=device)
    )
    ambient = (u() < 0.8).float() * 0.1 * u() ** 1.5
    return visible, bounce + ambient[..., None] * (
        0.7 + 0.3 * torch.rand(count, 1, 3, device=device)
    )


@torch.no_grad()  # type: ignore[untyped-decorator]
def pixels_of_scenes(pool: Pool, pixels: int, photographs: int) -> Batch:
    """Noise-free colors (S, P, d, 3) of some pixels of every scene, lights (S, d, 3) and normals (S, P, 3).

    Steep and hollow places are sampled more often than in proportion to their area.
    """
    scenes, device = len(pool.heights), pool.heights.device
    filled = torch.where(pool.mask, pool.heights, torch.zeros_like(pool.heights))[:, None]
    cover = functional.avg_pool2d(pool.mask.float()[:, None], 13, 1, 6).clamp_min(0.02)
    hollow = (functional.avg_pool2d(filled, 13, 1, 6) / cover - filled)[:, 0]
    tilt = pool.normals[..., 2]
    weight = 1 + 2.5 * ((tilt < 0.5) & (tilt > 0.06)) + 2 * (hollow > 0.03) - 0.85 * (tilt > 0.9995)
    cells = torch.multinomial((weight * pool.mask).flatten(1) + 1e-9, pixels, replacement=True)
    lights = draw_directions(scenes, photographs, device)
    true, strength = miscalibrated(lights)
    colors = photograph(pool, true, draw_distances(scenes, device, NEAREST), cells)[..., 0]
    colors = colors * strength[..., None, None]
    normals = torch.gather(pool.normals.flatten(1, 2), 1, cells[..., None].expand(-1, -1, 3))
    return colors.permute(0, 3, 1, 2), lights, normals
