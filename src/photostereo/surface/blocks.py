"""Pictures of half and of twice the resolution: one pixel for a block of 2 × 2."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Picture = NDArray[Any]


def combine_blocks(combine: np.ufunc, picture: Picture, fill: float = 0) -> Picture:
    """The combination (sum, maximum, …) of each block of 2 × 2 pixels, with ``fill`` outside the picture.

    >>> combine_blocks(np.add, np.ones((3, 2))).tolist()
    [[4.0], [2.0]]
    """
    height, width = picture.shape
    if height % 2 or width % 2:
        picture = np.pad(picture, ((0, height % 2), (0, width % 2)), constant_values=fill)
    rows = combine(picture[::2], picture[1::2])
    return np.asarray(combine(rows[:, ::2], rows[:, 1::2]))


def enlarge(picture: Picture, shape: tuple[int, ...]) -> Picture:
    """Every pixel as a block of 2 × 2, cut to ``shape``.

    >>> enlarge(np.array([[1, 2]]), (2, 3)).tolist()
    [[1, 1, 2], [1, 1, 2]]
    """
    return np.repeat(np.repeat(picture, 2, axis=0), 2, axis=1)[: shape[0], : shape[1]]
