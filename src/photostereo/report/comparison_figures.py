"""The figures of a comparison: a table, and shares of pixels below an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray
from photostereo.diagnosis.exposure import typical_residual
from photostereo.report import wording
from photostereo.report.entries import Basis, Entry
from photostereo.report.figures import ERROR_TOP
from photostereo.report.learning import Chart
from photostereo.report.plots import Series, legend, line_chart, style_of
from photostereo.solver.reconstruction import Reconstruction


def figures_table(
    results: Sequence[Reconstruction],
    entries: Sequence[Entry],
    basis: Basis,
    expected: Sequence[float | None] = (),
) -> dict[str, Any]:
    """Figures by method; in each column the best is marked."""
    columns: list[tuple[str, NDArray[np.float64], str, int]] = []
    if basis.truth is not None:
        errors = [entry.error[basis.mask] for entry in entries if entry.error is not None]
        columns = [
            ("Mean error", np.array([error.mean() for error in errors]), "{:.2f}°", -1),
            ("Median", np.array([np.median(error) for error in errors]), "{:.2f}°", -1),
            ("90 % below", np.array([np.percentile(error, 90) for error in errors]), "{:.1f}°", -1),
            ("Within 5°", np.array([100 * (error <= 5).mean() for error in errors]), "{:.0f} %", 1),
            ("Within 10°", np.array([100 * (error <= 10).mean() for error in errors]), "{:.0f} %", 1),
        ]
    if basis.capture is not None:
        residuals = [100 * typical_residual(result.normals, basis.capture) for result in results]
        columns.append(("Unexplained", np.array(residuals), "{:.1f} %", -1))
    if any(degrees is not None for degrees in expected):
        columns.append(("Expected error", np.array(expected, dtype=np.float64), "{:.1f}°", -1))
    seconds = np.array([sum(result.seconds.values()) for result in results])
    columns.append(("Time", seconds, "", -1))
    rows = []
    for number, result in enumerate(results):
        cells = []
        for name, values, form, sign in columns:
            best = len(results) > 1 and bool(
                np.isclose(values[number], np.nanmax(values * sign) * sign, rtol=1e-9)
            )
            text = wording.duration(values[number]) if name == "Time" else form.format(values[number])
            text = "–" if np.isnan(values[number]) else text
            # The bar's length: the share of the column's largest value.
            share = float(values[number] / values.max()) if values.max() > 0 else 0.0
            cells.append(
                {
                    "text": text,
                    "value": "Infinity" if np.isnan(values[number]) else float(values[number]),
                    "best": best,
                    "bar": round(100 * share, 1) if name == "Mean error" else None,
                }
            )
        rows.append(
            {
                "method": entries[number].name,
                "title": entries[number].title,
                "cells": cells,
                "status": wording.status_words(result),
            }
        )
    return {"headings": [name for name, *_ in columns], "rows": rows}


def error_chart(entries: Sequence[Entry], mask: BoolArray) -> list[Chart]:
    """If there is a truth: the share of the pixels below an error, over that error."""
    judged = [entry for entry in entries if entry.error is not None]
    if not judged:
        return []
    angles = np.linspace(0, ERROR_TOP, 91)
    series = []
    for number, entry in enumerate(judged):
        assert entry.error is not None
        ordered = np.sort(entry.error[mask])
        shares = 100 * np.searchsorted(ordered, angles, side="right") / len(ordered)
        series.append(Series(entry.name, shares.tolist(), *style_of(number)))
    plot: Markup = line_chart(
        angles.tolist(),
        series,
        x_label="angular error, degrees",
        y_label="share of pixels below it",
        suffix=" %",
        y_range=(0.0, 100.0),
        summary="Share of pixels below an angular error, by method",
    )
    return [
        Chart("Pixels below an error", plot, legend(series), "The higher and the further left, the better.")
    ]
