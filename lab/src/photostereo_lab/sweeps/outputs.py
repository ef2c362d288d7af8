"""Turn rows into figures and tables: oracle and defaults of every cell.

They are averaged over trials and never mixed.

*Oracle*: the row of a method's grid on one scene with the lowest mean angular error, as in the
paper; it uses the truth. *Defaults*: the one row without a grid, which is what a user gets.
"""

from __future__ import annotations

import math
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
#: A row of the store, by column.
Row = Mapping[str, Any]
#: Which of the two rows of a cell: never mixed.
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
        """Return the row of a protocol, if it succeeded."""
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
    """Return the oracle and defaults of every cell of a plan, from rows by hash."""
    return [_result(cell, rows) for cell in plan.cells]


def _result(cell: Cell, rows: Mapping[str, Row]) -> CellResult:
    grid = [rows[trial.hash] for trial in cell.grid if trial.hash in rows]
    grid = [row for row in grid if row["status"] == "done" and row["mean"] is not None]
    # Of equal errors, take the first in the grid, so that the choice does not depend on the order
    # of arrival.
    oracle = min(grid, key=lambda row: row["mean"], default=None)
    defaults = None
    if cell.default:
        defaults = rows.get(cell.default.hash)
    if defaults and defaults["status"] != "done":
        defaults = None
    return CellResult(cell, oracle, defaults)


def average(values: Iterable[float | None]) -> Average:
    """Average the values that are not None.

    >>> str(average([1.0, 3.0])), str(average([2.0])), str(average([]))
    ('2.00 ± 1.41', '2.00', '–')
    """
    numbers = np.array([value for value in values if value is not None], dtype=np.float64)
    if numbers.size == 0:
        return Average(float("nan"), 0.0, 0)
    mean = float(numbers.mean())
    if numbers.size == 1:
        return Average(mean, 0.0, 1)
    return Average(mean, float(numbers.std(ddof=1)), int(numbers.size))


def average_of(
    results: Iterable[CellResult],
    protocol: Protocol,
    *,
    value: str = "mean",
    where: Callable[[Cell], bool] = lambda cell: True,
) -> Average:
    """Average a column of the store over cells.

    Parameters
    ----------
    results : iterable of CellResult
        The cells.
    protocol : {"oracle", "defaults"}
        Which of the two rows.
    value : str
        The column.
    where : function
        Which cells; by default all.
    """
    rows = (result.row(protocol) for result in results if where(result.cell))
    return average(row[value] for row in rows if row is not None)


def average_over_objects(results: Iterable[CellResult], protocol: Protocol) -> Average:
    """Average over objects within each seed first, as in the paper.

    The spread is then over trials, not over objects.
    """
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
    """Return the names of a plan's captures, in order."""
    return unique(cell.capture.name for cell in plan.cells)


def unique(values: Iterable[Value]) -> list[Value]:
    """Return the values without repetitions, in order."""
    return list(dict.fromkeys(values))


def choice_of(rows: Sequence[Row], names: Iterable[str]) -> str:
    """Return the best parameters, most frequent first: ``lam=10 mu=0.1 (3 of 5)``."""
    names = list(names)
    if not rows or not names:
        return ""
    texts = [_parameters_text(row["parameters"], names) for row in rows]
    text, count = Counter(texts).most_common(1)[0]
    if len(rows) == 1:
        return text
    return f"{text} ({count} of {len(rows)})"


def _parameters_text(parameters: Mapping[str, Any], names: Iterable[str]) -> str:
    values = [f"{name}={_short(parameters[name])}" for name in names if name in parameters]
    return " ".join(values)


def _short(value: Any) -> str:
    if isinstance(value, list):
        return "x".join(_short(part) for part in value)
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


#: For labels without a color.
_OTHERS = ("#117733", "#332288", "#aa4499", "#999933", "#661100", "#44aa99")


def look_of(label: str, number: int = 0) -> Look:
    """Return name, color and marker of a method.

    Words in brackets after a method stay after its name. Other labels keep their text and get a
    color by number.
    """
    other = _OTHERS[number % len(_OTHERS)]
    method, bracket, rest = label.partition(" (")
    try:
        look = find_method(method).look
    except ParameterError:
        return Look(label, other)
    look = replace(look, label=look.label + bracket + rest)
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

    name: str  #: of the run
    title: str  #: of its page and tables
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
        if row is None:
            return None
        path = self.store.arrays_path(row["hash"])
        if not path.exists():
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
        """Write a table in every format.

        Parameters
        ----------
        title : str
            Its title.
        header : sequence of str
            Names of the columns.
        rows : sequence of sequences of str
            The cells.
        name : str
            Name of the files.
        best : collection of (row, column)
            Cells printed in bold.
        show : bool
            Also put the table on the page and display it.
        """
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
        """Put a paragraph on the page."""
        self.page.append(text + "\n")

    def failures(self) -> list[str]:
        """Describe the failed trials, each cause once."""
        failed = [row for row in self.rows.values() if row["status"] == "failed"]
        causes = Counter(f"{row['method']}: {row['error']}" for row in failed)
        return [f"{count} failed: {cause}" for cause, count in causes.items()]


#: The position of a cell in a table, as text.
Axis = Callable[[Cell], str]


def tidy_table(
    out: RunOutputs, axis: Axis, axis_name: str, paper: Mapping[Any, float] | None = None
) -> None:
    """Write one row per capture, axis position and method.

    It has separate columns for the oracle, the paper and the defaults.

    Parameters
    ----------
    out : RunOutputs
        Where to.
    axis : function
        Returns the position of a cell.
    axis_name : str
        Heading of the positions.
    paper : mapping, optional
        The paper's mean error by capture, position and method.
    """
    groups: dict[tuple[str, str, str], list[CellResult]] = {}
    for result in out.results:
        key = (result.cell.capture.name, axis(result.cell), result.cell.label)
        groups.setdefault(key, []).append(result)
    rows: list[dict[str, str]] = []
    # The mean error of the best method, and its row, by scene and column.
    lowest: dict[tuple[str, str, int], tuple[float, int]] = {}
    for (capture, place, label), group in groups.items():
        row = {"object": capture, axis_name: place, "method": name_of(label)}
        for column, protocol in enumerate(PROTOCOLS, start=len(row)):
            mean = average_of(group, protocol).mean
            scene = (capture, place, column)
            if mean < lowest.get(scene, (math.inf, 0))[0]:
                lowest[scene] = (mean, len(rows))
        for value in ("mean", "median"):
            for protocol, name in PROTOCOLS.items():
                row[f"{value}, {name}"] = str(average_of(group, protocol, value=value))
        if paper:
            printed = paper.get((capture, place, label))
            row["mean, paper"] = "" if printed is None else f"{printed:.2f}"
        oracles = [result.oracle for result in group if result.oracle is not None]
        row["trials"] = str(len(group))
        row["best parameters"] = choice_of(oracles, grid_names(group))
        rows.append(row)
    if rows:
        bold = {(number, column) for (_, _, column), (_, number) in lowest.items()}
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
    """Write a table per protocol with axis positions as rows and methods as columns.

    Parameters
    ----------
    out : RunOutputs
        Where to.
    axis : function
        Returns the position of a cell.
    axis_name : str
        Heading of the positions.
    paper : mapping, optional
        The paper's mean error by capture, position and method, which is put in brackets.
    averaged : bool
        Average over the captures; the capture is then ``""`` in ``paper``.
    """
    several = len(captures_of(out.plan)) > 1 and not averaged
    printed = paper or {}
    groups: dict[tuple[str, str], list[CellResult]] = {}
    for result in out.results:
        capture = "" if averaged else result.cell.capture.name
        groups.setdefault((capture, axis(result.cell)), []).append(result)
    for protocol, name in PROTOCOLS.items():
        labels = labels_of(out.plan, protocol)
        rows: list[list[str]] = []
        means: list[list[float | None]] = []
        in_brackets = False
        for (capture, place), group in groups.items():
            row = [f"{capture}, {place}" if several else place]
            numbers: list[float | None] = []
            for label in labels:
                results = [result for result in group if result.cell.label == label]
                figure = average_over_objects(results, protocol)
                value = printed.get((capture, place, label))
                in_brackets = in_brackets or value is not None
                row.append(with_paper(str(figure), protocol, value))
                numbers.append(figure.mean if figure.count else None)
            rows.append(row)
            means.append(numbers)
        title = f"{out.title}: mean angular error in degrees, {name}"
        if protocol == "oracle" and in_brackets:
            title += " (in brackets: the paper)"
        header = [axis_name, *map(name_of, labels)]
        out.table(title, header, rows, name=f"table-{protocol}", best=best_in_rows(means))


def with_paper(ours: str, protocol: Protocol, printed: float | None) -> str:
    """Append the paper's value to ours, for the oracle only.

    The paper's values are not those of defaults.
    """
    if protocol == "oracle" and printed is not None:
        return f"{ours} ({printed:.2f})"
    return ours
