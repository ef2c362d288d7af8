"""Tables as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from photostereo.io.atomic import write_text


@dataclass(frozen=True)
class Table:
    """Cells as they are printed.

    Attributes
    ----------
    title : one line
    header : names of the columns
    rows : as many texts as the header has
    notes : what a reader must know: substitutions, missing objects, what was averaged
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.header)
        writer.writerows(self.rows)
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
        lines = [f"**{self.title}**", "", _bars(self.header)]
        lines.append("|" + "|".join([":--"] + ["--:"] * (len(self.header) - 1)) + "|")
        lines += [_bars(row) for row in self.rows]
        lines += ["", *[line for note in self.notes for line in (note, "")]]
        return "\n".join(lines)

    def latex(self) -> str:
        columns = "l" + "r" * (len(self.header) - 1)
        body = [_tex_row(row) for row in self.rows]
        caption = " ".join([self.title + ".", *self.notes])
        return "\n".join(
            [
                r"\begin{table}",
                r"\centering",
                rf"\begin{{tabular}}{{{columns}}}",
                r"\hline",
                _tex_row(self.header),
                r"\hline",
                *body,
                r"\hline",
                r"\end{tabular}",
                rf"\caption{{{_tex(caption)}}}",
                r"\end{table}",
                "",
            ]
        )

    def write(self, folder: Path, name: str = "table") -> list[Path]:
        """Write ``name.csv``, ``name.md`` and ``name.tex``."""
        folder.mkdir(parents=True, exist_ok=True)
        texts = {".csv": self.csv(), ".md": self.markdown(), ".tex": self.latex()}
        written = []
        for suffix, text in texts.items():
            path = folder / f"{name}{suffix}"
            write_text(path, text)
            written.append(path)
        return written


def _bars(row: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def _tex_row(row: tuple[str, ...]) -> str:
    return " & ".join(_tex(cell) for cell in row) + r" \\"


_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "λ": r"$\lambda$", "μ": r"$\mu$",
    "°": r"$^\circ$", "×": r"$\times$", "–": "--", "‖": r"$\|$", "−": "$-$", "≤": r"$\le$",
}  # fmt: skip


def _tex(text: str) -> str:
    """
    >>> _tex("50 % ± 1_a")
    '50 \\\\% $\\\\pm$ 1\\\\_a'
    """
    return "".join(_TEX.get(letter, letter) for letter in text)
