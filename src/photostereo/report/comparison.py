"""The comparison page: a slider between any two results of one capture, and a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from photostereo.capture import Capture
from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.errors import ParameterError
from photostereo.core.units import PixelSize
from photostereo.diagnosis.exposure import typical_residual
from photostereo.diagnosis.metrics import angular_error
from photostereo.report import pictures, wording
from photostereo.report.document import render_page, safe_links
from photostereo.report.page import identity_of
from photostereo.report.pictures import MAX_PIXELS, Frame, frame_around
from photostereo.report.plots import Chart, Series, color_bar, legend, line_chart, style_of
from photostereo.report.pyramid import PAGE_BYTES, UNKNOWN_SIZE, Layers, albedo_share, view_data
from photostereo.report.surface_parts import pack_heights
from photostereo.solver.auto_method import BEST
from photostereo.solver.reconstruction import Reconstruction

#: Upper limit of the scale of differences between two results, in degrees: methods that agree differ by a few.
DIFFERENCE_TOP = 20.0
#: Pixels of the pictures of all results together: the cards share the bytes of the view.
ALL_PIXELS = 1_200_000
#: Vertices of all surfaces together,
ALL_VERTICES = 300_000
#: and of one, within which it still turns smoothly and still shows relief.
MOST_VERTICES = 160_000
FEWEST_VERTICES = 12_000


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


def write_comparison(
    path: str | Path,
    results: Sequence[Reconstruction],
    capture: Capture | None,
    *,
    labels: Sequence[str] | None = None,
    truth: FloatArray | None = None,
    depths: Sequence[FloatArray | None] | None = None,
    files: Mapping[str, str] | None = None,
    folders: Sequence[str] | None = None,
    expected: Sequence[float | None] = (),
    pixel_size: PixelSize = UNKNOWN_SIZE,
    about: Mapping[str, str] | None = None,
    control: Control = SILENT,
) -> None:
    """Write one self-contained page that compares results of the same capture.

    Parameters
    ----------
    path : path
        The page.
    results : sequence of Reconstruction
        The results; those below are in the same order.
    capture : Capture, optional
        The photographs, for evidence from them.
    labels : sequence of str, optional
        Names of the results; by default their methods.
    truth : (H, W, 3) array, optional
        True normals; by default those of the capture. The page then shows errors.
    depths : sequence of arrays, optional
        Heights of each result, or None.
    files, pixel_size, about, control
        As for :func:`.page.write_report`.
    folders : sequence of str, optional
        Result folders beside the page, from which a served page reads finer tiles; those of the truth are in ``truth``.
    expected : sequence of float
        Expected errors in degrees.
    """
    if not results:
        raise ParameterError(
            "There is nothing to compare: give at least one result.",
            code="nothing-to-compare",
        )
    mask = compared_mask(results, capture, truth)
    if capture is not None and truth is None:
        truth = capture.truth
    entries = entries_of(results, mask, truth, labels=labels, depths=depths, folders=folders)
    # The pictures of the cards share the bytes of the view.
    frame = frame_around(mask, max_pixels=int(min(MAX_PIXELS, ALL_PIXELS / len(entries))))
    shown = []
    for entry in entries:
        control.check()
        shown.append({"entry": entry, **_cards(entry, mask, frame)})
    data: dict[str, Any] = {"compare": True, "identity": identity_of(results[0])}
    # The more results, the fewer vertices for each.
    most = min(MOST_VERTICES, max(FEWEST_VERTICES, ALL_VERTICES // len(entries)))
    heights = {entry.key: entry.depth for entry in entries if entry.depth is not None}
    grids = {
        key: pack_heights(depth, mask, frame, max_vertices=most) for key, depth in heights.items()
    }
    best = _best(results, entries, mask)
    first_surface = ""
    if grids:
        first_surface = best if best in grids else next(iter(grids))
        data["surface"] = {"grids": grids, "first": first_surface}
    context = {
        "about": about or {},
        "labeled": labels is not None,
        "color_bar": color_bar,
        "truth": truth,
        "capture": capture,
        "entries": shown,
        "results": results,
        "pair": _first_pair(entries, best),
        "surface_first": first_surface,
        "table": figures_table(results, entries, mask, capture, expected),
        "charts": error_chart(entries, mask),
        "links": safe_links(files or {}),
        "with_surface": [entry for entry in entries if entry.key in grids],
        "grid_step": int(next(iter(grids.values()))["step"]) if grids else 1,
    }
    page = render_page("compare.html", data, **context)
    # One albedo for all results: the page compares normals.
    albedos = [albedo_share(result.albedo, result.mask) for result in results]
    common = Layers(frame, mask, albedos=albedos)
    sides = {}
    for entry in entries:
        layers = Layers(frame, mask, entry.normals, depth=entry.depth)
        still = f"normals-{entry.key}"
        source = {"folder": entry.folder, "title": entry.name, "still": still}
        sides[entry.key] = (layers, source)
    data["relight"] = view_data(
        sides, common, pixel_size=pixel_size, room=page.room(PAGE_BYTES), control=control
    )
    data["relight"]["shown"] = context["pair"]
    data["relight"]["difference_top"] = DIFFERENCE_TOP
    _align_heights(data["relight"], heights, mask)
    page.write(path)


def _best(results: Sequence[Reconstruction], entries: Sequence[Entry], mask: BoolArray) -> str:
    """Key of the result with the smallest error; without a truth, of the default method, or else of the last one."""
    judged = {one.key: float(np.mean(one.error[mask])) for one in entries if one.error is not None}
    if judged:
        return min(judged, key=lambda key: judged[key])
    keys = [one.key for one, result in zip(entries, results, strict=False) if result.method == BEST]
    if keys:
        return keys[-1]
    return entries[len(results) - 1].key


def _cards(entry: Entry, mask: BoolArray, frame: Frame) -> dict[str, Any]:
    """Small pictures of a result and, if known, of its error."""
    factor = min(1.0, 360 / max(frame.height, frame.width))
    small = Frame(frame.rows, frame.cols, *pictures.scaled_size(frame.height, frame.width, factor))
    error = None if entry.error is None else pictures.map_picture(entry.error, mask, small)
    normals = pictures.normals_picture(*pictures.shrink_normals(entry.normals, mask, small))
    return {"normals": pictures.shown(normals), "error": error}


def _first_pair(entries: Sequence[Entry], best: str) -> list[str]:
    """The pair shown first: the first method and the best one."""
    keys = [entry.key for entry in entries if entry.key != "truth"]
    if len(keys) == 1:
        return [keys[0], entries[-1].key]
    return [keys[0], best if best != keys[0] else keys[-1]]


def _align_heights(
    view: dict[str, Any], heights: Mapping[str, FloatArray], mask: BoolArray
) -> None:
    """Align the medians of all heights by a ``lift`` each, as integration leaves a constant undetermined."""
    ends = {}
    for key, depth in heights.items():
        middle = float(np.nanmedian(depth[mask]))
        facts = view["sets"][key]
        ends[key] = (facts["low"] - middle, facts["high"] - middle)
    if not ends:
        return
    bottom = min(low for low, _ in ends.values())
    for key, (low, _) in ends.items():
        view["sets"][key]["lift"] = low - bottom
    view["heights_top"] = max(high for _, high in ends.values()) - bottom


def compared_mask(
    results: Sequence[Reconstruction], capture: Capture | None, truth: FloatArray | None
) -> BoolArray:
    """Return the pixels on which results are compared: those of their capture, or without one those known in all."""
    frame = results[0].normals.shape[:2] if capture is None else capture.frame
    for result in results:
        _require_size(f"The result of {result.method}", result.normals, frame)
    if capture is not None:
        return capture.mask
    if truth is not None:
        _require_size("The truth", truth, frame)
    mask = np.logical_and.reduce([result.mask for result in results])
    if not mask.any():
        raise ParameterError(
            "The results have no pixels in common. Compare results of the same capture.",
            code="nothing-in-common",
        )
    return np.asarray(mask)


def _require_size(what: str, array: FloatArray, frame: tuple[int, ...]) -> None:
    if array.shape[:2] != frame:
        found, expected = (" × ".join(map(str, shape[:2])) for shape in (array.shape, frame))
        raise ParameterError(
            f"{what} is {found} pixels, the others {expected}. Compare results of the same "
            "capture.",
            code="sizes-differ",
            what=what,
            found=found,
            expected=expected,
        )


def entries_of(
    results: Sequence[Reconstruction],
    mask: BoolArray,
    truth: FloatArray | None,
    *,
    labels: Sequence[str] | None = None,
    depths: Sequence[FloatArray | None] | None = None,
    folders: Sequence[str] | None = None,
) -> list[Entry]:
    """List all results, then the truth if known. Keys are generated, so names from outside cannot do harm."""
    unknown = [None] * len(results)
    names = [result.method for result in results] if labels is None else labels
    if depths is not None and len(depths) != len(results):
        raise ParameterError(
            f"{len(results)} results but {len(depths)} depth maps were given. Give one for each, "
            "or None.",
            code="counts-differ",
            results=len(results),
            depths=len(depths),
        )
    entries = []
    of_each = zip(results, names, depths or unknown, folders or unknown, strict=True)
    for number, (result, name, depth, folder) in enumerate(of_each):
        if depth is not None:
            _require_size(f"The depth map of {result.method}", depth, mask.shape)
            depth = depth if np.isfinite(depth[mask]).any() else None
        title = wording.method_words(result.method)[0]
        error = None if truth is None else angular_error(result.normals, truth, mask)
        entries.append(Entry(f"r{number}", name, title, result.normals, error, folder, depth))
    if truth is not None:
        folder = None if folders is None else "truth"
        entries.append(Entry("truth", "truth", "True normals", truth, None, folder))
    return entries


def figures_table(
    results: Sequence[Reconstruction],
    entries: Sequence[Entry],
    mask: BoolArray,
    capture: Capture | None,
    expected: Sequence[float | None] = (),
) -> list[dict[str, Any]]:
    """Return the columns of the table that compares results.

    Parameters
    ----------
    results : sequence of Reconstruction
        A row each.
    entries : sequence of Entry
        The same, with their errors if there are true normals.
    mask : (H, W) array
        The pixels that count.
    capture : Capture, optional
        The photographs, which say how much the normals leave unexplained.
    expected : sequence of float
        Expected errors in degrees, if they are known.
    """
    columns = []
    errors = [entry.error[mask] for entry in entries if entry.error is not None]
    if errors:
        means = [error.mean() for error in errors]
        medians = [np.median(error) for error in errors]
        most = [np.percentile(error, 90) for error in errors]
        columns.append(_column("Mean error", means, "{:.2f}°".format))
        columns.append(_column("Median", medians, "{:.2f}°".format))
        columns.append(_column("90 % below", most, "{:.1f}°".format))
        for limit in (5, 10):
            shares = [100 * (error <= limit).mean() for error in errors]
            heading = f"Within {limit}°"
            columns.append(_column(heading, shares, "{:.0f} %".format, more_is_better=True))
    if capture is not None:
        residuals = [100 * typical_residual(result.normals, capture) for result in results]
        columns.append(_column("Unexplained", residuals, "{:.1f} %".format))
    if any(degrees is not None for degrees in expected):
        columns.append(_column("Expected error", expected, "{:.1f}°".format))
    times = [result.own_seconds for result in results]
    columns.append(_column("Time", times, wording.duration))
    return columns


def _column(
    heading: str,
    values: Sequence[Any],
    text_of: Callable[[float], str],
    *,
    more_is_better: bool = False,
) -> dict[str, Any]:
    """Return a heading and the cells below it: value for sorting, text, and whether it is the best."""
    numbers = np.array(values, dtype=np.float64)
    best = np.nanmax(numbers) if more_is_better else np.nanmin(numbers)
    is_best = np.isclose(numbers, best, rtol=1e-9) & (len(numbers) > 1)
    cells = []
    for number, mark in zip(numbers.tolist(), is_best.tolist(), strict=True):
        if np.isnan(number):
            cells.append((float("inf"), "–", mark))
        else:
            cells.append((number, text_of(number), mark))
    return {"heading": heading, "cells": cells}


def error_chart(entries: Sequence[Entry], mask: BoolArray) -> list[Chart]:
    """Plot the share of pixels below an angular error; empty without a truth."""
    judged = [(entry.name, entry.error[mask]) for entry in entries if entry.error is not None]
    if not judged:
        return []
    angles = np.linspace(0, pictures.ERROR_TOP, 91)
    series = []
    for number, (name, errors) in enumerate(judged):
        ordered = np.sort(errors)
        shares = 100 * np.searchsorted(ordered, angles, side="right") / len(ordered)
        series.append(Series(name, shares.tolist(), *style_of(number)))
    plot = line_chart(
        angles.tolist(),
        series,
        x_label="angular error, degrees",
        y_label="share of pixels below it",
        suffix=" %",
        y_range=(0.0, 100.0),
        summary="Share of pixels below an angular error, by method",
    )
    return [
        Chart("Pixels below an error", plot, legend(series), "Higher and further left is better.")
    ]
