"""The object found in a stack of photographs, before black cloth or on a table.

The ground is what reaches the border of the frame. Being flat, all of it follows the lamps alike: its photographs are
one vector over the lights times how bright it is, whatever its texture. The object turns its sides to other lamps. So
three things tell them apart: how bright a pixel is, how much of that does not follow the ground's lights, and its
brightest moment. What stands out first is refined by a graph cut, which follows edges and learns both distributions.

References
----------
C. Rother, V. Kolmogorov, A. Blake, "GrabCut", 2004. doi:10.1145/1015706.1015720
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.conventions import BoolArray, FloatArray, gray_from_rgb

#: The cut is made on at most so many pixels; the outline of larger photographs is interpolated.
CUT_PIXELS = 600_000
#: What is below this share of the brightest is the noise of any ground.
DARK = 0.003
#: Parts smaller than this share of the largest are specks, holes smaller than this share of the object dark spots.
SPECK, SPOT = 0.02, 0.02


def mask_from_stack(frames: Callable[[], Iterable[NDArray[Any]]]) -> BoolArray:
    """The object in photographs, which are gone through twice.

    Parameters
    ----------
    frames : gives the photographs, (H, W) or (H, W, 3), anew at each call

    Returns
    -------
    (H, W) bool; all False where nothing stands out from the border

    Examples
    --------
    >>> shots = np.full((4, 60, 60), 0.3); shots[:, 20:45, 20:40] = np.array([0.1, 0.5, 0.9, 0.2])[:, None, None]
    >>> bool(480 < mask_from_stack(lambda: shots).sum() <= 500)  # rounded corners
    True
    """
    brightness, strange, top = _features(frames)
    scale = float(np.percentile(brightness, 99))
    if scale <= 0:
        return np.zeros(brightness.shape, dtype=bool)
    features = [brightness / scale, strange / scale, top / max(float(np.percentile(top, 99)), 1e-30)]
    height, width = brightness.shape
    shrink = min(1.0, (CUT_PIXELS / (height * width)) ** 0.5)
    if shrink < 1:
        size = (max(1, round(width * shrink)), max(1, round(height * shrink)))
        features = [cv2.resize(feature, size, interpolation=cv2.INTER_AREA) for feature in features]
    found = _whole(_cut(*features))
    if shrink < 1:
        soft = cv2.resize(found.astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR)
        found = soft > 0.5
    return np.asarray(found)


def _border(shape: tuple[int, ...]) -> BoolArray:
    width = max(2, round(0.015 * min(shape)))
    border = np.ones(shape, dtype=bool)
    border[width:-width, width:-width] = False
    return border


def _features(frames: Callable[[], Iterable[NDArray[Any]]]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Of each pixel over the photographs: root mean square, the part that does not follow the ground, and maximum."""
    ground = []
    for image in frames():
        gray = gray_from_rgb(image) if image.ndim == 3 else image
        ground.append(float(np.median(gray[_border(gray.shape)])))
    lamps = np.asarray(ground) / max(float(np.linalg.norm(ground)), 1e-30)
    energy: Any = 0.0
    along: Any = 0.0
    top: Any = 0.0
    for image, lamp in zip(frames(), lamps, strict=True):
        gray = np.asarray(gray_from_rgb(image) if image.ndim == 3 else image, dtype=np.float64)
        energy = energy + gray**2
        along = along + lamp * gray
        top = np.maximum(top, gray)
    count = len(lamps)
    return np.sqrt(energy / count), np.sqrt(np.maximum(energy - along**2, 0) / count), np.asarray(top)


def _cut(brightness: FloatArray, strange: FloatArray, top: FloatArray) -> NDArray[np.uint8]:
    border = _border(brightness.shape)
    follows = max(2 * float(np.percentile(strange[border], 75)), DARK)
    dim = max(2 * float(np.percentile(brightness[border], 90)), DARK)
    stands_out = _without_specks(_opened((strange > follows) | (brightness > dim)))
    if not stands_out.any():
        return np.zeros(brightness.shape, np.uint8)
    picture = np.stack(
        [
            _stretched(np.log(brightness + DARK)),
            _stretched(strange / (brightness + DARK)),
            _stretched(np.log(top + DARK)),
        ],
        axis=-1,
    )
    closed = _closed(stands_out, 11)
    outlines, _ = cv2.findContours(closed, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    filled = cv2.drawContours(np.zeros_like(closed), outlines, -1, 1, thickness=cv2.FILLED)
    seeds = np.where(filled > 0, cv2.GC_PR_FGD, cv2.GC_PR_BGD).astype(np.uint8)
    seeds[border & (stands_out == 0)] = cv2.GC_BGD
    seeds[brightness > 4 * dim] = cv2.GC_FGD
    told_apart = np.isin(seeds, (cv2.GC_FGD, cv2.GC_PR_FGD))
    if told_apart.all() or told_apart.sum() < 20 or (~told_apart).sum() < 20:
        return closed
    cv2.setRNGSeed(0)  # the same answer each time
    models = np.zeros((1, 65)), np.zeros((1, 65))
    cv2.grabCut(cv2.medianBlur(picture, 3), seeds, None, *models, 3, cv2.GC_INIT_WITH_MASK)
    return np.isin(seeds, (cv2.GC_FGD, cv2.GC_PR_FGD)).astype(np.uint8)


def _stretched(feature: FloatArray) -> NDArray[np.uint8]:
    low, high = np.percentile(feature, [0.5, 99.5])
    return np.asarray(255 * np.clip((feature - low) / max(high - low, 1e-9), 0, 1), dtype=np.uint8)


def _opened(mask: BoolArray) -> NDArray[np.uint8]:
    return np.asarray(
        cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8)), dtype=np.uint8
    )


def _closed(mask: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))
    padded = cv2.morphologyEx(np.pad(mask, size), cv2.MORPH_CLOSE, disc)
    return np.ascontiguousarray(padded[size:-size, size:-size], dtype=np.uint8)


def _without_specks(mask: NDArray[np.uint8]) -> NDArray[np.uint8]:
    _, labels, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    areas = stats[:, cv2.CC_STAT_AREA].copy()
    areas[0] = 0
    return np.asarray((areas >= max(SPECK * areas.max(), 1))[labels] & (mask > 0), dtype=np.uint8)


def _whole(mask: NDArray[np.uint8]) -> BoolArray:
    """Without specks, with dark spots filled; holes through which the ground is seen stay."""
    mask = _without_specks(_opened(mask > 0))
    _, labels, stats, _ = cv2.connectedComponentsWithStats(
        np.pad(1 - mask, 1, constant_values=1), connectivity=4
    )
    small = stats[:, cv2.CC_STAT_AREA] < SPOT * mask.sum()
    small[labels[0, 0]] = False
    inner = labels[1:-1, 1:-1]
    return np.asarray((mask > 0) | (small[inner] & (mask == 0)))
