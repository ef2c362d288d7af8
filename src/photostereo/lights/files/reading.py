"""Read light files: text, CSV and JSON, also Meshroom's, and MATLAB's .mat.

``docs/lights.md`` describes the content of a file. Beyond that, text and CSV may start with a line ``Header: ...`` and a
line with the number of lights, and may have comments (``#``) and one or three strengths (R, G, B) after the direction;
JSON may be a list of ``[x, y, z]``, or ``{"lights": [...], "intensities": [...]}``, with a ``"unit"`` for positions. A
``.mat`` file has ``light_directions``, or only one array of three columns or rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray, Float64
from photostereo.core.errors import CaptureError, ParameterError
from photostereo.core.units import PixelSize
from photostereo.io import safe
from photostereo.io.safe import read_json, read_text
from photostereo.lights.files.table import LightTable, balls_in, require_strengths

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
#: Names of the arrays with directions and with strengths in a .mat file.
_DIRECTIONS = "light_directions"
_STRENGTHS = ("light_intensities", "intensities", "intensity", "strengths", "int", "e")
#: Source that ``lights.csv`` gives for lights estimated from the photographs.
ESTIMATED = "estimated"
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?$")
_WHOLE = re.compile(r"[+-]?\d+$")
_PER_LINE = "Write one line x y z per photograph."
_JSON = (
    'expected {"lights": [{"file": "a.png", "direction": [x, y, z], "intensity": 1}, ...]} '
    "or a list of [x, y, z]"
)


class _FileError(Exception):
    """A light file that cannot be used: a code, and a sentence that lacks the file's name at its beginning."""

    def about(self, path: Path) -> CaptureError:
        code, words = self.args
        return CaptureError(f"{path} {words}", code=code, file=path)


def read_lights(path: Path, *, count: int | None = None) -> LightTable:
    """Read a light file; ``count``, the number of photographs, determines the meaning of 3 lines of 4 or 6 numbers."""
    try:
        suffix = path.suffix.lower()
        if suffix == ".json":
            return _from_json(path)
        if suffix == ".mat":
            return _from_mat(path, count)
        return _from_text(path, count)
    except _FileError as bad:
        raise bad.about(path) from bad


def read_intensities(path: Path, count: int) -> Float64:
    """Read strengths of the lights, (d,) or (d, 3): d lines of 1 or 3 numbers, or 1 or 3 lines of d numbers."""
    try:
        values = _rectangle(_numbers(content_lines(read_text(path, "light intensity file"))))
        if values.shape in ((1, count), (3, count)) and values.shape != (count, count):
            values = values.T
        if values.shape[1] not in (1, 3):
            raise _FileError(
                "light-file-shape", "must have one strength or three (R G B) per line."
            )
        if len(values) != count:
            words = f"has the strengths of {len(values)} lights, but there are {count} photographs. Each photograph needs"
            raise _FileError(
                "lights-count",
                f"{words} exactly one line: add the missing ones or remove the extra ones.",
            )
    except _FileError as bad:
        raise bad.about(path) from bad
    require_strengths(values, path)
    if values.shape[1] == 1:
        return values[:, 0]
    return values


def base_name(name: str) -> str:
    """Return the last part of a path written on any system."""
    return PureWindowsPath(name.strip().strip('"')).name


def decimal(word: str) -> float:
    """Parse a number that may have a decimal comma."""
    return float(word.replace(",", ".") if "." not in word else word)


def content_lines(text: str) -> list[str]:
    """Return the lines that are neither blank nor comments."""
    return [
        line.strip()
        for line in text.splitlines()
        if line.strip() and not line.lstrip().startswith("#")
    ]


def _from_text(path: Path, count: int | None) -> LightTable:
    text = read_text(path, "light file")
    lines = content_lines(text)
    # Files of the University of Washington start with a line ``Header: ...`` and the number of lights.
    if lines and lines[0].casefold().startswith("header:"):
        lines = lines[1:]
    if len(lines) > 1 and lines[0].isdecimal() and int(lines[0]) == len(lines) - 1:
        lines = lines[1:]
    if not lines:
        raise _FileError("light-file-empty", f"is empty. {_PER_LINE}")
    rows = [_split(line) for line in lines]
    if not any(_is_number(word) for word in rows[0]) and len(rows[0]) > 1:
        return replace(_from_header(rows, path), balls=balls_in(text))
    files: tuple[str, ...] | None = None
    if all(not _is_number(row[0]) for row in rows):
        files = tuple(base_name(row[0]) for row in rows)
        values = _rectangle([row[1:] for row in rows])
    else:
        values = _rectangle(_numbers(lines))
        # Three lines of numbers are all x, all y, all z; three lines of three are three lights.
        lights = values.shape[1]
        if len(values) == 3 and lights != 3 and (lights not in (4, 6) or lights == count):
            return LightTable(path, np.ascontiguousarray(values.T))
    if values.shape[1] not in (3, 4, 6):
        wanted = "x y z per line (optionally with one strength, or three for R G B), or three lines: all x, all y, all z"
        words = f"has {values.shape[0]} lines of {values.shape[1]} numbers; expected {wanted}."
        raise _FileError("light-file-shape", words)
    strengths = {3: None, 4: values[:, 3:].reshape(-1), 6: values[:, 3:]}[values.shape[1]]
    return LightTable(path, np.ascontiguousarray(values[:, :3]), strengths, files)


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


def _unknown_columns(header: list[str]) -> _FileError:
    named = f"names the columns {', '.join(header)}"
    angles = [word for word in header if _OTHER_ANGLE.fullmatch(word)]
    if angles:
        words = (
            f"{named}. It is not certain how {' and '.join(angles)} are measured: rename them to "
            "azimuth (degrees, counterclockwise from the right) and elevation (degrees above the "
            "table), or write x, y, z."
        )
        return _FileError("light-file-columns", words)
    wanted = (
        "expected x, y, z or azimuth, elevation, and optionally file and intensity (or r, g, b)"
    )
    return _FileError("light-file-columns", f"{named}; {wanted}. Rename them.")


def _from_header(rows: list[list[str]], path: Path) -> LightTable:
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
            raise _FileError("light-file-line", words)
        body.append(whole)
    return body


def _cells(body: list[list[str]], columns: list[int]) -> Float64:
    """Return the numbers in some columns."""
    return _rectangle([[row[column] for column in columns] for row in body])


def _from_angles(angles: Float64) -> Float64:
    """Return directions (d, 3) from azimuths, counterclockwise from the right, and elevations above the image plane.

    Both are in degrees. Angles in radians are an error: no light is less than two degrees high in every photograph.
    """
    if len(angles) > 1 and (np.abs(angles) <= [2 * np.pi + 0.01, 0.5 * np.pi + 0.01]).all():
        words = (
            f"has azimuths up to {angles[:, 0].max():.3g} and elevations up to "
            f"{angles[:, 1].max():.3g}, which must be radians. Write degrees (multiply by 57.2958)."
        )
        raise _FileError("light-angles-radians", words)
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
        row[error] if row[source] == ESTIMATED and _is_number(row[error]) else "nan" for row in body
    ]
    values = np.array([decimal(word) for word in words])
    if np.isfinite(values).any():
        return values
    return None


def _split(line: str) -> list[str]:
    """Split a line into words: at tabs or semicolons if any, else at commas (unless decimal), else at blanks."""
    for mark in ("\t", ";"):
        if mark in line:
            return [word.strip() for word in line.split(mark) if word.strip()]
    blanks = line.split()
    if "," not in line or (len(blanks) >= 3 and any(_DECIMAL_COMMA.match(word) for word in blanks)):
        return blanks
    return [word.strip() for word in line.rstrip(",").split(",")]


def _numbers(lines: list[str]) -> list[list[str]]:
    # Commas separate numbers in one file and mark decimals in another; the whole file decides, not a single line.
    loose = [re.split(r"[;\s]+", line.strip("; \t")) for line in lines]
    decimals = all(
        _DECIMAL_COMMA.match(word) or _WHOLE.match(word) for row in loose for word in row
    )
    if decimals:
        return loose
    return [[w for w in re.split(r"[,;\s]+", line) if w] for line in lines]


def _rectangle(rows: list[list[str]]) -> Float64:
    if not rows:
        raise _FileError("light-file-empty", f"contains no lights. {_PER_LINE}")
    for number, row in enumerate(rows, 1):
        if wrong := [word for word in row if not _is_number(word)]:
            words = f"has {wrong[0]!r} in row {number} of its numbers, which cannot be understood. Example: 0.1 0.2 0.97."
            raise _FileError("light-file-line", words)
        if len(row) != len(rows[0]):
            words = f"has {len(rows[0])} numbers in its first row but {len(row)} in row {number}. Complete that row."
            raise _FileError("light-file-line", words)
    return np.array([[decimal(word) for word in row] for row in rows])


def _is_number(word: str) -> bool:
    try:
        decimal(word)
    except ValueError:
        return False
    return True


def _from_json(path: Path) -> LightTable:
    data = read_json(path, "light file", remedy=_JSON[0].upper() + _JSON[1:] + ".")
    about = data if isinstance(data, dict) else {"lights": data}
    try:
        lights = about["lights"]
        strengths = about.get("intensities")
        if not lights:
            raise _FileError("light-file-empty", f"contains no lights; {_JSON}.")
        if not isinstance(lights[0], dict):
            rows = np.array(lights, dtype=np.float64)
            lights = [
                {"direction": row} for row in (rows.T if len(rows) == 3 != rows.shape[1] else rows)
            ]
        first = lights[0]
        if "file" in first:
            files = tuple(base_name(str(entry["file"])) for entry in lights)
        else:
            files = None
        if "intensity" in first:
            strengths = [entry["intensity"] for entry in lights]
        key = "position" if "position" in first and "direction" not in first else "direction"
        signs = np.ones(3)
        if (
            "viewId" in first or "lightId" in first
        ):  # Meshroom: y points down, z away from the camera
            signs = np.array([1.0, -1.0, -1.0])
            kinds = {str(entry.get("type", "directional")) for entry in lights}
            if any(kind.lower() != "directional" for kind in kinds):
                other = f"contains lights of other types ({', '.join(kinds)})"
                raise _FileError("light-file-type", f"{other}; only directional ones can be used.")
        vectors = signs * np.array([entry[key] for entry in lights], dtype=np.float64)
        intensities = None if strengths is None else np.array(strengths, dtype=np.float64)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise _FileError(
            "light-file-shape", f"does not describe lights ({error!r}); {_JSON}."
        ) from error
    fits = intensities is None or intensities.shape in ((len(vectors),), (len(vectors), 3))
    if vectors.ndim != 2 or vectors.shape[1] != 3 or not fits:
        raise _FileError(
            "light-file-shape", f"has directions or intensities of uneven shape; {_JSON}."
        )
    table = LightTable(path, np.ascontiguousarray(vectors), intensities, files)
    if key == "direction":
        return table
    unit = about.get("unit", "mm")
    pixel_size = about.get("pixel_size")
    try:
        scale = PixelSize.of(f"1{unit}").millimeters
        size = None if pixel_size is None else PixelSize.of(pixel_size).millimeters
    except ParameterError as error:
        raise CaptureError(f"{path}: {error}", code="light-units", file=path, unit=unit) from error
    return replace(table, positions=scale * table.vectors, unit="mm", pixel_size=size)


def _from_mat(path: Path, count: int | None) -> LightTable:
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
        raise _FileError("light-file-columns", f"{words} {hint}")
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
