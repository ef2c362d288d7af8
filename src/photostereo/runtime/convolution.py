"""Convolutions for small networks in NumPy. Pictures are (count, height, width, channels)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]


def convolve(w: Mapping[str, Float32], name: str, x: Float32, stride: int = 1) -> Float32:
    """Compute a zero-padded 3 × 3 convolution as one matrix product; ``w`` holds torch's weight and bias."""
    kernel = w[f"{name}.weight"]
    outputs, inputs = kernel.shape[:2]
    count, height, width, _ = x.shape
    padded = np.zeros((count, height + 2, width + 2, inputs), dtype=np.float32)
    padded[:, 1:-1, 1:-1] = x
    tall, wide = height // stride, width // stride
    patches = np.empty((count, tall, wide, 9, inputs), dtype=np.float32)
    for row in range(3):
        for column in range(3):
            patches[..., 3 * row + column, :] = padded[
                :, row : row + stride * tall : stride, column : column + stride * wide : stride
            ]
    matrix = kernel.transpose(2, 3, 1, 0).reshape(9 * inputs, outputs)
    result = patches.reshape(-1, 9 * inputs) @ matrix
    result += w[f"{name}.bias"]
    return result.reshape(count, tall, wide, outputs)


def relu(x: Float32) -> Float32:
    """Compute max(x, 0) in place."""
    return np.maximum(x, 0, out=x)


def twice(x: Float32) -> Float32:
    """Repeat every pixel as a block of 2 × 2."""
    return x.repeat(2, axis=1).repeat(2, axis=2)
