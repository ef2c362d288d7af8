"""How figures look: one color and one name per method, wherever it appears."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from photostereo.core.extras import require_extra
from photostereo.io.atomic import replacing_file
from photostereo.reflectance.entry import Look

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: For labels without a color of their own.
_OTHERS = ("#117733", "#332288", "#aa4499", "#999933", "#661100", "#44aa99")

#: Dots per inch of the PNG beside each PDF.
PNG_DPI = 130


def look_of(label: str, number: int = 0) -> Look:
    """Name, color and marker of a method; for other labels the label, and a color by their number.

    Words in brackets behind a method stay behind its name.
    """
    from photostereo.core.errors import ParameterError
    from photostereo.solver.methods import find_method

    other = _OTHERS[number % len(_OTHERS)]
    method, bracket, words = label.partition(" (")
    try:
        look = find_method(method).look
    except ParameterError:
        return Look(label, other)
    look = replace(look, label=look.label + bracket + words)
    return look if look.color else replace(look, color=other)


def color_of(method: str, number: int = 0) -> str:
    """A method's own color; for others one that depends on their number."""
    return look_of(method, number).color


def name_of(method: str) -> str:
    """``"sbl"`` → ``"SR (SBL)"``; unknown ones as they are.

    >>> name_of("sbl"), name_of("pdlnv p=3"), name_of("dlnet (ours)")
    ('SR (SBL)', 'pdlnv p=3', 'DLnet (ours)')
    """
    return look_of(method).label


def new_figure(width: float, height: float) -> Figure:
    """A figure without any global state, so that drawing needs no display and leaves nothing behind."""
    require_extra("matplotlib", "figures", "Figures")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, folder: Path, name: str = "figure") -> list[Path]:
    """``name.pdf`` and ``name.png``, without dates inside, so that the same figure gives the same files."""
    folder.mkdir(parents=True, exist_ok=True)
    pdf, png = folder / f"{name}.pdf", folder / f"{name}.png"
    with replacing_file(pdf, force=True) as partial:
        figure.savefig(partial, metadata={"CreationDate": None}, dpi=200)
    with replacing_file(png, force=True) as partial:
        figure.savefig(partial, dpi=PNG_DPI, metadata={"Software": None})
    return [pdf, png]
