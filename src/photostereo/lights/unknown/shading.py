"""What the network is shown: the photographs in several forms, a matte fit to them, and lights in closed form.

The constants are part of what the network has learned: change one, and it must be trained again. Ratios get an offset of a
few per cent of the capture's mean, below which a pixel is as good as black.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]

LUMA = np.array([0.298936, 0.587043, 0.114021], dtype=np.float32)
#: Entries of a symmetric 3 × 3 matrix.
PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
#: Darker than this share of a pixel's maximum counts as shadow, in the fit of normals and in that of lights.
SHADOW, SHADOW_OF_LIGHTS = 0.1, 0.08
#: Misfits, in shares of the usual brightness, at which an entry counts half.
HALF_TRUST, HALF_TRUST_OF_LIGHTS = 0.2, 0.15
ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Frames:
    """Photographs over the capture's mean: colors (d, h, w, 3), gray (d, h, w), the mask (h, w) as 0 and 1."""

    colors: Float32
    gray: Float32
    cover: Float32


@dataclass(frozen=True, eq=False)
class Matte:
    """A matte fit: unit normals (h, w, 3), albedo (h, w) and relative misfit (h, w)."""

    normals: Float32
    albedo: Float32
    misfit: Float32


def frames_of(images: Float32, mask: NDArray[np.bool_]) -> Frames:
    """Photographs (d, h, w, 3) that are zero outside the mask, divided by their mean inside."""
    gray = images @ LUMA
    mean = float(gray.sum(dtype=np.float64)) / max(int(np.count_nonzero(mask)) * len(images), 1)
    scale = np.float32(1 / max(mean, 1e-8))
    return Frames(images * scale, gray * scale, mask.astype(np.float32))


def _quartets(maps: Float32) -> Float32:
    """Averages of 2 × 2 pixels of (..., h, w)."""
    return np.asarray(
        (maps[..., ::2, ::2] + maps[..., 1::2, ::2] + maps[..., ::2, 1::2] + maps[..., 1::2, 1::2]) * 0.25,
        dtype=np.float32,
    )


def weighted_half(maps: Float32, cover: Float32) -> Float32:
    """Maps (..., h, w), zero outside, at half the size: averages over the mask's part of each cell."""
    return np.asarray(_quartets(maps) / np.maximum(_quartets(cover), 0.05), dtype=np.float32)


def half_frames(frames: Frames) -> Frames:
    """The same at half the size."""
    colors = weighted_half(np.moveaxis(frames.colors, -1, 1), frames.cover)
    gray = weighted_half(frames.gray, frames.cover)
    return Frames(np.moveaxis(colors, 1, -1), gray, (_quartets(frames.cover) > 0).astype(np.float32))


def first_inputs(frames: Frames) -> Float32:
    """The first look's channels: (d, h, w, 8)."""
    gray = frames.gray
    usual, top = gray.mean(axis=0), gray.max(axis=0)
    ratio = gray / (usual + 0.05)
    maps = np.empty((*gray.shape, 8), dtype=np.float32)
    maps[..., :3] = np.log1p(2 * frames.colors)
    maps[..., 3], maps[..., 4] = np.log1p(2 * usual), np.log1p(2 * top)
    maps[..., 5], maps[..., 6] = ratio / (ratio + 1), gray / (top + 0.05)
    maps[..., 7] = frames.cover
    return maps


def matte_normals(gray: Float32, lights: Float32, strengths: Float32) -> Matte:
    """A robust matte fit of photographs (d, h, w) to lights (d, 3) of strengths (d,)."""
    shape = gray.shape[1:]
    y = gray.reshape(len(gray), -1) / strengths[:, None]
    usual = y.mean(axis=0) + np.float32(1e-4)
    lit = (y > SHADOW * y.max(axis=0)).astype(np.float32) + np.float32(1e-3)
    outer = np.stack([lights[:, i] * lights[:, j] for i, j in PAIRS])
    weight = lit / (np.float32(0.3) + y / usual)
    surface, miss = np.zeros((3, y.shape[1]), dtype=np.float32), y
    for _ in range(ROUNDS):
        moments = outer @ weight
        moments[:3] += np.float32(1e-3) * weight.sum(axis=0)
        surface = solve3(moments, lights.T @ (weight * y))
        miss = (y - np.maximum(lights @ surface, 0)) / usual
        weight = lit / (1 + (miss / np.float32(HALF_TRUST)) ** 2)
    size = np.maximum(np.linalg.norm(surface, axis=0), np.float32(1e-4))
    misfit = np.sqrt((np.clip(miss, -3, 3) ** 2).mean(axis=0))
    return Matte((surface / size).T.reshape(*shape, 3), size.reshape(shape), misfit.reshape(shape))


def solve3(moments: Float32, right: Float32) -> Float32:
    """Solve symmetric 3 × 3 systems: six entries (6, P) as in ``PAIRS`` and right-hand sides (3, P)."""
    a, b, c, d, e, f = moments
    p, q, r = b * c - f * f, e * f - d * c, d * f - b * e
    s, t, w = a * c - e * e, d * e - a * f, a * b - d * d
    det = np.maximum(a * p + d * q + e * r, np.float32(1e-12))
    x, y, z = right
    return np.asarray(
        np.stack([p * x + q * y + r * z, q * x + s * y + t * z, r * x + t * y + w * z]) / det,
        dtype=np.float32,
    )


def second_inputs(frames: Frames, lights: Float32, strengths: Float32, matte: Matte) -> Float32:
    """The photographs beside what the matte fit makes of them: channels (d, h, w, 16)."""
    gray = frames.gray
    top = gray.max(axis=0) + np.float32(0.05)
    half = lights + np.array([0, 0, 1], dtype=np.float32)
    half /= np.linalg.norm(half, axis=1, keepdims=True)
    maps = np.empty((*gray.shape, 16), dtype=np.float32)
    maps[..., :8] = first_inputs(frames)
    maps[..., 8:11] = matte.normals
    facing = np.moveaxis(matte.normals @ lights.T, -1, 0)
    model = np.maximum(facing, 0) * matte.albedo * strengths[:, None, None]
    maps[..., 11] = facing
    maps[..., 12] = np.moveaxis(matte.normals @ half.T, -1, 0)
    maps[..., 13] = np.clip(model / top, 0, 2)
    maps[..., 14] = np.clip((gray - model) / top, -1, 1)
    maps[..., 15] = np.minimum(matte.misfit, 2)
    maps[..., 8:] *= frames.cover[..., None]
    return maps


def fit_lights(
    normals: Float32, gray: Float32, cover: Float32, lights: Float32, strengths: Float32
) -> Float32:
    """Each light in closed form from normals (h, w, 3) and photographs (d, h, w): (d, 5).

    Albedo and lights take turns. Direction (3), log strength with mean 0, and relative misfit.
    """
    n, y, inside = normals.reshape(-1, 3).T, gray.reshape(len(gray), -1), cover.reshape(-1)
    light = lights * strengths[:, None]
    outer = np.stack([n[i] * n[j] for i, j in PAIRS])
    top = y.max(axis=0) + np.float32(0.02)
    miss = np.zeros_like(y)
    for _ in range(ROUNDS):
        shade = np.maximum(light @ n, 0)
        lit = inside * (shade > 0.1 * strengths[:, None]) * (y > SHADOW_OF_LIGHTS * top)
        trust = lit / (1 + (miss / np.float32(HALF_TRUST_OF_LIGHTS)) ** 2)
        albedo = (trust * shade * y).sum(axis=0) / ((trust * shade**2).sum(axis=0) + np.float32(1e-3))
        weight = trust / (albedo**2 + np.float32(1e-2))
        moments = outer @ (weight * albedo**2).T
        moments[:3] += np.float32(1e-3) * moments[:3].sum(axis=0) + np.float32(1e-4)
        light = solve3(moments, n @ (weight * albedo * y).T).T
        miss = (y - albedo * np.maximum(light @ n, 0)) / top
    size = np.maximum(np.linalg.norm(light, axis=1), np.float32(1e-3))
    logs = np.log(size)
    left = np.sqrt((inside * np.clip(miss, -2, 2) ** 2).sum(axis=1) / max(float(inside.sum()), 1.0))
    logs = np.clip(logs - logs.mean(), -2, 2)
    return np.concatenate([light / size[:, None], logs[:, None], left[:, None]], axis=1).astype(np.float32)
