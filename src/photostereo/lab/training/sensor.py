"""What a camera makes of the light: noise from clean to 3 dB, clipped highlights, 8 bits, damaged photographs.

A group of pixels (G, P, d, 3) is one capture: signal-to-noise ratio, clipping and damage are drawn per group.
Single pixels are groups of one, and stand anywhere between the darkest and the brightest of theirs.
"""

from __future__ import annotations

import torch
from torch import Tensor

#: Luma of linear RGB, as in :mod:`photostereo.core.conventions`.
LUMA = (0.298936, 0.587043, 0.114021)


@torch.no_grad()  # type: ignore[untyped-decorator]
def expose(clean: Tensor, *, strong: float = 0.38) -> Tensor:
    """Photographs of groups (G, P, d, 3); ``strong`` is the share of groups with a ratio between 3 and 25 dB."""
    groups, pixels = clean.shape[:2]
    device = clean.device

    def u(low: float = 0.0, high: float = 1.0) -> Tensor:
        return low + (high - low) * torch.rand(groups, 1, 1, 1, device=device)

    gray = (clean * torch.tensor(LUMA, device=device)).sum(-1, keepdim=True).expand_as(clean)
    mono = u() < 0.4
    image = torch.where(mono, gray, clean)
    alone = pixels == 1
    relative = torch.exp(0.6 * torch.randn(groups, 1, 1, 1, device=device)) if alone else 1.0
    mean = image.mean((1, 2, 3), keepdim=True).clamp_min(1e-8) * relative
    power = image.square().mean((1, 2, 3), keepdim=True).clamp_min(1e-16) * relative**2
    image = _clipped(image, u, mean, alone)

    draw = u()
    decibels = torch.where(draw < strong, u(3, 25), torch.where(draw < strong + 0.37, u(25, 45), u(45, 70)))
    ratio = 10 ** (decibels / 10)
    photons = ratio * mean / power
    # One draw for all channels where the photographs are gray.
    counts = torch.where(mono, image[..., :1], image) * photons
    shot = torch.poisson(counts.clamp(0, 1e7)) / photons
    shared = torch.randn_like(image[..., :1])
    normal = torch.where(mono, shared.expand_as(image), torch.randn_like(image))
    additive = image + normal * torch.sqrt(power / ratio)
    shot = torch.where(mono, shot[..., :1], shot)
    image = torch.where(u() < 0.7, shot, torch.where(u() < 0.5, additive.clamp_min(0), additive))
    image = torch.where(decibels > 62, torch.where(mono, gray, clean), image)
    step = 4 * mean / 255
    image = torch.where(u() < 0.12, torch.round(image / step) * step, image)
    return _damaged(image, u, mean)


def _clipped(image: Tensor, u: object, mean: Tensor, alone: bool) -> Tensor:
    """Highlights cut off in three of ten captures."""
    assert callable(u)
    top = image.amax((1, 2, 3), keepdim=True) * u(0.4, 1.0) if alone else mean * u(2.0, 8.0)
    return torch.where(u() < 0.3, torch.minimum(image, top), image)


def _damaged(image: Tensor, u: object, mean: Tensor) -> Tensor:
    """Lost or false entries: scattered ones, and whole photographs (a run of them) that are wrong together."""
    assert callable(u)
    shape = image[..., :1].shape
    device = image.device
    scattered = (torch.rand(shape, device=device) < u(0.0, 0.22)) & (u() < 0.16)
    level = torch.rand(shape, device=device)
    false = torch.where(u() < 0.5, mean * 6 * (level > 0.5), mean * 5 * level**2)
    image = torch.where(scattered, false.expand_as(image), image)
    run = (torch.rand(shape[0], 1, shape[2], 1, device=device) < u(0.0, 0.28)) & (u() < 0.16)
    gain, offset = torch.exp(1.2 * torch.randn_like(mean)) * (u() < 0.7), mean * u(0.0, 1.5) * (u() < 0.5)
    wobble = 1 + 0.5 * torch.rand(shape, device=device)
    return torch.where(run, image * gain * wobble + offset, image)
