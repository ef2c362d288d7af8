"""Detect mirrored or turned light directions by comparing them with an estimate from the photographs.

The estimate does not use the light file. For a solid object it is off by a few degrees; a file in other axes is off by
thirty or more. For flat objects it may be turned by 180°: a hollow lit from one side looks like a bump lit from the
other. So those are not judged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.errors import CaptureError
from photostereo.lights.axes import axes_words, conventions
from photostereo.lights.geometry import angles_between
from photostereo.lights.unknown.crops import SYMMETRIES, crop_photographs
from photostereo.lights.unknown.estimate import LEAST_PHOTOGRAPHS, given_directions
from photostereo.lights.unknown.network import LightNetwork, shipped_weights
from photostereo.lights.unknown.verdict import FLAT_TILT, outline_tilt

#: Number of photographs used, evenly chosen: a fifth of a second. More change the mean error by less than a degree.
MOST = 24
#: An estimate with a larger expected error, in degrees, is not used. Rendered solids have 2 to 6.
SURE = 8.0
#: Directions that differ from the estimate by less than this agree with it. For 14 rendered solids the right axes
#: differ by 1 to 12°, all others by 33° or more; nothing changes between 15 and 30.
AGREES, DISAGREES = 15.0, 28.0


@dataclass(frozen=True)
class Opinion:
    """Comparison of given directions with the estimate."""

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
    except CaptureError:  # too thin
        return None
    network, given, view = (
        LightNetwork(shipped_weights(), small),
        given_directions(None, len(chosen)),
        SYMMETRIES[0],
    )
    first = network.first_look(given, view)
    look = network.second_look(first, first.lights, first.logs, given, view)
    flat = outline_tilt(look.normals * network.coarse_mask[..., None]) < FLAT_TILT
    if flat or float(np.degrees(np.exp(look.log_errors)).mean()) > SURE:
        return None
    tried = conventions(depth_too=False)
    degrees = [float(angles_between(lights[chosen] @ axes, look.lights).mean()) for axes in tried]
    agreeing = [number for number, angle in enumerate(degrees) if angle < AGREES]
    if len(agreeing) != 1 or sum(angle < DISAGREES for angle in degrees) != 1:
        return None
    return Opinion(axes_words(tried[agreeing[0]]), degrees[0], degrees[agreeing[0]])
