r"""Whether all lights are turned together, from the normals that they gave.

If the lights are turned by a small rotation :math:`\omega`, so are all normals, and no single pixel shows it. But the
slopes p and q of a surface (its derivatives along x and y) have no curl, and those of a turned one do:

.. math:: q_x - p_y = \omega_x (q\, p_y - p\, q_y) + \omega_y (p\, q_x - q\, p_x) + \omega_z (p_x + q_y)

to first order, and exactly with its tangent for a turn about z alone. Least absolute deviations over the pixels give the
three angles, robust to edges, shadows and noise. The surface must be curved; a plane shows nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray

#: Normals that face the camera less than this say little about slopes.
FACING = 0.3
#: Pixels that are used, evenly spread, at most twice as many; a tenth changes the angles of good captures by 0.3°.
SAMPLE = 20_000
#: Rounds of reweighting, and the share of a typical curl below which deviations count alike.
ROUNDS, ALIKE = 30, 1e-3


def turn_of_lights(normals: NDArray[Any], mask: BoolArray) -> NDArray[np.float64]:
    """The rotation of all lights, in degrees about x (right), y (up) and z (towards the camera).

    >>> import photostereo as ps
    >>> scene = ps.render_scene("sphere", size=48)
    >>> tilted = scene.truth @ np.array([[1, 0, 0], [0, 0.995, -0.0998], [0, 0.0998, 0.995]]).T
    >>> np.round(turn_of_lights(tilted, scene.mask)).tolist()
    [6.0, 0.0, 0.0]
    """
    usable = mask & (normals[..., 2] > FACING)
    whole = usable[1:-1, 1:-1] & usable[1:-1, 2:] & usable[1:-1, :-2] & usable[2:, 1:-1] & usable[:-2, 1:-1]
    rows, columns = np.nonzero(whole)
    step = max(1, len(rows) // SAMPLE)
    rows, columns = rows[::step] + 1, columns[::step] + 1
    if len(rows) < 100:
        return np.zeros(3)

    def slopes(down: int, right: int) -> NDArray[np.float64]:
        chosen = np.asarray(normals[rows + down, columns + right], dtype=np.float64)
        return np.asarray(-chosen[:, :2] / chosen[:, 2:])

    (p, q), (px, qx), (py, qy) = (
        part.T
        for part in (slopes(0, 0), (slopes(0, 1) - slopes(0, -1)) / 2, (slopes(-1, 0) - slopes(1, 0)) / 2)
    )
    curl, twist = qx - py, (py + qx) / 2
    effects = np.stack([q * twist - p * qy, p * twist - q * px, px + qy], axis=1)
    least = ALIKE * float(np.median(np.abs(curl))) + 1e-9
    weight, angles = np.ones(len(curl)), np.zeros(3)
    for _ in range(ROUNDS):
        weighted = effects * weight[:, None]
        normal = effects.T @ weighted
        normal += (1e-9 * np.trace(normal) + 1e-30) * np.eye(3)  # of a plane nothing is known
        angles = np.linalg.solve(normal, weighted.T @ curl)
        weight = 1.0 / np.maximum(np.abs(curl - effects @ angles), least)
    return np.degrees(np.arctan(angles))
