"""Turn rows into figures and tables: oracle and defaults of every cell, averaged over trials and never mixed.

*Oracle*: the row of a method's grid on one scene with the lowest mean angular error, as in the
paper; it uses the truth. *Defaults*: the one row without a grid, which is what a user gets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from photostereo.batch.options import SILENT_RUN, RunControl
from photostereo.core.errors import ParameterError
from photostereo.io.atomic import replacing_file
from photostereo.io.safe import read_npz
from photostereo.reflectance.entry import Look
from photostereo.solver.methods import find_method
from photostereo_lab.sweeps.plan import Cell, Plan
from photostereo_lab.sweeps.store import Store
from photostereo_lab.sweeps.tables import Table, best_in_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Value = TypeVar("Value")
Row = Mapping[str, Any]
Protocol = Literal["oracle", "defaults"]

#: Labels of the two protocols, which every table keeps apart.
PROTOCOLS: dict[Protocol, str] = {"oracle": "best of grid", "defaults": "defaults"}


@dataclass(frozen=True)
class CellResult:
    """One method on one scene: its two rows, if they succeeded."""

    cell: Cell
    oracle: Row | None
    defaults: Row | None

    def row(self, protocol: Protocol) -> Row | None:
        if protocol == "oracle":
            return self.oracle
        return self.defaults

    @property
    def shown(self) -> Row | None:
        """The row used in a figure of maps: the oracle's, or that of a method without a grid."""
        if self.cell.grid:
            return self.oracle
        return self.defaults


@dataclass(frozen=True)
class Average:
    """A value over the trials of a group; the spread is the sample standard deviation."""

    mean: float
    spread: float
    count: int

    def __str__(self) -> str:
        if not self.count:
            return "–"
        if self.count == 1:
            return f"{self.mean:.2f}"
        return f"{self.mean:.2f} ± {self.spread:.2f}"


def results_of(plan: Plan, rows: Mapping[str, Row]) -> list[CellResult]:
    return [_result(cell, rows) for cell in plan.cells]


def _result(cell: Cell, rows: Mapping[str, Row]) -> CellResult:
    tried = [rows[trial.hash] for trial in cell.grid if trial.hash in rows]
    done = [row for row in tried if row["status"] == "done" and row["mean"] is not None]
    # Of equal errors, take the first in the grid, so that the choice does not depend on the order
    # of arrival.
    oracle = min(done, key=lambda row: row["mean"], default=None)
    default = rows.get(cell.default.hash) if cell.default else None
    return CellResult(cell, oracle, default if default and default["status"] == "done" else None)


def average(values: Iterable[float | None]) -> Average:
    """
    >>> str(average([1.0, 3.0])), str(average([2.0])), str(average([]))
    ('2.00 ± 1.41', '2.00', '–')
    """
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if not known.size:
        return Average(float("nan"), 0.0, 0)
    return Average(
        float(known.mean()), float(known.std(ddof=1)) if known.size > 1 else 0.0, int(known.size)
    )


def average_of(
    results: Iterable[CellResult],
    protocol: Protocol,
    *,
    value: str = "mean",
    where: Callable[[Cell], bool] = lambda cell: True,
) -> Average:
    """Average a column of the store over the matching cells."""
    rows = (result.row(protocol) for result in results if where(result.cell))
    return average(row[value] for row in rows if row is not None)


def average_over_objects(results: Iterable[CellResult], protocol: Protocol) -> Average:
    """Average over objects within each seed first, as in the paper, so that the spread is over trials, not objects."""
    by_seed: dict[int | None, list[float]] = {}
    for result in results:
        row = result.row(protocol)
        if row is not None:
            by_seed.setdefault(result.cell.seed, []).append(row["mean"])
    return average(float(np.mean(values)) for values in by_seed.values())


def labels_of(plan: Plan, protocol: Protocol = "defaults") -> list[str]:
    """Return the methods of a plan, in order; for the oracle, only those with a grid."""
    return unique(cell.label for cell in plan.cells if cell.grid or protocol == "defaults")


def captures_of(plan: Plan) -> list[str]:
    return unique(cell.capture.name for cell in plan.cells)


def unique(values: Iterable[Value]) -> list[Value]:
    return list(dict.fromkeys(values))


def choice_of(rows: Sequence[Row], names: Iterable[str]) -> str:
    """Return the best parameters, most frequent first: ``lam=10 mu=0.1 (3 of 5)``."""
    wanted = list(names)
    if not rows or not wanted:
        return ""
    texts = Counter(
        " ".join(
            f"{name}={_short(row['parameters'][name])}"
            for name in wanted
            if name in row["parameters"]
        )
        for row in rows
    )
    text, count = texts.most_common(1)[0]
    if len(rows) == 1:
        return text
    return f"{text} ({count} of {len(rows)})"


def _short(value: Any) -> str:
    if isinstance(value, list):
        return "x".join(_short(part) for part in value)
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


#: For labels without a color.
_OTHERS = ("#117733", "#332288", "#aa4499", "#999933", "#661100", "#44aa99")


def look_of(label: str, number: int = 0) -> Look:
    """Return name, color and marker of a method; other labels keep their text and get a color by number.

    Words in brackets after a method stay after its name.
    """
    other = _OTHERS[number % len(_OTHERS)]
    method, bracket, words = label.partition(" (")
    try:
        look = find_method(method).look
    except ParameterError:
        return Look(label, other)
    look = replace(look, label=look.label + bracket + words)
    if look.color:
        return look
    return replace(look, color=other)


def color_of(method: str, number: int = 0) -> str:
    """Return a method's color; other labels get one by number."""
    return look_of(method, number).color


def name_of(method: str) -> str:
    """``"sbl"`` → ``"SR (SBL)"``; unknown names are unchanged.

    >>> name_of("sbl"), name_of("pdlnv p=3"), name_of("dlnet (ours)")
    ('SR (SBL)', 'pdlnv p=3', 'DLnet (ours)')
    """
    return look_of(method).label


@dataclass
class RunOutputs:
    """The data of a run's report, and where the report is written."""

    #: of the run
    name: str
    title: str
    plan: Plan  #: the planned trials
    store: Store  #: the rows and the maps; nothing else is read
    folder: Path  #: of this run
    #: notes for every table and caption: quick runs, missing objects, substitutions
    notes: tuple[str, ...] = ()
    control: RunControl = SILENT_RUN
    page: list[str] = field(default_factory=list)  #: its page in Markdown

    @cached_property
    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows of this plan, by hash."""
        return self.store.rows(trial.hash for trial in self.plan.trials)

    @cached_property
    def results(self) -> list[CellResult]:
        """The oracle and defaults of every cell."""
        return results_of(self.plan, self.rows)

    def maps(self, row: Mapping[str, Any] | None) -> dict[str, NDArray[Any]] | None:
        """Return the stored maps of a trial, or None."""
        if row is None or not (path := self.store.arrays_path(row["hash"])).exists():
            return None
        return read_npz(
            path, "maps of a trial", remedy="Remove the file; the run creates it again."
        )

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
        """Write a figure as PDF and PNG and put it on the page with its caption and the notes.

        The files contain no dates, so the same figure gives the same files.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        for suffix, dpi, date in ((".pdf", 200, "CreationDate"), (".png", 130, "Software")):
            with replacing_file(self.folder / f"{name}{suffix}", force=True) as partial:
                figure.savefig(partial, metadata={date: None}, dpi=dpi)
        caption = " ".join([caption, *self.notes])
        self.page.append(f"![{caption}]({self.name}/{name}.png)\n\n*{caption}*\n")

    def say(self, text: str) -> None:
        self.page.append(text + "\n")

    def failures(self) -> list[str]:
        """Describe the failed trials, each cause once."""
        failed = [row for row in self.rows.values() if row["status"] == "failed"]
        causes = Counter(f"{row['method']}: {row['error']}" for row in failed)
        return [f"{count} failed: {cause}" for cause, count in causes.items()]


Axis = Callable[[Cell], str]


def tidy_table(
    out: RunOutputs, axis: Axis, axis_name: str, paper: Mapping[Any, float] | None = None
) -> None:
    """Write one row per capture, axis position and method, with separate columns for the oracle, the paper (its mean
    error by capture, position and method, if given) and the defaults.
    """
    groups: dict[tuple[str, str, str], list[CellResult]] = {}
    for result in out.results:
        key = (result.cell.capture.name, axis(result.cell), result.cell.label)
        groups.setdefault(key, []).append(result)
    rows: list[dict[str, str]] = []
    lowest: dict[
        tuple[str, str, int], tuple[float, int]
    ] = {}  # by scene and column: the mean error and its row
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
    """Return the parameters that vary over a grid."""
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
    """Write a table per protocol with axis positions as rows and methods as columns; the paper's value is in brackets."""
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
                    [r for r in out.results if r.cell.label == label and place(r.cell) == key],
                    protocol,
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
        if protocol == "oracle" and any(
            (*key, label) in printed for key in keys for label in labels
        ):
            title += " (in brackets: the paper)"
        best = best_in_rows([[a.mean if a.count else None for a in found] for found in averages])
        out.table(
            title, [axis_name, *map(name_of, labels)], rows, name=f"table-{protocol}", best=best
        )


def with_paper(ours: str, protocol: Protocol, printed: float | None) -> str:
    """Append the paper's value to ours, for the oracle only: the paper's values are not those of defaults."""
    if protocol == "oracle" and printed is not None:
        return f"{ours} ({printed:.2f})"
    return ours
