"""``--mask auto`` against the masks that people painted: the shared objects before their black ground, and pasted onto
textured ground that the lamps light unevenly, with noise. Intersection over union; beside it mask "bright".

Run: python -m benchmarks.masks       Needs the shared captures (PHOTOSTEREO_DATA or ../shared/data).
"""

from __future__ import annotations

import cv2
import numpy as np

import photostereo as ps
from benchmarks.captures import ABSENT, diligent_folder
from photostereo.capture.auto_mask import mask_from_stack
from photostereo.capture.masks import mask_from_brightness

#: Brightness of the ground's texture next to the object's brightest.
GROUNDS = {"its own": 0.0, "dark cloth": 0.15, "bright table": 0.5}


def on_ground(images: np.ndarray, mask: np.ndarray, level: float, rng: np.random.Generator) -> np.ndarray:
    """The object on a flat textured ground under lamps of uneven strength and fall-off."""
    if level == 0:
        return images
    top, frame = np.percentile(images[:, mask], 99), mask.shape
    texture = cv2.GaussianBlur(rng.random(frame).astype(np.float32), (0, 0), 3)
    texture = level * top * (0.3 + 0.7 * (texture - texture.min()) / np.ptp(texture))
    down, right = np.mgrid[-1 : 1 : frame[0] * 1j, -1 : 1 : frame[1] * 1j]
    ground = []
    for _ in images:
        x, y = rng.uniform(-0.15, 0.15, 2)
        lit = texture * rng.uniform(0.6, 1) * (1 + x * right + y * down)
        ground.append(np.maximum(lit + rng.normal(0, 0.004 * top, frame), 0))
    return np.where(mask, images, np.stack(ground)).astype(np.float32)


def overlap(found: np.ndarray, mask: np.ndarray) -> float:
    return float((found & mask).sum() / (found | mask).sum())


def main() -> None:
    folder = diligent_folder()
    if folder is None:
        print(f"Skipped, {ABSENT}.")
        return
    uw = folder.parent / "uw"
    captures = [
        *(
            ps.load(folder / "pmsData" / f"{name}PNG")
            for name in ("ball", "bear", "cat", "cow", "pot2", "reading")
        ),
        *(ps.load(uw / name, lights=uw / "lights.txt") for name in ("cat", "gray", "chrome")),
    ]
    print("| object | " + " | ".join(f"{name}: auto | bright" for name in GROUNDS) + " |")
    print("|---|" + "---|" * (2 * len(GROUNDS)))
    for capture in captures:
        row = []
        for level in GROUNDS.values():
            images = on_ground(capture.images, capture.mask, level, np.random.default_rng(1))
            auto = mask_from_stack(lambda images=images: images)
            row += [overlap(auto, capture.mask), overlap(mask_from_brightness(images), capture.mask)]
        print(f"| {capture.name} | " + " | ".join(f"{value:.3f}" for value in row) + " |", flush=True)


if __name__ == "__main__":
    main()
