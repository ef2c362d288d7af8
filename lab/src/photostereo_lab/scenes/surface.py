"""The geometry of a scene seen by an orthographic camera, on a grid of pixels.

Object coordinates (u, v) are 0 in the middle of the frame and ±1 at the edges of its shorter side,
u to the right and v up, so shapes do not depend on the resolution. Depth is in **pixels**: slopes
are the same in both units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from photostereo.core.conventions import BoolArray
from photostereo.core.errors import ParameterError
from photostereo_lab.scenes.jets import Array, Jet, variables

Size: TypeAlias = int | tuple[int, int]


@dataclass(frozen=True, eq=False)
class Surface:
    """The part of a shape that the camera sees; arrays are read-only."""

    depth: Array  #: (H, W) height toward the camera in pixels; NaN outside the mask
    normals: Array  #: (H, W, 3) exact unit normals; zero outside the mask
    mask: BoolArray  #: (H, W)
    scale: float  #: pixels per object unit
    paint: Array | None = (
        None  #: (H, W, 3) the object's own colors (linear RGB), for shapes that have them
    )

    def __post_init__(self) -> None:
        for array in (self.depth, self.normals, self.mask, self.paint):
            if array is not None:
                array.flags.writeable = False

    @property
    def points(self) -> Array:
        """Object coordinates (u, v, z) of the pixels (H, W, 3), for textures.

        z is 0 outside the mask.
        """
        height, width = self.mask.shape
        u, v, _ = grid((height, width))
        return np.stack([u, v, np.where(self.mask, self.depth, 0.0) / self.scale], axis=-1)

    def restrict(self, max_tilt: float) -> Surface:
        """Return the surface without pixels that face away from the camera.

        ``max_tilt`` is the largest angle to the viewing direction in degrees.
        """
        keep = self.mask & (self.normals[..., 2] >= np.cos(np.deg2rad(max_tilt)))
        depth = np.where(keep, self.depth, np.nan)
        normals = np.where(keep[..., None], self.normals, 0.0)
        paint = None if self.paint is None else np.where(keep[..., None], self.paint, 0.0)
        return Surface(depth, normals, keep, self.scale, paint)


def frame_of(size: Size) -> tuple[int, int]:
    """(H, W) from one number (a square frame) or two.

    >>> frame_of(64), frame_of((48, 64))
    ((64, 64), (48, 64))
    """
    if isinstance(size, int | float | np.integer):
        sides = [float(size)] * 2
    else:
        sides = [float(side) for side in size]
    if len(sides) != 2 or any(side != int(side) or side < 2 for side in sides):
        raise ParameterError(
            f"The size of a scene is {size!r}, but it must be one whole number or two (height, "
            "width), each at least 2.",
            code="bad-scene-size",
            size=size,
        )
    return int(sides[0]), int(sides[1])


def grid(size: Size) -> tuple[Array, Array, float]:
    """Object coordinates u, v of the pixel centers, and the number of pixels per object unit.

    >>> u, v, scale = grid((2, 4))
    >>> u[0].tolist(), v[:, 0].tolist(), scale
    ([-1.5, -0.5, 0.5, 1.5], [0.5, -0.5], 1.0)
    """
    height, width = frame_of(size)
    scale = min(height, width) / 2.0
    rows = (0.5 * (height - 1) - np.arange(height)) / scale
    columns = (np.arange(width) - 0.5 * (width - 1)) / scale
    u, v = np.meshgrid(columns, rows)
    return u, v, scale


def grid_variables(size: Size) -> tuple[Jet, Jet, float]:
    """Like :func:`grid`, as variables for differentiation."""
    u, v, scale = grid(size)
    return (*variables(u, v), scale)


def surface_of(height: Jet, inside: Any, scale: float, paint: Array | None = None) -> Surface:
    """The surface z(u, v) inside a region: n = (−∂z/∂u, −∂z/∂v, 1) / ‖·‖."""
    mask = np.asarray(inside, dtype=bool)
    normals = np.stack([0.0 - height.du, 0.0 - height.dv, np.ones_like(height.value)], axis=-1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    normals[~mask] = 0.0
    if paint is not None:
        paint = np.where(mask[..., None], paint, 0.0)
    return Surface(np.where(mask, height.value * scale, np.nan), normals, mask, scale, paint)
