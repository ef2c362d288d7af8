"""The comparison page: several results on one capture, any two on either side of a slider, and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from photostereo.capture import Capture
from photostereo.conventions import BoolArray, FloatArray
from photostereo.errors import ParameterError
from photostereo.exports.pixel_size import PixelSize
from photostereo.quality.exposure import typical_residual
from photostereo.quality.metrics import angular_error
from photostereo.reconstruction import Reconstruction
from photostereo.report import figures, pictures, wording
from photostereo.report.document import render_page, safe_links, write_page
from photostereo.report.figures import ERROR_TOP
from photostereo.report.learning import Chart
from photostereo.report.packing import grid_data, pack_heights
from photostereo.report.page import identity_of
from photostereo.report.pictures import MAX_PIXELS, Frame, frame_around
from photostereo.report.plots import Series, legend, line_chart, scatter, tone_of
from photostereo.report.pyramid import Layers
from photostereo.report.view_data import PAGE_BYTES, UNKNOWN_SIZE, Shown, view_data

#: What the view can show of two results; the error only where the truth is known.
MODES = (
    ("albedo", "Albedo"),
    ("clay", "Clay"),
    ("normals", "Normals"),
    ("slope", "Slope"),
    ("curvature", "Curved"),
)


@dataclass(frozen=True)
class Contestant:
    """A result on the comparison page: its key in the page's data, its names, its normals and their error."""

    key: str
    method: str
    title: str
    normals: FloatArray
    error: FloatArray | None
    folder: str | None = None


def write_comparison(
    path: str | Path,
    results: Sequence[Reconstruction],
    capture: Capture,
    *,
    depths: Sequence[FloatArray | None] | None = None,
    files: Mapping[str, str] | None = None,
    folders: Sequence[str] | None = None,
    pixel_size: PixelSize = UNKNOWN_SIZE,
    title: str | None = None,
) -> None:
    """Write one self-contained page that compares results on the same capture.

    Parameters
    ----------
    path : where to write it
    results : in the order in which they are shown
    capture : Capture
        Where it holds a truth, the page shows errors, and the truth is one of the sides of the slider.
    depths : depth maps of the results, in their order, optional
        None for a result without one; adds the surfaces.
    files : mapping of labels to paths relative to the page, optional
    folders : names of the folders beside the page that hold the results, in their order, optional
        Where the page is served, finer tiles come from them; those of the truth from ``truth``.
    pixel_size : PixelSize
        Of what is measured in the page.
    title : str, optional
        The heading; the capture's name by default.
    """
    if not results:
        raise ParameterError("There is nothing to compare: give at least one result.")
    mask = capture.mask
    contestants = _contestants(results, capture, folders)
    frame = frame_around(mask, max_pixels=_pixels_allowed(len(contestants)))
    shown = [{"contestant": contestant, **_maps(contestant, mask, frame)} for contestant in contestants]
    data: dict[str, Any] = {"compare": True, "identity": identity_of(results[0])}
    grids = _grids(results, depths, mask, frame)
    if grids:
        data["surface"] = {"grids": grids}
    context = {
        "title": title or capture.name,
        "kicker": "Methods compared",
        "subtitle": f"{len(results)} methods on {len(capture)} photographs, "
        f"{wording.thousands(capture.pixel_count)} pixels on the object",
        "contestants": shown,
        "pair": _first_pair(contestants),
        "modes": [
            *MODES,
            *([("error", "Error")] if capture.truth is not None else []),
            ("difference", "Differ"),
        ],
        "table": _table(results, contestants, capture),
        "charts": _charts(results, contestants, mask),
        "links": safe_links(files or {}),
        "has_truth": capture.truth is not None,
        "has_depth": bool(grids),
        "surface_results": [(key, _label(contestants, key)) for key in grids],
        "grid_step": int(next(iter(grids.values()))["step"]) if grids else 1,
    }
    room = PAGE_BYTES - len(render_page("compare.html", data, **context))
    # One albedo for all: what is compared are the normals.
    common = Layers(frame, mask, albedos=common_albedo(results))
    sides = {
        contestant.key: Shown(
            Layers(frame, mask, contestant.normals),
            title=contestant.method,
            folder=contestant.folder,
            still=f"normals-{contestant.key}",
        )
        for contestant in contestants
    }
    data["relight"] = view_data(sides, common, pixel_size=pixel_size, room=room)
    data["relight"]["shown"] = context["pair"]
    data["relight"]["difference_top"] = _difference_top(contestants, mask)
    write_page(path, render_page("compare.html", data, **context))


def _contestants(
    results: Sequence[Reconstruction], capture: Capture, folders: Sequence[str] | None
) -> list[Contestant]:
    """All results, then the truth where it is known. Keys are the page's own, so that no name can do harm."""
    everyone = []
    for number, result in enumerate(results):
        if result.normals.shape[:2] != capture.frame:
            raise ParameterError(
                f"The result of {result.method} measures {result.normals.shape[0]} × "
                f"{result.normals.shape[1]} pixels but the capture {capture.frame[0]} × "
                f"{capture.frame[1]}. Compare results of one capture."
            )
        error = None if capture.truth is None else angular_error(result.normals, capture.truth, capture.mask)
        title = wording.method_title(result.method)
        folder = None if folders is None else folders[number]
        everyone.append(Contestant(f"r{number}", result.method, title, result.normals, error, folder))
    if capture.truth is not None:
        folder = None if folders is None else "truth"
        everyone.append(Contestant("truth", "truth", "True normals", capture.truth, None, folder))
    return everyone


def common_albedo(results: Sequence[Reconstruction]) -> list[tuple[FloatArray, float]]:
    """The albedos and the factors that bring each to the same brightness."""
    return [albedo_share(result.albedo, result.mask) for result in results]


def albedo_share(albedo: FloatArray, mask: BoolArray) -> tuple[FloatArray, float]:
    """An albedo and the factor that makes its mean 1."""
    level = float(np.mean(albedo[mask]))
    return albedo, 1.0 / level if level > 0 else 1.0


def _pixels_allowed(count: int) -> int:
    """How many pixels the pictures of the cards may have: their bytes are taken from the view's."""
    return int(min(MAX_PIXELS, 1_200_000 / count))


def _maps(contestant: Contestant, mask: BoolArray, frame: Frame) -> dict[str, Any]:
    """Pictures for the cards."""
    factor = min(1.0, 360 / max(frame.height, frame.width))
    small = Frame(frame.rows, frame.cols, *pictures.scaled_size(frame.height, frame.width, factor))
    maps: dict[str, Any] = {
        "normals": figures.normals_figure(
            *pictures.shrink_normals(contestant.normals, mask, small), title=f"Normals by {contestant.method}"
        ),
        "error": None,
    }
    if contestant.error is not None:
        inside = contestant.error[mask]
        maps["error"] = figures.error_figure(
            contestant.error,
            mask,
            small,
            title=f"Error of {contestant.method}",
            note=f"Mean {inside.mean():.2f}°, median {np.median(inside):.2f}°.",
        )
    return maps


def _difference_top(contestants: Sequence[Contestant], mask: BoolArray) -> float:
    """Where the scale of differences ends: what is above it is rare, between the first and any other."""
    step = max(1, int(np.sqrt(mask.size / 250_000)))
    inside = mask[::step, ::step]
    first, *others = [np.asarray(one.normals[::step, ::step]) for one in contestants]
    tops = [float(np.percentile(angular_error(other, first, inside)[inside], 95)) for other in others]
    return float(np.clip(5 * np.ceil(max(tops, default=5.0) / 5), 5, 45))


def _first_pair(contestants: Sequence[Contestant]) -> list[str]:
    """The pair that says most at first sight: the first and the last method."""
    keys = [contestant.key for contestant in contestants if contestant.key != "truth"] or ["truth"]
    if len(keys) == 1:
        return [keys[0], contestants[-1].key]
    return [keys[0], keys[-1]]


def _label(contestants: Sequence[Contestant], key: str) -> str:
    return next(contestant.method for contestant in contestants if contestant.key == key)


def _grids(
    results: Sequence[Reconstruction],
    depths: Sequence[FloatArray | None] | None,
    mask: BoolArray,
    frame: Frame,
) -> dict[str, Any]:
    if depths is None:
        return {}
    if len(depths) != len(results):
        raise ParameterError(
            f"{len(results)} results but {len(depths)} depth maps were given. Give one for each, or None."
        )
    # Fewer vertices each where there are many.
    limit = max(12_000, 300_000 // max(1, len(results)))
    return {
        f"r{number}": grid_data(pack_heights(depth, mask, frame, max_vertices=min(limit, 160_000)), frame)
        for number, depth in enumerate(depths)
        if depth is not None and np.isfinite(depth[mask]).any()
    }


def _table(
    results: Sequence[Reconstruction], contestants: Sequence[Contestant], capture: Capture
) -> dict[str, Any]:
    """Figures by method; in each column the best is marked."""
    columns: list[tuple[str, NDArray[np.float64], str, int]] = []
    if capture.truth is not None:
        errors = [
            contestant.error[capture.mask] for contestant in contestants if contestant.error is not None
        ]
        columns = [
            ("Mean error", np.array([error.mean() for error in errors]), "{:.2f}°", -1),
            ("Median", np.array([np.median(error) for error in errors]), "{:.2f}°", -1),
            ("90 % below", np.array([np.percentile(error, 90) for error in errors]), "{:.1f}°", -1),
            ("Within 5°", np.array([100 * (error <= 5).mean() for error in errors]), "{:.0f} %", 1),
            ("Within 10°", np.array([100 * (error <= 10).mean() for error in errors]), "{:.0f} %", 1),
        ]
    residuals = [100 * typical_residual(result.normals, capture) for result in results]
    columns.append(("Unexplained", np.array(residuals), "{:.1f} %", -1))
    seconds = np.array([sum(result.seconds.values()) for result in results])
    columns.append(("Time", seconds, "", -1))
    rows = []
    for number, result in enumerate(results):
        cells = []
        for name, values, form, sign in columns:
            best = len(results) > 1 and bool(
                np.isclose(values[number], (values * sign).max() * sign, rtol=1e-9)
            )
            text = wording.duration(values[number]) if name == "Time" else form.format(values[number])
            # The bar's length: the share of the column's largest value.
            share = float(values[number] / values.max()) if values.max() > 0 else 0.0
            cells.append(
                {"text": text, "best": best, "bar": round(100 * share, 1) if name == "Mean error" else None}
            )
        rows.append(
            {
                "method": result.method,
                "title": contestants[number].title,
                "cells": cells,
                "status": wording.status_words(result),
            }
        )
    return {"headings": [name for name, *_ in columns], "rows": rows}


def _charts(
    results: Sequence[Reconstruction], contestants: Sequence[Contestant], mask: BoolArray
) -> list[Chart]:
    """Where there is a truth: shares of pixels below an error, and what accuracy costs in time."""
    judged = [contestant for contestant in contestants if contestant.error is not None]
    if not judged:
        return []
    points = [
        (result.method, sum(result.seconds.values()), float(np.mean(contestant.error[mask])))
        for result, contestant in zip(results, judged, strict=True)
        if contestant.error is not None
    ]
    plot = scatter(
        points,
        x_label="seconds",
        y_label="mean angular error",
        suffix="°",
        summary="Mean angular error over the time of the solve, by method",
    )
    cost = Chart("What accuracy costs", plot, note="The lower and the further left, the better.")
    return [_cumulative_chart(judged, mask), cost]


def _cumulative_chart(judged: Sequence[Contestant], mask: BoolArray) -> Chart:
    """Share of the pixels below an error, over that error."""
    angles = np.linspace(0, ERROR_TOP, 91)
    series = []
    for number, contestant in enumerate(judged):
        assert contestant.error is not None
        ordered = np.sort(contestant.error[mask])
        shares = 100 * np.searchsorted(ordered, angles, side="right") / len(ordered)
        series.append(Series(contestant.method, shares.tolist(), tone_of(number)))
    plot: Markup = line_chart(
        angles.tolist(),
        series,
        x_label="angular error, degrees",
        y_label="share of pixels below it",
        suffix=" %",
        y_range=(0.0, 100.0),
        summary="Share of pixels below an angular error, by method",
    )
    return Chart(
        "Pixels below an error", plot, legend(series), "The higher and the further left, the better."
    )
