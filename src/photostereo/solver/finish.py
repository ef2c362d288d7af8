"""From a solution in mask pixels and scaled units to the result that users get."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo._version import __version__
from photostereo.backend import Array, Device, cast, empty, is_tensor, like, namespace, to_numpy
from photostereo.capture import Capture
from photostereo.conventions import GRAY_WEIGHTS
from photostereo.errors import ParameterError
from photostereo.quality.metrics import ErrorSummary, angle_between, is_known, summarise_error, summary_of
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
        angular_error=_error(normals, solution, capture),
        versions={**versions(), **device.facts()},
    )


def _error(normals: NDArray[np.float32], solution: Solution, capture: Capture) -> ErrorSummary | None:
    """Against the truth, where it is known; the angles are found where the solution is."""
    if capture.truth is None:
        return None
    if not is_tensor(solution.normals):
        return summarise_error(normals, capture.truth, capture.mask)
    actual = capture.truth[capture.mask]
    error = angle_between(solution.normals, like(actual, solution.normals))
    return summary_of(to_numpy(error), is_known(actual))


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
    """Unit normals and albedo, zero outside the mask. The photographs are looked at for their colours only.

    Made where the solution is, and fetched as finished pictures; the colours are the computer's own work.
    """
    scaled = solution.normals
    xp = namespace(scaled)
    length = (scaled * scaled).sum(-1) ** 0.5
    unit = scaled / xp.where(length > 0, length, 1.0 + 0.0 * length)[:, None]
    own = model.albedo(scaled, solution.unknowns)
    gray = (length if own is None else own) * scale
    tinted = _tinted(mask, frames, lights, to_numpy(unit), to_numpy(gray)) if color else gray
    largest = np.finfo(np.float32).max
    if not (bool(xp.isfinite(unit).all()) and bool((abs(tinted) <= largest).all())):
        raise ParameterError(
            "With these parameters the method leaves the range of numbers, so there is no result. "
            "Choose more ordinary values, or leave them to their defaults."
        )
    return _picture(unit, mask), _picture(tinted, mask)


def _picture(values: Array, mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Values of the mask pixels as a picture, zero outside; pasted where they are, so that a GPU sends it once."""
    if not is_tensor(values):
        picture = np.zeros((*mask.shape, *values.shape[1:]), dtype=np.float32)
        picture[mask] = values
        return picture
    pasted = empty((mask.size, *values.shape[1:]), values, "float32")
    pasted[:] = 0.0
    pasted[like(np.flatnonzero(mask), values)] = cast(values, "float32")
    return to_numpy(pasted).reshape(*mask.shape, *values.shape[1:])


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
