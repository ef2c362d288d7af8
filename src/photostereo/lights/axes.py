"""Axis conventions of light files."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np

from photostereo.core.conventions import FloatArray
from photostereo.core.errors import ParameterError


def axes_matrix(words: str) -> FloatArray:
    """Return the matrix A of axes such as ``x,-y,z``, so that ``lights @ A`` is in the axes of this package."""
    parts = [part.strip().lower() for part in words.split(",")]
    names = [part.removeprefix("-").removeprefix("+") for part in parts]
    if sorted(names) != ["x", "y", "z"]:
        raise ParameterError(code="bad-axes", axes=words)
    matrix = np.zeros((3, 3))
    for column, (part, name) in enumerate(zip(parts, names, strict=True)):
        matrix["xyz".index(name), column] = -1.0 if part.startswith("-") else 1.0
    return matrix


def axes_words(matrix: FloatArray) -> str:
    """Return the axes of a matrix; the inverse of :func:`axes_matrix`."""
    rows = np.abs(matrix).argmax(axis=0)
    signs = ["-" if matrix[row, column] < 0 else "" for column, row in enumerate(rows)]
    return ",".join(sign + "xyz"[row] for sign, row in zip(signs, rows, strict=True))


def conventions(*, depth_too: bool) -> list[FloatArray]:
    """Return the eight conventions of x and y, or all 48 of three axes; ours first, then the likelier mistakes."""
    every = [
        ",".join(sign + name for sign, name in zip(signs, order, strict=True))
        for order in permutations("xyz")
        for signs in product(("", "-"), repeat=3)
    ]
    # Pictures usually have y pointing down, and renderers usually have vectors pointing from the light.
    usual = {"x,y,z": 0, "x,-y,z": 1, "-x,-y,-z": 2, "y,x,z": 3, "x,z,y": 4, "x,z,-y": 4, "x,-z,y": 4}
    every.sort(key=lambda words: usual.get(words, 9))
    return [axes_matrix(words) for words in every if depth_too or words.endswith(",z")]
