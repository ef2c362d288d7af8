"""Convolutions for small networks. Pictures are (count, height, width, channels)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from photostereo.core.conventions import Float32


def convolve(w: Mapping[str, Float32], name: str, x: Float32, stride: int = 1) -> Float32:
    """Compute a zero-padded 3 × 3 convolution.

    Parameters
    ----------
    w : mapping of str to array
        Holds torch's weight (outputs, inputs, 3, 3) and bias (outputs).
    name : str
        Of the layer: ``NAME.weight`` and ``NAME.bias``.
    x : (count, height, width, inputs) array
        Pictures.
    stride : int
        Pixels from one output to the next.
    """
    # Imports Numba, which takes time and need not come first.
    from photostereo.runtime.small_matmul import convolve_lines

    kernel = w[f"{name}.weight"]
    outputs, inputs = kernel.shape[:2]
    count, height, width, _ = x.shape
    padded = np.zeros((count, height + 2, width + 2, inputs), dtype=np.float32)
    padded[:, 1:-1, 1:-1] = x
    tall = height // stride
    wide = width // stride
    matrix = kernel.transpose(2, 3, 1, 0).reshape(9 * inputs, outputs)
    lines = np.empty((count * tall, wide, outputs), dtype=np.float32)
    convolve_lines(padded.reshape(count, height + 2, -1), matrix, w[f"{name}.bias"], stride, lines)
    return lines.reshape(count, tall, wide, outputs)


def relu(x: Float32) -> Float32:
    """Compute max(x, 0) in place."""
    return np.maximum(x, 0, out=x)


def twice(x: Float32) -> Float32:
    """Repeat every pixel as a block of 2 × 2."""
    return x.repeat(2, axis=1).repeat(2, axis=2)
