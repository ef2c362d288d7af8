"""From a solution in mask pixels and scaled units to the result that users get."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo._version import __version__
from photostereo.capture import Capture
from photostereo.core.conventions import GRAY_WEIGHTS
from photostereo.core.errors import ParameterError
from photostereo.diagnosis.metrics import ErrorSummary, angle_between, is_known, summarize_error, summary_of
from photostereo.reflectance.model import Model
from photostereo.runtime.arrays import Array, Device, cast, empty, is_tensor, like, namespace, to_numpy
from photostereo.solver.conditions import Conditions
from photostereo.solver.problem import Solution
from photostereo.solver.reconstruction import Reconstruction


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
    colors: Array | None = None,
    conditions: Conditions,
) -> Reconstruction:
    """Back from mask pixels to pictures, from scaled normals to unit normals and albedo."""
    normals, albedo = pictures_of(
        capture.mask,
        conditions.correct_frames(capture.images),
        capture.lights.directions,
        model,
        solution,
        scale,
        color=capture.is_color,
        colors=colors,
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
        maps={name: picture_of(values, capture.mask) for name, values in maps.items()},
        arrays=solution.arrays(),
        angular_error=_error(normals, solution, capture),
        versions={**versions(), **device.facts()},
        strengths=conditions.factors,
    )


def _error(normals: NDArray[np.float32], solution: Solution, capture: Capture) -> ErrorSummary | None:
    """Against the truth, where it is known; the angles are found where the solution is."""
    if capture.truth is None:
        return None
    if not is_tensor(solution.normals):
        return summarize_error(normals, capture.truth, capture.mask)
    actual = like(capture.truth_in_mask(), solution.normals)
    return summary_of(angle_between(solution.normals, actual), is_known(actual))


def pictures_of(
    mask: NDArray[np.bool_],
    frames: Iterable[NDArray[Any]],
    lights: NDArray[Any],
    model: Model,
    solution: Solution,
    scale: float,
    *,
    color: bool,
    colors: Array | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Unit normals and albedo, zero outside the mask. The photographs are looked at for their colors only.

    Made where the solution is, and fetched as finished pictures. ``colors`` (N, d, 3) are those photographs where the
    solution is on a GPU and has them beside it; otherwise the colors are the computer's own work.
    """
    scaled = solution.normals
    xp = namespace(scaled)
    length = (scaled * scaled).sum(-1) ** 0.5
    unit = scaled / xp.where(length > 0, length, 1.0 + 0.0 * length)[:, None]
    own = model.albedo(scaled, solution.unknowns)
    gray = (length if own is None else own) * scale
    tinted = gray
    if color and colors is not None:
        tinted = _tinted(gray, _along(unit, colors, lights))
    elif color:
        tinted = _tinted(to_numpy(gray), _along_frames(to_numpy(unit), mask, frames, lights))
    largest = np.finfo(np.float32).max
    if not (bool(xp.isfinite(unit).all()) and bool((abs(tinted) <= largest).all())):
        raise ParameterError(
            "With these parameters the result is not a finite number. Choose less extreme values, or leave them to their "
            "defaults.",
            code="result-not-finite",
        )
    return picture_of(unit, mask), picture_of(tinted, mask)


def picture_of(values: Array, mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Values of the mask pixels as a picture, zero outside; pasted where they are, so that a GPU sends it once."""
    if not is_tensor(values):
        picture = np.zeros((*mask.shape, *values.shape[1:]), dtype=np.float32)
        picture[mask] = values
        return picture
    pasted = empty((mask.size, *values.shape[1:]), values, "float32")
    pasted[:] = 0.0
    pasted[like(np.flatnonzero(mask), values)] = cast(values, "float32")
    return to_numpy(pasted).reshape(*mask.shape, *values.shape[1:])


def _along(unit: Array, colors: Array, lights: NDArray[Any]) -> Array:
    """(N, 3) each channel's least-squares albedo along the normal found, from the colors (N, d, 3)."""
    shares = cast(unit @ like(np.linalg.pinv(lights), unit), "float32")
    return cast((shares[..., None] * colors).sum(1), "float64")


def _along_frames(
    unit: NDArray[Any], mask: NDArray[np.bool_], frames: Iterable[NDArray[Any]], lights: NDArray[Any]
) -> NDArray[Any]:
    """:func:`_along` with one photograph at a time."""
    along = np.zeros((len(unit), 3))
    for frame, share in zip(frames, np.linalg.pinv(lights).T, strict=True):
        along += (unit @ share)[:, None] * frame[mask]
    return along


def _tinted(gray: Array, along: Array) -> Array:
    """The method's gray albedo (N,), with the tint of the channels (N, 3)."""
    xp = namespace(gray)
    along = along.clip(0.0)
    luma = (along @ like(np.asarray(GRAY_WEIGHTS), along))[:, None]
    lit = luma > 0
    return gray[:, None] * xp.where(lit, along / xp.where(lit, luma, 1.0), 1.0)


def versions() -> dict[str, str]:
    """Versions of what computed a result."""
    return {"photostereo": __version__, "python": platform.python_version(), **_library_versions()}


@cache
def _library_versions() -> dict[str, str]:
    # Parsing the packages' metadata takes 20 ms, as long as least squares itself.
    from importlib.metadata import version

    return {name: version(name) for name in ("numpy", "scipy", "numba")}
