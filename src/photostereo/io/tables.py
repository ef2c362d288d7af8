"""Tables in LaTeX."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table of cells, formatted for printing."""

    title: str  #: one line
    header: Sequence[str]  #: names of the columns
    rows: Sequence[Sequence[str]]  #: a text for each column
    #: what a reader must know: substitutions, missing objects, what was averaged
    notes: Sequence[str] = ()
    best: Collection[tuple[int, int]] = ()  #: row and column of cells that LaTeX sets in bold

    def latex(self, label: str = "table") -> str:
        """A ``table`` environment that can be referred to as ``tab:label``, without empty columns."""
        columns = [
            c for c in range(len(self.header)) if any(row[c] not in ("", "–") for row in self.rows)
        ]
        numbers = self.of_numbers()
        alignment = "".join("r" if numbers[c] else "l" for c in columns)
        cells = [[_tex(self.header[c]) for c in columns]]
        for r, row in enumerate(self.rows):
            cells.append([self._cell(r, c, row[c]) for c in columns])
        lines = [" & ".join(row) + r" \\" for row in cells]
        caption = _tex(" ".join([f"{self.title}.", *self.notes]))
        return "\n".join(
            [
                r"\begin{table}", r"\centering", rf"\caption{{{caption}}}", rf"\label{{tab:{label}}}",
                rf"\begin{{tabular}}{{{alignment}}}", r"\hline", lines[0], r"\hline", *lines[1:], r"\hline",
                r"\end{tabular}", r"\end{table}", "",
            ]
        )  # fmt: skip

    def _cell(self, row: int, column: int, text: str) -> str:
        if (row, column) in self.best:
            return rf"\textbf{{{_tex(text)}}}"
        return _tex(text)

    def of_numbers(self) -> list[bool]:
        """For each column but the first, whether it holds numbers; they are aligned to the right."""
        number = re.compile(r"[-+−–]?[\d.]*( .*|%|°)?")
        return [
            place > 0 and all(number.fullmatch(row[place]) for row in self.rows)
            for place in range(len(self.header))
        ]


_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "λ": r"$\lambda$", "μ": r"$\mu$",
    "°": r"$^\circ$", "×": r"$\times$", "–": "--", "‖": r"$\|$", "−": "$-$", "≤": r"$\le$",
}  # fmt: skip


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in text)
