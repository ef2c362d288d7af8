"""``--mask auto`` against hand-painted masks: the shared objects on their black background, and pasted onto textured ground
with uneven light and noise. Prints intersection over union; also without color, and for the mask "bright".

Run: python -m benchmarks.masks       Needs the shared captures (PHOTOSTEREO_DATA or ../shared/data).
"""

from __future__ import annotations

import cv2
import numpy as np

import photostereo as ps
from benchmarks.captures import ABSENT, diligent_folder
from photostereo.core.conventions import gray_from_rgb
from photostereo.masks.automatic import find_object
from photostereo.masks.ground import MOST_FRAMES
from photostereo.masks.reading import mask_from_brightness

#: Brightness of the ground's texture next to the object's brightest.
GROUNDS = {"its own": 0.0, "dark cloth": 0.15, "bright table": 0.5}


def on_ground(
    images: np.ndarray, mask: np.ndarray, level: float, rng: np.random.Generator
) -> np.ndarray:
    """The object on flat, textured ground of varying color, under lights of uneven strength and fall-off."""
    if level == 0:
        return images
    top, frame = np.percentile(images[:, mask], 99), mask.shape

    def texture(size: float) -> np.ndarray:
        smooth = cv2.GaussianBlur(rng.random(frame).astype(np.float32), (0, 0), size)
        return (smooth - smooth.min()) / np.ptp(smooth)

    albedo = level * top * (0.3 + 0.7 * texture(3))
    down, right = np.mgrid[-1 : 1 : frame[0] * 1j, -1 : 1 : frame[1] * 1j]
    if images.ndim == 4:
        albedo = albedo[..., None] * np.stack([0.8 + 0.4 * texture(6) for _ in range(3)], axis=-1)
        down, right, mask = down[..., None], right[..., None], mask[..., None]
    ground = []
    for _ in images:
        x, y = rng.uniform(-0.15, 0.15, 2)
        lit = albedo * rng.uniform(0.6, 1) * (1 + x * right + y * down)
        ground.append(np.maximum(lit + rng.normal(0, 0.004 * top, lit.shape), 0))
    return np.where(mask, images, np.stack(ground)).astype(np.float32)


def overlap(found: np.ndarray, mask: np.ndarray) -> float:
    return float((found & mask).sum() / (found | mask).sum())


def main() -> None:
    folder = diligent_folder()
    if folder is None:
        print(f"Skipped, {ABSENT}.")
        return
    uw = folder.parent / "uw"
    paths = [
        folder / "pmsData" / f"{name}PNG"
        for name in ("ball", "bear", "cat", "cow", "pot2", "reading")
    ]
    paths += [uw / name for name in ("cat", "gray", "chrome")]
    print("| object | " + " | ".join(f"{name}: auto | in gray | bright" for name in GROUNDS) + " |")
    print("|---|" + "---|" * (3 * len(GROUNDS)))
    for path in paths:
        lights = uw / "lights.txt" if path.parent == uw else None
        capture = ps.load(path, color=True, lights=lights)
        row = []
        for level in GROUNDS.values():
            images = on_ground(capture.images, capture.mask, level, np.random.default_rng(1))
            some = images[np.sort(np.random.default_rng(0).permutation(len(images))[:MOST_FRAMES])]
            gray = [gray_from_rgb(image) for image in some]
            found = [find_object(some).mask, find_object(gray).mask, mask_from_brightness(images)]
            row += [overlap(mask, capture.mask) for mask in found]
        print(
            f"| {capture.name} | " + " | ".join(f"{value:.3f}" for value in row) + " |", flush=True
        )


if __name__ == "__main__":
    main()
