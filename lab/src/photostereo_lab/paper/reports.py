"""Tables and figures of the paper's experiments, drawn from the store alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from photostereo_lab.paper.experiments import OURS_NOTE, PUBLISHED, NamedRun
from photostereo_lab.paper.figure import (
    Column,
    box_of_difference,
    draw_atoms,
    draw_figure,
    draw_surfaces,
)
from photostereo_lab.sweeps.curves import draw_bars, draw_curves, draw_lines
from photostereo_lab.sweeps.outputs import (
    PROTOCOLS,
    CellResult,
    Protocol,
    Row,
    RunOutputs,
    captures_of,
    curve_tables,
    labels_of,
    name_of,
    tidy_table,
    with_paper,
)
from photostereo_lab.sweeps.plan import Cell
from photostereo_lab.sweeps.tables import best_in_rows

#: Position of a cell on the axis of a curve.
AXES: dict[str, Callable[[Cell], float | None]] = {
    "photographs": lambda cell: cell.images,
    "SNR (dB)": lambda cell: cell.corruption.level,
    "corrupted entries (%)": lambda cell: 100 * cell.corruption.level,
}
#: The label, in the run "convergence", of the method that is tried with several μ.
_SPARSITY_SCAN = "mu scan"
#: In float32, an increase of the cost below this share is rounding.
ROUNDING = 1e-6


def write_report(run: NamedRun, out: RunOutputs) -> None:
    """Write the tables, figures and page of a run."""
    if labels_of(out.plan) != labels_of(out.plan, "oracle") or run.facts["report"] == "runtime":
        out.say(OURS_NOTE)
    _REPORTS[run.facts["report"]](run.facts, out)
    if "maps" in run.facts:
        _draw_maps(run, out)


def shown_rows(run: NamedRun, results: Sequence[CellResult]) -> list[Row]:
    """Return the rows whose maps the figures of a run need."""
    if run.facts["report"] in ("convergence", "atoms"):
        rows = [result.oracle for result in results if result.cell.label != _SPARSITY_SCAN]
    else:
        rows = [result.shown for result in _in_maps(run, results)]
    return [row for row in rows if row is not None]


def _in_maps(run: NamedRun, results: Sequence[CellResult]) -> list[CellResult]:
    """Return the results in a figure of maps: one capture, one noise, the first seed."""
    choice = run.facts.get("maps")
    if choice is None:
        return []
    return [
        result
        for result in results
        if result.cell.seed in (None, 0)
        and choice.get("level") in (None, result.cell.corruption.level)
        and choice.get("capture") in (None, result.cell.capture.name)
    ]


def _draw_maps(run: NamedRun, out: RunOutputs) -> None:
    """Draw normals and errors of all methods on one capture."""
    choice = run.facts["maps"]
    results = _in_maps(run, out.results)
    printed = PUBLISHED[choice.get("printed") or run.facts["printed"]["values"]]
    columns = []
    maps = {}
    for result in results:
        arrays = out.maps(result.shown)
        label = result.cell.label
        if arrays is None or label in maps:
            continue
        maps[label] = arrays
        note = "defaults"
        if result.cell.grid:
            paper = printed.get(result.cell.capture.name, {}).get(label)
            note = "" if paper is None else f"paper {paper:.2f}°"
        mask = arrays["mask"].astype(bool)
        columns.append(Column(name_of(label), arrays["normals"], mask, note=note))
    if not maps:
        return
    zooms = []
    if choice.get("close_up") and len(maps) == 2:
        zooms.append(box_of_difference(list(maps.values())))
    figure = draw_figure(
        columns,
        truth=next(iter(maps.values()))["truth"],
        zooms=zooms,
        limit=choice.get("limit"),
        width=1.3 * len(columns) + 2,
    )
    title = results[0].cell.capture.name
    if "level" in choice:
        title += f" at {choice['level']} dB"
    close_up = "a close-up, " if zooms else ""
    caption = f"{title}: normals, {close_up}angular errors; best of grid, one trial."
    out.figure(figure, caption, name="maps")
    if choice.get("surfaces"):
        text = "Surfaces from these normals (Simchony et al. 1990)."
        out.figure(draw_surfaces(maps, title=text), text, name="surfaces")


def _curves(facts: Mapping[str, Any], out: RunOutputs) -> None:
    """Write a table per protocol, the full table, and a figure of curves."""
    axis_name = facts["axis"]
    averaged = facts.get("averaged", False)
    axis = AXES[axis_name]
    printed = facts.get("printed")
    beside: dict[Any, float] = {}
    crosses: dict[str, tuple[float, float]] = {}
    captures = captures_of(out.plan)
    if printed is not None:
        capture = printed["capture"]
        values = PUBLISHED[printed["values"]][capture]
        for label, value in values.items():
            beside[capture, f"{printed['at']:g}", label] = value
            if capture in captures:
                crosses[label] = (float(printed["at"]), value)
        if not crosses:
            figures = ", ".join(f"{name_of(label)} {value:.2f}" for label, value in values.items())
            out.say(f"The paper has {capture}: {figures}; not comparable with another object.")

    def place(cell: Cell) -> str:
        return f"{axis(cell):g}"

    curve_tables(out, place, axis_name, beside, averaged=averaged)
    tidy_table(out, place, axis_name, beside)
    title = f"{out.title} ({', '.join(captures)})"
    caption = "Mean angular error"
    if averaged:
        title = out.title
        caption += " averaged over the objects"
    figure = draw_curves(
        out.results,
        axis,
        axis_name,
        title=title,
        paper=crosses,
        log=facts.get("log", False),
        panels=None if averaged else captures,
    )
    out.figure(figure, f"{caption}; bars are the standard deviation over trials.")


def _values(out: RunOutputs, protocol: Protocol, value: str) -> dict[str, list[float]]:
    """Return the values of a column by method, one for each object."""
    cells: dict[tuple[str, str], float] = {}
    for result in out.results:
        row = result.row(protocol)
        if row is not None and row[value] is not None:
            cells[result.cell.label, result.cell.capture.name] = row[value]
    objects = captures_of(out.plan)
    values = {}
    for label in labels_of(out.plan, protocol):
        values[label] = [cells.get((label, name), math.nan) for name in objects]
    return values


def _errors(facts: Mapping[str, Any], out: RunOutputs) -> None:
    """Write the tables of mean and median errors, and bars."""
    objects = captures_of(out.plan)
    for value in ("mean", "median"):
        for protocol in PROTOCOLS:
            _error_table(out, value, protocol)
    means = PUBLISHED["MEAN_ERROR"]
    beside = {
        (name, "all", label): error for name, row in means.items() for label, error in row.items()
    }
    tidy_table(out, lambda cell: "all", "photographs", beside)
    figure = draw_bars(
        objects,
        {protocol: _values(out, protocol, "mean") for protocol in PROTOCOLS},
        _beside(objects, labels_of(out.plan), means),
        title=out.title,
        unit="mean angular error (degrees)",
    )
    out.figure(figure, "Mean angular error on all photographs, no noise.")


def _error_table(out: RunOutputs, value: str, protocol: Protocol) -> None:
    """Write a table of objects and methods, with averages and the paper's values."""
    objects = captures_of(out.plan)
    values = _values(out, protocol, value)
    printed = _beside(objects, list(values), PUBLISHED[f"{value.upper()}_ERROR"])
    rows = [[name] for name in [*objects, "average"]]
    columns = []
    for label, numbers in values.items():
        ours = [*numbers, float(np.mean(numbers))]
        theirs = printed[label]
        known = [number for number in theirs if number is not None]
        # The paper's average, if all of its values are there.
        average = sum(known) / len(known) if known and len(known) == len(theirs) else None
        for row, number, paper in zip(rows, ours, [*theirs, average], strict=True):
            row.append(with_paper(_shown(number), protocol, paper))
        columns.append(ours)
    title = f"{out.title}: {value} angular error in degrees, {PROTOCOLS[protocol]}"
    if protocol == "oracle":
        title += " (in brackets: the paper)"
    out.table(
        title,
        ["object", *map(name_of, values)],
        rows,
        name=f"table-{value}-{protocol}",
        best=best_in_rows(list(zip(*columns, strict=True))),
    )


def _shown(value: float) -> str:
    """Return a value for a table; a dash if it is missing."""
    return "–" if math.isnan(value) else f"{value:.2f}"


def _beside(
    objects: Sequence[str], labels: Sequence[str], printed: Mapping[str, Mapping[str, float]]
) -> dict[str, list[float | None]]:
    """Return the paper's value for each object, by label."""
    return {label: [printed.get(name, {}).get(label) for name in objects] for label in labels}


def _runtime(facts: Mapping[str, Any], out: RunOutputs) -> None:
    """Write tables and bars of the times with defaults."""
    objects = captures_of(out.plan)
    seconds = _values(out, "defaults", "seconds")
    printed = _beside(objects, list(seconds), PUBLISHED["SECONDS"])
    rows = []
    processor = []
    for number, name in enumerate(objects):
        row = [name]
        for label, values in seconds.items():
            paper = printed[label][number]
            text = _shown(values[number])
            row.append(text if paper is None else f"{text} ({paper:.0f})")
        rows.append(row)
        processor.append([name, *(_shown(_processor_seconds(out, name, m)) for m in seconds)])
    header = ["object", *map(name_of, seconds)]
    title = f"{out.title}: wall-clock seconds with defaults, one thread (in brackets: the paper)"
    out.table(title, header, rows)
    title = (
        f"{out.title}: processor seconds of the same solves, independent of other work on the "
        "machine"
    )
    out.table(title, header, processor, name="table-processor")
    rates = []
    for label, values in seconds.items():
        ratios = [
            paper / ours
            for paper, ours in zip(printed[label], values, strict=True)
            if paper is not None and ours > 0
        ]
        if ratios:
            rates.append(f"{name_of(label)} {min(ratios):.0f}–{max(ratios):.0f}")
    if rates:
        out.say(f"The paper's times divided by ours: {', '.join(rates)} (different machines).")
    figure = draw_bars(
        objects,
        {"defaults": seconds},
        printed,
        title=out.title,
        unit="seconds",
        beside="defaults",
        log=True,
    )
    out.figure(
        figure,
        "Seconds from intensities in memory to normals, without loading and compilation, one "
        "thread each, one trial per core at a time.",
    )


def _processor_seconds(out: RunOutputs, capture: str, label: str) -> float:
    """Return the processor seconds of a solve with defaults; NaN if there is none."""
    for result in out.results:
        if (result.cell.capture.name, result.cell.label) == (capture, label) and result.defaults:
            return float(result.defaults["extra"].get("cpu_seconds", math.nan))
    return math.nan


def _representation(facts: Mapping[str, Any], out: RunOutputs) -> None:
    """Write how well dictionaries represent normals, against the share of non-zeros."""
    lines: dict[str, tuple[list[float], list[float]]] = {}
    table = []
    for cell in out.plan.cells:
        rows = done_rows(out, cell)
        rows.sort(key=lambda row: (row["extra"]["nonzeros"], row["extra"]["representation_error"]))
        shares = [100 * row["extra"]["nonzeros"] for row in rows]
        errors = [row["extra"]["representation_error"] for row in rows]
        lines[cell.capture.name] = (shares, errors)
        for row, share, error in zip(rows, shares, errors, strict=True):
            mu = row["parameters"]["mu"]
            table.append([cell.capture.name, f"{mu:g}", f"{share:.2f}", f"{error:.4f}"])
    out.table(out.title, ["object", "μ", "non-zeros (%)", "‖P − DB‖/‖P‖"], table)
    panel = ("", "non-zero codes (%)", "‖P − DB‖ / ‖P‖", lines)
    title = "192 × 192 dictionaries on least-squares normals"
    figure = draw_lines([panel], title=title, marker="o", markersize=4)
    out.figure(
        figure,
        "Representation error against the share of non-zeros; the paper's falls to zero while B "
        "is sparse.",
    )


def done_rows(out: RunOutputs, cell: Cell) -> list[Row]:
    """Return the rows of a cell's grid that succeeded."""
    rows = [out.rows[trial.hash] for trial in cell.grid if trial.hash in out.rows]
    return [row for row in rows if row["status"] == "done"]


def histories(out: RunOutputs) -> dict[str, tuple[Row, Mapping[str, Any]]]:
    """Return the row and the stored history of the run "convergence" by dictionary size."""
    histories: dict[str, tuple[Row, Mapping[str, Any]]] = {}
    for result in out.results:
        maps = out.maps(result.oracle)
        if result.cell.label != _SPARSITY_SCAN and maps is not None and result.oracle is not None:
            histories[result.cell.label] = (result.oracle, maps)
    return histories


def sparsity_scan(out: RunOutputs) -> list[tuple[float, float, float]]:
    """Return the share of non-zeros, mean error and μ of the run "convergence"."""
    points = []
    for cell in out.plan.cells:
        if cell.label == _SPARSITY_SCAN:
            for row in done_rows(out, cell):
                points.append((row["extra"]["nonzeros"], row["mean"], row["parameters"]["mu"]))
    return sorted(points)


def _convergence(facts: Mapping[str, Any], out: RunOutputs) -> None:
    """Write cost, error and sparsity by iteration, and error against sparsity."""
    runs = histories(out)
    table = []
    for label, (row, maps) in runs.items():
        cost = maps["history_cost"]
        falls = bool((np.diff(cost) <= ROUNDING * cost[:-1]).all())
        table.append(
            [
                label,
                f"{cost[0]:.1f}",
                f"{cost[-1]:.1f}",
                "yes" if falls else "no",
                f"{row['mean']:.2f}",
                f"{100 * maps['history_nonzeros'][-1]:.1f}",
            ]
        )
    header = [
        "dictionary",
        "cost, first",
        "cost, last",
        "falls at every step",
        "mean error",
        "non-zeros (%)",
    ]
    out.table(out.title, header, table)
    scan = sparsity_scan(out)
    rows = [[f"{mu:g}", f"{100 * share:.2f}", f"{mean:.2f}"] for share, mean, mu in scan]
    title = "192 atoms: error against sparsity"
    out.table(title, ["μ", "non-zeros (%)", "mean error"], rows, name="sparsity")

    def lines(name: str, factor: float = 1.0) -> dict[str, Any]:
        """Return the values of a history by label, against the iterations."""
        curves = {}
        for label, (_, maps) in runs.items():
            values = factor * maps[f"history_{name}"]
            curves[label] = (range(1, len(values) + 1), values.tolist())
        return curves

    shares = [100 * share for share, _, _ in scan]
    errors = [mean for _, mean, _ in scan]
    figure = draw_lines(
        [
            ("cost", "iteration", "cost", lines("cost")),
            ("mean angular error", "iteration", "degrees", lines("error")),
            ("non-zero codes", "iteration", "%", lines("nonzeros", 100)),
            (
                "error against sparsity",
                "non-zeros (%)",
                "degrees",
                {"192 atoms": (shares, errors)},
            ),
        ],
        title="PDLNV on cat, 20 photographs, 20 dB; p = 2, λ = 10, μ = 0.05",
    )
    out.figure(
        figure,
        "Cost, error and sparsity by iteration for several dictionary sizes; right: last error "
        "for several μ.",
    )


def _atoms(facts: Mapping[str, Any], out: RunOutputs) -> None:
    """Draw the first and the last dictionary of a run."""
    result = out.results[0]
    row = result.oracle
    name = result.cell.capture.name
    maps = out.maps(row)
    if maps is None or row is None:
        return
    first = maps["dictionary_initial"]
    last = maps["dictionary"]
    angles = np.degrees(np.arccos(np.clip(np.abs((first * last).sum(axis=1)), 0, 1)))
    table = [
        ["atoms", f"{len(last)}"],
        ["non-zeros (%)", f"{100 * row['extra']['nonzeros']:.2f}"],
        ["median angle between first and last atom (degrees)", f"{np.median(angles):.1f}"],
        ["mean angular error (degrees)", f"{row['mean']:.2f}"],
    ]
    out.table(out.title, ["fact", name], table)
    title = f"PDLNV, p = 2, {name}, all photographs: 192 atoms of 8 × 8 × 3"
    out.figure(
        draw_atoms(first, last, title=title),
        "First and last dictionary; each atom is an 8 × 8 image whose colors are the components "
        "x, y, z.",
    )


#: The reports by the name in ``runs.toml``.
_REPORTS: dict[str, Callable[[Mapping[str, Any], RunOutputs], None]] = {
    "errors": _errors,
    "runtime": _runtime,
    "curves": _curves,
    "representation": _representation,
    "convergence": _convergence,
    "atoms": _atoms,
}
