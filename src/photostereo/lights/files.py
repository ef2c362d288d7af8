"""Light files: text, CSV and JSON, as people write them.

Text and CSV
    One line per light (``x y z``), or three lines (all x, all y, all z); commas, semicolons, tabs or blanks
    between numbers; decimal commas; an optional header line; an optional column of file names; optionally one
    strength or three (R, G, B) after the direction. Lines that begin with ``#`` are comments.

    A line ``Header: ...`` and a line with the number of lights may come first.

    Columns ``position_x``, ``position_y``, ``position_z`` say where near lamps stand, in pixels from the middle of the
    frame; columns ``widths_x``, ``widths_y``, ``widths_z`` in widths of the object from its middle.

JSON
    A list of ``[x, y, z]``, or ``{"lights": [...], "intensities": [...]}``, or a list of
    ``{"file": ..., "direction": [x, y, z], "intensity": ...}``; also what Meshroom writes.

MATLAB
    A ``.mat`` file with ``light_directions`` (or the only array of three columns or rows), perhaps
    ``light_intensities``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.errors import CaptureError
from photostereo.files.safe import read_json, read_text
from photostereo.lights.ball_lines import balls_in
from photostereo.lights.foreign import from_meshroom, is_meshroom, read_mat

#: Strengths of lights that make sense in any unit: single precision holds what is divided by them.
STRENGTHS = (1e-20, 1e20)

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
_POSITION_WORDS = ("position_x", "position_y", "position_z")
_WIDTHS_WORDS = ("widths_x", "widths_y", "widths_z")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?$")
_WHOLE = re.compile(r"[+-]?\d+$")


@dataclass(frozen=True, eq=False)
class LightTable:
    """What a light file says.

    Attributes
    ----------
    path : the file
    vectors : (d, 3) directions as written, not normalised, none of them zero
    intensities : (d,) or (d, 3) strengths, or None
    files : base names of the photographs, one per light, or None
    positions : (d, 3) of near lamps in pixels from the middle of the frame, or None
    in_widths : the positions are in widths of the object from its middle instead
    balls : (column, row, radius) of balls in the photographs that the lights were found from
    """

    path: Path
    vectors: NDArray[np.float64]
    intensities: NDArray[np.float64] | None = None
    files: tuple[str, ...] | None = None
    positions: NDArray[np.float64] | None = None
    in_widths: bool = False
    balls: tuple[tuple[float, float, float], ...] = ()

    @property
    def lengths(self) -> NDArray[np.float64]:
        """The norm of each vector as written; in some layouts it carries the strength of the light."""
        return row_lengths(self.vectors)

    def length_note(self) -> tuple[str, ...]:
        """A note for the user if the vectors are not unit and their lengths are not used."""
        low, high = self.lengths.min(), self.lengths.max()
        if high - 1 < 0.01 and 1 - low < 0.01:
            return ()
        return (
            f"the vectors in {self.path.name} have lengths from {low:.3g} to {high:.3g}; only their "
            "directions are used. Give strengths in columns of their own if the lengths mean strength",
        )

    def in_order_of(self, photographs: Sequence[Path]) -> LightTable:
        """The lights in the order of the photographs, where the file names them; as they stand where not."""
        if self.files is None:
            return self
        self.require_names_of(photographs)
        place = {name.casefold(): index for index, name in enumerate(self.files)}
        order = [place[photograph.name.casefold()] for photograph in photographs]
        strengths = None if self.intensities is None else self.intensities[order]
        positions = None if self.positions is None else self.positions[order]
        return replace(
            self,
            vectors=self.vectors[order],
            intensities=strengths,
            files=tuple(self.files[i] for i in order),
            positions=positions,
        )

    def require_names_of(self, photographs: Sequence[Path]) -> None:
        """Raise a :class:`CaptureError` unless the file names each of these photographs once, and no other."""
        assert self.files is not None
        named = [name.casefold() for name in self.files]
        present = [photograph.name.casefold() for photograph in photographs]
        for name, key in zip(self.files, named, strict=True):
            if key not in present:
                raise CaptureError(
                    f"{self.path} names {name}, which is not among the photographs. Correct the name, or restore "
                    "the photograph."
                )
            if named.count(key) > 1:
                raise CaptureError(
                    f"{self.path} names {name} twice. Each photograph has exactly one light: correct the file."
                )
        for photograph in photographs:
            if photograph.name.casefold() not in named:
                raise CaptureError(
                    f"{self.path} has no light for {photograph.name}. Each photograph needs exactly one: complete "
                    "the file, or remove the photograph."
                )


def read_lights(path: Path, *, count: int | None = None) -> LightTable:
    """Read a light file; ``count``, the number of photographs, settles what 3 lines of 4 or 6 numbers mean.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "lights.csv"
    >>> _ = file.write_text("file,x,y,z,intensity\\na.png,0,0,1,2\\nb.png,0.6,0,0.8,3\\n")
    >>> table = read_lights(file)
    >>> table.files, table.vectors.tolist(), table.intensities.tolist()
    (('a.png', 'b.png'), [[0.0, 0.0, 1.0], [0.6, 0.0, 0.8]], [2.0, 3.0])
    """
    if path.suffix.lower() == ".mat":
        vectors, strengths = read_mat(path, count)
        intensities = None if strengths is None else np.asarray(strengths, dtype=np.float64)
        return checked(LightTable(path, np.ascontiguousarray(vectors, dtype=np.float64), intensities))
    if path.suffix.lower() == ".json":
        return checked(_from_json(path))
    return checked(_from_text(read_text(path, "light file"), path, count))


def read_intensities(path: Path, count: int) -> NDArray[np.float64]:
    """Strengths of the lights, (d,) or (d, 3): d lines of 1 or 3 numbers, or 1 or 3 lines of d numbers."""
    rows = _numbers(content_lines(read_text(path, "light intensity file")), path)
    values = np.array(rows)
    if values.shape in ((1, count), (3, count)) and values.shape != (count, count):
        values = values.T
    if values.ndim != 2 or values.shape[1] not in (1, 3):
        raise CaptureError(
            f"{path} has {values.shape[0]} lines of {values.shape[1]} numbers; expected one line per "
            "photograph with one strength or three (R G B)."
        )
    if len(values) != count:
        raise CaptureError(
            f"{path} has the strengths of {len(values)} lights, but there are {count} photographs. Each "
            "photograph needs exactly one line: add the missing ones or remove the extra ones."
        )
    require_strengths(values, path)
    return values[:, 0] if values.shape[1] == 1 else values


def base_name(name: str) -> str:
    """The last part of a path that was written on any system.

    >>> base_name(r"C:\\\\RTI\\\\my coin\\\\coin 01.jpg"), base_name("shots/a.png")
    ('coin 01.jpg', 'a.png')
    """
    return PureWindowsPath(name.strip().strip('"')).name


def decimal(word: str) -> float:
    """A number that may have a decimal comma.

    >>> decimal("0,25"), decimal("-1.5e-3")
    (0.25, -0.0015)
    """
    return float(word.replace(",", ".") if "." not in word else word)


def content_lines(text: str) -> list[str]:
    """Lines that say something: no blanks, no comments."""
    return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def checked(table: LightTable) -> LightTable:
    """The table itself if every vector has a direction and every strength is positive; else an error."""
    for number, vector in enumerate(table.vectors):
        label = f"light {number + 1}" + (f" ({table.files[number]})" if table.files else "")
        if not np.isfinite(vector).all():
            raise CaptureError(
                f"In {table.path} {label} has a value that is NaN or infinite. Correct that line."
            )
        if np.abs(vector).max() < 1e-12:
            raise CaptureError(
                f"In {table.path} {label} is the zero vector, which has no direction. Correct that line, or "
                "leave out the photograph together with its light."
            )
    if table.intensities is not None:
        require_strengths(table.intensities, table.path)
    if table.positions is not None and not (
        np.isfinite(table.positions).all() and (table.positions[:, 2] > 0).all()
    ):
        raise CaptureError(
            f"In {table.path} a lamp has no position above the table (its z is not positive, or not a number). "
            "Correct that line, or remove the columns of the positions."
        )
    return table


def require_strengths(values: NDArray[Any], path: Path) -> None:
    """Raise a :class:`CaptureError` unless every strength is positive and of a size that single precision holds."""
    low, high = STRENGTHS
    bad = ~((values >= low) & (values <= high))
    if bad.any():
        row = int(np.argwhere(bad)[0][0])
        raise CaptureError(
            f"In {path} the strength of light {row + 1} is not a positive number (from {low:g} to {high:g}). "
            "Correct that line, or leave out the photograph together with its light."
        )


def row_lengths(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """The Euclidean norm of each row, also where its square would overflow.

    >>> [f"{length:.3g}" for length in row_lengths(np.array([[3.0, 0, 4], [3e200, 0, 4e200]]))]
    ['5', '5e+200']
    """
    top = np.abs(vectors).max(axis=1, initial=1e-300)
    far = np.where(top > 1e100, top, 1.0)
    return np.asarray(far * np.linalg.norm(vectors / far[:, None], axis=1))


def _from_text(text: str, path: Path, count: int | None) -> LightTable:
    lines = content_lines(text)
    if not lines:
        raise CaptureError(f"The light file {path} is empty. Write one line x y z per photograph.")
    lines = _without_count(lines)
    rows = [_split(line) for line in lines]
    if not any(_is_number(word) for word in rows[0]) and len(rows[0]) > 1:
        return replace(_from_header(rows, path), balls=balls_in(text))
    files: tuple[str, ...] | None = None
    if all(not _is_number(row[0]) for row in rows):
        files = tuple(base_name(row[0]) for row in rows)
        rows = [row[1:] for row in rows]
        values = _rectangle(rows, path)
        by_line = True
    else:
        values = np.array(_numbers(lines, path))
        by_line = not _is_transposed(values.shape, count)
    if not by_line:
        return LightTable(path, np.ascontiguousarray(values.T))
    if values.shape[1] not in (3, 4, 6):
        raise CaptureError(
            f"{path} has {values.shape[0]} lines of {values.shape[1]} numbers; expected x y z per line (and "
            "perhaps one strength, or three for R G B), or three lines with all x, all y and all z."
        )
    strengths = {3: None, 4: values[:, 3:].reshape(-1), 6: values[:, 3:]}[values.shape[1]]
    return LightTable(path, np.ascontiguousarray(values[:, :3]), strengths, files)


def _without_count(lines: list[str]) -> list[str]:
    """Without a line ``Header: ...`` and the number of lights, as the University of Washington writes them.

    >>> _without_count(["Header: chrome.txt", "2", "0 0 1", "0 0.6 0.8"])
    ['0 0 1', '0 0.6 0.8']
    """
    body = lines[1:] if lines[0].casefold().startswith("header:") else lines
    counted = len(body) > 1 and body[0].isdecimal() and int(body[0]) == len(body) - 1
    return body[1:] if counted else body or lines


def _is_transposed(shape: tuple[int, ...], count: int | None) -> bool:
    """Whether three lines of numbers are all x, all y, all z. Three lines of three are three lights."""
    if shape[0] != 3 or shape[1] == 3:
        return False
    return shape[1] not in (4, 6) or count == shape[1]


def _from_header(rows: list[list[str]], path: Path) -> LightTable:
    header = [word.strip().strip('"').casefold() for word in rows[0]]
    axes = {_AXIS_WORDS[word]: column for column, word in enumerate(header) if word in _AXIS_WORDS}
    strengths = [column for column, word in enumerate(header) if word in _STRENGTH_WORDS]
    strengths.sort(key=lambda column: _STRENGTH_WORDS[header[column]])
    names = [column for column, word in enumerate(header) if word in _FILE_WORDS]
    places = [header.index(word) for word in _POSITION_WORDS if word in header]
    in_widths = not places and all(word in header for word in _WIDTHS_WORDS)
    if in_widths:
        places = [header.index(word) for word in _WIDTHS_WORDS]
    if not axes and len(places) == 3:  # where a lamp stands says in which direction it is seen
        axes = dict(enumerate(places))
    if len(axes) != 3 or len(strengths) not in (0, 1, 3):
        raise CaptureError(
            f"The first line of {path} names the columns {', '.join(header)}; expected x, y, z, and perhaps "
            "file and intensity (or r, g, b). Rename the columns."
        )
    body = rows[1:]
    for number, row in enumerate(body):
        if len(row) != len(header):
            raise CaptureError(
                f"Row {number + 1} of {path} has {len(row)} values, but the first line names {len(header)} "
                "columns. Correct that row."
            )
    wanted = [axes[0], axes[1], axes[2], *strengths, *(places if len(places) == 3 else [])]
    values = _rectangle([[row[column] for column in wanted] for row in body], path)
    files = tuple(base_name(row[names[0]]) for row in body) if names else None
    intensity = None if not strengths else values[:, 3] if len(strengths) == 1 else values[:, 3:6]
    positions = np.ascontiguousarray(values[:, -3:]) if len(places) == 3 else None
    return LightTable(
        path, np.ascontiguousarray(values[:, :3]), intensity, files, positions, in_widths=in_widths
    )


def _split(line: str) -> list[str]:
    """The words of a line: at tabs or semicolons if any, else at commas (unless decimal), else at blanks."""
    for mark in ("\t", ";"):
        if mark in line:
            return [word.strip() for word in line.split(mark) if word.strip()]
    blanks = line.split()
    if "," not in line or (len(blanks) >= 3 and any(_DECIMAL_COMMA.match(word) for word in blanks)):
        return blanks
    return [word.strip() for word in line.rstrip(",").split(",")] if "," in line else blanks


def _numbers(lines: list[str], path: Path) -> list[list[float]]:
    # Commas divide numbers in one file and mark decimals in another; the whole file decides, not a line.
    loose = [re.split(r"[;\s]+", line.strip("; \t")) for line in lines]
    words = [word for row in loose for word in row]
    decimals = any("," in word for word in words) and all(
        _DECIMAL_COMMA.match(word) or _WHOLE.match(word) for word in words
    )
    rows = loose if decimals else [[w for w in re.split(r"[,;\s]+", line) if w] for line in lines]
    return [[float(value) for value in row] for row in _rectangle(rows, path)]


def _rectangle(rows: list[list[str]], path: Path) -> NDArray[np.float64]:
    if not rows:
        raise CaptureError(f"{path} holds no lights. Write one line x y z per photograph.")
    values = []
    for number, row in enumerate(rows):
        try:
            values.append([decimal(word) for word in row])
        except ValueError as error:
            raise CaptureError(
                f"Line {number + 1} of the numbers in {path} cannot be understood: {' '.join(row)!r}. "
                "Expected numbers such as 0.1 0.2 0.97."
            ) from error
        if len(row) != len(rows[0]):
            raise CaptureError(
                f"{path} has {len(rows[0])} numbers in its first line but {len(row)} in line {number + 1}. "
                "Every line must have the same count: complete it."
            )
    return np.array(values, dtype=np.float64)


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
    try:
        if isinstance(data, dict):
            strengths = data.get("intensities")
            data = data["lights"]
        if not data:
            raise CaptureError(f"{path} holds no lights; {shape}.")
        files = None
        if is_meshroom(data[0]):
            data, strengths = from_meshroom(data, path)
        elif isinstance(data[0], dict):
            if "file" in data[0]:
                files = tuple(base_name(str(entry["file"])) for entry in data)
            if "intensity" in data[0]:
                strengths = [entry["intensity"] for entry in data]
            data = [entry["direction"] for entry in data]
        vectors = np.array(data, dtype=np.float64)
        if vectors.ndim == 2 and vectors.shape[0] == 3 and vectors.shape[1] != 3:
            vectors = vectors.T
        intensities = None if strengths is None else np.array(strengths, dtype=np.float64)
    except CaptureError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise CaptureError(f"{path} does not describe lights ({error!r}); {shape}.") from error
    fits = intensities is None or intensities.shape in ((len(vectors),), (len(vectors), 3))
    if vectors.ndim != 2 or vectors.shape[1] != 3 or not fits:
        raise CaptureError(f"{path} has directions or intensities of uneven shape; {shape}.")
    return LightTable(path, np.ascontiguousarray(vectors), intensities, files)
