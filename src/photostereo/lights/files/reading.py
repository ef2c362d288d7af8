"""Read light files: text, CSV and JSON, also Meshroom's, and MATLAB's .mat.

``docs/lights.md`` describes the content of a file. Beyond that, text and CSV may start with a line ``Header: ...`` and a
line with the number of lights, and may have comments (``#``) and one or three strengths (R, G, B) after the direction;
JSON may be a list of ``[x, y, z]``, or ``{"lights": [...], "intensities": [...]}``, with a ``"unit"`` for positions. A
``.mat`` file has ``light_directions``, or only one array of three columns or rows.
"""

from __future__ import annotations

import re
from dataclasses import replace
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


def _from_header(rows: list[list[str]], path: Path) -> LightTable:
    header = [word.strip().strip('"').casefold() for word in rows[0]]
    axes = {
        match[1]: column for column, word in enumerate(header) if (match := _AXIS.fullmatch(word))
    }
    colors = {
        column: match[1]
        for column, word in enumerate(header)
        if (match := _STRENGTH.fullmatch(word))
    }
    strengths = sorted(colors, key=lambda column: "rgb".find((colors[column] or "r")[0]))
    names = [column for column, word in enumerate(header) if _FILE.fullmatch(word)]
    angles = [header.index(word) for word in ("azimuth", "elevation") if word in header]
    words = next(
        (w for w in _POSITION_UNITS if all(f"{w}_{axis}" in header for axis in "xyz")), None
    )
    places = [header.index(f"{words}_{axis}") for axis in "xyz"] if words else []
    # The position of a light gives its direction.
    toward = [axes[k] for k in sorted(axes)] or (angles if len(angles) == 2 else places)
    if len(axes) not in (0, 3) or not toward or len(strengths) not in (0, 1, 3):
        named = f"names the columns {', '.join(header)}; expected x, y, z, and optionally file and intensity (or r, g, b)."
        raise _FileError("light-file-columns", f"{named} Rename them.")
    # Commas at the end of a line are empty cells.
    body = [[*row, *[""] * (len(header) - len(row))] if names else row for row in rows[1:]]
    for number, row in enumerate(body):
        if len(row) != len(header):
            wrong = f"has {len(row)} values in row {number + 1}, but names {len(header)} columns. Correct that row."
            raise _FileError("light-file-line", wrong)
    open_directions = _left_open(body, toward, ("0", "90") if toward is angles else ("0", "0", "1"))
    open_strengths = _left_open(body, strengths, ("1",) * len(strengths))
    wanted = [*toward, *strengths, *places]
    values = _rectangle([[row[column] for column in wanted] for row in body])
    vectors, values = np.split(values, [len(toward)], axis=1)
    if (
        toward is angles
    ):  # azimuth from the right, counterclockwise; elevation above the image plane
        around, above = np.radians(vectors.T)
        vectors = np.stack(
            [np.cos(above) * np.cos(around), np.cos(above) * np.sin(around), np.sin(above)], 1
        )
    intensity = None if not strengths else values[:, 0] if len(strengths) == 1 else values[:, :3]
    if intensity is not None and open_strengths is not None and not open_strengths.all():
        intensity[open_strengths] = intensity[~open_strengths].mean(axis=0)
    return LightTable(
        path,
        np.ascontiguousarray(vectors),
        intensity,
        tuple(base_name(row[names[0]]) for row in body) if names else None,
        np.ascontiguousarray(values[:, -3:]) if places else None,
        unit=_POSITION_UNITS[words or "position"],
        open_directions=open_directions,
        open_strengths=open_strengths,
        errors=_errors_of_estimates(header, body),
    )


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
