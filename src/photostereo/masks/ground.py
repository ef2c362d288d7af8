"""How the pixels of a stack differ from the ground, which is what reaches the border of the frame.

Four clues separate an object from its ground, each as it is in the better lit photographs, because beside an object its
shadow falls on the ground in up to half of them: how bright a pixel is; how far its brightness does not follow that of the
ground from light to light (a flat ground turns to all lights alike, whatever its texture, while an object turns its sides
to other lights); its color; and the edges that stay where they are under every light.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import GRAY_WEIGHTS, BoolArray, FloatArray

Float32 = NDArray[np.float32]

#: Photographs are reduced to at most this many pixels, and at most this many are used.
MOST_PIXELS, MOST_FRAMES = 250_000, 32
#: Shares of the brightest below which brightness, color and agreement with the ground mean nothing.
DARK, DARK_COLOR, DARK_PATTERN = 0.01, 0.03, 0.05
#: Deviations from the ground's pattern below this (natural logarithm) are noise, or a fall-off that the border does not
#: show. On six rendered tables 0.08 is too little for one, and 0.03 to 0.15 change the others by less than 0.001.
SLIGHT = 0.15
#: Quantile over the photographs at which a pixel is lit and shows no highlight. On the ground beside an object up to half
#: of the photographs are in its shadow. On seven rendered tables 0.65 and 0.85 change the mean overlap by -0.002 and -0.008,
#: 0.5 by -0.05.
LIT = 0.75
#: Quantiles over the photographs between which a pixel is compared with the ground: the lower ones may be in shadow. On
#: five rendered tables 0.5 instead of 0.6 changes the overlap by less than 0.003.
FOLLOWS = (0.6, 0.9)
#: The border is so wide, as a share of the shorter side.
BORDER = 0.03


@dataclass(frozen=True, eq=False)
class Clues:
    """What is known of each pixel of a shrunk stack."""

    level: Float32  #: (h, w) logarithm of the brightness where it is lit
    #: (h, w) logarithm of how far the brightness does not follow the ground's over the photographs
    strangeness: Float32
    color: Float32 | None  #: (h, w, 2) logarithms of red and blue against green, or None in gray
    edges: Float32  #: (h, w) strength of the edges that are there under most lights
    light: Float32  #: (h, w) mean brightness
    border: BoolArray  #: (h, w) the border of the frame


def shrunk(frames: Iterable[NDArray[Any]], *, most: int = MOST_PIXELS) -> Float32:
    """The photographs (d, h, w) or (d, h, w, 3), shrunk to at most ``most`` pixels each."""
    small = []
    for frame in frames:
        height, width = frame.shape[:2]
        factor = min(1.0, (most / (height * width)) ** 0.5)
        image = np.asarray(frame, np.float32)
        if factor < 1:
            size = (max(1, round(width * factor)), max(1, round(height * factor)))
            image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
        small.append(image)
    return np.stack(small)


def clues(stack: Float32, out: BoolArray) -> Clues | None:
    """Clues from the reduced photographs (d, h, w) or (d, h, w, 3); None if all are black.

    ``out`` (h, w) is known not to be object nor ground, so that it does not count as border.
    """
    top = float(np.percentile(stack[..., ::2, ::2] if stack.ndim == 3 else stack[:, ::2, ::2], 99.5))
    if top <= 0:
        return None
    stack = np.maximum(stack / np.float32(top), 0)
    color = None
    if stack.ndim == 4:
        color = _color(_lit(stack))
        stack = stack @ np.asarray(GRAY_WEIGHTS, np.float32)
    bright = _lit(stack)
    level = np.log(bright + np.float32(DARK))
    border = border_of(level.shape)
    if (border & ~out).any():
        border &= ~out
    return Clues(
        level=level,
        strangeness=_strangeness(stack, bright, border),
        color=color,
        edges=_edges(stack, color),
        light=stack.mean(axis=0),
        border=border,
    )


def border_of(shape: tuple[int, ...]) -> BoolArray:
    """The border of a frame, as a mask."""
    width = max(2, round(BORDER * min(shape)))
    border = np.ones(shape, dtype=bool)
    border[width:-width, width:-width] = False
    return border


def level_around(level: Float32, ground: BoolArray, reach: float) -> Float32:
    """Mean of the level of the ground near each pixel; far from any ground, of the nearest."""
    weight = ground.astype(np.float32)
    total, count = np.zeros_like(level), np.zeros_like(level)
    # A kernel with a heavy tail: what is near counts most, but something is always in reach.
    for factor, share in ((1, 1.0), (3, 0.02), (10, 0.001)):
        total += np.float32(share) * _blurred(level * weight, factor * reach)
        count += np.float32(share) * _blurred(weight, factor * reach)
    return np.asarray(total / np.maximum(count, 1e-12), np.float32)


def _lit(stack: Float32) -> Float32:
    place = round(LIT * (len(stack) - 1))
    return np.asarray(np.partition(stack, place, axis=0)[place])


def _color(lit: Float32) -> Float32:
    red, green, blue = (np.log(lit[..., channel] + np.float32(DARK_COLOR)) for channel in range(3))
    return np.asarray(
        cv2.GaussianBlur(np.stack([red - green, blue - green], axis=-1), (0, 0), 0.7), np.float32
    )


def _edges(stack: Float32, color: Float32 | None) -> Float32:
    squares = _lit(np.stack([_steepness(np.log(image + np.float32(DARK))) for image in stack]))
    if color is not None:
        squares = squares + sum(_steepness(np.ascontiguousarray(color[..., part])) for part in range(2))
    return np.asarray(np.sqrt(squares), np.float32)


def _steepness(image: Float32) -> Float32:
    return np.asarray(
        (cv2.Scharr(image, cv2.CV_32F, 1, 0) ** 2 + cv2.Scharr(image, cv2.CV_32F, 0, 1) ** 2) / 1024,
        np.float32,
    )


def _strangeness(stack: Float32, bright: Float32, border: BoolArray) -> Float32:
    """How far a pixel does not follow the ground, in the photographs in which it is brightest beside it."""
    pattern = np.log(stack + np.float32(DARK_PATTERN)) - np.log(bright + np.float32(DARK_PATTERN))
    down, right = np.mgrid[-1 : 1 : stack.shape[1] * 1j, -1 : 1 : stack.shape[2] * 1j]
    # Lights fall off over the frame: the pattern of the ground is a quadratic in the place.
    terms = np.stack([np.ones_like(right), right, down, right**2, right * down, down**2], axis=-1)
    share = bright[border] / (bright[border] + DARK_PATTERN)
    coefficients = _robust_fit(terms[border], pattern[:, border].T, np.clip(share, 0.02, 1))
    terms = terms.astype(np.float32)
    for image, row in zip(pattern, coefficients.T.astype(np.float32), strict=True):
        image -= terms @ row
    low, high = (round(share * (len(pattern) - 1)) for share in FOLLOWS)
    ordered = np.partition(pattern, (low, high), axis=0)
    return np.asarray(np.log(ordered[high] - ordered[low] + np.float32(SLIGHT)))


def _robust_fit(terms: FloatArray, values: FloatArray, weights: FloatArray) -> FloatArray:
    """Coefficients of the terms (n, m) that give most rows of the values (n, d), by reweighting."""
    step = max(1, len(terms) // 4000)
    terms, values, weights = (
        terms[::step],
        values[::step].astype(np.float64),
        weights[::step].astype(np.float64),
    )
    trust = weights
    for _ in range(8):
        weighted = terms * trust[:, None]
        moment = weighted.T @ terms
        moment += 1e-6 * np.trace(moment) * np.eye(len(moment))
        coefficients = np.linalg.solve(moment, weighted.T @ values)
        miss = np.median(np.abs(values - terms @ coefficients), axis=1)
        trust = weights / (1 + (miss / (2 * np.median(miss) + 1e-6)) ** 2)
    return np.asarray(coefficients)


def _blurred(image: Float32, sigma: float) -> Float32:
    """A wide Gaussian, taken on a coarser grid."""
    factor = max(1, int(sigma / 4))
    size = (max(4, image.shape[1] // factor), max(4, image.shape[0] // factor))
    small = cv2.GaussianBlur(
        cv2.resize(image, size, interpolation=cv2.INTER_AREA),
        (0, 0),
        sigma / factor,
        borderType=cv2.BORDER_CONSTANT,
    )
    return np.asarray(cv2.resize(small, image.shape[::-1], interpolation=cv2.INTER_LINEAR), np.float32)
