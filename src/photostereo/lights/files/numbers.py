"""Numbers and names in the lines of a light file."""

from __future__ import annotations

import re
from pathlib import PureWindowsPath

import numpy as np

from photostereo.core.conventions import Float64
from photostereo.lights.files.format import LightFileError

_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?$")
_WHOLE = re.compile(r"[+-]?\d+$")
PER_LINE = "Write one line x y z per photograph."


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


def words_of(line: str) -> list[str]:
    """Split a line into words: at tabs or semicolons if any, else at commas (unless decimal), else at blanks."""
    for mark in ("\t", ";"):
        if mark in line:
            return [word.strip() for word in line.split(mark) if word.strip()]
    blanks = line.split()
    if "," not in line or (len(blanks) >= 3 and any(_DECIMAL_COMMA.match(word) for word in blanks)):
        return blanks
    return [word.strip() for word in line.rstrip(",").split(",")]


def numbers(lines: list[str]) -> list[list[str]]:
    """Split lines of nothing but numbers into words."""
    # Commas separate numbers in one file and mark decimals in another; the whole file decides, not a single line.
    loose = [re.split(r"[;\s]+", line.strip("; \t")) for line in lines]
    decimals = all(
        _DECIMAL_COMMA.match(word) or _WHOLE.match(word) for row in loose for word in row
    )
    if decimals:
        return loose
    return [[w for w in re.split(r"[,;\s]+", line) if w] for line in lines]


def rectangle(rows: list[list[str]]) -> Float64:
    """Convert rows of words to numbers; raise an error if one is none, or if the rows differ in length."""
    if not rows:
        raise LightFileError("light-file-empty", f"contains no lights. {PER_LINE}")
    for number, row in enumerate(rows, 1):
        if wrong := [word for word in row if not is_number(word)]:
            words = f"has {wrong[0]!r} in row {number} of its numbers, which cannot be understood. Example: 0.1 0.2 0.97."
            raise LightFileError("light-file-line", words)
        if len(row) != len(rows[0]):
            words = f"has {len(rows[0])} numbers in its first row but {len(row)} in row {number}. Complete that row."
            raise LightFileError("light-file-line", words)
    return np.array([[decimal(word) for word in row] for row in rows])


def is_number(word: str) -> bool:
    """Whether a word is a number, also with a decimal comma."""
    try:
        decimal(word)
    except ValueError:
        return False
    return True
