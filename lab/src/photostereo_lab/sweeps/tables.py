"""Tables as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from photostereo.io import tables
from photostereo.io.atomic import write_text


class Table(tables.Table):
    """A table in every format."""

    def csv(self) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.header, *self.rows])
        return text.getvalue()

    def markdown(self) -> str:
        """
        >>> print(Table("Errors", ("object", "LS"), (("cat", "8.41"),), ("in degrees",)).markdown())
        **Errors**
        <BLANKLINE>
        | object | LS |
        |:--|--:|
        | cat | 8.41 |
        <BLANKLINE>
        in degrees
        <BLANKLINE>
        """
        marks = "|" + "|".join("--:" if right else ":--" for right in self.of_numbers()) + "|"
        lines = [f"**{self.title}**", "", _bars(self.header), marks, *map(_bars, self.rows)]
        return "\n".join([*lines, "", *(line for note in self.notes for line in (note, ""))])

    def write(self, folder: Path, name: str = "table") -> None:
        """Write ``name.csv``, ``name.md`` and ``name.tex``."""
        for suffix, text in (
            (".csv", self.csv()),
            (".md", self.markdown()),
            (".tex", self.latex(name)),
        ):
            write_text(folder / f"{name}{suffix}", text)


def best_in_rows(values: Sequence[Sequence[float | None]]) -> set[tuple[int, int]]:
    """Return row and column of the lowest value of each row; column 0 holds the names of the rows.

    >>> best_in_rows([[3.0, 2.0, None], [None, None, None]])
    {(0, 2)}
    """
    found = set()
    for row, cells in enumerate(values):
        known = {
            place: value
            for place, value in enumerate(cells)
            if value is not None and value == value
        }
        if known:
            found.add((row, 1 + min(known, key=lambda place: known[place])))
    return found


def _bars(row: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
