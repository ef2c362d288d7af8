"""Axis conventions of light files: how they are written, and which of them agrees with the photographs.

Lights estimated from the photographs (:mod:`.unknown`) do not depend on the light file. For a solid object they are off by
a few degrees; a file in other axes is off by thirty or more. For flat objects they may be turned by 180°: a hollow lit from
one side looks like a bump lit from the other. So those are not judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.errors import CaptureError, ParameterError
from photostereo.lights.geometry import angles_between
from photostereo.lights.unknown.crops import crop_photographs
from photostereo.lights.unknown.estimate import LEAST_PHOTOGRAPHS, estimate_lights

#: Unit vectors that differ by less than this in every component (3°) are the same light.
SAME_LIGHTS = 0.05
#: Number of photographs used, evenly chosen: a fifth of a second. More change the mean error by less than a degree.
MOST = 24
#: An estimate with a larger expected error, in degrees, is not used. Rendered solids have 2 to 7.
SURE = 9.2
#: Directions that differ from the estimate by less than this agree with it. For 14 rendered solids the right axes
#: differ by 1 to 12°, all others by 33° or more; nothing changes between 15 and 30.
AGREES, DISAGREES = 15.0, 28.0


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


def turn_between(lights: FloatArray, others: FloatArray) -> FloatArray | None:
    """Return the matrix A with ``lights @ A`` = others, both (d, 3), if there is one; not necessarily a rotation."""
    turn, *_ = np.linalg.lstsq(lights, others, rcond=None)
    return turn if np.abs(lights @ turn - others).max() <= SAME_LIGHTS else None


@dataclass(frozen=True)
class Opinion:
    """Comparison of given directions with those estimated from the photographs."""

    #: what the light file has in place of x, y and z, such as ``"x,-y,z"``; ``"x,y,z"`` if it is right
    axes: str
    #: given_degrees, degrees: how far the directions are from the estimate as given, and in those axes
    given_degrees: float
    degrees: float


def judge_axes(images: NDArray[np.floating], lights: FloatArray, mask: BoolArray) -> Opinion | None:
    """Return the axes in which directions (d, 3) agree with those estimated from photographs (d, H, W) or (d, H, W, 3).

    None if the object is flat, the estimate is uncertain, or no axes or several agree with it.
    """
    chosen = np.unique(np.linspace(0, len(lights) - 1, min(MOST, len(lights))).astype(int))
    if len(chosen) < LEAST_PHOTOGRAPHS:
        return None
    try:
        small = crop_photographs((images[number] for number in chosen), mask)
        found = estimate_lights(small, most_views=1)
    except CaptureError:  # the mask is too thin
        return None
    if found.verdict.is_flat or found.expected_error > SURE:
        return None
    tried = conventions(depth_too=False)
    degrees = [float(angles_between(lights[chosen] @ axes, found.directions).mean()) for axes in tried]
    best = int(np.argmin(degrees))
    if degrees[best] >= AGREES or sum(angle < DISAGREES for angle in degrees) != 1:
        return None
    return Opinion(axes_words(tried[best]), degrees[0], degrees[best])
