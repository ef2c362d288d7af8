"""Tables as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path

from photostereo.io import tables
from photostereo.io.atomic import write_text


class Table(tables.Table):
    """A table in every format."""

    def csv(self) -> str:
        """Return the table as CSV, without its title and notes."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.header, *self.rows])
        return text.getvalue()

    def markdown(self) -> str:
        """Return the table with its title and notes in Markdown.

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
        write_text(folder / f"{name}.csv", self.csv())
        write_text(folder / f"{name}.md", self.markdown())
        write_text(folder / f"{name}.tex", self.latex(name))


def best_in_rows(values: Sequence[Sequence[float | None]]) -> set[tuple[int, int]]:
    """Return row and column of the lowest value of each row.

    Column 0 holds the names of the rows, so that the first value is in column 1.

    >>> best_in_rows([[3.0, 2.0, None], [None, None, None]])
    {(0, 2)}
    """
    places = set()
    for row, cells in enumerate(values):
        numbers = [
            (value, column)
            for column, value in enumerate(cells, 1)
            if value is not None and not math.isnan(value)
        ]
        if numbers:
            places.add((row, min(numbers)[1]))
    return places


def _bars(row: Sequence[str]) -> str:
    """Return a row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
