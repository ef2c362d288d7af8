"""RTI light-position files (``.lp``): the count in the first line, then ``filename x y z``.

Names may have blanks, or be absolute Windows paths (the last part counts); decimal commas are accepted.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from photostereo.core.errors import CaptureError
from photostereo.io.safe import read_text
from photostereo.lights.files.format import LightFormat
from photostereo.lights.files.numbers import base_name, content_lines, decimal
from photostereo.lights.files.table import LightTable


def read(path: Path, count: int | None = None) -> LightTable:
    """Read the table in an ``.lp`` file."""
    table, announced = read_positions(path)
    if len(table.vectors) != announced:
        raise wrong_count(path, announced, len(table.vectors))
    return table


def read_positions(path: Path) -> tuple[LightTable, int]:
    """Read the table, and the number of photographs that the first line announces."""
    lines = content_lines(read_text(path, "light-position file"))
    try:
        announced = int(lines[0])
    except (IndexError, ValueError) as error:
        raise CaptureError(
            f"The first line of {path} must be the number of photographs; the others: filename x "
            "y z. Correct the file.",
            code="light-file-header",
            file=path,
        ) from error
    entries = [_entry(line, number + 2, path) for number, line in enumerate(lines[1:])]
    if not entries:
        raise CaptureError(
            f"{path} lists no photographs. Add lines: filename x y z.",
            code="light-file-empty",
            file=path,
        )
    names = tuple(name for name, _ in entries)
    vectors = np.array([vector for _, vector in entries])
    return LightTable(path, vectors, files=names), announced


def wrong_count(path: Path, announced: int, count: int) -> CaptureError:
    few = "fewer" if count < announced else "more"
    return CaptureError(
        f"{path} announces {announced} photographs in its first line but lists {count}, "
        f"{few} than that. Complete the list, or correct the number.",
        code="light-file-count",
        file=path,
        announced=announced,
        found=count,
        few=few,
    )


def _entry(line: str, number: int, path: Path) -> tuple[str, tuple[float, float, float]]:
    words = line.rsplit(None, 3)
    if len(words) != 4:
        words = line.rsplit(";", 3) if line.count(";") >= 3 else line.rsplit(",", 3)
    try:
        x, y, z = (decimal(word.strip().rstrip(",;")) for word in words[1:])
        return base_name(words[0].strip().rstrip(",;")), (x, y, z)
    except ValueError as error:
        raise CaptureError(
            f"Line {number} of {path} cannot be understood: {line!r}. Expected: filename x y z.",
            code="light-file-line",
            file=path,
            line=number,
            content=line,
        ) from error


POSITIONS = LightFormat(name="RTI light positions", suffixes=(".lp",), read=read)
