"""Read light files in common layouts: text, CSV and JSON.

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

from photostereo.core.errors import CaptureError, ParameterError
from photostereo.core.units import PixelSize
from photostereo.io.safe import read_json, read_text
from photostereo.lights.files.foreign import from_meshroom, is_meshroom, read_mat
from photostereo.lights.files.table import LightTable, bad_light_file, balls_in, checked, require_strengths

_FILE_WORDS = frozenset(
    ["file", "filename", "filenames", "image", "img", "name", "photo", "photograph", "picture", "path"]
)
_AXIS_WORDS = {
    **dict.fromkeys(("x", "lx", "dx", "dirx", "direction_x", "light_x", "l_x"), 0),
    **dict.fromkeys(("y", "ly", "dy", "diry", "direction_y", "light_y", "l_y"), 1),
    **dict.fromkeys(("z", "lz", "dz", "dirz", "direction_z", "light_z", "l_z"), 2),
}
_STRENGTH_WORDS = {
    **dict.fromkeys(("intensity", "strength", "brightness", "i", "power"), 0),
    **dict.fromkeys(("r", "red", "intensity_r", "ir", "i_r"), 0),
    **dict.fromkeys(("g", "green", "intensity_g", "ig", "i_g"), 1),
    **dict.fromkeys(("b", "blue", "intensity_b", "ib", "i_b"), 2),
}
#: Prefixes of position columns, by unit.
_POSITION_UNITS = {"position": "pixels", "widths": "widths", "mm": "mm"}
#: Source that :mod:`.writing` gives for lights estimated from the photographs.
ESTIMATED = "estimated"
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?$")
_WHOLE = re.compile(r"[+-]?\d+$")


def read_lights(path: Path, *, count: int | None = None) -> LightTable:
    """Read a light file; ``count``, the number of photographs, determines the meaning of 3 lines of 4 or 6 numbers.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "lights.csv"
    >>> _ = file.write_text("file,x,y,z,intensity\\na.png,0,0,1,2\\nb.png,0.6,0,0.8,3\\n")
    >>> table = read_lights(file)
    >>> table.files, table.vectors.tolist(), table.intensities.tolist()
    (('a.png', 'b.png'), [[0.0, 0.0, 1.0], [0.6, 0.0, 0.8]], [2.0, 3.0])
    """
    suffix = path.suffix.lower()
    if suffix == ".mat":
        return checked(LightTable(path, *read_mat(path, count)))
    return checked(_from_json(path) if suffix == ".json" else _from_text(path, count))


def read_intensities(path: Path, count: int) -> NDArray[np.float64]:
    """Read strengths of the lights, (d,) or (d, 3): d lines of 1 or 3 numbers, or 1 or 3 lines of d numbers."""
    values = _rectangle(_numbers(content_lines(read_text(path, "light intensity file"))), path)
    if values.shape in ((1, count), (3, count)) and values.shape != (count, count):
        values = values.T
    if values.shape[1] not in (1, 3):
        raise _wrong_shape(values, path, "one line per photograph with one strength or three (R G B)")
    if len(values) != count:
        raise bad_light_file(
            path,
            "lights-count",
            f"has the strengths of {len(values)} lights, but there are {count} photographs. Each "
            "photograph needs exactly one line: add the missing ones or remove the extra ones.",
            lights=len(values),
            photographs=count,
        )
    require_strengths(values, path)
    return values[:, 0] if values.shape[1] == 1 else values


def base_name(name: str) -> str:
    """Return the last part of a path written on any system.

    >>> base_name(r"C:\\\\RTI\\\\my coin\\\\coin 01.jpg"), base_name("shots/a.png")
    ('coin 01.jpg', 'a.png')
    """
    return PureWindowsPath(name.strip().strip('"')).name


def decimal(word: str) -> float:
    """Parse a number that may have a decimal comma.

    >>> decimal("0,25"), decimal("-1.5e-3")
    (0.25, -0.0015)
    """
    return float(word.replace(",", ".") if "." not in word else word)


def content_lines(text: str) -> list[str]:
    """Return the lines that are neither blank nor comments."""
    return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def _from_text(path: Path, count: int | None) -> LightTable:
    text = read_text(path, "light file")
    lines = content_lines(text)
    if not lines:
        raise bad_light_file(path, "light-file-empty", "is empty. Write one line x y z per photograph.")
    lines = _without_count(lines)
    rows = [_split(line) for line in lines]
    if not any(_is_number(word) for word in rows[0]) and len(rows[0]) > 1:
        return replace(_from_header(rows, path), balls=balls_in(text))
    files: tuple[str, ...] | None = None
    if all(not _is_number(row[0]) for row in rows):
        files = tuple(base_name(row[0]) for row in rows)
        values = _rectangle([row[1:] for row in rows], path)
    else:
        values = _rectangle(_numbers(lines), path)
        if _is_transposed(values.shape, count):
            return LightTable(path, np.ascontiguousarray(values.T))
    if values.shape[1] not in (3, 4, 6):
        wanted = "x y z per line (optionally with one strength, or three for R G B), or three lines: all x, all y, all z"
        raise _wrong_shape(values, path, wanted)
    strengths = {3: None, 4: values[:, 3:].reshape(-1), 6: values[:, 3:]}[values.shape[1]]
    return LightTable(path, np.ascontiguousarray(values[:, :3]), strengths, files)


def _without_count(lines: list[str]) -> list[str]:
    """Remove a line ``Header: ...`` and the number of lights, as in files of the University of Washington.

    >>> _without_count(["Header: chrome.txt", "2", "0 0 1", "0 0.6 0.8"])
    ['0 0 1', '0 0.6 0.8']
    """
    body = lines[1:] if lines[0].casefold().startswith("header:") else lines
    counted = len(body) > 1 and body[0].isdecimal() and int(body[0]) == len(body) - 1
    return body[1:] if counted else body or lines


def _is_transposed(shape: tuple[int, ...], count: int | None) -> bool:
    """Return whether three lines of numbers are all x, all y, all z. Three lines of three are three lights."""
    if shape[0] != 3 or shape[1] == 3:
        return False
    return shape[1] not in (4, 6) or count == shape[1]


def _from_header(rows: list[list[str]], path: Path) -> LightTable:
    header = [word.strip().strip('"').casefold() for word in rows[0]]
    axes = {_AXIS_WORDS[word]: column for column, word in enumerate(header) if word in _AXIS_WORDS}
    strengths = [column for column, word in enumerate(header) if word in _STRENGTH_WORDS]
    strengths.sort(key=lambda column: _STRENGTH_WORDS[header[column]])
    names = [column for column, word in enumerate(header) if word in _FILE_WORDS]
    angles = [header.index(word) for word in ("azimuth", "elevation") if word in header]
    words = next((w for w in _POSITION_UNITS if all(f"{w}_{axis}" in header for axis in "xyz")), None)
    places = [header.index(f"{words}_{axis}") for axis in "xyz"] if words else []
    # The position of a light gives its direction.
    toward = [axes[k] for k in sorted(axes)] or (angles if len(angles) == 2 else places)
    if len(axes) not in (0, 3) or not toward or len(strengths) not in (0, 1, 3):
        named = f"names the columns {', '.join(header)}; expected x, y, z, and optionally file and intensity (or r, g, b)."
        raise bad_light_file(path, "light-file-columns", f"{named} Rename them.", columns=list(header))
    # Commas at the end of a line are empty cells.
    body = [[*row, *[""] * (len(header) - len(row))] if names else row for row in rows[1:]]
    for number, row in enumerate(body):
        if len(row) != len(header):
            wrong = f"has {len(row)} values in row {number + 1}, but names {len(header)} columns. Correct that row."
            raise bad_light_file(path, "light-file-line", wrong, line=number + 1)
    open_directions = _left_open(body, toward, ("0", "90") if toward is angles else ("0", "0", "1"))
    open_strengths = _left_open(body, strengths, ("1",) * len(strengths))
    wanted = [*toward, *strengths, *places]
    values = _rectangle([[row[column] for column in wanted] for row in body], path)
    vectors, values = np.split(values, [len(toward)], axis=1)
    if toward is angles:  # azimuth from the right, counterclockwise; elevation above the image plane
        around, above = np.radians(vectors.T)
        vectors = np.stack([np.cos(above) * np.cos(around), np.cos(above) * np.sin(around), np.sin(above)], 1)
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
) -> NDArray[np.bool_] | None:
    """Return the rows whose cells in these columns are all empty, and fill them in; None if there are none."""
    rows = np.array([bool(columns) and not any(row[column] for column in columns) for row in body])
    for number in np.flatnonzero(rows).tolist():
        for column, word in zip(columns, placeholder, strict=True):
            body[number][column] = word
    return rows if rows.any() else None


def _errors_of_estimates(header: list[str], body: list[list[str]]) -> NDArray[np.float64] | None:
    """Return expected errors of lights marked as estimated in a file of ours, NaN for others; None if there are none."""
    if not {"residual_degrees", "found_from"} <= set(header):
        return None
    error, source = header.index("residual_degrees"), header.index("found_from")
    words = [row[error] if row[source] == ESTIMATED and _is_number(row[error]) else "nan" for row in body]
    values = np.array([decimal(word) for word in words])
    return values if np.isfinite(values).any() else None


def _split(line: str) -> list[str]:
    """Split a line into words: at tabs or semicolons if any, else at commas (unless decimal), else at blanks."""
    for mark in ("\t", ";"):
        if mark in line:
            return [word.strip() for word in line.split(mark) if word.strip()]
    blanks = line.split()
    if "," not in line or (len(blanks) >= 3 and any(_DECIMAL_COMMA.match(word) for word in blanks)):
        return blanks
    return [word.strip() for word in line.rstrip(",").split(",")] if "," in line else blanks


def _numbers(lines: list[str]) -> list[list[str]]:
    # Commas separate numbers in one file and mark decimals in another; the whole file decides, not a single line.
    loose = [re.split(r"[;\s]+", line.strip("; \t")) for line in lines]
    words = [word for row in loose for word in row]
    decimals = any("," in word for word in words) and all(
        _DECIMAL_COMMA.match(word) or _WHOLE.match(word) for word in words
    )
    return loose if decimals else [[w for w in re.split(r"[,;\s]+", line) if w] for line in lines]


def _rectangle(rows: list[list[str]], path: Path) -> NDArray[np.float64]:
    if not rows:
        raise bad_light_file(
            path, "light-file-empty", "contains no lights. Write one line x y z per photograph."
        )
    values = []
    for number, row in enumerate(rows):
        try:
            values.append([decimal(word) for word in row])
        except ValueError as error:
            words = f"has {' '.join(row)!r} in line {number + 1}, which cannot be understood. Example: 0.1 0.2 0.97."
            raise bad_light_file(path, "light-file-line", words, line=number + 1) from error
        if len(row) != len(rows[0]):
            words = f"has {len(rows[0])} numbers in its first line but {len(row)} in line {number + 1}. Complete that line."
            raise bad_light_file(path, "light-file-line", words, line=number + 1)
    return np.array(values, dtype=np.float64)


def _wrong_shape(values: NDArray[Any], path: Path, wanted: str) -> CaptureError:
    words = f"has {values.shape[0]} lines of {values.shape[1]} numbers; expected {wanted}."
    return bad_light_file(path, "light-file-shape", words)


def _is_number(word: str) -> bool:
    try:
        decimal(word)
    except ValueError:
        return False
    return True


def _from_json(path: Path) -> LightTable:
    shape = (
        'expected {"lights": [{"file": "a.png", "direction": [x, y, z], "intensity": 1}, ...]} '
        "or a list of [x, y, z]"
    )
    data = read_json(path, "light file", remedy=shape[0].upper() + shape[1:] + ".")
    strengths: Any = None
    about: dict[str, Any] = {}
    files, is_position = None, False
    try:
        if isinstance(data, dict):
            about, data = data, data["lights"]
            strengths = about.get("intensities")
        if not data:
            raise bad_light_file(path, "light-file-empty", f"contains no lights; {shape}.")
        if is_meshroom(data[0]):
            data, strengths = from_meshroom(data, path)
        elif isinstance(data[0], dict):
            if "file" in data[0]:
                files = tuple(base_name(str(entry["file"])) for entry in data)
            if "intensity" in data[0]:
                strengths = [entry["intensity"] for entry in data]
            is_position = "direction" not in data[0] and "position" in data[0]
            data = [entry["position" if is_position else "direction"] for entry in data]
        vectors = np.array(data, dtype=np.float64)
        if vectors.ndim == 2 and vectors.shape[0] == 3 and vectors.shape[1] != 3:
            vectors = vectors.T
        intensities = None if strengths is None else np.array(strengths, dtype=np.float64)
    except CaptureError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise bad_light_file(
            path, "light-file-shape", f"does not describe lights ({error!r}); {shape}."
        ) from error
    fits = intensities is None or intensities.shape in ((len(vectors),), (len(vectors), 3))
    if vectors.ndim != 2 or vectors.shape[1] != 3 or not fits:
        raise bad_light_file(
            path, "light-file-shape", f"has directions or intensities of uneven shape; {shape}."
        )
    table = LightTable(path, np.ascontiguousarray(vectors), intensities, files)
    if not is_position:
        return table
    unit, pixel_size = about.get("unit", "mm"), about.get("pixel_size")
    try:
        scale = PixelSize.of(f"1{unit}").millimeters
        size = None if pixel_size is None else PixelSize.of(pixel_size).millimeters
    except ParameterError as error:
        raise CaptureError(f"{path}: {error}", code="light-units", file=path, unit=unit) from error
    return replace(table, positions=scale * table.vectors, unit="mm", pixel_size=size)
