"""How the pixels of a stack differ from the ground: whatever reaches the border of the frame.

The ground is a plane. Whatever its texture, its brightness follows the same pattern from light to light, except in the
object's shadow, where it is much darker. The best explanation of a pixel as ground is therefore the brightness that most
photographs agree on once the pattern is divided out, with none brighter. Four clues separate an object from its ground: this
brightness; how far the photographs that are not in shadow differ from it; the color in those that agree; and the edges that
stay in place under every light.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import GRAY_WEIGHTS, BoolArray, Float32, FloatArray
from photostereo.runtime.loops import njit

#: Photographs are reduced to at most this many pixels.
MOST_PIXELS = 250_000
#: At most this many photographs are used.
MOST_FRAMES = 32
#: Share of the brightest below which brightness is meaningless.
DARK = 0.01
#: The same for color.
DARK_COLOR = 0.03
#: The same for agreement with the ground.
DARK_PATTERN = 0.05
#: Deviations from the ground's pattern below this (natural logarithm) are noise, or a fall-off that the border does not
#: show. On 112 rendered tables 0.08 and 0.25 change the mean overlap by -0.0015 and 0.0002.
SLIGHT = 0.15
#: Quantile over the photographs at which a pixel is lit and shows no highlight. On the ground beside an object, up to half
#: of the photographs are in its shadow. On seven rendered tables 0.65 and 0.85 change the mean overlap by -0.002 and -0.008,
#: 0.5 by -0.05.
LIT = 0.75
#: Brightness logarithms that differ by more are hardly alike. On 112 rendered tables 0.05 and 0.12 change the mean overlap
#: by 0.0002 at most.
ALIKE = 0.08
#: A ground below this share of its brightness is in shadow (0.35 and 0.65: -0.0012 and -0.0002).
SHADOW = 0.5
#: Number of photographs that a brighter one outweighs (1 and 4: -0.0002 and 0).
BRIGHTER = 2.0
#: Width of the border, as a share of the shorter side.
BORDER = 0.03


@dataclass(frozen=True, eq=False)
class Clues:
    """Clues for each pixel of a shrunk stack."""

    level: Float32  #: (h, w) logarithm of the brightness if lit like the ground
    #: (h, w) logarithm of the deviation from the ground's pattern over the photographs
    strangeness: Float32
    color: Float32 | None  #: (h, w, 2) logarithms of red and blue against green, or None in gray
    edges: Float32  #: (h, w) strength of edges present under most lights
    light: Float32  #: (h, w) mean brightness
    border: BoolArray  #: (h, w) the border of the frame


def shrunk(
    frames: Iterable[NDArray[Any]], most: int = MOST_PIXELS, control: Control = SILENT
) -> tuple[Float32, tuple[int, ...]]:
    """Shrink the photographs (d, h, w) or (d, h, w, 3) to at most ``most`` pixels each; also return their full size."""
    small = []
    for frame in frames:
        control.check()
        height, width = frame.shape[:2]
        factor = min(1.0, (most / (height * width)) ** 0.5)
        image = np.asarray(frame, np.float32)
        if factor < 1:
            size = (max(1, round(width * factor)), max(1, round(height * factor)))
            image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
        small.append(image)
    return np.stack(small), (height, width)


def clues(stack: Float32, out: BoolArray) -> Clues | None:
    """Compute the clues from the reduced photographs (d, h, w) or (d, h, w, 3); None if all are black.

    ``out`` (h, w) is known to be neither object nor ground, so it does not count as border.
    """
    top = float(
        np.percentile(stack[..., ::2, ::2] if stack.ndim == 3 else stack[:, ::2, ::2], 99.5)
    )
    if top <= 0:
        return None
    stack = np.maximum(stack / np.float32(top), 0)
    colored = stack if stack.ndim == 4 else None
    if colored is not None:
        stack = stack @ np.asarray(GRAY_WEIGHTS, np.float32)
    width = max(2, round(BORDER * min(out.shape)))
    border = np.ones(out.shape, dtype=bool)
    border[width:-width, width:-width] = False
    if (border & ~out).any():
        border &= ~out
    values = _without_pattern(stack, border)
    weights, apart = (
        part.reshape(-1, *out.shape) for part in lit_as_ground(values.reshape(len(values), -1))
    )
    weights /= weights.sum(axis=0)
    level = np.log((weights * stack).sum(axis=0) + np.float32(DARK))
    color = None if colored is None else _color(np.einsum("dhw,dhwc->hwc", weights, colored))
    return Clues(
        level=level,
        strangeness=np.log(apart[0] + np.float32(SLIGHT)),
        color=color,
        edges=_edges(stack, color),
        light=stack.mean(axis=0),
        border=border,
    )


def _color(lit: Float32) -> Float32:
    red, green, blue = (np.log(lit[..., channel] + np.float32(DARK_COLOR)) for channel in range(3))
    ratios = np.stack([red - green, blue - green], axis=-1)
    return np.asarray(cv2.GaussianBlur(ratios, (0, 0), 0.7), np.float32)


def _edges(stack: Float32, color: Float32 | None) -> Float32:
    def steepness(image: Float32) -> Float32:
        across, down = (cv2.Scharr(image, cv2.CV_32F, *axis) for axis in ((1, 0), (0, 1)))
        return np.asarray((across**2 + down**2) / 1024, np.float32)

    each = np.stack([steepness(np.log(image + np.float32(DARK))) for image in stack])
    squares = np.quantile(each, LIT, axis=0, method="nearest")
    if color is not None:
        squares = squares + sum(
            steepness(np.ascontiguousarray(color[..., part])) for part in range(2)
        )
    return np.asarray(np.sqrt(squares), np.float32)


def _without_pattern(stack: Float32, border: BoolArray) -> Float32:
    """Logarithms of the brightness, divided by the ground's brightness under each light."""
    dark = np.float32(DARK_PATTERN)
    lit = np.quantile(stack, LIT, axis=0, method="nearest")
    values = np.log(stack + dark)
    down, right = np.mgrid[-1 : 1 : stack.shape[1] * 1j, -1 : 1 : stack.shape[2] * 1j]
    # Lights fall off over the frame: the pattern of the ground is quadratic in position.
    terms = np.stack([np.ones_like(right), right, down, right**2, right * down, down**2], axis=-1)
    beside = values[:, border] - np.log(lit[border] + dark)
    share = lit[border] / (lit[border] + dark)
    coefficients = _robust_fit(terms[border], beside.T, np.clip(share, 0.02, 1))
    terms = terms.astype(np.float32)
    for image, row in zip(values, coefficients.T.astype(np.float32), strict=True):
        image -= terms @ row
    return np.asarray(values)


@njit(cache=True)  # type: ignore[untyped-decorator]
def lit_as_ground(values: Float32) -> tuple[Float32, Float32]:
    """Treat each pixel (d, n) as ground: return the weight of each photograph as one that shows it lit (d, n), and how far
    the photographs that do not show it in shadow differ from those (n,)."""
    count, pixels = values.shape
    weights = np.empty_like(values)
    apart = np.empty(pixels, values.dtype)
    for i in range(pixels):
        most = -np.inf
        level = values[0, i]
        for j in range(count):
            support = 0.0
            for k in range(count):
                u = (values[k, i] - values[j, i]) / ALIKE
                support += -BRIGHTER if u > 2 else 1 / (1 + u * u) ** 2
            if support > most:
                most = support
                level = values[j, i]
        total = 0.0
        seen = 0
        least = min(
            np.log(DARK_PATTERN + SHADOW * max(np.exp(level) - DARK_PATTERN, 0.0)) - level, 0.0
        )
        for k in range(count):
            u = values[k, i] - level
            weights[k, i] = 1 / (1 + (u / ALIKE) ** 2) ** 2
            if u >= least:
                total += abs(u)
                seen += 1
        apart[i] = total / seen
    return weights, apart


def _robust_fit(terms: FloatArray, values: FloatArray, weights: FloatArray) -> FloatArray:
    """Coefficients of the terms (n, m) that fit most rows of the values (n, d), by reweighting."""
    step = max(1, len(terms) // 4000)
    terms, values, weights = (part[::step].astype(np.float64) for part in (terms, values, weights))
    trust = np.repeat(weights[:, None], values.shape[1], axis=1)
    for _ in range(8):
        moment = np.einsum("nd,nm,nk->dmk", trust, terms, terms, optimize=True)
        moment += 1e-6 * np.trace(moment, axis1=1, axis2=2)[:, None, None] * np.eye(terms.shape[1])
        right = np.einsum("nd,nm->dm", trust * values, terms)[..., None]
        coefficients = np.linalg.solve(moment, right)[..., 0].T
        miss = np.abs(values - terms @ coefficients)
        trust = weights[:, None] / (1 + (miss / (2 * np.median(miss, axis=0) + 1e-6)) ** 2)
    return np.asarray(coefficients)
