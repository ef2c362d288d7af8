"""How the pixels of a stack differ from the ground, which is what reaches the border of the frame.

Four clues separate an object from its ground, each over the photographs as a median, which neither highlights nor cast
shadows move: how bright a pixel is; how far its brightness does not follow that of the ground from light to light (a flat
ground turns to all lights alike, whatever its texture, while an object turns its sides to other lights); its color; and
the edges that stay where they are under every light.
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
#: Deviations from the ground's pattern below this (natural logarithm) are noise.
SLIGHT = 0.03
#: This share of the photographs is compared with the ground, those that follow it best: the others may be in shadow.
FOLLOWS = 0.5
#: The border is so wide, as a share of the shorter side.
BORDER = 0.03


@dataclass(frozen=True, eq=False)
class Clues:
    """What is known of each pixel of a shrunk stack.

    Attributes
    ----------
    level : (h, w) logarithm of the median brightness
    strangeness : (h, w) logarithm of how far the brightness does not follow the ground's over the photographs
    color : (h, w, 2) logarithms of red and blue against green, or None in gray
    edges : (h, w) strength of the edges that are there under most lights
    light : (h, w) mean brightness
    border : (h, w) the border of the frame
    """

    level: Float32
    strangeness: Float32
    color: Float32 | None
    edges: Float32
    light: Float32
    border: BoolArray


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
        color = _color(stack)
        stack = stack @ np.asarray(GRAY_WEIGHTS, np.float32)
    median = _median(stack)
    level = np.log(median + np.float32(DARK))
    border = border_of(level.shape)
    if (border & ~out).any():
        border &= ~out
    return Clues(
        level=level,
        strangeness=_strangeness(stack, median, border),
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


def _median(stack: Float32) -> Float32:
    return np.median(stack, axis=0).astype(np.float32)


def _color(stack: Float32) -> Float32:
    red, green, blue = (np.log(_median(stack[..., channel]) + np.float32(DARK_COLOR)) for channel in range(3))
    return np.asarray(
        cv2.GaussianBlur(np.stack([red - green, blue - green], axis=-1), (0, 0), 0.7), np.float32
    )


def _edges(stack: Float32, color: Float32 | None) -> Float32:
    squares = _median(np.stack([_steepness(np.log(image + np.float32(DARK))) for image in stack]))
    if color is not None:
        squares = squares + sum(_steepness(np.ascontiguousarray(color[..., part])) for part in range(2))
    return np.asarray(np.sqrt(squares), np.float32)


def _steepness(image: Float32) -> Float32:
    return np.asarray(
        (cv2.Scharr(image, cv2.CV_32F, 1, 0) ** 2 + cv2.Scharr(image, cv2.CV_32F, 0, 1) ** 2) / 1024,
        np.float32,
    )


def _strangeness(stack: Float32, median: Float32, border: BoolArray) -> Float32:
    """How far a pixel does not follow the ground, in the photographs in which it does best: others may be in shadow."""
    pattern = np.log(stack + np.float32(DARK_PATTERN)) - np.log(median + np.float32(DARK_PATTERN))
    down, right = np.mgrid[-1 : 1 : stack.shape[1] * 1j, -1 : 1 : stack.shape[2] * 1j]
    # Lights fall off over the frame: the pattern of the ground is a quadratic in the place.
    terms = np.stack([np.ones_like(right), right, down, right**2, right * down, down**2], axis=-1)
    share = median[border] / (median[border] + DARK_PATTERN)
    coefficients = _robust_fit(terms[border], pattern[:, border].T, np.clip(share, 0.02, 1))
    terms = terms.astype(np.float32)
    for image, row in zip(pattern, coefficients.T.astype(np.float32), strict=True):
        image -= terms @ row
    pattern -= _median(pattern)
    np.abs(pattern, out=pattern)
    place = int(FOLLOWS * len(pattern))
    typical = np.partition(pattern, place, axis=0)[place]
    return np.asarray(np.log(typical + np.float32(SLIGHT)))


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
