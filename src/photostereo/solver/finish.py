"""Convert a solution in mask pixels and scaled units to the result returned to users."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from photostereo._version import __version__
from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import GRAY_WEIGHTS
from photostereo.core.errors import ParameterError
from photostereo.reflectance.model import Model
from photostereo.runtime.arrays import Array, cast, like, namespace, to_numpy, zeros
from photostereo.runtime.illumination import PixelLights, pseudo_inverse, shading, some_lights
from photostereo.solver.conditions import Conditions
from photostereo.solver.problem import Solution
from photostereo.solver.reconstruction import Reconstruction

#: Pixels tinted at a time: 0.1 s between cancellation checks. The result does not depend on it.
PIXELS_AT_A_TIME = 1_000_000


class Pictures(NamedTuple):
    """Unit normals, albedo and maps by name, zero outside the mask; and how the solve ended."""

    normals: NDArray[np.float32]
    albedo: NDArray[np.float32]
    maps: Mapping[str, NDArray[np.float32]]
    status: str
    iterations: int


def with_colors(
    result: Reconstruction,
    capture: Capture,
    frames: Iterable[NDArray[Any]],
    control: Control = SILENT,
) -> Reconstruction:
    """Add the tint of photographs (H, W, 3), read one at a time, to a gray result."""
    inside = result.mask
    frames = Conditions(factors=result.strengths).correct_frames(frames)
    lights = capture.lights_at(np.flatnonzero(inside))
    along = _along_frames(lights.in_view(result.normals[inside]), inside, frames, lights, control)
    gray = result.albedo[inside]
    tinted = np.empty(along.shape, np.float32)
    for part in _parts(len(gray)):
        tinted[part] = _tinted(gray[part], along[part])
        control.check()
    return replace(result, albedo=picture_of(tinted, inside))


def pictures_of(
    mask: NDArray[np.bool_],
    frames: Iterable[NDArray[Any]] | None,
    lights: PixelLights,
    model: Model,
    solution: Solution,
    scale: float,
    *,
    colors: Array | None = None,
    map_values: float = math.inf,
    control: Control = SILENT,
) -> Pictures:
    """Convert mask pixels to pictures, and scaled normals to unit normals and albedo.

    Computed on the solution's device and fetched as finished pictures. Color photographs for the tint are given as
    ``frames``, or as ``colors`` (N, d, 3) if they are on the same GPU as the solution. Maps with more than ``map_values``
    values per pixel are omitted.
    """
    scaled = solution.normals
    xp = namespace(scaled)
    length = (scaled * scaled).sum(-1) ** 0.5
    unit = scaled / xp.where(length > 0, length, 1.0)[:, None]
    control.check()
    own = model.albedo(scaled, solution.unknowns)
    gray = (length if own is None else own) * scale
    tinted = gray
    control.check()
    if frames is not None and colors is not None:
        tinted = _tinted(gray, _along(unit, colors, lights.matrix))
    elif frames is not None:
        tinted = _tinted(
            to_numpy(gray), _along_frames(to_numpy(unit), mask, frames, lights, control)
        )
    largest = np.finfo(np.float32).max
    if not (bool(xp.isfinite(unit).all()) and bool((abs(tinted) <= largest).all())):
        raise ParameterError(
            "With these parameters the result is not a finite number. Choose less extreme "
            "values, or use the defaults.",
            code="result-not-finite",
        )
    control.check()
    too_many = model.maps_photographs and lights.matrix.shape[-1] > map_values
    found = {} if too_many else control.aside(lambda: model.maps(scaled, solution.unknowns))
    maps = {
        name: picture_of(values, mask)
        for name, values in found.items()
        if math.prod(values.shape[1:]) <= map_values
    }
    control.check()
    normals = picture_of(lights.in_camera(unit), mask)
    albedo = picture_of(tinted, mask)
    return Pictures(normals, albedo, maps, solution.status, solution.iterations)


def picture_of(values: Array, mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return mask-pixel values as a picture, zero outside; assembled on their device, so a GPU transfers it once."""
    if mask.all():
        return to_numpy(cast(values, "float32")).reshape(*mask.shape, *values.shape[1:])
    picture = zeros((mask.size, *values.shape[1:]), values, "float32")
    picture[like(np.flatnonzero(mask), values)] = cast(values, "float32")
    return to_numpy(picture).reshape(*mask.shape, *values.shape[1:])


def _along(unit: Array, colors: Array, lights: NDArray[Any]) -> Array:
    """Return each channel's least-squares albedo (N, 3) along the estimated normal, from the colors (N, d, 3)."""
    shares = cast(shading(unit, like(pseudo_inverse(lights).swapaxes(-1, -2), unit)), "float32")
    return cast((shares[..., None] * colors).sum(1), "float64")


def _along_frames(
    unit: NDArray[Any],
    mask: NDArray[np.bool_],
    frames: Iterable[NDArray[Any]],
    lights: PixelLights,
    control: Control = SILENT,
) -> NDArray[Any]:
    """Compute :func:`_along` from one photograph at a time."""
    along = np.zeros((len(unit), 3))
    back = pseudo_inverse(lights.matrix)
    fall_off = lights.fall_off
    inside = np.flatnonzero(mask)
    for number, frame in enumerate(frames):
        control.check()
        colors = frame.reshape(-1, 3)
        for part in _parts(len(unit)):
            seen = colors[inside[part]]
            if fall_off is not None:
                seen = seen / fall_off[part, number, None]
            share = some_lights(back, part)[..., number, :, None]
            along[part] += shading(unit[part], share) * seen
            control.check()
        control.advance()
    return along


def _parts(count: int) -> Iterator[slice]:
    """Yield slices of the pixels, to keep temporaries small and allow cancellation in between."""
    return (slice(first, first + PIXELS_AT_A_TIME) for first in range(0, count, PIXELS_AT_A_TIME))


def _tinted(gray: Array, along: Array) -> Array:
    """Return the method's gray albedo (N,) with the tint of the channels (N, 3)."""
    xp = namespace(gray)
    along = along.clip(0.0)
    luma = (along @ like(np.asarray(GRAY_WEIGHTS), along))[:, None]
    lit = luma > 0
    return gray[:, None] * xp.where(lit, along / xp.where(lit, luma, 1.0), 1.0)


@cache
def versions() -> dict[str, str]:
    """Return the software versions behind a result; parsing package metadata takes as long as least squares itself."""
    from importlib.metadata import version

    libraries = {name: version(name) for name in ("numpy", "scipy", "numba")}
    return {"photostereo": __version__, "python": platform.python_version(), **libraries}
