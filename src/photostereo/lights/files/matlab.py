"""MATLAB: a ``.mat`` file with ``light_directions``, or with only one array of three columns or rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import Float64
from photostereo.core.errors import CaptureError
from photostereo.io import safe
from photostereo.lights.files.format import LightFileError, LightFormat
from photostereo.lights.files.table import LightTable

#: Names of the arrays with directions and with strengths.
_DIRECTIONS = "light_directions"
_STRENGTHS = ("light_intensities", "intensities", "intensity", "strengths", "int", "e")


def read(path: Path, count: int | None) -> LightTable:
    """Read directions and strengths from a MATLAB file: by their names, or the only other array that fits."""
    remedy = "Save it with save(..., '-v7'), or write the directions to a text file."
    try:
        found = safe.read_mat(path, "light file", remedy=remedy)
    except CaptureError as error:
        raise CaptureError(error.message, code="light-file-format", file=path) from error
    arrays = {name.casefold(): value.astype(np.float64) for name, value in found.items()}
    given = next((arrays.pop(name) for name in _STRENGTHS if name in arrays), None)
    fitting = {
        name: rows for name, value in arrays.items() if (rows := _in_rows(value, count)) is not None
    }
    if len(fitting) != 1 and _DIRECTIONS not in fitting:
        held = ", ".join(
            f"{name} {' × '.join(map(str, value.shape))}" for name, value in arrays.items()
        )
        words = f"does not identify the array with the light directions: it contains {held or 'nothing'}."
        hint = "Name one of them light_directions, one row x y z per photograph."
        raise LightFileError("light-file-columns", f"{words} {hint}")
    vectors = fitting[_DIRECTIONS if _DIRECTIONS in fitting else next(iter(fitting))]
    if given is not None:
        given = given.reshape(-1) if given.size == len(vectors) else _in_rows(given, len(vectors))
    return LightTable(path, np.ascontiguousarray(vectors), given)


def _in_rows(value: NDArray[Any], count: int | None) -> Float64 | None:
    """Return vectors stored as rows or columns as rows (d, 3); None if the shape does not fit."""
    if value.ndim != 2 or 3 not in value.shape:
        return None
    rows = value if value.shape[1] == 3 and (value.shape[0] != 3 or count in (None, 3)) else value.T
    if rows.shape[1] == 3 and count in (None, len(rows)):
        return rows
    return None


MATLAB = LightFormat(name="MATLAB", suffixes=(".mat",), read=read)
