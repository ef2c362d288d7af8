"""Effects of camera and mask: shake, blur, haze, clipping, noise down to 3 dB, 8 bits, gray, damage."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from photostereo_lab.training.tensors import uniform

#: Luma of linear RGB, as in :mod:`photostereo.core.conventions`.
LUMA = (0.298936, 0.587043, 0.114021)
#: Variance of the luma over that of a channel.
LUMA_VARIANCE = sum(weight**2 for weight in LUMA)
#: Share of the captures whose camera moved.
SHAKEN = 0.08
#: Share of the captures that were stored as JPEG files.
COMPRESSED = 0.2

Uniform = Callable[..., Tensor]


@torch.no_grad()  # type: ignore[untyped-decorator]
def expose(
    clean: Tensor, mask: Tensor, *, strong: float = 0.38, damage: float = 0.16
) -> tuple[Tensor, Tensor]:
    """Degrade clean photographs (S, d, 3, H, W); also return the variance of their noise in gray, (S, H, W).

    A column of pixels, W = 1, is a sample of a capture's pixels; a single pixel lies anywhere between the darkest and
    the brightest of its capture. ``strong`` is the share of captures with a signal-to-noise ratio between 3 and 25
    dB, ``damage`` both the share with lost or false values and the share with photographs that are wrong as a whole.
    """
    count, photographs = clean.shape[:2]
    device = clean.device
    u = uniform(count, device, 4)
    inside = mask[:, None, None].float()
    gray = (
        (clean * torch.tensor(LUMA, device=device)[:, None, None])
        .sum(2, keepdim=True)
        .expand_as(clean)
    )
    mono = u() < 0.4
    image = torch.where(mono, gray, clean)
    single = mask[0].numel() == 1
    if mask.shape[-1] > 1:
        image = _blurred(_shaken(image, u), inside, u)
    relative = torch.exp(0.6 * torch.randn_like(u())) if single else 1.0
    values = inside.sum((1, 2, 3, 4), keepdim=True).clamp_min(1) * 3 * photographs
    mean = ((image * inside).sum((1, 2, 3, 4), keepdim=True) / values).clamp_min(1e-8) * relative
    power = ((image * inside).square().sum((1, 2, 3, 4), keepdim=True) / values).clamp_min(
        1e-16
    ) * relative**2
    haze = (image * inside).mean((2, 3, 4), keepdim=True) * u(0, 0.06) * (u() < 0.5)
    image = image + haze + mean * u(0, 0.04) * (u() < 0.3)
    top = (
        image.amax((1, 2, 3, 4), keepdim=True) * u(0.4, 1.0)
        if single
        else mean * u(2.0, 8.0) * torch.exp(-2 * u() * (u() < 0.15))
    )
    image = torch.where(u() < 0.3, torch.minimum(image, top), image)
    # A tone curve that was not undone exactly.
    curve = torch.exp(0.12 * torch.randn_like(mean) * (u() < 0.2))
    image = mean * (image / mean).clamp_min(1e-5) ** curve

    draw = u()
    decibels = torch.where(
        draw < strong, u(3, 25), torch.where(draw < strong + 0.37, u(25, 45), u(45, 70))
    )
    ratio = 10 ** (decibels / 10)
    photons = ratio * mean / power
    # One draw for all channels if the photographs are gray.
    shot = (
        torch.poisson((torch.where(mono, image[:, :, :1], image) * photons).clamp(0, 1e7)) / photons
    )
    shot = torch.where(mono, shot[:, :, :1], shot)
    normal = torch.where(
        mono, torch.randn_like(image[:, :, :1]).expand_as(image), torch.randn_like(image)
    )
    additive = image + normal * torch.sqrt(power / ratio)
    counted, clean_enough = u() < 0.7, decibels > 62
    variance = torch.where(
        counted,
        image.mean((1, 2), keepdim=True) / photons,
        (power / ratio).expand(-1, 1, 1, *mask.shape[1:]),
    )
    variance = variance * torch.where(mono, 1.0, LUMA_VARIANCE) * ~clean_enough
    noisy = torch.where(counted, shot, torch.where(u() < 0.5, additive.clamp_min(0), additive))
    image = torch.where(clean_enough, image, noisy)
    step = 4 * mean / 255
    image = torch.where(u() < 0.12, torch.round(image / step) * step, image)
    image = torch.where(
        u() < COMPRESSED, _compressed(image, mean * torch.exp(u(0.7, 2.5)), u), image
    )
    image = _damaged(image, u, mean, damage)
    return torch.nan_to_num(image, nan=0.0, posinf=0.0, neginf=0.0) * inside, variance[:, 0, 0]


def _compressed(image: Tensor, white: Tensor, u: Uniform) -> Tensor:
    """Photographs in 8 bits on the sRGB curve, with errors as those of JPEG, decoded again."""
    linear = (image / white).clamp(0, 1)
    root = linear.clamp_min(1e-6) ** (1 / 2.4)
    shown = torch.where(linear < 0.0031308, 12.92 * linear, 1.055 * root - 0.055)
    shown = shown + u(0, 1.5) / 255 * torch.randn_like(shown[:, :, :1])
    shown = (torch.round(255 * shown) / 255).clamp(0, 1)
    decoded = torch.where(shown < 0.04045, shown / 12.92, ((shown + 0.055) / 1.055) ** 2.4)
    return decoded * white


def _shaken(image: Tensor, u: Uniform) -> Tensor:
    """Photographs (S, d, 3, H, W); in some captures the camera moved between or during them."""
    count, photographs = image.shape[:2]
    reach = torch.exp(u(-2.0, 1.2))[..., 0] * 2 / image.shape[-1]  # 0.13 to 3.3 pixels
    move = torch.randn(count, photographs, 1, 2, device=image.device)
    drift = (
        torch.linspace(-1, 1, photographs, device=image.device)[None, :, None, None] * move[:, :1]
    )
    move = torch.where(
        u()[..., 0] < 0.3, drift, move * (torch.rand_like(move[..., :1]) < u(0.2, 1.5)[..., 0])
    )
    turn = torch.eye(2, device=image.device).expand(count, photographs, 2, 2)
    affine = torch.cat([turn, (move * reach).mT], -1).flatten(0, 1)
    grid = functional.affine_grid(affine, [len(affine), 3, *image.shape[-2:]], align_corners=False)
    moved = functional.grid_sample(image.flatten(0, 1), grid, align_corners=False).reshape(
        image.shape
    )
    moved = torch.where(u() < 0.3, (moved + image) / 2, moved)
    return torch.where(u() < SHAKEN, moved, image)


def _blurred(image: Tensor, inside: Tensor, u: Uniform) -> Tensor:
    """Strong highlights bleed, and small pictures are averages: blur by a pixel in half of the captures."""
    blurred = functional.avg_pool2d((image * inside).flatten(0, 1), 3, 1, 1).reshape(image.shape)
    cover = functional.avg_pool2d(inside[:, 0], 3, 1, 1)[:, None].clamp_min(0.1)
    return torch.lerp(image, torch.where(inside > 0, blurred / cover, image), u(0, 1) * (u() < 0.5))


def _damaged(image: Tensor, u: Uniform, mean: Tensor, share: float) -> Tensor:
    """Lost or false entries: scattered ones, and whole photographs (a run of them) that are wrong together."""
    if not share:
        return image
    shape, device = image[:, :, :1].shape, image.device
    scattered = (torch.rand(shape, device=device) < u(0.0, 0.22)) & (u() < share)
    level = torch.rand(shape, device=device)
    false = torch.where(u() < 0.5, mean * 6 * (level > 0.5), mean * 5 * level**2)
    image = torch.where(scattered, false.expand_as(image), image)
    run = (torch.rand(*shape[:2], 1, 1, 1, device=device) < u(0.0, 0.28)) & (u() < share)
    gain, offset = (
        torch.exp(1.2 * torch.randn_like(mean)) * (u() < 0.7),
        mean * u(0.0, 1.5) * (u() < 0.5),
    )
    wobble = 1 + 0.5 * torch.rand(shape, device=device)
    return torch.where(run, image * gain * wobble + offset, image)


@torch.no_grad()  # type: ignore[untyped-decorator]
def imperfect(mask: Tensor) -> Tensor:
    """Masks (S, G, G) as users draw them: some grown, some shrunk, some with a piece missing."""
    count, device = len(mask), mask.device
    kind = torch.rand(count, 1, 1, device=device)
    given = mask.float()[:, None]
    grown = functional.max_pool2d(given, 3, 1, 1)[:, 0] > 0.5
    shrunk = (-functional.max_pool2d(-given, 3, 1, 1))[:, 0] > 0.5
    found = torch.where(kind < 0.12, grown, torch.where(kind < 0.3, shrunk, mask))
    axis = torch.linspace(-1, 1, mask.shape[-1], device=device)
    where = torch.rand(count, 2, 1, 1, device=device) * 2 - 1
    radius = torch.rand(count, 1, 1, device=device) * 0.35
    bite = (axis[None, None] - where[:, 0]) ** 2 + (
        axis[None, :, None] - where[:, 1]
    ) ** 2 < radius**2
    found = found & ~((torch.rand(count, 1, 1, device=device) < 0.06) & bite)
    # Never empty.
    return torch.where(found.sum((1, 2), keepdim=True) < 40, mask, found)
