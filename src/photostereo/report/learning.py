"""How a method with a prior converged: curves over the iterations, and a dictionary before and after learning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import Iteration
from photostereo.report import pictures
from photostereo.report.figures import Picture, shown
from photostereo.report.plots import Chart, Series, legend, line_chart

if TYPE_CHECKING:
    from photostereo.solver.reconstruction import Reconstruction


#: Figures of a prior that are terms of the cost, with their names in the chart; each other figure has its own chart.
COST_TERMS = {"fit": "dictionary fit", "sparsity": "sparsity", "roughness": "roughness"}
#: Headings of charts of single figures; others are headed by their name.
HEADINGS = {"nonzeros": "Share of non-zero codes"}


def convergence_charts(history: Sequence[Iteration]) -> list[Chart]:
    """Cost by term, the prior's other figures and, if the truth is known, error over the iterations."""
    if not history:
        return []
    x = [record.number for record in history]
    last = history[-1]
    terms = [
        Series("whole cost", [record.cost for record in history], 1),
        Series("data", [record.data for record in history], 2),
    ]
    for name in [name for name in last.figures if name in COST_TERMS]:
        values = [record.figures[name] for record in history]
        terms.append(Series(COST_TERMS[name], values, 1 + len(terms)))
    summary = f"The cost fell from {history[0].cost:.4g} to {last.cost:.4g} in {len(history)} iterations"
    plot = line_chart(
        x, terms, x_label="iteration", y_label="cost", zero=True, allow_log=True, summary=summary
    )
    charts = [Chart("Cost by term", plot, legend(terms))]
    for name in [name for name in last.figures if name not in COST_TERMS]:
        title, values = HEADINGS.get(name, name), [record.figures[name] for record in history]
        charts.append(_single(x, title, title, values, 4, f"{values[-1]:.2g} at the end.", zero=True))
    errors = [record.error for record in history if record.error is not None]
    if len(errors) == len(history):
        note = f"From {errors[0]:.2f}° after the first to {errors[-1]:.2f}° after the last iteration."
        charts.append(_single(x, "Error", "mean angular error", errors, 5, note, suffix="°"))
    return charts


def _single(
    x: Sequence[float], title: str, label: str, values: Sequence[float], tone: int, note: str, **options: Any
) -> Chart:
    summary = f"{label}: {note}"
    lines = [Series(label, values, tone)]
    return Chart(
        title, line_chart(x, lines, x_label="iteration", y_label=label, summary=summary, **options), note=note
    )


def atom_pictures(result: Reconstruction) -> dict[str, Picture]:
    """The dictionary ``before`` and ``after`` learning, the most used atoms first."""
    learned, patch = result.arrays.get("dictionary"), result.parameters.get("patch")
    if learned is None or patch is None:
        return {}
    use = result.arrays.get("atom_use")
    order = np.arange(len(learned)) if use is None else np.argsort(-np.asarray(use), kind="stable")
    return {
        when: shown(atom_sheet(np.asarray(atoms)[order], tuple(patch)), pictures.png)
        for when, atoms in (("before", result.arrays.get("dictionary_initial")), ("after", learned))
        if atoms is not None and len(atoms) == len(order)
    }


def atom_sheet(atoms: NDArray[Any], patch: tuple[int, ...]) -> NDArray[np.uint8]:
    """Atoms (K, m) as tiles, RGBA; each is scaled to its own largest value.

    A row of ``atoms`` has its components slowest, then y, then x.
    """
    width, height, depth = (int(side) for side in patch)
    count = len(atoms)
    across = int(np.ceil(np.sqrt(count * height / width * 1.6)))
    down = int(np.ceil(count / across))
    tiles = np.asarray(atoms, np.float64).reshape(count, depth, height, width)
    top = np.abs(tiles).reshape(count, -1).max(axis=1)
    scaled = 0.5 + 0.5 * tiles / np.where(top > 0, top, 1.0)[:, None, None, None]
    colors = np.moveaxis(scaled if depth == 3 else np.repeat(scaled[:, :1], 3, axis=1), 1, -1)
    sheet = np.zeros((down * (height + 1) - 1, across * (width + 1) - 1, 4), dtype=np.uint8)
    for number, tile in enumerate(colors):
        row, col = divmod(number, across)
        y, x = row * (height + 1), col * (width + 1)
        sheet[y : y + height, x : x + width, :3] = np.rint(255 * tile)
        sheet[y : y + height, x : x + width, 3] = 255
    return sheet
