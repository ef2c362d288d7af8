"""What stands around a table that is photographed: balls, lamps, a window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from photostereo.core.conventions import FloatArray
from photostereo.core.errors import ParameterError

KINDS = ("mirror", "black", "matte")
#: Towards the middle of the window.
WINDOW = np.array([-0.62, 0.55, 0.56])
#: Towards the lamp that is always on.
SECOND = np.array([0.55, -0.35, 0.76])


@dataclass(frozen=True)
class Ball:
    """A ball on the table: kind (mirror, black or matte), center (column, row) and radius in pixels."""

    kind: str
    x: float
    y: float
    radius: float

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ParameterError(
                f'There is no "{self.kind}" ball. Choose one of {", ".join(KINDS)}.',
                code="unknown-ball",
            )


@dataclass(frozen=True)
class Studio:
    """The room around the table.

    Attributes
    ----------
    lamp_width : degrees across which the lamp is seen from the table
    radiance : brightness of the lamp's face; a sensor's white is 1
    window : brightness of a window that is always there, 0 for none
    second : strength of a second lamp that is always on, as a share of the first; 0 for none
    blur : of the lens, standard deviation in pixels
    glare : share of the light above white that the sensor bleeds into the rows below (one-sided streaks)
    haze : degrees by which a rough coat widens every reflection of the lamp; 0 for a clear one
    table : mean albedo of the table, 0 for black cloth
    texture : contrast of the table's pattern, 0 to 1
    read_noise, shot_noise : standard deviation of a dark pixel, and of a white one
    bits : of the stored values; 0 keeps floats
    """

    lamp_width: float = 3.0
    radiance: float = 60.0
    window: float = 0.8
    second: float = 0.05
    blur: float = 0.7
    glare: float = 0.0
    haze: float = 0.0
    table: float = 0.15
    texture: float = 0.5
    read_noise: float = 0.002
    shot_noise: float = 0.01
    bits: int = 16


@dataclass(frozen=True, eq=False)
class Lamp:
    """A lamp as every point of the table sees it."""

    direction: FloatArray
    position: FloatArray | None

    def seen_from(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Unit directions from points (..., 3) to the lamp, and its fall-off relative to the origin."""
        if self.position is None:
            return np.broadcast_to(self.direction, points.shape), np.ones(points.shape[:-1])
        towards = self.position - points
        distance = np.linalg.norm(towards, axis=-1)
        fall = (np.linalg.norm(self.position) / distance) ** 2
        return np.asarray(towards / distance[..., None]), np.asarray(fall)


def unit(vector: FloatArray) -> FloatArray:
    """A direction of length one."""
    return np.asarray(vector / np.linalg.norm(vector))
