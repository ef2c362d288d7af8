"""Read light files of other programs: Meshroom's JSON and MATLAB's .mat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.errors import CaptureError
from photostereo.io import safe
from photostereo.lights.files.table import bad_light_file

#: Names under which directions and strengths are usually stored, in order of preference.
_DIRECTIONS = (
    "light_directions", "lightdirections", "directions", "lights", "light", "lightdir", "l", "s", "v",
)  # fmt: skip
_STRENGTHS = ("light_intensities", "intensities", "intensity", "strengths", "int", "e")


def is_meshroom(entry: Any) -> bool:
    """Return whether an entry of a JSON list of lights was written by Meshroom (AliceVision).

    >>> is_meshroom({"viewId": "1", "type": "directional", "direction": ["0", "0", "-1"], "intensity": ["1", "1", "1"]})
    True
    """
    return isinstance(entry, dict) and "direction" in entry and ("viewId" in entry or "lightId" in entry)


def from_meshroom(entries: list[Any], path: Path) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return directions (d, 3) and strengths (d, 3) in our axes; Meshroom's y points down and its z away from the camera.

    >>> light = {"viewId": "1", "direction": ["0.6", "0", "-0.8"], "intensity": ["1", "1", "1"]}
    >>> from_meshroom([light], Path("lights.json"))[0] + 0.0
    array([[0.6, 0. , 0.8]])
    """
    bent = next(
        (entry for entry in entries if str(entry.get("type", "directional")).lower() != "directional"), None
    )
    if bent is not None:
        words = f"contains lights of the type {bent['type']}; only directional ones can be used."
        raise bad_light_file(
            path, "light-file-type", f"{words} Calibrate the lights as directional lights in Meshroom."
        )
    vectors = np.array([[float(v) for v in entry["direction"]] for entry in entries])
    strengths = np.array([[float(v) for v in entry.get("intensity", (1, 1, 1))] for entry in entries])
    return vectors * np.array([1.0, -1.0, -1.0]), strengths


def read_mat(path: Path, count: int | None) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Read directions (d, 3) and strengths from a MATLAB file: by the usual names, else the only array that fits."""
    remedy = "Save it with save(..., '-v7'), or write the directions to a text file."
    try:
        found = safe.read_mat(path, "light file", remedy=remedy)
    except CaptureError as error:
        raise CaptureError(error.message, code="light-file-format", file=path) from error
    arrays = {name.casefold(): value.astype(np.float64) for name, value in found.items()}
    fitting = {name: value for name, value in arrays.items() if _in_rows(value, count) is not None}
    chosen = next((name for name in _DIRECTIONS if name in fitting), None)
    if chosen is None and len(fitting) == 1:
        chosen = next(iter(fitting))
    if chosen is None:
        held = ", ".join(f"{name} {' × '.join(map(str, value.shape))}" for name, value in arrays.items())
        words = f"does not identify the array with the light directions: it contains {held or 'nothing'}."
        raise bad_light_file(
            path,
            "light-file-columns",
            f"{words} Name one of them light_directions, one row x y z per photograph.",
        )
    vectors = _in_rows(arrays[chosen], count)
    assert vectors is not None
    strengths = (_of_lights(arrays[name], len(vectors)) for name in _STRENGTHS if name in arrays)
    return np.ascontiguousarray(vectors), next((rows for rows in strengths if rows is not None), None)


def _in_rows(value: NDArray[Any], count: int | None) -> NDArray[np.float64] | None:
    """Return vectors stored as rows or columns as rows (d, 3); None if the shape does not fit."""
    if value.ndim != 2 or 3 not in value.shape:
        return None
    rows = value if value.shape[1] == 3 and (value.shape[0] != 3 or count in (None, 3)) else value.T
    return rows if rows.shape[1] == 3 and count in (None, len(rows)) else None


def _of_lights(value: NDArray[Any], count: int) -> NDArray[np.float64] | None:
    """Return one or three strengths per light; None if the shape does not fit."""
    if value.size == count:
        return value.reshape(-1)
    return _in_rows(value, count)
