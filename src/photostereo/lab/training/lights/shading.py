"""What the network is shown, in torch: the photographs in several forms, a matte fit, lights in closed form.

:mod:`photostereo.lights.unknown.shading` is the same in NumPy, and holds the explanations.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from photostereo.lab.training.sensor import LUMA

#: Entries of a symmetric 3 × 3 matrix.
PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


@dataclass
class Frames:
    """Photographs over the capture's mean: colors (S, d, 3, h, w), gray (S, d, h, w), the mask's share (S, 1, h, w)."""

    colors: Tensor
    gray: Tensor
    cover: Tensor


@dataclass
class Matte:
    """A matte fit: unit normals (S, 3, h, w), albedo (S, h, w) and relative misfit (S, h, w)."""

    normals: Tensor
    albedo: Tensor
    misfit: Tensor


def frames_of(images: Tensor, mask: Tensor) -> Frames:
    """Photographs (S, d, 3, G, G) that are zero outside masks (S, G, G), divided by their mean inside."""
    luma = torch.tensor(LUMA, device=images.device)[:, None, None]
    gray = (images * luma).sum(2)
    cover = mask[:, None].float()
    mean = gray.sum((1, 2, 3)) / (cover.sum((1, 2, 3)) * images.shape[1]).clamp_min(1)
    scale = 1 / mean.clamp_min(1e-8)[:, None, None, None]
    return Frames(images * scale[..., None], gray * scale, cover)


def weighted_half(maps: Tensor, cover: Tensor) -> Tensor:
    """Maps (S, C, h, w), zero outside, at half the size: averages over the mask's part of each cell."""
    return functional.avg_pool2d(maps, 2) / functional.avg_pool2d(cover, 2).clamp_min(0.05)


def half_frames(frames: Frames) -> Frames:
    """The same at half the size."""
    colors = weighted_half(frames.colors.flatten(1, 2), frames.cover)
    inside = (functional.avg_pool2d(frames.cover, 2) > 0).float()
    gray = weighted_half(frames.gray, frames.cover)
    return Frames(colors.unflatten(1, (-1, 3)), gray, inside)


def first_inputs(frames: Frames) -> Tensor:
    """The first look's channels, last: (S, d, h, w, 8)."""
    gray = frames.gray
    usual, top = gray.mean(1, keepdim=True), gray.amax(1, keepdim=True)
    ratio = gray / (usual + 0.05)
    maps = [
        *torch.log1p(2 * frames.colors).unbind(2),
        torch.log1p(2 * usual),
        torch.log1p(2 * top),
        ratio / (ratio + 1),
        gray / (top + 0.05),
        frames.cover,
    ]
    return _last(maps, gray)


def _last(maps: list[Tensor], like: Tensor) -> Tensor:
    kind = torch.bfloat16 if like.is_cuda else torch.float32
    return torch.stack([m.to(kind).expand_as(like) for m in maps], -1)


def matte_normals(gray: Tensor, lights: Tensor, strengths: Tensor) -> Matte:
    """A robust matte fit of photographs (S, d, h, w) to lights (S, d, 3) of strengths (S, d)."""
    shape = gray.shape[2:]
    y = gray.flatten(2) / strengths[..., None]
    top, usual = y.amax(1, keepdim=True), y.mean(1, keepdim=True) + 1e-4
    lit = (y > 0.1 * top).float() + 1e-3
    outer = torch.stack([lights[..., i] * lights[..., j] for i, j in PAIRS], 1)  # (S, 6, d)
    weight = lit / (0.3 + y / usual)
    surface, miss = torch.zeros(len(y), 3, y.shape[-1], device=y.device), y
    for _ in range(3):
        moments = outer @ weight
        moments[:, :3] += 1e-3 * weight.sum(1, keepdim=True)
        surface = solve3(moments, lights.mT @ (weight * y))
        miss = (y - (lights @ surface).clamp_min(0)) / usual
        weight = lit / (1 + (miss / 0.2) ** 2)
    size = surface.norm(dim=1, keepdim=True).clamp_min(1e-4)
    misfit = torch.sqrt((miss.clamp(-3, 3) ** 2).mean(1))
    return Matte(
        (surface / size).unflatten(2, shape), size[:, 0].unflatten(1, shape), misfit.unflatten(1, shape)
    )


def solve3(moments: Tensor, right: Tensor) -> Tensor:
    """Solve symmetric 3 × 3 systems: six entries (S, 6, P) as in ``PAIRS`` and right-hand sides (S, 3, P)."""
    a, b, c, d, e, f = moments.unbind(1)
    p, q, r = b * c - f * f, e * f - d * c, d * f - b * e
    s, t, w = a * c - e * e, d * e - a * f, a * b - d * d
    det = (a * p + d * q + e * r).clamp_min(1e-12)
    x, y, z = right.unbind(1)
    return (
        torch.stack([p * x + q * y + r * z, q * x + s * y + t * z, r * x + t * y + w * z], 1) / det[:, None]
    )


def second_inputs(frames: Frames, lights: Tensor, strengths: Tensor, matte: Matte) -> Tensor:
    """The photographs beside what the matte fit makes of them: channels (S, d, h, w, 16)."""
    gray, inside = frames.gray, frames.cover
    top = gray.amax(1, keepdim=True) + 0.05
    half = functional.normalize(lights + torch.tensor([0.0, 0.0, 1.0], device=lights.device), dim=-1)
    facing = (lights @ matte.normals.flatten(2)).unflatten(2, gray.shape[2:])
    shine = (half @ matte.normals.flatten(2)).unflatten(2, gray.shape[2:])
    model = facing.clamp_min(0) * matte.albedo[:, None] * strengths[..., None, None]
    maps = [
        *matte.normals[:, None].unbind(2),
        facing,
        shine,
        (model / top).clamp(0, 2),
        ((gray - model) / top).clamp(-1, 1),
        matte.misfit[:, None].clamp(0, 2),
    ]
    return torch.cat([first_inputs(frames), _last([m * inside for m in maps], gray)], -1)


def fit_lights(normals: Tensor, gray: Tensor, mask: Tensor, lights: Tensor, strengths: Tensor) -> Tensor:
    """Each light in closed form from normals (S, 3, h, w) and photographs (S, d, h, w): (S, d, 5).

    Albedo and lights take turns. Direction (3), log strength with mean 0, and relative misfit.
    """
    n, y, inside = normals.flatten(2), gray.flatten(2), mask.flatten(2)
    light = lights * strengths[..., None]
    outer = torch.stack([n[:, i] * n[:, j] for i, j in PAIRS], 1)  # (S, 6, P)
    top = y.amax(1, keepdim=True) + 0.02
    miss = torch.zeros_like(y)
    for _ in range(3):
        shade = (light @ n).clamp_min(0)
        lit = inside * (shade > 0.1 * strengths[..., None]) * (y > 0.08 * top)
        trust = lit / (1 + (miss / 0.15) ** 2)
        albedo = (trust * shade * y).sum(1, keepdim=True) / ((trust * shade**2).sum(1, keepdim=True) + 1e-3)
        weight = trust / (albedo**2 + 1e-2)
        moments = ((weight * albedo**2) @ outer.mT).mT.contiguous()  # (S, 6, d)
        moments[:, :3] += 1e-3 * moments[:, :3].sum(1, keepdim=True) + 1e-4
        light = solve3(moments, ((weight * albedo * y) @ n.mT).mT).mT
        miss = (y - albedo * (light @ n).clamp_min(0)) / top
    size = light.norm(dim=-1, keepdim=True).clamp_min(1e-3)
    logs = torch.log(size[..., 0])
    left = torch.sqrt((inside * miss.clamp(-2, 2) ** 2).sum(2) / inside.sum(2).clamp_min(1))
    logs = (logs - logs.mean(1, keepdim=True)).clamp(-2, 2)
    return torch.cat([light / size, logs[..., None], left[..., None]], -1)
