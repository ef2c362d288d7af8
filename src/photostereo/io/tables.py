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
    notes: Sequence[
        str
    ] = ()  #: what a reader must know: substitutions, missing objects, what was averaged
    best: Collection[tuple[int, int]] = ()  #: row and column of cells that LaTeX sets in bold

    def latex(self, label: str = "table") -> str:
        """A ``table`` environment that can be referred to as ``tab:label``, without empty columns."""
        told = [
            c for c in range(len(self.header)) if any(row[c] not in ("", "–") for row in self.rows)
        ]
        numbers = self.of_numbers()
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
