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
    if labels_of(out.plan) != labels_of(out.plan, "oracle") or run.facts["report"] == "runtime":
        out.say(OURS_NOTE)
    _REPORTS[run.facts["report"]](run.facts, out)
    if "maps" in run.facts:
        _draw_maps(run, out)


def shown_rows(run: NamedRun, results: Sequence[CellResult]) -> list[Row]:
    """Return the rows whose maps the figures of a run need."""
    if run.facts["report"] in ("convergence", "atoms"):
        return [
            r.oracle for r in results if r.oracle is not None and r.cell.label != _SPARSITY_SCAN
        ]
    return [r.shown for r in _in_maps(run, results) if r.shown is not None]


def _in_maps(run: NamedRun, results: Sequence[CellResult]) -> list[CellResult]:
    """Return the results in a figure of maps: one capture, one noise, the first seed."""
    choice = run.facts.get("maps")
    if choice is None:
        return []
    return [
        r
        for r in results
        if r.cell.seed in (None, 0)
        and r.cell.corruption.level == choice.get("level", r.cell.corruption.level)
        and r.cell.capture.name == choice.get("capture", r.cell.capture.name)
    ]


def _draw_maps(run: NamedRun, out: RunOutputs) -> None:
    choice = run.facts["maps"]
    columns = []
    maps = {}
    printed = PUBLISHED[choice.get("printed") or run.facts["printed"]["values"]]
    for result in _in_maps(run, out.results):
        found = out.maps(result.shown)
        label = result.cell.label
        if found is not None and label not in maps:
            maps[label] = found
            paper = printed.get(result.cell.capture.name, {}).get(label)
            note = "" if paper is None else f"paper {paper:.2f}°"
            note = note if result.cell.grid else "defaults"
            columns.append(
                Column(name_of(label), found["normals"], found["mask"].astype(bool), note=note)
            )
    if not maps:
        return
    first = next(iter(maps.values()))
    name = _in_maps(run, out.results)[0].cell.capture.name
    if choice.get("close_up") and len(maps) == 2:
        zooms = [box_of_difference(list(maps.values()))]
    else:
        zooms = []
    figure = draw_figure(
        columns,
        truth=first["truth"],
        zooms=zooms,
        limit=choice.get("limit"),
        width=1.3 * len(columns) + 2,
    )
    where = f" at {choice['level']} dB" if "level" in choice else ""
    caption = f"{name}{where}: normals, {'a close-up, ' if zooms else ''}angular errors; best of grid, one trial."
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
    crosses = {}
    captures = captures_of(out.plan)
    if printed is not None:
        values = PUBLISHED[printed["values"]][printed["capture"]]
        beside = {(printed["capture"], f"{printed['at']:g}", m): v for m, v in values.items()}
        if printed["capture"] in captures:
            crosses = {m: (float(printed["at"]), v) for m, v in values.items()}
        else:
            words = ", ".join(f"{name_of(m)} {v:.2f}" for m, v in values.items())
            out.say(
                f"The paper has {printed['capture']}: {words}; not comparable with another object."
            )

    def place(cell: Cell) -> str:
        return f"{axis(cell):g}"

    curve_tables(out, place, axis_name, beside, averaged=averaged)
    tidy_table(out, place, axis_name, beside)
    figure = draw_curves(
        out.results,
        axis,
        axis_name,
        title=out.title if averaged else f"{out.title} ({', '.join(captures)})",
        paper=crosses,
        log=facts.get("log", False),
        panels=None if averaged else captures,
    )
    words = " averaged over the objects" if averaged else ""
    out.figure(figure, f"Mean angular error{words}; bars are the standard deviation over trials.")


def _values(out: RunOutputs, protocol: Protocol, value: str) -> dict[str, list[float]]:
    """Return the values of a column by method, one for each object."""
    found: dict[tuple[str, str], float] = {}
    for result in out.results:
        row = result.row(protocol)
        if row is not None and row[value] is not None:
            found[result.cell.label, result.cell.capture.name] = row[value]
    objects = captures_of(out.plan)
    return {
        m: [found.get((m, o), math.nan) for o in objects] for m in labels_of(out.plan, protocol)
    }


def _errors(facts: Mapping[str, Any], out: RunOutputs) -> None:
    objects = captures_of(out.plan)
    for value in ("mean", "median"):
        printed = PUBLISHED[f"{value.upper()}_ERROR"]
        for protocol, words in PROTOCOLS.items():
            values = _values(out, protocol, value)
            columns = [[*numbers, float(np.mean(numbers))] for numbers in values.values()]
            theirs = [
                [printed.get(o, {}).get(m) for o in objects] for m in values
            ]  # and their average, if all are known
            theirs = [[*v, None if None in v else sum(filter(None, v)) / len(v)] for v in theirs]
            rows = [
                [
                    o,
                    *(
                        with_paper(_shown(c[n]), protocol, t[n])
                        for c, t in zip(columns, theirs, strict=True)
                    ),
                ]
                for n, o in enumerate([*objects, "average"])
            ]
            title = f"{out.title}: {value} angular error in degrees, {words}"
            title += " (in brackets: the paper)" if protocol == "oracle" else ""
            best = best_in_rows(list(zip(*columns, strict=True)))
            out.table(
                title,
                ["object", *map(name_of, values)],
                rows,
                name=f"table-{value}-{protocol}",
                best=best,
            )
    means = PUBLISHED["MEAN_ERROR"]
    tidy_table(
        out,
        lambda cell: "all",
        "photographs",
        {(o, "all", m): v for o, row in means.items() for m, v in row.items()},
    )
    figure = draw_bars(
        objects,
        {protocol: _values(out, protocol, "mean") for protocol in PROTOCOLS},
        _beside(objects, labels_of(out.plan), means),
        title=out.title,
        unit="mean angular error (degrees)",
    )
    out.figure(figure, "Mean angular error on all photographs, no noise.")


def _shown(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def _beside(
    objects: Sequence[str], labels: Sequence[str], printed: Mapping[str, Mapping[str, float]]
) -> dict[str, list[float | None]]:
    return {label: [printed.get(name, {}).get(label) for name in objects] for label in labels}


def _runtime(facts: Mapping[str, Any], out: RunOutputs) -> None:
    objects = captures_of(out.plan)
    values = _values(out, "defaults", "seconds")
    beside = _beside(objects, list(values), PUBLISHED["SECONDS"])
    header = ["object", *map(name_of, values)]
    rows = []
    processor = []
    for place, name in enumerate(objects):
        cells = [(values[m][place], beside[m][place]) for m in values]
        rows.append([name, *(_shown(v) + ("" if p is None else f" ({p:.0f})") for v, p in cells)])
        own = {r.cell.label: r.defaults for r in out.results if r.cell.capture.name == name}
        spent = [
            (own.get(m) or {"extra": {}})["extra"].get("cpu_seconds", math.nan) for m in values
        ]
        processor.append([name, *map(_shown, spent)])
    out.table(
        f"{out.title}: wall-clock seconds with defaults, one thread (in brackets: the paper)",
        header,
        rows,
    )
    title = f"{out.title}: processor seconds of the same solves, independent of other work on the machine"
    out.table(title, header, processor, name="table-processor")
    rates = []
    for m, seconds in values.items():
        ratios = [p / s for p, s in zip(beside[m], seconds, strict=True) if p is not None and s > 0]
        if ratios:
            rates.append(f"{name_of(m)} {min(ratios):.0f}–{max(ratios):.0f}")
    if rates:
        out.say(f"The paper's times divided by ours: {', '.join(rates)} (different machines).")
    figure = draw_bars(
        objects,
        {"defaults": values},
        beside,
        title=out.title,
        unit="seconds",
        beside="defaults",
        log=True,
    )
    out.figure(
        figure,
        "Seconds from intensities in memory to normals, without loading and compilation, one thread each, one trial per "
        "core at a time.",
    )


def _representation(facts: Mapping[str, Any], out: RunOutputs) -> None:
    lines = {}
    table = []
    for cell in out.plan.cells:
        points = sorted(
            (
                100 * row["extra"]["nonzeros"],
                row["extra"]["representation_error"],
                row["parameters"]["mu"],
            )
            for row in done_rows(out, cell)
        )
        lines[cell.capture.name] = ([p[0] for p in points], [p[1] for p in points])
        table += [
            [cell.capture.name, f"{mu:g}", f"{share:.2f}", f"{e:.4f}"] for share, e, mu in points
        ]
    out.table(out.title, ["object", "μ", "non-zeros (%)", "‖P − DB‖/‖P‖"], table)
    panel = ("", "non-zero codes (%)", "‖P − DB‖ / ‖P‖", lines)
    title = "192 × 192 dictionaries on least-squares normals"
    figure = draw_lines([panel], title=title, marker="o", markersize=4)
    out.figure(
        figure,
        "Representation error against the share of non-zeros; the paper's falls to zero while B is sparse.",
    )


def done_rows(out: RunOutputs, cell: Cell) -> list[Row]:
    rows = [out.rows[trial.hash] for trial in cell.grid if trial.hash in out.rows]
    return [row for row in rows if row["status"] == "done"]


def histories(out: RunOutputs) -> dict[str, tuple[Row, Mapping[str, Any]]]:
    """Return the row and the stored history of the run "convergence" by dictionary size."""
    found: dict[str, tuple[Row, Mapping[str, Any]]] = {}
    for result in out.results:
        maps = out.maps(result.oracle)
        if result.cell.label != _SPARSITY_SCAN and maps is not None and result.oracle is not None:
            found[result.cell.label] = (result.oracle, maps)
    return found


def sparsity_scan(out: RunOutputs) -> list[tuple[float, float, float]]:
    """Return the share of non-zeros, mean error and μ of the run "convergence"."""
    cells = [cell for cell in out.plan.cells if cell.label == _SPARSITY_SCAN]
    return sorted(
        (row["extra"]["nonzeros"], row["mean"], row["parameters"]["mu"])
        for cell in cells
        for row in done_rows(out, cell)
    )


def _convergence(facts: Mapping[str, Any], out: RunOutputs) -> None:
    found = histories(out)
    table = []
    for label, (row, maps) in found.items():
        cost = maps["history_cost"]
        last = 100 * maps["history_nonzeros"][-1]
        falls = bool((np.diff(cost) <= ROUNDING * cost[:-1]).all())
        numbers = (
            f"{cost[0]:.1f}",
            f"{cost[-1]:.1f}",
            "yes" if falls else "no",
            f"{row['mean']:.2f}",
        )
        table.append([label, *numbers, f"{last:.1f}"])
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
        values = {label: factor * maps[f"history_{name}"] for label, (_, maps) in found.items()}
        return {label: (range(1, len(v) + 1), v.tolist()) for label, v in values.items()}

    at = {"192 atoms": ([100 * s[0] for s in scan], [s[1] for s in scan])}
    figure = draw_lines(
        [
            ("cost", "iteration", "cost", lines("cost")),
            ("mean angular error", "iteration", "degrees", lines("error")),
            ("non-zero codes", "iteration", "%", lines("nonzeros", 100)),
            ("error against sparsity", "non-zeros (%)", "degrees", at),
        ],
        title="PDLNV on cat, 20 photographs, 20 dB; p = 2, λ = 10, μ = 0.05",
    )
    text = "Cost, error and sparsity by iteration for several dictionary sizes; right: last error for several μ."
    out.figure(figure, text)


def _atoms(facts: Mapping[str, Any], out: RunOutputs) -> None:
    row = out.results[0].oracle
    name = out.results[0].cell.capture.name
    maps = out.maps(row)
    if maps is None or row is None:
        return
    first = maps["dictionary_initial"]
    last = maps["dictionary"]
    moved = np.degrees(np.arccos(np.clip(np.abs((first * last).sum(axis=1)), 0, 1)))
    table = [
        ["atoms", f"{len(last)}"],
        ["non-zeros (%)", f"{100 * row['extra']['nonzeros']:.2f}"],
        ["median angle between first and last atom (degrees)", f"{np.median(moved):.1f}"],
        ["mean angular error (degrees)", f"{row['mean']:.2f}"],
    ]
    out.table(out.title, ["fact", name], table)
    figure = draw_atoms(
        first, last, title=f"PDLNV, p = 2, {name}, all photographs: 192 atoms of 8 × 8 × 3"
    )
    text = "First and last dictionary; each atom is an 8 × 8 image whose colors are the components x, y, z."
    out.figure(figure, text)


_REPORTS: dict[str, Callable[[Mapping[str, Any], RunOutputs], None]] = {
    "errors": _errors,
    "runtime": _runtime,
    "curves": _curves,
    "representation": _representation,
    "convergence": _convergence,
    "atoms": _atoms,
}
