"""Reduce a picture, and undo its displacement and turn."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import FloatArray


def resized(picture: NDArray[np.float32], factor: float) -> NDArray[np.float32]:
    """Reduce a picture by a factor, by averaging areas."""
    if factor == 1.0:
        return picture
    small: NDArray[np.float32] = cv2.resize(picture, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
    return small


def coarse(picture: NDArray[np.float32], longest: int) -> NDArray[np.float32]:
    """Reduce a picture so that its longer side has at most this many pixels."""
    return resized(picture, min(1.0, longest / max(picture.shape)))


def moved_back(picture: NDArray[np.float32], move: FloatArray) -> NDArray[np.float32]:
    """Undo the displacement (columns, rows) and the turn about the center (radians, clockwise) of a picture.

    Uses cubic interpolation; the border is replicated.
    """
    if not np.any(move):
        return picture
    size = picture.shape[1::-1]
    turn = np.array([[np.cos(move[2]), -np.sin(move[2])], [np.sin(move[2]), np.cos(move[2])]])
    middle = 0.5 * (np.array(size) - 1)
    onto = np.column_stack([turn, middle + move[:2] - turn @ middle])
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    moved: NDArray[np.float32] = cv2.warpAffine(
        picture, onto, size, flags=flags, borderMode=cv2.BORDER_REPLICATE
    )
    return moved
