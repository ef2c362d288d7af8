"""Find outlines that stay in place: edges on which the photographs of a stack agree.

The silhouette of a ball is in the same place in every photograph; highlights, shadows and reflections move.
So the outlines are taken from all photographs together, not from one. Each photograph votes with its gradient
g = ∇I / (contrast around the pixel), so that a dim silhouette counts as much as a bright one, and a glaring reflection
no more, as a tensor g gᵀ / |g|, which encodes the direction of an edge but not which side is bright:

    J = mean_i  g_i g_iᵀ / |g_i|,        strength = λ₁(J) - λ₂(J)

Edges in the same direction add up; edges in different directions (a moving highlight, noise) cancel in the
difference of the eigenvalues. Contrast is measured in linear intensity: the middle of a blurred silhouette is where
half of the light is, and a logarithm would move it toward the dark side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import FloatArray
from photostereo.runtime.order import MAD_TO_SIGMA

#: A change of brightness by this share is not an edge.
_FLAT = 0.04
#: The brightest value divided by this is black.
_DARK = 4095.0
_SMOOTHING = 1.0
_AROUND = 7
#: Side in pixels of the blocks for the typical strength.
_BLOCK = 24
#: Noise is measured in this share of the frame, the darkest part: bright places have more, but also more contrast.
_DARKEST = 0.2


@dataclass(frozen=True, eq=False)
class Outlines:
    """Edges that the photographs share."""

    #: (H, W) float32, non-negative; about 0.3 for a sharp edge in every photograph
    strength: NDArray[np.float32]
    #: cos2, sin2: (H, W) float32, strength times cosine and sine of twice the angle of the edge's normal (x
    #: to the right, y down; its sign has no meaning)
    cos2: NDArray[np.float32]
    sin2: NDArray[np.float32]
    #: (H, W) float32, the typical strength around each pixel, due to chance and the pattern of the ground
    noise: NDArray[np.float32]

    @property
    def frame(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return int(self.strength.shape[0]), int(self.strength.shape[1])

    @cached_property
    def normals(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return unit vectors across the edges: x to the right, y down."""
        angle = 0.5 * np.arctan2(self.sin2, self.cos2)
        return np.cos(angle), np.sin(angle)

    def across_rays(self, x: FloatArray, y: FloatArray, cx: float, cy: float) -> NDArray[np.float32]:
        """Interpolate the strength, at points (x, y), of edges that lie across the ray from (cx, cy)."""
        maps = x.astype(np.float32), y.astype(np.float32)
        cos2, sin2 = (
            cv2.remap(part, *maps, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT)
            for part in (self.cos2, self.sin2)
        )
        dx, dy = x - cx, y - cy
        square = np.maximum(dx * dx + dy * dy, 1e-12)
        agreement = (cos2 * (dx * dx - dy * dy) + sin2 * (2 * dx * dy)) / square
        return np.asarray(np.maximum(agreement, 0.0), dtype=np.float32)


def shared_outlines(images: FloatArray, *, black: float, control: Control = SILENT) -> Outlines:
    """Find edges that the photographs (d, H, W) of a stack share; differences up to ``black`` do not count."""
    difference, cross = (np.zeros(images.shape[1:3], np.float32) for _ in range(2))
    window = np.ones((_AROUND, _AROUND), np.uint8)
    for image in images:
        control.check()
        value = cv2.GaussianBlur(np.asarray(image, np.float32), (0, 0), _SMOOTHING)
        gx = cv2.Sobel(value, cv2.CV_32F, 1, 0, scale=0.125, borderType=cv2.BORDER_REPLICATE)
        gy = cv2.Sobel(value, cv2.CV_32F, 0, 1, scale=0.125, borderType=cv2.BORDER_REPLICATE)
        high = cv2.dilate(value, window)
        contrast = high - cv2.erode(value, window)
        # |g|² / |g| of the normalized gradient, as sums of its doubled angle
        weight = cv2.magnitude(gx, gy)
        weight *= contrast + (np.float32(black) + np.float32(_FLAT) * high)
        np.maximum(weight, 1e-20, out=weight)
        difference += (gx * gx - gy * gy) / weight
        cross += 2 * gx * gy / weight
    difference /= len(images)
    cross /= len(images)
    strength = cv2.magnitude(difference, cross)
    return Outlines(strength, difference, cross, noise=_usual_around(strength))


def _usual_around(strength: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the median strength around each pixel: black cloth is smooth, and an object next to it full of detail."""
    height, width = strength.shape
    rows, cols = max(height // _BLOCK, 1), max(width // _BLOCK, 1)
    blocks = [
        [np.median(part) for part in np.array_split(band, cols, axis=1)]
        for band in np.array_split(strength, rows, axis=0)
    ]
    # The next block may be much smoother or rougher; a ball's edge lies on both.
    calm = cv2.blur(np.array(blocks, np.float32), (3, 3), borderType=cv2.BORDER_REPLICATE)
    return np.asarray(cv2.resize(calm, (width, height), interpolation=cv2.INTER_LINEAR))


def black_level(images: FloatArray) -> float:
    """Return the insignificant difference of brightness in the dark: four deviations of the noise, or two file levels.

    In brighter places noise is stronger; there a difference is compared with the brightness itself.
    """
    sample = np.asarray(images[:: max(1, len(images) // 8)], np.float32)
    # High-pass in both directions: flat and smoothly shaded places leave nothing but noise.
    rough = sample[:, 1:, 1:] - sample[:, 1:, :-1] - sample[:, :-1, 1:] + sample[:, :-1, :-1]
    rough, around = np.abs(rough[:, ::3, ::3]), cv2.blur(sample.mean(axis=0), (5, 5))[1::3, 1::3]
    dark = around <= np.quantile(around, _DARKEST)
    noise = float(np.median(rough[:, dark])) * MAD_TO_SIGMA / 2.0
    thin = sample[:, ::4, ::4]
    levels = np.unique(thin)[:32]
    level = float(np.median(np.diff(levels))) if len(levels) > 1 else 0.0
    return max(4.0 * noise, 2.0 * level, float(thin.max()) / _DARK, 1e-9)
