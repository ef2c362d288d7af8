"""Unpack the normals of a page as its shader does."""

from __future__ import annotations

import numpy as np


def unpack_normals(packed: np.ndarray) -> np.ndarray:
    """Unit normals from three bytes; zero where unknown."""
    r, g, b = np.moveaxis(packed.astype(np.int64), -1, 0)
    u, v = (r << 4 | g >> 4) / 4095 * 2 - 1, ((g & 15) << 8 | b) / 4095 * 2 - 1
    z = 1 - np.abs(u) - np.abs(v)
    fold = np.maximum(-z, 0)
    x, y = u - fold * np.where(u >= 0, 1.0, -1.0), v - fold * np.where(v >= 0, 1.0, -1.0)
    normals = np.stack([x, y, z], axis=-1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    normals[~packed.any(axis=-1)] = 0
    return normals
