"""What camera and mask make of a scene: ambient light, haze, clipping, noise, 8 bits, gray, a mask that is a little off."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

LUMA = (0.298936, 0.587043, 0.114021)


@torch.no_grad()  # type: ignore[untyped-decorator]
def expose(clean: Tensor, mask: Tensor) -> Tensor:
    """Photographs (S, d, 3, G, G) of clean ones; zero outside the mask (S, G, G)."""
    count, photographs = clean.shape[:2]
    device = clean.device

    def u(low: float = 0.0, high: float = 1.0) -> Tensor:
        return low + (high - low) * torch.rand(count, 1, 1, 1, 1, device=device)

    inside = mask[:, None, None].float()
    gray = (clean * torch.tensor(LUMA, device=device)[:, None, None]).sum(2, keepdim=True)
    image = torch.where(u() < 0.4, gray, clean)
    # Strong highlights bleed, and small pictures average: a blur of a pixel in half of the captures.
    blurred = functional.avg_pool2d((image * inside).flatten(0, 1), 3, 1, 1).reshape(image.shape)
    cover = functional.avg_pool2d(inside[:, 0], 3, 1, 1)[:, None].clamp_min(0.1)
    image = torch.lerp(image, blurred / cover, u(0, 1) * (u() < 0.5))
    area = inside.sum((1, 2, 3, 4), keepdim=True).clamp_min(1)
    mean = (image * inside).sum((1, 2, 3, 4), keepdim=True) / (area * 3 * photographs)
    mean = mean.clamp_min(1e-6)
    haze = (image * inside).mean((2, 3, 4), keepdim=True) * u(0, 0.06) * (u() < 0.3)
    image = image + haze + mean * u(0, 0.04) * (u() < 0.4)
    top = mean * u(2.0, 8.0)
    image = torch.where(u() < 0.35, torch.minimum(image, top), image)
    # A tone curve that was not quite undone.
    curve = torch.exp(0.12 * torch.randn_like(mean) * (u() < 0.2))
    image = mean * (image / mean).clamp_min(1e-5) ** curve
    # Pixels of a thumbnail are averages: little noise in most captures.
    noise = torch.exp(u(-6.5, -2.2)) * (u() < 0.7)
    image = image + noise * torch.sqrt((image * mean).clamp_min(0) + 0.02 * mean**2) * torch.randn_like(
        image[:, :, :1]
    )
    step = torch.where(u() < 0.25, mean * u(2, 6) / 255, 1e-7 * mean)
    coded = torch.sqrt((image / (255 * step)).clamp_min(0))
    image = torch.where(
        u() < 0.5, torch.round(image / step) * step, (torch.round(coded * 255) / 255) ** 2 * 255 * step
    )
    return image.clamp_min(0) * inside


@torch.no_grad()  # type: ignore[untyped-decorator]
def imperfect(mask: Tensor) -> Tensor:
    """Masks (S, G, G) as users draw them: some grown, some shrunk, some with a piece missing."""
    count, device = len(mask), mask.device
    kind = torch.rand(count, 1, 1, device=device)
    given = mask.float()[:, None]
    grown = functional.max_pool2d(given, 3, 1, 1)[:, 0] > 0.5
    shrunk = (-functional.max_pool2d(-given, 3, 1, 1))[:, 0] > 0.5
    found = torch.where(kind < 0.12, grown, torch.where(kind < 0.3, shrunk, mask))
    size = mask.shape[-1]
    axis = torch.linspace(-1, 1, size, device=device)
    where = torch.rand(count, 2, 1, 1, device=device) * 2 - 1
    radius = torch.rand(count, 1, 1, device=device) * 0.35
    bite = (axis[None, None] - where[:, 0]) ** 2 + (axis[None, :, None] - where[:, 1]) ** 2 < radius**2
    found = torch.where(
        (torch.rand(count, 1, 1, device=device) < 0.06) & bite, torch.zeros_like(found), found
    )
    # Never nothing.
    return torch.where(found.sum((1, 2), keepdim=True) < 40, mask, found)
