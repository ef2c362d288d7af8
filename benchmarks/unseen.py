"""Captures not used to set thresholds: random shapes, materials, lights and cameras, drawn from a seed.

Blobs (a sphere with bumps of several sizes), loops and terrains; matte, rough or glossy, with painted patterns; lights
at random, on domes, in two rings or on one side; 8 or 12 bits, JPEG, noise; with a mask or the full frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np

from photostereo.core.conventions import linear_from_srgb, srgb_from_linear

SIZE = 140


@dataclass(frozen=True, eq=False)
class Unseen:
    """A capture as plain arrays; ``whole`` if its mask is the full frame."""

    name: str
    images: np.ndarray
    lights: np.ndarray
    mask: np.ndarray
    whole: bool

    def gray(self) -> Unseen:
        """The capture itself: it is gray already."""
        return self


def unseen(seeds: range) -> Iterator[Unseen]:
    """A capture for each seed."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        kind = ("blob", "loop", "terrain")[seed % 3]
        normals, mask = {"blob": _blob, "loop": _loop, "terrain": _terrain}[kind](rng)
        lights = _lights(rng)
        images, material = _photographs(normals, mask, lights, rng)
        camera = ("8 bits", "12 bits", "JPEG")[int(rng.integers(3))]
        images = _through(images, camera, rng)
        whole = bool(rng.random() < 0.25) and kind != "loop"
        mask = np.ones_like(mask) if whole else mask
        name = f"{seed}: {kind}, {material}, {len(lights)} lights, {camera}{', no mask' if whole else ''}"
        yield Unseen(name, images, lights, mask, whole)


def _noise(rng: np.random.Generator, size: float) -> np.ndarray:
    smooth = cv2.GaussianBlur(
        rng.normal(size=(SIZE, SIZE)), (0, 0), size, borderType=cv2.BORDER_REFLECT
    )
    return smooth / smooth.std()


def _from_height(height: np.ndarray) -> np.ndarray:
    down, right = np.gradient(height)
    normals = np.stack([-right, down, np.ones_like(height)], axis=-1)
    return normals / np.linalg.norm(normals, axis=-1, keepdims=True)


def _blob(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    down, right = np.mgrid[-1 : 1 : SIZE * 1j, -1 : 1 : SIZE * 1j]
    angle = np.arctan2(-down, right)
    outline = 0.72 + sum(
        rng.normal(0, 0.05) * np.cos(k * angle + rng.uniform(0, 6)) for k in range(1, 5)
    )
    share = np.hypot(right, down) / outline
    mask = share < 0.985
    height = 0.5 * SIZE * rng.uniform(0.4, 0.75) * np.sqrt(np.maximum(1 - share**2, 0))
    height += rng.uniform(0.5, 2.5) * _noise(rng, 9) * np.clip(4 * (1 - share), 0, 1)
    return _from_height(height), mask


def _loop(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    down, right = np.mgrid[-1 : 1 : SIZE * 1j, -1 : 1 : SIZE * 1j]
    across = (np.hypot(right, rng.uniform(0.9, 1.3) * down) - 0.55) / rng.uniform(0.2, 0.3)
    mask = np.abs(across) < 0.985
    height = 0.25 * SIZE * rng.uniform(0.4, 0.6) * np.sqrt(np.maximum(1 - across**2, 0))
    height += rng.uniform(0.2, 0.8) * _noise(rng, 6) * np.clip(3 * (1 - np.abs(across)), 0, 1)
    return _from_height(height), mask


def _terrain(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    height = rng.uniform(2, 5) * _noise(rng, 14) + rng.uniform(0.3, 1) * _noise(rng, 5)
    mask = np.zeros((SIZE, SIZE), dtype=bool)
    mask[12:-12, 8:-8] = True
    return _from_height(height), mask


def _lights(rng: np.random.Generator) -> np.ndarray:
    count = int(rng.integers(8, 33))
    layout = rng.integers(4)
    tilt = np.radians(rng.uniform(15, 65, count))
    turn = rng.uniform(0, 2 * np.pi, count)
    if layout == 1:  # two rings
        tilt = np.radians(np.where(np.arange(count) % 2, rng.uniform(20, 35), rng.uniform(45, 60)))
        turn = np.linspace(0, 2 * np.pi, count, endpoint=False) + rng.uniform(0, 6)
    elif layout == 2:  # from two thirds of the sky
        turn = rng.uniform(0, 4 * np.pi / 3, count) + rng.uniform(0, 6)
    elif layout == 3:  # a spiral
        place = (np.arange(count) + 0.5) / count
        tilt, turn = np.radians(10 + 55 * np.sqrt(place)), 2.4 * np.arange(count)
    return np.stack(
        [np.sin(tilt) * np.cos(turn), np.sin(tilt) * np.sin(turn), np.cos(tilt)], axis=1
    )


def _photographs(
    normals: np.ndarray, mask: np.ndarray, lights: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, str]:
    albedo = np.clip(
        0.55 + rng.uniform(0, 0.2) * np.sign(_noise(rng, 8)) + 0.03 * _noise(rng, 2), 0.08, 1
    )
    shading = np.maximum(np.einsum("hwc,dc->dhw", normals, lights), 0)
    material = ("matte", "rough", "glossy")[int(rng.integers(3))]
    if material == "rough":  # flatter than Lambert's law, as clay and plaster are
        shading = shading ** rng.uniform(0.75, 0.95)
    images = albedo * shading
    if material == "glossy":
        half = lights + np.array([0.0, 0.0, 1.0])
        half /= np.linalg.norm(half, axis=1, keepdims=True)
        toward = np.maximum(np.einsum("hwc,dc->dhw", normals, half), 0)
        images = images + rng.uniform(0.2, 0.8) * toward ** rng.uniform(15, 80) * (shading > 0)
    ground = rng.uniform(0, 0.02)
    return np.where(mask, images, ground * lights[:, 2, None, None]), material


def _through(images: np.ndarray, camera: str, rng: np.random.Generator) -> np.ndarray:
    """Photographs after the camera, converted back to linear values."""
    images = np.clip(images / np.percentile(images, rng.uniform(99, 99.99)), 0, 1)
    images = np.clip(images + rng.normal(0, 1, images.shape) * np.sqrt(1e-6 + 1e-5 * images), 0, 1)
    if camera != "JPEG":
        top = 255 if camera == "8 bits" else 4095
        return (np.rint(top * images) / top).astype(np.float32)
    quality = int(rng.integers(75, 98))
    shown = []
    for image in images:
        coded = np.rint(255 * srgb_from_linear(image.astype(np.float32))).astype(np.uint8)
        packed = cv2.imencode(".jpg", coded, [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
        shown.append(linear_from_srgb(cv2.imdecode(packed, cv2.IMREAD_GRAYSCALE) / np.float32(255)))
    return np.stack(shown).astype(np.float32)
