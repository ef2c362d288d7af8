"""Color scales for maps: perceptually uniform, readable on light and dark pages.

``static/colors.json`` holds the 256 sRGB colors of each scale, made by ``tests/report/color_scales.py``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import FloatArray


@cache
def color_scales() -> dict[str, str]:
    """The colors of every scale, in hexadecimal digits."""
    text = (files("photostereo.report") / "static" / "colors.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def color_table(scale: str) -> NDArray[np.uint8]:
    """256 sRGB colors of a named scale."""
    return np.frombuffer(bytes.fromhex(color_scales()[scale]), np.uint8).reshape(256, 3)


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
    return [(float(p), "#" + table[round(p * 255)].tobytes().hex()) for p in positions]
