"""Color scales for maps: perceptually uniform, readable on light and dark pages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import FloatArray, linear_from_srgb, srgb_from_linear

#: Anchors from low to high, interpolated linearly in OKLab, where equal distances look equal.
SCALES: dict[str, tuple[str, ...]] = {
    "ember": ("#15132b", "#4b1d6b", "#96286f", "#d9485a", "#f58b4c", "#fbd46d", "#fdf8d8"),
    "depth": ("#14213d", "#1f4e79", "#2a8a94", "#6fbf8f", "#cfe3a0", "#fbf6e0"),
    "sky": ("#000000", "#f6f3ee"),
    "weight": ("#7a1f2b", "#c9543f", "#e9b17b", "#efe9dd", "#8fc0c0", "#2f7f8f", "#0f4a5e"),
}

_LMS_FROM_RGB = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_LAB_FROM_ROOTS = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


@cache
def color_table(scale: str) -> NDArray[np.uint8]:
    """256 sRGB colors of a named scale.

    OKLab is B. Ottosson's color space (https://bottosson.github.io/posts/oklab/, public domain).
    """
    anchors = np.array([[int(code[i : i + 2], 16) for i in (1, 3, 5)] for code in SCALES[scale]]) / 255.0
    roots = np.cbrt(linear_from_srgb(anchors) @ _LMS_FROM_RGB.T)
    lab = roots @ _LAB_FROM_ROOTS.T
    # Space the anchors by their distance in OKLab so that the scale is uniform.
    distance = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(lab, axis=0), axis=1))])
    wanted = np.linspace(0, distance[-1], 256)
    even = np.stack([np.interp(wanted, distance, lab[:, axis]) for axis in range(3)], axis=1)
    linear = (even @ np.linalg.inv(_LAB_FROM_ROOTS).T) ** 3 @ np.linalg.inv(_LMS_FROM_RGB).T
    table = np.rint(255 * srgb_from_linear(linear)).astype(np.uint8)
    table.flags.writeable = False
    return table


@dataclass(frozen=True)
class Painting:
    """An indexed picture: color indices (h, w) and the colors (n, 4) as RGBA."""

    index: NDArray[np.uint8]
    colors: NDArray[np.uint8]

    @property
    def rgba(self) -> NDArray[np.uint8]:
        """The picture itself, (h, w, 4)."""
        return self.colors[self.index]


def paint(values: FloatArray, low: float, high: float, scale: str, *, levels: int = 255) -> Painting:
    """Color a map with a scale; NaN is transparent."""
    known = np.isfinite(values)
    span = high - low if high > low else 1.0
    share = np.clip(np.where(known, (values - low) / span, 0), 0, 1)
    chosen = np.rint(np.linspace(0, 255, levels)).astype(int)
    colors = np.zeros((levels + 1, 4), dtype=np.uint8)  # the first one is transparent
    colors[1:, :3] = color_table(scale)[chosen]
    colors[1:, 3] = 255
    index = np.where(known, 1 + np.rint(share * (levels - 1)), 0).astype(np.uint8)
    return Painting(index, colors)


def gradient_stops(scale: str, count: int = 13) -> list[tuple[float, str]]:
    """Offsets in [0, 1] and hexadecimal colors for a vector gradient."""
    table = color_table(scale)
    positions = np.linspace(0, 1, count)
    return [(float(p), "#" + bytes(table[round(p * 255)]).hex()) for p in positions]
