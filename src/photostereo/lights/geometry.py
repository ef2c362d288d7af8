"""Light directions as vectors: lengths, angles, axis conventions, and how well a set of them determines a normal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import Float64, FloatArray
from photostereo.core.errors import CaptureError, ParameterError


def require_directions(
    vectors: NDArray[Any], *, file: Path | None = None, names: Sequence[str] | None = None
) -> None:
    """Check that every vector (d, 3) is finite and not zero; raises ``"light-not-finite"`` or ``"light-zero"``."""
    infinite = ~np.isfinite(vectors).all(axis=1)
    zero = np.abs(vectors).max(axis=1) < 1e-12
    if not (infinite | zero).any():
        return
    number = int(np.argmax(infinite if infinite.any() else zero)) + 1
    label = f"{number} ({names[number - 1]})" if names else f"{number}"
    label += "" if file is None else f" in {file}"
    if infinite.any():
        raise CaptureError(
            f"Light {label} has a value that is NaN or infinite. Correct it, or leave out the "
            "photograph together with its light.",
            code="light-not-finite",
            file=file,
            light=number,
            label=label,
        )
    raise CaptureError(
        f"Light {label} is the zero vector, which has no direction. Correct it, or leave out the "
        "photograph together with its light.",
        code="light-zero",
        file=file,
        light=number,
        label=label,
    )


def row_lengths(vectors: NDArray[Any]) -> Float64:
    """Return the Euclidean norm of each row, even if its square would overflow."""
    top = np.abs(vectors).max(axis=1, initial=1e-300)
    far = np.where(top > 1e100, top, 1.0)
    return np.asarray(far * np.linalg.norm(vectors / far[:, None], axis=1))


#: A light closer than this to the viewing axis comes from the front: it has no meaningful compass direction.
FRONTAL_DEGREES = 15.0


@dataclass(frozen=True, eq=False)
class LightGeometry:
    """Conditioning of the lights; see :func:`light_geometry`."""

    #: (3,) of the lights divided by √d, largest first; their squares sum to one
    singular_values: FloatArray
    condition: float  #: ratio of the largest to the smallest singular value: 1 is ideal, 10 is poor
    thin_direction: FloatArray  #: (3,) unit vector, z ≥ 0, along which the lights vary least
    #: typical angle in degrees between a light and the plane normal to ``thin_direction``
    thin_spread: float
    second_spread: float  #: the same for the second thinnest direction
    widest_angle: float  #: the largest angle between two lights, in degrees
    #: the largest empty sector, in degrees, of the lights seen as a compass around the viewing axis
    widest_gap: float
    gap_azimuth: float  #: the middle of that sector, degrees counter-clockwise from the right
    lowest: float  #: elevation of the lowest light above the image plane, degrees


def light_geometry(lights: FloatArray) -> LightGeometry:
    """Compute the conditioning of unit light directions (d, 3).

    With photographs ``y = Lᵀ n + noise`` the covariance of the least-squares normal is ``σ² (L Lᵀ)⁻¹``: its
    longest axis is the direction in which the lights vary least, and its length is ``σ / (√d s_min)``.
    """
    lights = np.asarray(lights, dtype=np.float64)
    _, spread, axes = np.linalg.svd(lights / np.sqrt(len(lights)), full_matrices=False)
    thin = axes[2] if axes[2, 2] >= 0 else -axes[2]
    elevation = np.degrees(np.arcsin(np.clip(lights[:, 2], -1, 1)))
    widest_gap, gap_azimuth = _widest_gap(lights, elevation)
    return LightGeometry(
        singular_values=spread,
        condition=float(spread[0] / max(spread[2], 1e-12)),
        thin_direction=thin,
        thin_spread=float(np.degrees(np.arcsin(min(spread[2], 1.0)))),
        second_spread=float(np.degrees(np.arcsin(min(spread[1], 1.0)))),
        widest_angle=float(angles_between(lights[:, None], lights[None]).max()),
        widest_gap=widest_gap,
        gap_azimuth=gap_azimuth,
        lowest=float(elevation.min()),
    )


def _widest_gap(lights: FloatArray, elevation: FloatArray) -> tuple[float, float]:
    lateral = lights[np.abs(elevation) < 90.0 - FRONTAL_DEGREES]
    if len(lateral) == 0:
        return 360.0, 0.0
    azimuth = np.sort(np.degrees(np.arctan2(lateral[:, 1], lateral[:, 0])) % 360.0)
    gaps = np.diff(np.append(azimuth, azimuth[0] + 360.0))
    widest = int(np.argmax(gaps))
    return float(gaps[widest]), float((azimuth[widest] + gaps[widest] / 2) % 360.0)


_COMPASS = (
    "right",
    "upper right",
    "top",
    "upper left",
    "left",
    "lower left",
    "bottom",
    "lower right",
)


def compass_word(azimuth: float) -> str:
    """Return the side of the picture in a direction given in degrees counter-clockwise from the right."""
    return _COMPASS[round(azimuth / 45.0) % 8]


def direction_words(direction: FloatArray) -> str:
    """Describe the side of the picture that a light in this direction comes from; both sides if either is possible."""
    x, y, z = (float(value) for value in direction)
    if abs(z) > np.cos(np.radians(30.0)):
        return "from in front, near the camera"
    azimuth = float(np.degrees(np.arctan2(y, x)) % 360.0)
    if abs(z) < 0.3:
        return f"from the {compass_word(azimuth)} or the {compass_word(azimuth + 180.0)}"
    return f"from the {compass_word(azimuth)}"


def unit(vectors: NDArray[Any]) -> Float64:
    """Return the vectors (..., 3) divided by their lengths."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def angles_between(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the angles in degrees between unit vectors along the last axis."""
    cross = np.linalg.norm(np.cross(a, b), axis=-1)
    return np.asarray(np.degrees(np.arctan2(cross, (a * b).sum(axis=-1))))


def axes_matrix(words: str) -> FloatArray:
    """Return the matrix A of axes such as ``x,-y,z``, so that ``lights @ A`` is in the axes of this package."""
    parts = [part.strip().lower() for part in words.split(",")]
    names = [part.removeprefix("-").removeprefix("+") for part in parts]
    if sorted(names) != ["x", "y", "z"]:
        raise ParameterError(
            f'"{words}" are not axes. Write x, y and z of the light file in the order right, up, '
            "toward the camera, each with a minus if it points the other way, for instance "
            "x,-y,z.",
            code="bad-axes",
            axes=words,
        )
    matrix = np.zeros((3, 3))
    for column, (part, name) in enumerate(zip(parts, names, strict=True)):
        matrix["xyz".index(name), column] = -1.0 if part.startswith("-") else 1.0
    return matrix


def axes_words(matrix: FloatArray) -> str:
    """Return the axes of a matrix; the inverse of :func:`axes_matrix`."""
    rows = np.abs(matrix).argmax(axis=0)
    signs = ["-" if matrix[row, column] < 0 else "" for column, row in enumerate(rows)]
    return ",".join(sign + "xyz"[row] for sign, row in zip(signs, rows, strict=True))


def from_axes(lights: FloatArray, axes: FloatArray) -> FloatArray:
    """Return directions (d, 3) that are given in other axes in those of this package."""
    return lights @ axes


def conventions(*, depth_too: bool) -> list[FloatArray]:
    """Return the eight conventions of x and y, or all 48 of three axes; ours first, then the likelier mistakes."""
    every = [
        ",".join(sign + name for sign, name in zip(signs, order, strict=True))
        for order in permutations("xyz")
        for signs in product(("", "-"), repeat=3)
    ]
    # Pictures usually have y pointing down, and renderers usually have vectors pointing from the light.
    usual = {
        "x,y,z": 0,
        "x,-y,z": 1,
        "-x,-y,-z": 2,
        "y,x,z": 3,
        "x,z,y": 4,
        "x,z,-y": 4,
        "x,-z,y": 4,
    }
    every.sort(key=lambda words: usual.get(words, 9))
    return [axes_matrix(words) for words in every if depth_too or words.endswith(",z")]


#: Unit vectors that differ by less than this in every component (3°) are the same light.
SAME_LIGHTS = 0.05


def turn_between(lights: FloatArray, others: FloatArray) -> FloatArray | None:
    """Return the matrix A with ``lights @ A`` = others, both (d, 3), if there is one; not necessarily a rotation."""
    turn, *_ = np.linalg.lstsq(lights, others, rcond=None)
    if np.abs(lights @ turn - others).max() <= SAME_LIGHTS:
        return turn
    return None
