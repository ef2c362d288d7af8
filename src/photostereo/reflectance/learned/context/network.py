"""The context network in NumPy.

:mod:`photostereo_lab.training.context.network` is the torch version.

A U-Net: five scales of the grid, each half as fine as the one before, and back up with skip
connections.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from photostereo.core.conventions import Float32
from photostereo.reflectance.learned.context.features import CHANNELS, VECTORS
from photostereo.runtime.convolution import convolve, relu, twice

#: Channels at each scale.
WIDTHS = (48, 64, 96, 128)
#: A correction of the normal, and the logarithm of the factor on its expected error.
OUTPUTS = 4
#: Maximum correction and logarithm. A correction far above 1 replaces the normal; the limit keeps a
#: fifth of a pixel's own deviation from its cell, since cells of large photographs hold detail that
#: those of the training do not.
MOST_CORRECTION = 4.0
MOST_LOG_FACTOR = 7.0
#: Right angles by which the square is turned; the average of the answers is more accurate than one
#: view.
TURNS = (0, 2, 1, 3)


def expected_shapes(arrays: Mapping[str, Any] | None = None) -> dict[str, tuple[int, ...]]:
    """Return the shape of every array."""
    layers = {"enter": (CHANNELS, WIDTHS[0]), "leave": (WIDTHS[0], OUTPUTS)}
    for level, width in enumerate(WIDTHS):
        layers[f"here.{level}"] = (width, width)
        if level:
            layers[f"down.{level - 1}"] = (WIDTHS[level - 1], width)
            layers[f"up.{level - 1}"] = (width, WIDTHS[level - 1])
            layers[f"again.{level - 1}"] = (WIDTHS[level - 1], WIDTHS[level - 1])
    return {f"{name}.weight": (out, into, 3, 3) for name, (into, out) in layers.items()} | {
        f"{name}.bias": (out,) for name, (_, out) in layers.items()
    }


def predict(weights: Mapping[str, Float32], maps: Float32) -> Float32:
    """Predict corrections (SIDE, SIDE, OUTPUTS) from maps (SIDE, SIDE, CHANNELS).

    They are averaged over rotations of the square.
    """
    answers = []
    for turns in TURNS:
        answer = _forward(weights, _turned(maps, VECTORS, turns)[None])[0]
        # The answer is turned back before the views are averaged.
        answers.append(_turned(answer, (0,), -turns % 4))
    mean = np.mean(answers, axis=0)
    # A correction keeps its direction when its length is limited.
    length = np.linalg.norm(mean[..., :3], axis=-1, keepdims=True)
    mean[..., :3] *= MOST_CORRECTION / np.maximum(length, MOST_CORRECTION)
    mean[..., 3] = np.clip(mean[..., 3], -MOST_LOG_FACTOR, MOST_LOG_FACTOR)
    return np.asarray(mean, dtype=np.float32)


def _forward(w: Mapping[str, Float32], x: Float32) -> Float32:
    """Return the outputs (1, SIDE, SIDE, OUTPUTS) for one view (1, SIDE, SIDE, CHANNELS)."""
    x = relu(convolve(w, "enter", x))
    scales = []
    for level in range(len(WIDTHS)):
        if level:
            x = relu(convolve(w, f"down.{level - 1}", x, 2))
        x = relu(x + convolve(w, f"here.{level}", x))
        scales.append(x)
    for level in reversed(range(len(WIDTHS) - 1)):
        x = relu(scales[level] + convolve(w, f"up.{level}", twice(x)))
        x = relu(x + convolve(w, f"again.{level}", x))
    return convolve(w, "leave", x)


def _turned(maps: Float32, vectors: tuple[int, ...], turns: int) -> Float32:
    """Rotate maps (h, w, C) with their vectors counterclockwise by right angles."""
    result = np.rot90(maps, turns).copy()
    for x in vectors:
        right = result[..., x].copy()
        up = result[..., x + 1].copy()
        for _ in range(turns):
            right, up = -up, right
        result[..., x] = right
        result[..., x + 1] = up
    return np.asarray(result)
