"""Tables whose first row names the columns, such as ``lights.csv``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from photostereo.core.conventions import BoolArray, Float64
from photostereo.lights.files.format import LightFileError
from photostereo.lights.files.numbers import base_name, decimal, is_number, rectangle
from photostereo.lights.files.table import LightTable
from photostereo.lights.source import SourceKind

# Names of columns.
_FILE = re.compile("file(names?)?|image|img|name|photo(graph)?|picture|path")
_AXIS = re.compile("(?:l_?|d|dir|direction_|light_)?([xyz])")
_STRENGTH = re.compile(
    "intensity|strength|brightness|i|power|(?:intensity_|i_?)?(r|g|b|red|green|blue)"
)
# Names of angles whose zero, sense or unit differ from file to file.
_OTHER_ANGLE = re.compile(
    "(phi|theta|az|el|azi|alt(itude)?|polar|zenith|tilt|pan|slant|angle)(_?(deg|rad).*)?"
)
#: Prefixes of position columns, by unit.
_POSITION_UNITS = {"position": "pixels", "widths": "widths", "mm": "mm"}


@dataclass(frozen=True)
class _Columns:
    """Which columns of a table hold what."""

    header: list[str]
    names: list[int]  #: names of photographs; the first one counts
    toward: list[int]  #: directions: x, y, z; or azimuth and elevation; or the places
    strengths: list[int]  #: none, one, or red, green and blue
    places: list[int]  #: x, y, z of positions, or none
    unit: str  #: of the positions

    @property
    def are_angles(self) -> bool:
        """Whether directions are azimuth and elevation."""
        return len(self.toward) == 2

    @property
    def straight_up(self) -> tuple[str, ...]:
        """What stands for a direction that is left open: toward the camera."""
        return ("0", "90") if self.are_angles else ("0", "0", "1")


def _columns(header: list[str]) -> _Columns:
    """Recognize the columns by their names."""
    axes: dict[str, int] = {}
    colors: dict[int, str] = {}
    for column, word in enumerate(header):
        if axis := _AXIS.fullmatch(word):
            axes[axis[1]] = column
        if color := _STRENGTH.fullmatch(word):
            colors[column] = (color[1] or "r")[0]
    strengths = sorted(colors, key=lambda column: "rgb".find(colors[column]))
    angles = [header.index(word) for word in ("azimuth", "elevation") if word in header]
    unit = next((u for u in _POSITION_UNITS if all(f"{u}_{axis}" in header for axis in "xyz")), "")
    places = [header.index(f"{unit}_{axis}") for axis in "xyz"] if unit else []
    toward = [axes[axis] for axis in sorted(axes)]
    if not toward:  # the position of a light gives its direction
        toward = angles if len(angles) == 2 else places
    if len(axes) not in (0, 3) or not toward or len(strengths) not in (0, 1, 3):
        raise _unknown_columns(header)
    return _Columns(
        header=header,
        names=[column for column, word in enumerate(header) if _FILE.fullmatch(word)],
        toward=toward,
        strengths=strengths,
        places=places,
        unit=_POSITION_UNITS[unit or "position"],
    )


def _unknown_columns(header: list[str]) -> LightFileError:
    named = f"names the columns {', '.join(header)}"
    angles = [word for word in header if _OTHER_ANGLE.fullmatch(word)]
    if angles:
        words = (
            f"{named}. It is not certain how {' and '.join(angles)} are measured: rename them to "
            "azimuth (degrees, counterclockwise from the right) and elevation (degrees above the "
            "table), or write x, y, z."
        )
        return LightFileError("light-file-columns", words)
    wanted = (
        "expected x, y, z or azimuth, elevation, and optionally file and intensity (or r, g, b)"
    )
    return LightFileError("light-file-columns", f"{named}; {wanted}. Rename them.")


def from_header(rows: list[list[str]], path: Path) -> LightTable:
    """Read a table whose first row names the columns."""
    header = [word.strip().strip('"').casefold() for word in rows[0]]
    columns = _columns(header)
    body = _filled(rows[1:], columns)
    open_directions = _left_open(body, columns.toward, columns.straight_up)
    open_strengths = _left_open(body, columns.strengths, ("1",) * len(columns.strengths))
    files = None
    if columns.names:
        files = tuple(base_name(row[columns.names[0]]) for row in body)
    intensity = None
    if columns.strengths:
        intensity = _cells(body, columns.strengths)
        if len(columns.strengths) == 1:
            intensity = intensity[:, 0]
        if open_strengths is not None and not open_strengths.all():
            intensity[open_strengths] = intensity[~open_strengths].mean(axis=0)
    vectors = _cells(body, columns.toward)
    if columns.are_angles:
        vectors = _from_angles(vectors)
    return LightTable(
        path,
        vectors,
        intensity,
        files,
        _cells(body, columns.places) if columns.places else None,
        unit=columns.unit,
        open_directions=open_directions,
        open_strengths=open_strengths,
        errors=_errors_of_estimates(header, body),
    )


def _filled(rows: list[list[str]], columns: _Columns) -> list[list[str]]:
    """Return rows with a cell for each column; in a table with names, cells at the end of a row may be missing."""
    count = len(columns.header)
    body = []
    for number, row in enumerate(rows, 1):
        whole = row
        if columns.names:
            whole = [*row, *[""] * (count - len(row))]
        if len(whole) != count:
            words = f"has {len(row)} values in row {number}, but names {count} columns. Correct that row."
            raise LightFileError("light-file-line", words)
        body.append(whole)
    return body


def _cells(body: list[list[str]], columns: list[int]) -> Float64:
    """Return the numbers in some columns."""
    return rectangle([[row[column] for column in columns] for row in body])


def _from_angles(angles: Float64) -> Float64:
    """Return directions (d, 3) from azimuths, counterclockwise from the right, and elevations above the image plane.

    Both are in degrees. Angles in radians are an error: no light is less than two degrees high in every photograph.
    """
    if len(angles) > 1 and (np.abs(angles) <= [2 * np.pi + 0.01, 0.5 * np.pi + 0.01]).all():
        words = (
            f"has azimuths up to {angles[:, 0].max():.3g} and elevations up to "
            f"{angles[:, 1].max():.3g}, which must be radians. Write degrees (multiply by 57.2958)."
        )
        raise LightFileError("light-angles-radians", words)
    around, above = np.radians(angles.T)
    flat = np.cos(above)
    return np.stack([flat * np.cos(around), flat * np.sin(around), np.sin(above)], axis=1)


def _left_open(
    body: list[list[str]], columns: list[int], placeholder: tuple[str, ...]
) -> BoolArray | None:
    """Return the rows whose cells in these columns are all empty, and fill them in; None if there are none."""
    rows = np.array([bool(columns) and not any(row[column] for column in columns) for row in body])
    for number in np.flatnonzero(rows).tolist():
        for column, word in zip(columns, placeholder, strict=True):
            body[number][column] = word
    return rows if rows.any() else None


def _errors_of_estimates(header: list[str], body: list[list[str]]) -> Float64 | None:
    """Return expected errors of lights marked as estimated in a file of ours, NaN for others; None if there are none."""
    if not {"residual_degrees", "found_from"} <= set(header):
        return None
    error = header.index("residual_degrees")
    source = header.index("found_from")
    words = [
        row[error] if row[source] == SourceKind.ESTIMATED.value and is_number(row[error]) else "nan"
        for row in body
    ]
    values = np.array([decimal(word) for word in words])
    if np.isfinite(values).any():
        return values
    return None
