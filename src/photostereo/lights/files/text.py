"""Text and CSV: numbers in lines, with or without the names of the photographs and of the columns.

The file may start with a line ``Header: ...`` and a line with the number of lights, and may have comments (``#``) and one
or three strengths (R, G, B) after the direction.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from photostereo.io.safe import read_text
from photostereo.lights.files.columns import from_header
from photostereo.lights.files.format import LightFileError, LightFormat
from photostereo.lights.files.numbers import (
    PER_LINE,
    base_name,
    content_lines,
    is_number,
    numbers,
    rectangle,
    words_of,
)
from photostereo.lights.files.table import LightTable, balls_in


def read(path: Path, count: int | None) -> LightTable:
    """Read a text file; ``count`` determines the meaning of 3 lines of 4 or 6 numbers."""
    text = read_text(path, "light file")
    lines = content_lines(text)
    # Files of the University of Washington start with a line ``Header: ...`` and the number of lights.
    if lines and lines[0].casefold().startswith("header:"):
        lines = lines[1:]
    if len(lines) > 1 and lines[0].isdecimal() and int(lines[0]) == len(lines) - 1:
        lines = lines[1:]
    if not lines:
        raise LightFileError("light-file-empty", f"is empty. {PER_LINE}")
    rows = [words_of(line) for line in lines]
    if not any(is_number(word) for word in rows[0]) and len(rows[0]) > 1:
        return replace(from_header(rows, path), balls=balls_in(text))
    files: tuple[str, ...] | None = None
    if all(not is_number(row[0]) for row in rows):
        files = tuple(base_name(row[0]) for row in rows)
        values = rectangle([row[1:] for row in rows])
    else:
        values = rectangle(numbers(lines))
        # Three lines of numbers are all x, all y, all z; three lines of three are three lights.
        lights = values.shape[1]
        if len(values) == 3 and lights != 3 and (lights not in (4, 6) or lights == count):
            return LightTable(path, np.ascontiguousarray(values.T))
    if values.shape[1] not in (3, 4, 6):
        wanted = "x y z per line (optionally with one strength, or three for R G B), or three lines: all x, all y, all z"
        words = f"has {values.shape[0]} lines of {values.shape[1]} numbers; expected {wanted}."
        raise LightFileError("light-file-shape", words)
    strengths = {3: None, 4: values[:, 3:].reshape(-1), 6: values[:, 3:]}[values.shape[1]]
    return LightTable(path, np.ascontiguousarray(values[:, :3]), strengths, files)


TEXT = LightFormat(
    name="text",
    suffixes=(".csv", ".txt"),
    read=read,
    names=("lights.csv", "lights.txt", "light_directions.txt"),
)
