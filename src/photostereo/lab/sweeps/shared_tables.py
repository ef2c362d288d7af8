"""Tables that several runs share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from photostereo.lab.sweeps.outputs import RunOutputs
from photostereo.lab.sweeps.plan import Cell
from photostereo.lab.sweeps.style import name_of
from photostereo.lab.sweeps.summary import (
    PROTOCOLS,
    CellResult,
    Protocol,
    average_of,
    average_over_objects,
    captures_of,
    choice_of,
    labels_of,
)


def tidy_table(
    out: RunOutputs, axis: Callable[[Cell], str], axis_name: str, paper: Mapping[Any, float]
) -> None:
    """One row per capture, place on the axis and method: oracle, the paper and defaults in columns of their
    own.

    ``paper`` has the mean error by (capture, place on the axis, method).
    """
    header = [
        "object", axis_name, "method",
        "mean, best of grid", "mean, paper", "mean, defaults",
        "median, best of grid", "median, defaults", "trials", "best parameters",
    ]  # fmt: skip
    rows = []
    keys = dict.fromkeys((r.cell.capture.name, axis(r.cell), r.cell.label) for r in out.results)
    for capture, place, label in keys:
        group = [
            r
            for r in out.results
            if (r.cell.capture.name, axis(r.cell), r.cell.label) == (capture, place, label)
        ]
        best = [r.oracle for r in group if r.oracle is not None]
        names = grid_names(group)
        printed = paper.get((capture, place, label))
        rows.append(
            [
                capture, place, name_of(label),
                str(average_of(group, "oracle")), f"{printed:.2f}" if printed is not None else "",
                str(average_of(group, "defaults")),
                str(average_of(group, "oracle", value="median")), str(average_of(group, "defaults",
                value="median")), str(len(group)), choice_of(best, names),
            ]
        )  # fmt: skip
    out.table(f"{out.title}: every figure", header, rows, show=False)


def grid_names(group: Sequence[CellResult]) -> list[str]:
    """Parameters that differ over a grid."""
    names: dict[str, set[str]] = {}
    for result in group:
        for trial in result.cell.grid:
            for name, value in trial.parameters.items():
                names.setdefault(name, set()).add(repr(value))
    return [name for name, values in names.items() if len(values) > 1]


def curve_tables(
    out: RunOutputs,
    axis: Callable[[Cell], str],
    axis_name: str,
    paper: Mapping[Any, float],
    *,
    averaged: bool = False,
) -> None:
    """Per protocol a table with places on the axis as rows and methods as columns; the paper's value in
    brackets.
    """
    several = len(captures_of(out.plan)) > 1 and not averaged
    for protocol, words in PROTOCOLS.items():
        labels = labels_of(out.plan, protocol)
        keys = dict.fromkeys(_place(result.cell, axis, averaged) for result in out.results)
        rows = []
        for key in keys:
            row = [", ".join(key) if several else key[1]]
            for label in labels:
                there = [
                    r for r in out.results if r.cell.label == label and _place(r.cell, axis, averaged) == key
                ]
                shown = str(average_over_objects(there, protocol))
                row.append(with_paper(shown, protocol, paper.get((*key, label))))
            rows.append(row)
        title = f"{out.title}: mean angular error in degrees, {words}"
        if protocol == "oracle" and any((*key, label) in paper for key in keys for label in labels):
            title += " (in brackets: the paper)"
        out.table(title, [axis_name, *map(name_of, labels)], rows, name=f"table-{protocol}")


def _place(cell: Cell, axis: Callable[[Cell], str], averaged: bool) -> tuple[str, str]:
    return ("" if averaged else cell.capture.name, axis(cell))


def with_paper(ours: str, protocol: Protocol, printed: float | None) -> str:
    """The paper's figures are its oracle's: they stand beside ours, never beside our defaults."""
    return f"{ours} ({printed:.2f})" if protocol == "oracle" and printed is not None else ours
