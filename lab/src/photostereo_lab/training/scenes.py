"""Scenes and their photographs: the generator for all trainings.

Geometry is drawn in pools and shown several times, each time with other lights, materials and cameras. Pixels
receive light from the lights, with cast shadows, from the surface itself in several bounces, from a table or a wall, and
a little from all directions.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor
from torch.nn import functional

from photostereo_lab.training.layouts import seen_from
from photostereo_lab.training.materials import Materials, dress, reflect, reflect_uneven
from photostereo_lab.training.reliefs import draw_reliefs
from photostereo_lab.training.solids import draw_solids, see_solids
from photostereo_lab.training.tensors import uniform
from photostereo_lab.training.transport import (
    Patches,
    exchange,
    find_horizons,
    radiance,
    radiosity,
    sphere,
    visibility,
)

#: Reflections of surroundings sampled in few directions are blurred at least this much (GGX's α).
LEAST_ALPHA = 0.3
#: Share of the captures in which neighboring pixels mix.
MIXED = 0.6
#: The object of a scene covers at least this share of the frame.
LEAST_AREA = 0.04


@dataclass
class Pool:
    """Geometry of S scenes on a grid of G × G pixels, y up, row 0 the top."""

    heights: Tensor  # (S, G, G) in units of half the frame, −9 outside
    normals: Tensor  # (S, G, G, 3)
    mask: Tensor  # (S, G, G)
    horizons: Tensor  # (S, A, G, G)
    patches: Patches
    relief: Tensor  # (S,) whether a scene is a relief

    def __getitem__(self, index: Tensor | slice) -> Pool:
        return Pool(*(getattr(self, f.name)[index] for f in fields(self)))

    @property
    def places(self) -> Tensor:
        return places_of(self.heights, self.mask)


def places_of(heights: Tensor, mask: Tensor) -> Tensor:
    """Points (S, G · G, 3) of surfaces relative to their centers."""
    count, size = heights.shape[:2]
    axis = torch.linspace(-1, 1, size, device=heights.device)
    rows, columns = torch.meshgrid(axis, axis, indexing="ij")
    inside = mask.float()
    middle = (heights * inside).sum((1, 2), keepdim=True) / inside.sum((1, 2), keepdim=True)
    height = torch.where(mask, heights - middle, torch.zeros_like(heights))
    return torch.stack([columns.expand_as(height), -rows.expand_as(height), height], -1).reshape(
        count, -1, 3
    )


@torch.no_grad()  # type: ignore[untyped-decorator]
def draw_pool(count: int, device: torch.device | str, size: int, solids: float) -> Pool:
    """Random geometry, in random order; ``solids`` is the share of scenes with an outline, the others are reliefs."""
    outlined = round(count * solids)
    parts = []
    if outlined:
        parts.append(see_solids(draw_solids(outlined, device), size))
    if outlined < count:
        parts.append(draw_reliefs(count - outlined, size, device))
    heights, normals, mask = (torch.cat(values) for values in zip(*parts, strict=True))
    relief = torch.arange(count, device=device) >= outlined
    # Scenes with almost no object (cut away to nothing) are replaced by other scenes of the pool.
    good = mask.sum((1, 2)) > LEAST_AREA * size * size
    usable = torch.nonzero(good)[:, 0]
    other = usable[torch.randint(0, len(usable), (count,), device=device)]
    order = torch.where(good, torch.arange(count, device=device), other)
    order = order[torch.randperm(count, device=device)]
    heights, normals, mask, relief = heights[order], normals[order], mask[order], relief[order]
    patches = exchange(heights, normals, mask, places_of(heights, mask))
    return Pool(heights, normals, mask, find_horizons(heights), patches, relief)


@torch.no_grad()  # type: ignore[untyped-decorator]
def photograph(
    pool: Pool,
    lights: Tensor,
    distance: Tensor,
    cells: Tensor | None = None,
    wide: Tensor | None = None,
) -> Tensor:
    """Light that reaches a perfect camera under lights (S, d, 3) at distances (S,): (S, d, 3, G, G).

    With ``cells`` (S, P), the indices of some pixels, only those: (S, d, 3, P, 1). ``wide`` (S, 3) is the slope of the
    view at the border of the frame, and at its center in x and y: 0 for a camera far away.
    """
    count, size = pool.heights.shape[:2]
    photographs, device = lights.shape[1], lights.device
    u = uniform(count, device, 3)

    def as_maps(values: Tensor) -> Tensor:
        return values.permute(0, 2, 1).reshape(count, photographs, size, size)

    places = pool.places
    ray, falloff = seen_from(lights, distance, places)
    elevation = as_maps(torch.asin(ray[..., 2].clamp(-1, 1)))
    soft = torch.exp(-4.6 + 2.4 * torch.rand(count, 1, 1, 1, device=device))
    arriving = visibility(pool.horizons, lights, elevation, soft) * as_maps(falloff)
    materials, albedo = dress(pool.heights, pool.mask)
    cosine = (pool.normals.reshape(count, -1, 1, 3) * ray).sum(-1).clamp_min(0)
    given = radiosity(pool.patches, as_maps(cosine) * arriving, albedo) * (u() < 0.85)
    around = _indirect(pool, places, materials, given, lights, cells)
    flat = pool.normals.reshape(-1, 3)

    def direct(normals: Tensor, ray: Tensor, some: Materials, arriving: Tensor) -> Tensor:
        colors = reflect_uneven(some, normals, ray.reshape(-1, photographs, 3))
        colors = colors.reshape(count, *arriving.shape[2:], photographs, 3).permute(0, 3, 4, 1, 2)
        return colors * arriving[:, :, None]

    if cells is not None:
        colors = direct(*_some(cells, flat, ray, materials), _maps_at(arriving, cells))
        # A lens mixes neighbors.
        near = _beside(cells, pool.mask)
        other = direct(*_some(near, flat, ray, materials), _maps_at(arriving, near))
        share = 0.5 * u() * (u() < MIXED)
        colors = torch.lerp(colors, other, share[..., None])
    else:
        colors = direct(*_in_view(places, wide, flat, ray), materials, arriving)
    tint = (
        1 + 0.03 * torch.randn(count, photographs, 3, 1, 1, device=device) * (u() < 0.5)[..., None]
    )
    return (colors + around) * tint


def _beside(cells: Tensor, mask: Tensor) -> Tensor:
    """A pixel of the mask (S, G, G) next to each of the ``cells`` (S, P), or the same one."""
    size = mask.shape[1]
    step = torch.randint(-1, 2, (2, *cells.shape), device=cells.device)
    rows = (cells // size + step[0]).clamp(0, size - 1)
    near = rows * size + (cells % size + step[1]).clamp(0, size - 1)
    return torch.where(mask.flatten(1).gather(1, near), near, cells)


def _in_view(
    places: Tensor, wide: Tensor | None, normals: Tensor, ray: Tensor
) -> tuple[Tensor, Tensor]:
    """Normals (N, 3) and rays (S, P, d, 3) as the camera sees them at each place."""
    ray = ray.flatten(0, 1)
    if wide is None:
        return normals, ray
    view = -(wide[:, None, :1] * places[..., :2] + wide[:, None, 1:])
    view = torch.cat([view, torch.ones_like(view[..., :1])], -1).reshape(-1, 3)
    view = functional.normalize(view, dim=-1)
    return upright(view, normals), upright(view[:, None], ray)


def _indirect(
    pool: Pool,
    places: Tensor,
    materials: Materials,
    given: Tensor,
    lights: Tensor,
    cells: Tensor | None,
) -> Tensor:
    """Light that does not come directly from the lights: (S, d, 3, G, G) or, with ``cells``, (S, d, 3, P, 1).

    Surface patches emit ``given`` (S, d, 3, Q). Without ``cells``, values between every second pixel are interpolated.
    """
    count, size = pool.heights.shape[:2]
    device, every = lights.device, cells
    if every is None:
        second = torch.arange(0, size, 2, device=device)
        every = (second[:, None] * size + second).reshape(1, -1).expand(count, -1)
    normals, points, some = _some(every, pool.normals.reshape(-1, 3), places, materials)
    blurred = replace(
        some,
        alpha=some.alpha.clamp_min(LEAST_ALPHA),
        alpha_across=some.alpha_across.clamp_min(LEAST_ALPHA),
        coat_alpha=some.coat_alpha.clamp_min(LEAST_ALPHA),
    )
    normals = normals.reshape(points.shape)
    ray, share = pool.patches.seen_from(points, normals, every, size)
    far = sphere(device)
    elevation = torch.asin(far[:, 2])[None, :, None, None].expand(count, -1, 1, 1)
    open_ = visibility(
        pool.horizons, far.expand(count, -1, -1), elevation, torch.full_like(elevation, 0.2)
    )
    open_ = _maps_at(open_, every)[..., 0].mT * 4 / len(far)  # (S, P, E)
    rays = torch.cat([ray, far.expand(*points.shape[:2], -1, -1)], 2)
    kernel = reflect(blurred, normals.reshape(-1, 3), rays.flatten(0, 1)).reshape(
        *rays.shape[:3], 3
    )
    kernel = kernel * torch.cat([share, open_], 2)[..., None]
    source = torch.cat([given, radiance(lights, far)], -1)
    found = torch.einsum("spqc,sdcq->sdcp", kernel, source)
    if cells is not None:
        return found[..., None]
    inside = pool.mask[:, None, ::2, ::2].float()
    half = found.flatten(1, 2).unflatten(2, (size // 2, size // 2)) * inside
    whole = functional.interpolate(torch.cat([half, inside], 1), scale_factor=2, mode="bilinear")
    return (whole[:, :-1] / whole[:, -1:].clamp_min(1e-3)).unflatten(1, (-1, 3))


def _some(
    cells: Tensor, normals: Tensor, ray: Tensor, materials: Materials
) -> tuple[Tensor, Tensor, Materials]:
    scene = torch.arange(len(cells), device=cells.device)[:, None]
    flat = (scene * ray.shape[1] + cells).reshape(-1)
    return normals[flat], ray[scene, cells], materials[flat]


def _maps_at(maps: Tensor, cells: Tensor) -> Tensor:
    """Sample maps (S, ..., G, G) at some pixels: (S, ..., P, 1)."""
    flat = maps.flatten(-2)
    index = cells.reshape(len(cells), *[1] * (flat.ndim - 2), -1).expand(*flat.shape[:-1], -1)
    return torch.gather(flat, -1, index)[..., None]


def upright(view: Tensor, vectors: Tensor) -> Tensor:
    """Turn vectors (..., 3) such that the unit vector ``view`` becomes the z axis."""
    axis = torch.tensor([0.0, 0.0, 1.0], device=view.device)
    middle = view + axis
    share = (vectors * middle).sum(-1, keepdim=True) / middle[..., 2:].clamp_min(1e-3)
    return vectors - share * middle + 2 * (vectors * view).sum(-1, keepdim=True) * axis


def mirrored(maps: Tensor, turns: int, flip: bool) -> Tensor:
    """Rotate maps (..., G, G) counterclockwise by right angles, optionally after mirroring left to right."""
    return torch.rot90(maps.flip(-1) if flip else maps, turns, (-2, -1))


def symmetry(turns: int, flip: bool, device: torch.device | str = "cpu") -> Tensor:
    """Return the 3 × 3 matrix by which a symmetry of the square acts on vectors, x right and y up."""
    turn = torch.tensor([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], device=device)
    matrix = torch.diag(torch.tensor([-1.0 if flip else 1.0, 1.0, 1.0], device=device))
    for _ in range(turns % 4):
        matrix = turn @ matrix
    return matrix
