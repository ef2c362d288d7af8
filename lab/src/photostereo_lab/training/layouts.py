"""Positions and strengths of the lights: domes, rings, rectangles, one side only, a light moved by hand."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from photostereo_lab.training.tensors import uniform

DOME, CONE, RECTANGLE, RING, SIDE, WANDER, GRID, SINGLE = range(8)
#: How often each layout is drawn; a light that never moves is rare, just enough to learn that it is uninformative.
SHARES = (0.18, 0.14, 0.24, 0.12, 0.12, 0.11, 0.08, 0.01)
#: The lowest light: z of its direction.
LOWEST = 0.06
#: Spread of the logarithm of strengths in the half of the scenes in which they differ.
STRENGTH_SPREAD = 0.35


def draw_directions(count: int, photographs: int, device: torch.device | str) -> Tensor:
    """Directions (S, d, 3), x right, y up, z to the camera."""
    u = uniform(count, device)
    d = photographs
    azimuth = u(0, 6.2832, d)
    steady = u(0, 6.2832) + 6.2832 * torch.arange(d, device=device) / max(d, 1) + 0.05 * u(-1, 1, d)
    widest = torch.deg2rad(u(55, 86))
    dome = _polar(torch.acos(1 - u(0, 1, d) * (1 - torch.cos(widest))), azimuth)
    narrow = torch.deg2rad(u(8, 60))
    cone = _polar(narrow * torch.sqrt(u(0, 1, d)), azimuth)
    offset = 0.15 * torch.randn(count, 1, 2, device=device)
    extent = torch.cat([u(0.25, 1.2, 1, 1), u(0.25, 1.2, 1, 1)], -1)
    rectangle = _upright(u(-1, 1, d, 2) * extent + offset)
    side = max(2, round(d**0.5))
    index = torch.arange(d, device=device)
    cells = torch.stack([index % side, index // side], -1) / max(side - 1, 1) * 2 - 1
    grid = _upright((cells + 0.04 * torch.randn(count, d, 2, device=device)) * extent + offset)
    levels = torch.randint(1, 4, (count, 1), device=device)
    which = torch.randint(0, 3, (count, d), device=device) % levels
    ring = _polar(torch.deg2rad(u(15, 80)) * (which + 1) / levels + 0.03 * u(-1, 1, d), steady)
    toward = _polar(torch.deg2rad(u(15, 50)), u(0, 6.2832))
    one_sided = functional.normalize(
        toward + u(0.15, 0.6, 1, 1) * torch.randn(count, d, 3, device=device), dim=-1
    )
    step = torch.randn(count, d, 2, device=device) * u(0.1, 0.5, 1, 1)
    wander = torch.cumsum(step, 1)
    wander = _upright(torch.sin(wander + u(-1, 1, 1, 2)) * extent * 1.3)
    kind = torch.multinomial(torch.tensor(SHARES, device=device), count, replacement=True)[
        :, None, None
    ]
    chosen = dome
    for number, some in (
        (CONE, cone),
        (RECTANGLE, rectangle),
        (RING, ring),
        (SIDE, one_sided),
        (WANDER, wander),
    ):
        chosen = torch.where(kind == number, some, chosen)
    chosen = torch.where(kind == GRID, grid, chosen)
    chosen = torch.where(kind == SINGLE, toward + 0.01 * torch.randn_like(chosen), chosen)
    # Real rigs are never exactly straight.
    chosen = functional.normalize(chosen + 0.05 * torch.randn(count, 1, 3, device=device), dim=-1)
    return functional.normalize(
        torch.cat([chosen[..., :2], chosen[..., 2:].clamp_min(LOWEST)], -1), dim=-1
    )


def _polar(angle: Tensor, azimuth: Tensor) -> Tensor:
    sine = torch.sin(angle)
    parts = torch.broadcast_tensors(
        sine * torch.cos(azimuth), sine * torch.sin(azimuth), torch.cos(angle)
    )
    return torch.stack(parts, -1)


def _upright(plane: Tensor) -> Tensor:
    return functional.normalize(torch.cat([plane, torch.ones_like(plane[..., :1])], -1), dim=-1)


def draw_strengths(count: int, photographs: int, device: torch.device | str) -> Tensor:
    """Strengths (S, d): nearly equal in half of the scenes (never exactly), otherwise log-normal."""
    spread = STRENGTH_SPREAD * (torch.rand(count, 1, device=device) < 0.5)
    return torch.exp(torch.randn(count, photographs, device=device) * (spread + 0.01))


def draw_distances(count: int, device: torch.device | str, nearest: float) -> Tensor:
    """Distances (S,) in half frames: ``nearest`` to ten times as far in three of ten scenes, otherwise infinite."""
    near = nearest * 10 ** torch.rand(count, device=device)
    return torch.where(torch.rand(count, device=device) < 0.3, near, torch.full_like(near, 1e4))


def seen_from(lights: Tensor, distance: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """Directions (S, P, d, 3) and falloff (S, P, d) of lights (S, d, 3) at distances (S,), from places (S, P, 3)."""
    far = distance[:, None, None, None]
    ray = lights[:, None] * far - places[:, :, None]
    squared = ray.square().sum(-1)
    return ray * torch.rsqrt(squared)[..., None], far[..., 0] ** 2 / squared


def miscalibrated(
    lights: Tensor, degrees: float = 1.5, strength: float = 0.05, spoiled: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Directions off by up to about ``degrees``, and strengths (S, d) off by ``strength``, as after a calibration.

    In the share ``spoiled`` of the captures, they are grossly wrong: all lights tilted, some of them displaced, or strengths
    that drift during the series.
    """
    count, photographs = lights.shape[:2]
    u = uniform(count, lights.device, 2)
    amount = u() * torch.pi / 180 * degrees
    gross, tilted = u() < spoiled, u() < 0.4
    some = torch.rand(count, photographs, 1, device=lights.device) < u(0.1, 1.3)
    amount = torch.where(gross & ~tilted & some, u(0.03, 0.45), amount)
    shift = (
        torch.randn_like(lights) * amount
        + torch.randn_like(u().expand(-1, -1, 3)) * u(0, 0.4) * gross * tilted
    )
    wrong = functional.normalize(lights + 0.7 * shift, dim=-1)
    wrong = functional.normalize(
        torch.cat([wrong[..., :2], wrong[..., 2:].clamp_min(LOWEST)], -1), dim=-1
    )
    course = (
        torch.linspace(-0.5, 0.5, photographs, device=lights.device)
        * (u(-2, 2) * (u() < spoiled))[:, 0]
    )
    amount = torch.rand(count, 1, device=lights.device) * strength
    return wrong, (1 + amount * torch.randn_like(lights[..., 0])) * torch.exp(course)
