"""Runs on all photographs without noise: Tables I, II and III."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from photostereo.lab.paper import published as paper
from photostereo.lab.paper.catalog import Catalog
from photostereo.lab.paper.grids import OURS_NOTE, compared_methods, method_plans, our_methods
from photostereo.lab.paper.pictures import draw_maps
from photostereo.lab.paper.runs.named import NamedRun, best_rows, maps_caption
from photostereo.lab.sweeps.curves import draw_bars
from photostereo.lab.sweeps.outputs import RunOutputs
from photostereo.lab.sweeps.plan import Block, MethodPlan
from photostereo.lab.sweeps.shared_tables import tidy_table, with_paper
from photostereo.lab.sweeps.style import name_of
from photostereo.lab.sweeps.summary import (
    PROTOCOLS,
    CellResult,
    Protocol,
    Row,
    average_of,
    captures_of,
    labels_of,
)

_PRINTED = {"mean": paper.MEAN_ERROR, "median": paper.MEDIAN_ERROR}


def _blocks_pls(data: Catalog, quick: bool) -> list[Block]:
    return _blocks(data, method_plans("quick" if quick else "full", ("pdlnv", "pls")))


def _blocks_diligent(data: Catalog, quick: bool) -> list[Block]:
    return _blocks(data, compared_methods("quick" if quick else "full"))


def _blocks(data: Catalog, methods: tuple[MethodPlan, ...]) -> list[Block]:
    captures = data.all_diligent()
    return [Block(captures, methods)] if captures else []


def _blocks_runtime(data: Catalog, quick: bool) -> list[Block]:
    return _blocks(data, (*(MethodPlan(use.method) for use in method_plans("quick")), *our_methods()))


def _values(out: RunOutputs, protocol: Protocol, value: str) -> dict[str, list[float]]:
    objects = captures_of(out.plan)
    return {
        label: [
            average_of(
                out.results,
                protocol,
                value=value,
                where=lambda cell, o=name, m=label: (cell.capture.name, cell.label) == (o, m),  # type: ignore[misc]
            ).mean
            for name in objects
        ]
        for label in labels_of(out.plan, protocol)
    }


def _report_errors(out: RunOutputs) -> None:
    objects = captures_of(out.plan)
    for value in ("mean", "median"):
        printed = _PRINTED[value]
        for protocol, words in PROTOCOLS.items():
            values, labels = _values(out, protocol, value), labels_of(out.plan, protocol)
            rows = []
            for place, name in enumerate(objects):
                cells = [
                    with_paper(_shown(values[m][place]), protocol, printed.get(name, {}).get(m))
                    for m in labels
                ]
                rows.append([name, *cells])
            averages = []
            for label in labels:
                theirs = [printed[name][label] for name in objects if label in printed.get(name, {})]
                beside = sum(theirs) / len(theirs) if len(theirs) == len(objects) else None
                averages.append(with_paper(_shown(sum(values[label]) / len(objects)), protocol, beside))
            rows.append(["average", *averages])
            title = f"{out.title}: {value} angular error in degrees, {words}"
            if protocol == "oracle":
                title += " (in brackets: the paper)"
            out.table(title, ["object", *map(name_of, labels)], rows, name=f"table-{value}-{protocol}")
    printed_means = {(o, "all", m): v for o, row in paper.MEAN_ERROR.items() for m, v in row.items()}
    tidy_table(out, lambda cell: "all", "photographs", printed_means)
    figure = draw_bars(
        objects,
        {protocol: _values(out, protocol, "mean") for protocol in PROTOCOLS},
        _beside(objects, labels_of(out.plan), paper.MEAN_ERROR),
        title=out.title,
        unit="mean angular error (degrees)",
    )
    out.figure(figure, _caption(out, "Mean angular error on all photographs, no noise."))


def _shown(value: float, digits: int = 2) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def _beside(
    objects: Sequence[str], labels: Sequence[str], printed: Mapping[str, Mapping[str, float]]
) -> dict[str, list[float | None]]:
    return {label: [printed.get(name, {}).get(label) for name in objects] for label in labels}


def _caption(out: RunOutputs, text: str) -> str:
    return " ".join([text, *out.notes])


def _cat_rows(results: Sequence[CellResult]) -> list[Row]:
    return best_rows(results, "cat")


def _report_diligent(out: RunOutputs) -> None:
    out.say(OURS_NOTE)
    _report_errors(out)
    cat = [r for r in out.results if r.cell.capture.name == "cat" and r.shown is not None]
    maps = {r.cell.label: found for r in cat if (found := out.maps(r.shown)) is not None}
    if not maps:
        return
    captions = {r.cell.label: maps_caption(r) for r in cat}
    printed = paper.MEAN_ERROR["cat"]
    captions = {
        m: f"{text}\npaper {printed[m]:.2f}°" if m in printed else text for m, text in captions.items()
    }
    figure = draw_maps(maps, title="cat, all photographs, best of grid", captions=captions, limit=30)
    out.figure(figure, _caption(out, "cat: normals and angular errors, best of grid."), name="cat-maps")


def _report_runtime(out: RunOutputs) -> None:
    objects, labels = captures_of(out.plan), labels_of(out.plan)
    values = _values(out, "defaults", "seconds")
    out.say(OURS_NOTE)
    header = ["object", *map(name_of, labels)]
    rows = []
    for place, name in enumerate(objects):
        printed = paper.SECONDS.get(name, {})
        cells = [_shown(values[m][place]) + (f" ({printed[m]:.0f})" if m in printed else "") for m in labels]
        rows.append([name, *cells])
    title = f"{out.title}: wall-clock seconds with defaults, one thread (in brackets: the paper)"
    out.table(title, header, rows)
    processor = []
    for name in objects:
        own = {r.cell.label: r.defaults for r in out.results if r.cell.capture.name == name}
        found = [own.get(m) for m in labels]
        spent = [row["extra"].get("cpu_seconds", math.nan) if row else math.nan for row in found]
        processor.append([name, *map(_shown, spent)])
    title = (
        f"{out.title}: processor seconds of the same solves, which other work on the machine does not change"
    )
    out.table(title, header, processor, name="table-processor")
    rates = []
    for label in labels:
        ratios = [
            paper.SECONDS[name][label] / values[label][place]
            for place, name in enumerate(objects)
            if label in paper.SECONDS.get(name, {}) and values[label][place] > 0
        ]
        if ratios:
            rates.append(f"{name_of(label)} {min(ratios):.0f}–{max(ratios):.0f}")
    if rates:
        out.say(f"The paper's seconds divided by ours: {', '.join(rates)} (different machines).")
    figure = draw_bars(
        objects,
        {"defaults": values},
        _beside(objects, labels, paper.SECONDS),
        title=out.title,
        unit="seconds",
        beside="defaults",
        log=True,
    )
    caption = (
        "Seconds from intensities in memory to normals, without loading and compilation, one thread each, "
    )
    out.figure(figure, _caption(out, caption + "as many trials at once as the machine has cores."))


RUNS = (
    NamedRun(
        "table-pls", "PDLNV and PLS on all photographs", "Table I: PDLNV is never worse than PLS",
        _blocks_pls, _report_errors,
    ),
    NamedRun(
        "table-diligent", "All methods on all photographs", "Table II and the error maps of cat",
        _blocks_diligent, _report_diligent, _cat_rows,
    ),
    NamedRun(
        "table-runtime", "Seconds per method and object",
        "Table III: PDLNV 521–703, DLNV 147–226, CBR 16–101, SR 872–3335, RPCA 1076–6525 s",
        _blocks_runtime, _report_runtime,
    ),
)  # fmt: skip
