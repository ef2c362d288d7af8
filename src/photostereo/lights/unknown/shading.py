"""Inputs of the network: the photographs in several forms, a matte fit to them, and lights in closed form.

The network was trained with these constants: if one changes, it must be trained again. Ratios get an offset of a
few percent of the capture's mean, below which a pixel is practically black.

Arrays are NumPy or, in training, torch with several captures at once: all of them may have an additional leading axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from photostereo.runtime.arrays import Array, like, namespace

LUMA = np.array([0.298936, 0.587043, 0.114021], dtype=np.float32)
TO_CAMERA = np.array([0.0, 0.0, 1.0], dtype=np.float32)
#: Entries of a symmetric 3 × 3 matrix.
PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
# The network was trained with these numbers: changing one changes its input.
#: Values below this share of a pixel's maximum count as shadow in the fit of normals.
SHADOW = 0.1
#: The same in the fit of lights.
SHADOW_OF_LIGHTS = 0.08
#: Misfit, as a share of the typical brightness, at which an entry has half the weight in the fit of normals.
HALF_TRUST = 0.2
#: The same in the fit of lights.
HALF_TRUST_OF_LIGHTS = 0.15
#: Rounds of reweighting.
ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Frames:
    """Photographs over the capture's mean: colors (d, h, w, 3), gray (d, h, w), the mask (h, w) as 0 and 1."""

    colors: Array
    gray: Array
    cover: Array


@dataclass(frozen=True, eq=False)
class Matte:
    """A matte fit: unit normals (h, w, 3), albedo (h, w) and relative misfit (h, w)."""

    normals: Array
    albedo: Array
    misfit: Array


def frames_of(images: Array, mask: Array) -> Frames:
    """Divide photographs (d, h, w, 3), which are zero outside the mask, by their mean inside."""
    xp = namespace(images)
    gray = images @ like(LUMA, images)
    cover = mask * xp.ones_like(gray[..., 0, :, :])
    mean = gray.sum((-3, -2, -1)) / xp.clip(cover.sum((-2, -1)) * gray.shape[-3], 1, None)
    scale = (1 / xp.clip(mean, 1e-8, None))[..., None, None, None]
    return Frames(images * scale[..., None], gray * scale, cover)


def _quartets(maps: Array) -> Array:
    """Return averages of 2 × 2 pixels of (..., h, w)."""
    return (
        maps[..., ::2, ::2] + maps[..., 1::2, ::2] + maps[..., ::2, 1::2] + maps[..., 1::2, 1::2]
    ) * 0.25


def weighted_half(maps: Array, cover: Array) -> Array:
    """Return maps (..., h, w), zero outside, at half the size: averages over the mask's part of each cell."""
    return _quartets(maps) / namespace(maps).clip(_quartets(cover), 0.05, None)


def half_frames(frames: Frames) -> Frames:
    """Return the same at half the size."""
    xp = namespace(frames.gray)
    cover = frames.cover[..., None, :, :]
    colors = weighted_half(xp.moveaxis(frames.colors, -1, -3), cover[..., None, :, :])
    some = (_quartets(frames.cover) > 0) * xp.ones_like(colors[..., 0, 0, :, :])
    return Frames(xp.moveaxis(colors, -3, -1), weighted_half(frames.gray, cover), some)


def _channels(maps: Sequence[Array], gray: Array) -> Array:
    xp = namespace(gray)
    return xp.stack([xp.broadcast_to(one, gray.shape) for one in maps], -1)


def first_inputs(frames: Frames) -> Array:
    """Return the channels of the first look: (d, h, w, 8)."""
    gray = frames.gray
    xp = namespace(frames.gray)
    usual = gray.mean(-3)[..., None, :, :]
    top = xp.amax(gray, -3)[..., None, :, :]
    ratio = gray / (usual + 0.05)
    colors = xp.log1p(2 * frames.colors)
    maps = [colors[..., channel] for channel in range(3)]
    maps += [xp.log1p(2 * usual), xp.log1p(2 * top), ratio / (ratio + 1), gray / (top + 0.05)]
    return _channels([*maps, frames.cover[..., None, :, :]], gray)


def matte_normals(gray: Array, lights: Array, strengths: Array) -> Matte:
    """Compute a robust matte fit of photographs (d, h, w) to lights (d, 3) of strengths (d,)."""
    xp = namespace(gray)
    y = gray.reshape(*gray.shape[:-2], -1) / strengths[..., None]
    usual = y.mean(-2)[..., None, :] + 1e-4
    lit = (y > SHADOW * xp.amax(y, -2)[..., None, :]) * xp.ones_like(y) + 1e-3
    outer = xp.stack([lights[..., i] * lights[..., j] for i, j in PAIRS], -2)
    weight = lit / (0.3 + y / usual)
    surface = y[..., :3, :]
    miss = y
    for _ in range(ROUNDS):
        moments = outer @ weight
        moments[..., :3, :] += 1e-3 * weight.sum(-2)[..., None, :]
        surface = solve3(moments, xp.swapaxes(lights, -1, -2) @ (weight * y))
        miss = (y - xp.clip(lights @ surface, 0, None)) / usual
        weight = lit / (1 + (miss / HALF_TRUST) ** 2)
    size = xp.clip(xp.sqrt((surface**2).sum(-2)), 1e-4, None)
    misfit = xp.sqrt((xp.clip(miss, -3, 3) ** 2).mean(-2))
    shape = (*gray.shape[:-3], *gray.shape[-2:])
    normals = xp.swapaxes(surface / size[..., None, :], -1, -2).reshape(*shape, 3)
    return Matte(normals, size.reshape(shape), misfit.reshape(shape))


def solve3(moments: Array, right: Array) -> Array:
    """Solve symmetric 3 × 3 systems: six entries (6, P) as in ``PAIRS`` and right-hand sides (3, P)."""
    xp = namespace(moments)
    a, b, c, d, e, f = (moments[..., entry, :] for entry in range(6))
    p = b * c - f * f
    q = e * f - d * c
    r = d * f - b * e
    s = a * c - e * e
    t = d * e - a * f
    w = a * b - d * d
    det = xp.clip(a * p + d * q + e * r, 1e-12, None)
    x, y, z = (right[..., entry, :] for entry in range(3))
    solved = xp.stack([p * x + q * y + r * z, q * x + s * y + t * z, r * x + t * y + w * z], -2)
    return solved / det[..., None, :]


def second_inputs(frames: Frames, lights: Array, strengths: Array, matte: Matte) -> Array:
    """Return the photographs together with their matte fit: channels (d, h, w, 16)."""
    gray = frames.gray
    xp = namespace(frames.gray)
    top = xp.amax(gray, -3)[..., None, :, :] + 0.05
    half = lights + like(TO_CAMERA, lights)
    half = half / xp.sqrt((half**2).sum(-1))[..., None]
    normals = xp.swapaxes(matte.normals.reshape(*lights.shape[:-2], -1, 3), -1, -2)
    facing, shine = ((rays @ normals).reshape(gray.shape) for rays in (lights, half))
    model = xp.clip(facing, 0, None) * matte.albedo[..., None, :, :] * strengths[..., None, None]
    maps = [matte.normals[..., None, :, :, axis] for axis in range(3)]
    maps += [facing, shine, xp.clip(model / top, 0, 2), xp.clip((gray - model) / top, -1, 1)]
    maps.append(xp.clip(matte.misfit, None, 2)[..., None, :, :])
    fitted = _channels([one * frames.cover[..., None, :, :] for one in maps], gray)
    return xp.concatenate([first_inputs(frames), fitted], -1)


def fit_lights(normals: Array, gray: Array, cover: Array, lights: Array, strengths: Array) -> Array:
    """Fit each light in closed form to normals (h, w, 3) and photographs (d, h, w).

    Alternates between albedo and lights. Returns (d, 5): direction (3), log strength with mean 0, and relative misfit.
    """
    xp = namespace(gray)
    lead = gray.shape[:-3]
    n = xp.swapaxes(normals.reshape(*lead, -1, 3), -1, -2)
    y = gray.reshape(*gray.shape[:-2], -1)
    inside = cover.reshape(*lead, 1, -1)
    light = lights * strengths[..., None]
    outer = xp.stack([n[..., i, :] * n[..., j, :] for i, j in PAIRS], -2)
    top = xp.amax(y, -2)[..., None, :] + 0.02
    miss = xp.zeros_like(y)
    for _ in range(ROUNDS):
        shade = xp.clip(light @ n, 0, None)
        lit = inside * (shade > 0.1 * strengths[..., None]) * (y > SHADOW_OF_LIGHTS * top)
        trust = lit / (1 + (miss / HALF_TRUST_OF_LIGHTS) ** 2)
        albedo = (trust * shade * y).sum(-2) / ((trust * shade**2).sum(-2) + 1e-3)
        albedo = albedo[..., None, :]
        weight = trust / (albedo**2 + 1e-2)
        moments = outer @ xp.swapaxes(weight * albedo**2, -1, -2)
        moments[..., :3, :] += 1e-3 * moments[..., :3, :].sum(-2)[..., None, :] + 1e-4
        light = xp.swapaxes(solve3(moments, n @ xp.swapaxes(weight * albedo * y, -1, -2)), -1, -2)
        miss = (y - albedo * xp.clip(light @ n, 0, None)) / top
    size = xp.clip(xp.sqrt((light**2).sum(-1)), 1e-3, None)[..., None]
    left = xp.sqrt((inside * xp.clip(miss, -2, 2) ** 2).sum(-1) / xp.clip(inside.sum(-1), 1, None))
    logs = xp.log(size[..., 0])
    logs = xp.clip(logs - logs.mean(-1)[..., None], -2, 2)
    return xp.concatenate([light / size, logs[..., None], left[..., None]], -1)
