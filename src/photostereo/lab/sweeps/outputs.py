"""The folder of one named run: its tables, figures and the page that shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from photostereo.batch.options import SILENT_RUN, RunControl
from photostereo.io.safe import read_npz
from photostereo.io.tables import Table, best_in_rows
from photostereo.lab.sweeps.curves import name_of, save_figure
from photostereo.lab.sweeps.plan import Cell, Plan
from photostereo.lab.sweeps.store import Store
from photostereo.lab.sweeps.summary import (
    PROTOCOLS,
    CellResult,
    Protocol,
    average_of,
    average_over_objects,
    captures_of,
    choice_of,
    labels_of,
    results_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass
class RunOutputs:
    """What a run's report draws from, and where it puts what it draws."""

    #: of the run
    name: str
    title: str
    plan: Plan  #: what was to be computed
    store: Store  #: the rows and the maps; nothing else is read
    folder: Path  #: of this run
    #: what every table and caption must say: quick runs, missing objects, substitutions
    notes: tuple[str, ...] = ()
    control: RunControl = SILENT_RUN
    page: list[str] = field(default_factory=list)  #: its page in Markdown

    @cached_property
    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows of this plan, by hash."""
        return self.store.rows(trial.hash for trial in self.plan.trials)

    @cached_property
    def results(self) -> list[CellResult]:
        """Oracle and defaults of every cell."""
        return results_of(self.plan, self.rows)

    def maps(self, row: Mapping[str, Any] | None) -> dict[str, NDArray[Any]] | None:
        """The kept maps of a trial, or None."""
        if row is None or not (path := self.store.arrays_path(row["hash"])).exists():
            return None
        return read_npz(path, "maps of a trial", remedy="Remove the file; the run makes it again.")

    def table(
        self,
        title: str,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        name: str = "table",
        best: Collection[tuple[int, int]] = (),
        show: bool = True,
    ) -> None:
        """Write a table in every format; with ``show``, put it on the page and display it."""
        Table(title, header, rows, self.notes, best).write(self.folder, name)
        if show:
            self.page.append(Table(title, header, rows).markdown())
            self.control.table(title, header, rows)

    def figure(self, figure: Figure, caption: str, *, name: str = "figure") -> None:
        """Write a figure as PDF and PNG and put it on the page with its caption and the notes."""
        save_figure(figure, self.folder, name)
        caption = " ".join([caption, *self.notes])
        self.page.append(f"![{caption}]({self.name}/{name}.png)\n\n*{caption}*\n")

    def say(self, text: str) -> None:
        """A sentence for the page."""
        self.page.append(text + "\n")

    def failures(self) -> list[str]:
        """Failed trials in words, each cause once."""
        failed = [row for row in self.rows.values() if row["status"] == "failed"]
        causes = Counter(f"{row['method']}: {row['error']}" for row in failed)
        return [f"{count} failed: {cause}" for cause, count in causes.items()]


Axis = Callable[[Cell], str]


def tidy_table(out: RunOutputs, axis: Axis, axis_name: str, paper: Mapping[Any, float] | None = None) -> None:
    """One row per capture, place on the axis and method: oracle, the paper (its mean error by capture, place and
    method, if given) and defaults in columns of their own.
    """
    groups: dict[tuple[str, str, str], list[CellResult]] = {}
    for result in out.results:
        key = (result.cell.capture.name, axis(result.cell), result.cell.label)
        groups.setdefault(key, []).append(result)
    rows: list[dict[str, str]] = []
    lowest: dict[
        tuple[str, str, int], tuple[float, int]
    ] = {}  # of a scene and a column: the mean error and its row
    for (capture, place, label), group in groups.items():
        facts = {"object": capture, axis_name: place, "method": name_of(label)}
        for column, protocol in enumerate(PROTOCOLS, start=len(facts)):
            mean = average_of(group, protocol).mean
            if mean < lowest.get((capture, place, column), (float("inf"), 0))[0]:
                lowest[capture, place, column] = mean, len(rows)
        for value in ("mean", "median"):
            for protocol, words in PROTOCOLS.items():
                facts[f"{value}, {words}"] = str(average_of(group, protocol, value=value))
        if paper:
            printed = paper.get((capture, place, label))
            facts["mean, paper"] = "" if printed is None else f"{printed:.2f}"
        best = [r.oracle for r in group if r.oracle is not None]
        facts |= {"trials": str(len(group)), "best parameters": choice_of(best, grid_names(group))}
        rows.append(facts)
    if rows:
        bold = {(row, column) for (_, _, column), (_, row) in lowest.items()}
        cells = [list(row.values()) for row in rows]
        out.table(f"{out.title}: every figure", list(rows[0]), cells, best=bold, show=False)


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
    axis: Axis,
    axis_name: str,
    paper: Mapping[Any, float] | None = None,
    *,
    averaged: bool = False,
) -> None:
    """Per protocol a table with places on the axis as rows and methods as columns; the paper's value in brackets."""
    several = len(captures_of(out.plan)) > 1 and not averaged
    printed = paper or {}

    def place(cell: Cell) -> tuple[str, str]:
        return ("" if averaged else cell.capture.name, axis(cell))

    keys = list(dict.fromkeys(place(result.cell) for result in out.results))
    for protocol, words in PROTOCOLS.items():
        labels = labels_of(out.plan, protocol)
        averages = [
            [
                average_over_objects(
                    [r for r in out.results if r.cell.label == label and place(r.cell) == key], protocol
                )
                for label in labels
            ]
            for key in keys
        ]
        rows = [
            [
                ", ".join(key) if several else key[1],
                *(
                    with_paper(str(average), protocol, printed.get((*key, label)))
                    for label, average in zip(labels, found, strict=True)
                ),
            ]
            for key, found in zip(keys, averages, strict=True)
        ]
        title = f"{out.title}: mean angular error in degrees, {words}"
        if protocol == "oracle" and any((*key, label) in printed for key in keys for label in labels):
            title += " (in brackets: the paper)"
        best = best_in_rows([[a.mean if a.count else None for a in found] for found in averages])
        out.table(title, [axis_name, *map(name_of, labels)], rows, name=f"table-{protocol}", best=best)


def with_paper(ours: str, protocol: Protocol, printed: float | None) -> str:
    """The paper's figures are its oracle's: they stand beside ours, never beside our defaults."""
    return f"{ours} ({printed:.2f})" if protocol == "oracle" and printed is not None else ours
