"""From a solution in mask pixels and scaled units to the result that users get."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo._version import __version__
from photostereo.backend import Array, Device, cast, empty, like, to_numpy
from photostereo.capture import Capture
from photostereo.conventions import GRAY_WEIGHTS
from photostereo.errors import ParameterError
from photostereo.quality.metrics import summarise_error
from photostereo.reconstruction import Reconstruction
from photostereo.reflectance.model import Model
from photostereo.solver.problem import Solution


def as_reconstruction(
    capture: Capture,
    model: Model,
    solution: Solution,
    scale: float,
    *,
    method: str,
    parameters: Mapping[str, Any],
    seconds: Mapping[str, float],
    device: Device,
) -> Reconstruction:
    """Back from mask pixels to pictures, from scaled normals to unit normals and albedo."""
    normals, albedo = pictures_of(
        capture.mask, capture.images, capture.lights, model, solution, scale, color=capture.is_color
    )
    maps = model.maps(solution.normals, solution.unknowns)
    return Reconstruction(
        normals=normals,
        albedo=albedo,
        mask=capture.mask,
        method=method,
        parameters=dict(parameters),
        capture=capture.name,
        digest=capture.digest,
        status=solution.status,
        iterations=solution.iterations,
        seconds=seconds,
        history=solution.history,
        maps={name: _picture(values, capture.mask) for name, values in maps.items()},
        arrays=solution.facts(),
        angular_error=None
        if capture.truth is None
        else summarise_error(normals, capture.truth, capture.mask),
        versions={**versions(), **device.facts()},
    )


def pictures_of(
    mask: NDArray[np.bool_],
    frames: Iterable[NDArray[Any]],
    lights: NDArray[Any],
    model: Model,
    solution: Solution,
    scale: float,
    *,
    color: bool,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Unit normals and albedo, zero outside the mask. The photographs are looked at for their colours only."""
    scaled = to_numpy(solution.normals)
    length = np.linalg.norm(scaled, axis=1)
    unit = scaled / np.where(length > 0, length, 1.0)[:, None]
    own = model.albedo(solution.normals, solution.unknowns)
    gray = (length if own is None else to_numpy(own)) * scale
    tinted = _tinted(mask, frames, lights, unit, gray) if color else gray
    if not (np.isfinite(unit).all() and (np.abs(tinted) <= np.finfo(np.float32).max).all()):
        raise ParameterError(
            "With these parameters the method leaves the range of numbers, so there is no result. "
            "Choose more ordinary values, or leave them to their defaults."
        )
    normals = np.zeros((*mask.shape, 3), dtype=np.float32)
    normals[mask] = unit
    albedo = np.zeros((*mask.shape, 3) if color else mask.shape, dtype=np.float32)
    albedo[mask] = tinted
    return normals, albedo


def _picture(values: Array, mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Values of the mask pixels as a picture, zero outside; pasted where they are, so that a GPU sends it once."""
    picture = empty((mask.size, *values.shape[1:]), values, "float32")
    picture[:] = 0.0
    picture[like(np.flatnonzero(mask), values)] = cast(values, "float32")
    return to_numpy(picture).reshape(*mask.shape, *values.shape[1:])


def _tinted(
    mask: NDArray[np.bool_],
    frames: Iterable[NDArray[Any]],
    lights: NDArray[Any],
    unit: NDArray[Any],
    gray: NDArray[Any],
) -> NDArray[Any]:
    """The method's gray albedo, tinted by each channel's least-squares share along the normal found."""
    along = np.zeros((len(gray), 3))
    for frame, share in zip(frames, np.linalg.pinv(lights).T, strict=True):  # one photograph at a time
        along += (unit @ share)[:, None] * frame[mask]
    along = np.maximum(along, 0.0, out=along)
    luma = along @ np.asarray(GRAY_WEIGHTS)
    tint = np.divide(along, luma[:, None], out=np.ones_like(along), where=luma[:, None] > 0)
    return np.asarray(gray[:, None] * tint)


def versions() -> dict[str, str]:
    """Versions of what computed a result."""
    return {"photostereo": __version__, "python": platform.python_version(), **_library_versions()}


@cache
def _library_versions() -> dict[str, str]:
    # Parsing the packages' metadata takes 20 ms, as long as least squares itself.
    from importlib.metadata import version

    return {name: version(name) for name in ("numpy", "scipy", "numba")}
