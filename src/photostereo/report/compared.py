"""Results side by side on a comparison page: what is compared on which pixels, the table of figures, the chart of errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from photostereo.capture import Capture
from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.errors import ParameterError
from photostereo.diagnosis.exposure import typical_residual
from photostereo.diagnosis.metrics import angular_error
from photostereo.report import wording
from photostereo.report.figures import ERROR_TOP
from photostereo.report.plots import Chart, Series, legend, line_chart, style_of
from photostereo.solver.reconstruction import Reconstruction


@dataclass(frozen=True)
class Basis:
    """What results are compared on: the pixels, the truth and the photographs, if there are any."""

    name: str
    mask: BoolArray
    truth: FloatArray | None
    capture: Capture | None


@dataclass(frozen=True)
class Entry:
    """A result on the page: its key in the page's data, its name, its normals and their error."""

    key: str
    name: str
    title: str
    normals: FloatArray
    error: FloatArray | None
    folder: str | None = None
    depth: FloatArray | None = None


def basis_of(results: Sequence[Reconstruction], capture: Capture | None, truth: FloatArray | None) -> Basis:
    """The basis of results: that of their capture, or without it the pixels that all of them know."""
    frame = results[0].normals.shape[:2] if capture is None else capture.frame
    for result in results:
        _require_size(f"The result of {result.method}", result.normals, frame)
    if capture is not None:
        return Basis(capture.name, capture.mask, capture.truth if truth is None else truth, capture)
    if truth is not None:
        _require_size("The truth", truth, frame)
    mask = np.logical_and.reduce([result.mask for result in results])
    if not mask.any():
        raise ParameterError(code="nothing-in-common")
    return Basis(results[0].capture, mask, truth, None)


def _require_size(what: str, array: FloatArray, frame: tuple[int, ...]) -> None:
    if array.shape[:2] != frame:
        found, expected = (" × ".join(map(str, shape[:2])) for shape in (array.shape, frame))
        raise ParameterError(code="sizes-differ", what=what, found=found, expected=expected)


def entries_of(
    results: Sequence[Reconstruction],
    basis: Basis,
    *,
    labels: Sequence[str] | None = None,
    depths: Sequence[FloatArray | None] | None = None,
    folders: Sequence[str] | None = None,
) -> list[Entry]:
    """All results, then the truth, if it is known. Keys are our own, so that no name can do harm."""
    if depths is not None and len(depths) != len(results):
        raise ParameterError(code="counts-differ", results=len(results), depths=len(depths))
    entries = []
    for number, result in enumerate(results):
        depth = None if depths is None else depths[number]
        if depth is not None:
            _require_size(f"The depth map of {result.method}", depth, basis.mask.shape)
        if depth is not None and not np.isfinite(depth[basis.mask]).any():
            depth = None
        truth = basis.truth
        entries.append(
            Entry(
                f"r{number}",
                result.method if labels is None else labels[number],
                wording.method_words(result.method)[0],
                result.normals,
                None if truth is None else angular_error(result.normals, truth, basis.mask),
                None if folders is None else folders[number],
                depth,
            )
        )
    if basis.truth is not None:
        folder = None if folders is None else "truth"
        entries.append(Entry("truth", "truth", "True normals", basis.truth, None, folder))
    return entries


def figures_table(
    results: Sequence[Reconstruction],
    entries: Sequence[Entry],
    basis: Basis,
    expected: Sequence[float | None] = (),
) -> list[dict[str, Any]]:
    columns = []

    def add(heading: str, values: Sequence[Any], words: Callable[[float], str], sign: int = -1) -> None:
        numbers = np.array(values, dtype=np.float64)
        best = np.isclose(numbers, sign * np.nanmax(sign * numbers), rtol=1e-9) & (len(numbers) > 1)
        texts = ["–" if np.isnan(number) else words(number) for number in numbers]
        cells = list(zip(np.nan_to_num(numbers, nan=np.inf).tolist(), texts, best.tolist(), strict=True))
        columns.append({"heading": heading, "cells": cells})

    if basis.truth is not None:
        errors = [entry.error[basis.mask] for entry in entries if entry.error is not None]
        add("Mean error", [error.mean() for error in errors], "{:.2f}°".format)
        add("Median", [np.median(error) for error in errors], "{:.2f}°".format)
        add("90 % below", [np.percentile(error, 90) for error in errors], "{:.1f}°".format)
        for limit in (5, 10):
            add(f"Within {limit}°", [100 * (error <= limit).mean() for error in errors], "{:.0f} %".format, 1)
    if basis.capture is not None:
        left = [100 * typical_residual(result.normals, basis.capture) for result in results]
        add("Unexplained", left, "{:.1f} %".format)
    if any(degrees is not None for degrees in expected):
        add("Expected error", expected, "{:.1f}°".format)
    add("Time", [sum(result.seconds.values()) for result in results], wording.duration)
    return columns


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
