"""Tables as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from photostereo.io.atomic import write_text


@dataclass(frozen=True)
class Table:
    """Cells as they are printed."""

    title: str  #: one line
    header: Sequence[str]  #: names of the columns
    rows: Sequence[Sequence[str]]  #: a text for each column
    notes: Sequence[str] = ()  #: what a reader must know: substitutions, missing objects, what was averaged
    best: Collection[tuple[int, int]] = ()  #: row and column of cells that LaTeX sets in bold

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
        marks = "|" + "|".join("--:" if right else ":--" for right in self._of_numbers()) + "|"
        lines = [f"**{self.title}**", "", _bars(self.header), marks, *map(_bars, self.rows)]
        return "\n".join([*lines, "", *(line for note in self.notes for line in (note, ""))])

    def latex(self, label: str = "table") -> str:
        """A ``table`` environment that can be referred to as ``tab:label``, without columns that say nothing."""
        told = [c for c in range(len(self.header)) if any(row[c] not in ("", "–") for row in self.rows)]
        numbers = self._of_numbers()
        columns = "".join("r" if numbers[c] else "l" for c in told)
        cells = [
            [rf"\textbf{{{_tex(row[c])}}}" if (r, c) in self.best else _tex(row[c]) for c in told]
            for r, row in enumerate(self.rows)
        ]
        lines = [" & ".join(row) + r" \\" for row in ([_tex(self.header[c]) for c in told], *cells)]
        caption = _tex(" ".join([f"{self.title}.", *self.notes]))
        return "\n".join(
            [
                r"\begin{table}", r"\centering", rf"\caption{{{caption}}}", rf"\label{{tab:{label}}}",
                rf"\begin{{tabular}}{{{columns}}}", r"\hline", lines[0], r"\hline", *lines[1:], r"\hline",
                r"\end{tabular}", r"\end{table}", "",
            ]
        )  # fmt: skip

    def write(self, folder: Path, name: str = "table") -> None:
        """Write ``name.csv``, ``name.md`` and ``name.tex``."""
        for suffix, text in ((".csv", self.csv()), (".md", self.markdown()), (".tex", self.latex(name))):
            write_text(folder / f"{name}{suffix}", text)

    def _of_numbers(self) -> list[bool]:
        """For each column but the first, whether it holds numbers; they are aligned to the right."""
        number = re.compile(r"[-+−–]?[\d.]*( .*|%|°)?")
        return [
            place > 0 and all(number.fullmatch(row[place]) for row in self.rows)
            for place in range(len(self.header))
        ]


def best_in_rows(values: Sequence[Sequence[float | None]]) -> set[tuple[int, int]]:
    """Row and column of the lowest value of each row; the names of the rows are column 0.

    >>> best_in_rows([[3.0, 2.0, None], [None, None, None]])
    {(0, 2)}
    """
    found = set()
    for row, cells in enumerate(values):
        known = {place: value for place, value in enumerate(cells) if value is not None and value == value}
        if known:
            found.add((row, 1 + min(known, key=lambda place: known[place])))
    return found


def _bars(row: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "λ": r"$\lambda$", "μ": r"$\mu$",
    "°": r"$^\circ$", "×": r"$\times$", "–": "--", "‖": r"$\|$", "−": "$-$", "≤": r"$\le$",
}  # fmt: skip


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in text)
