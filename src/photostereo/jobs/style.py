"""How figures look: one colour and one name per method, wherever it appears."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Method → colour (Okabe and Ito's palette, safe for colour-blind readers, and greys).
COLOURS = {
    "pdlnv": "#d55e00",
    "dlnv": "#0072b2",
    "dlsr": "#882255",
    "pls": "#e69f00",
    "ls": "#555555",
    "sbl": "#009e73",
    "l1": "#88ccaa",
    "rpca": "#cc79a7",
    "cbr": "#56b4e9",
}
#: Method → marker.
MARKERS = {
    "pdlnv": "o", "dlnv": "s", "dlsr": "P", "pls": "D", "ls": "x", "sbl": "^", "l1": "<", "rpca": "v",
    "cbr": "*",
}  # fmt: skip
#: Method → its name in the literature.
NAMES = {
    "pdlnv": "PDLNV", "dlnv": "DLNV", "dlsr": "DLSR", "pls": "PLS", "ls": "LS", "sbl": "SR (SBL)", "l1":
    "SR (L1)",
    "rpca": "RPCA", "cbr": "CBR",
}  # fmt: skip
_OTHERS = ("#117733", "#332288", "#aa4499", "#999933", "#661100", "#44aa99")

#: Dots per inch of the PNG beside each PDF.
PNG_DPI = 130


def colour_of(method: str, number: int = 0) -> str:
    """A method's own colour; for others one that depends on their number."""
    return COLOURS.get(method, _OTHERS[number % len(_OTHERS)])


def name_of(method: str) -> str:
    """``"sbl"`` → ``"SR (SBL)"``; unknown ones as they are."""
    return NAMES.get(method, method)


def new_figure(width: float, height: float) -> Figure:
    """A figure without any global state, so that drawing needs no display and leaves nothing behind."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, folder: Path, name: str = "figure") -> list[Path]:
    """``name.pdf`` and ``name.png``, without dates inside, so that the same figure gives the same files."""
    folder.mkdir(parents=True, exist_ok=True)
    pdf, png = folder / f"{name}.pdf", folder / f"{name}.png"
    figure.savefig(pdf, metadata={"CreationDate": None}, dpi=200)
    figure.savefig(png, dpi=PNG_DPI, metadata={"Software": None})
    return [pdf, png]
