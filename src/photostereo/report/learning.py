"""Convergence of a method with a prior: curves over the iterations, dictionary before and after learning."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import Iteration
from photostereo.report import pictures
from photostereo.report.pictures import Picture, shown
from photostereo.report.plots import Chart, Series, legend, line_chart
from photostereo.solver.reconstruction import Reconstruction

#: Figures of a prior that are cost terms, with their names in the chart; every other figure has its own chart.
COST_TERMS = {"fit": "dictionary fit", "sparsity": "sparsity", "roughness": "roughness"}
#: Headings of charts of single figures; by default, the name of the figure.
HEADINGS = {"nonzeros": "Share of non-zero codes"}


def convergence_charts(history: Sequence[Iteration]) -> list[Chart]:
    """Plot cost by term, the prior's other figures and, if the truth is known, the error over the iterations."""
    if not history:
        return []
    last = history[-1]
    chart = partial(line_chart, [record.number for record in history], x_label="iteration")

    def single(title: str, line: Series, note: str, **options: Any) -> Chart:
        plot = chart([line], y_label=line.name, summary=f"{line.name}: {note}", **options)
        return Chart(title, plot, note=note)

    terms = [
        Series("whole cost", [record.cost for record in history], 1),
        Series("data", [record.data for record in history], 2),
    ]
    charts = []
    for name in last.figures:
        values = [record.figures[name] for record in history]
        if name in COST_TERMS:
            terms.append(Series(COST_TERMS[name], values, 1 + len(terms)))
        else:
            title = HEADINGS.get(name, name)
            note = f"{values[-1]:.2g} at the end."
            charts.append(single(title, Series(title, values, 4), note, zero=True))
    summary = (
        f"The cost fell from {history[0].cost:.4g} to {last.cost:.4g} in {len(history)} iterations"
    )
    cost = chart(terms, y_label="cost", summary=summary, zero=True, allow_log=True)
    errors = [record.error for record in history if record.error is not None]
    if len(errors) == len(history):
        note = (
            f"From {errors[0]:.2f}° after the first to {errors[-1]:.2f}° after the last iteration."
        )
        charts.append(single("Error", Series("mean angular error", errors, 5), note, suffix="°"))
    return [Chart("Cost by term", cost, legend(terms)), *charts]


def atom_pictures(result: Reconstruction) -> dict[str, Picture]:
    """The dictionary ``before`` and ``after`` learning, the most used atoms first."""
    learned = result.arrays.get("dictionary")
    patch = result.parameters.get("patch")
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
    """Arrange atoms (K, m: component, y, x) as RGBA tiles, each scaled to its own largest value."""
    width, height, depth = (int(side) for side in patch)
    count = len(atoms)
    across = int(np.ceil(np.sqrt(count * height / width * 1.6)))
    down = int(np.ceil(count / across))
    tiles = np.asarray(atoms, np.float64).reshape(count, depth, height, width)
    top = np.abs(tiles).reshape(count, -1).max(axis=1)
    scaled = 0.5 + 0.5 * tiles / np.where(top > 0, top, 1.0)[:, None, None, None]
    colors = np.moveaxis(scaled if depth == 3 else np.repeat(scaled[:, :1], 3, axis=1), 1, -1)
    sheet = np.zeros((down * across, height + 1, width + 1, 4), dtype=np.uint8)
    sheet[:count, :height, :width, :3] = np.rint(255 * colors)
    sheet[:count, :height, :width, 3] = 255
    rows = sheet.reshape(down, across, height + 1, width + 1, 4).swapaxes(1, 2)
    return rows.reshape(down * (height + 1), across * (width + 1), 4)[:-1, :-1]
