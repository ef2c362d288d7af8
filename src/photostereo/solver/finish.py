"""From a solution in mask pixels and scaled units to the result that users get."""

from __future__ import annotations

import platform
from collections.abc import Mapping
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
    scaled = to_numpy(solution.normals)
    length = np.linalg.norm(scaled, axis=1)
    unit = scaled / np.where(length > 0, length, 1.0)[:, None]
    own = model.albedo(solution.normals, solution.unknowns)
    gray = (length if own is None else to_numpy(own)) * scale
    tinted = _channel_albedo(capture, unit, gray)
    if not (np.isfinite(unit).all() and (np.abs(tinted) <= np.finfo(np.float32).max).all()):
        raise ParameterError(
            f"With these parameters {method} on {capture.name} leaves the range of numbers, so there is no result. "
            "Choose more ordinary values, or leave them to their defaults."
        )
    normals = np.zeros((*capture.frame, 3), dtype=np.float32)
    normals[capture.mask] = unit
    albedo = np.zeros(capture.images.shape[1:], dtype=np.float32)
    albedo[capture.mask] = tinted
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


def _picture(values: Array, mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Values of the mask pixels as a picture, zero outside; pasted where they are, so that a GPU sends it once."""
    picture = empty((mask.size, *values.shape[1:]), values, "float32")
    picture[:] = 0.0
    picture[like(np.flatnonzero(mask), values)] = cast(values, "float32")
    return to_numpy(picture).reshape(*mask.shape, *values.shape[1:])


def _channel_albedo(capture: Capture, unit: NDArray[Any], gray: NDArray[Any]) -> NDArray[Any]:
    """The method's gray albedo, tinted by each channel's least-squares share along the normal found."""
    if not capture.is_color:
        return gray
    inverse = np.linalg.pinv(capture.lights)  # 3 × d
    along = np.empty((len(gray), 3))
    for channel in range(3):
        values = capture.images[:, capture.mask, channel]
        along[:, channel] = np.einsum("nk,kn->n", unit, inverse @ values)
    along = np.maximum(along, 0.0)
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
