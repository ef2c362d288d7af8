"""From rows to figures: the oracle and the defaults of every cell, averaged over trials, never mixed.

*Oracle*: of a method's grid on one scene, the row with the lowest mean angular error, as in the paper; it
knows the truth. *Defaults*: the one row without a grid; what a user gets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from photostereo.lab.sweeps.plan import Cell, Plan

Value = TypeVar("Value")
Row = Mapping[str, Any]
Protocol = Literal["oracle", "defaults"]

#: The two columns that every table keeps apart, in words.
PROTOCOLS: dict[Protocol, str] = {"oracle": "best of grid", "defaults": "defaults"}


@dataclass(frozen=True)
class CellResult:
    """One method on one scene: its two rows, if they succeeded."""

    cell: Cell
    oracle: Row | None
    defaults: Row | None

    def row(self, protocol: Protocol) -> Row | None:
        return self.oracle if protocol == "oracle" else self.defaults

    @property
    def shown(self) -> Row | None:
        """The row of a figure of maps: the oracle's, or that of a method without a grid."""
        return self.oracle if self.cell.grid else self.defaults


@dataclass(frozen=True)
class Average:
    """A figure over the trials of a group; the spread is the sample standard deviation."""

    mean: float
    spread: float
    count: int

    def __str__(self) -> str:
        if not self.count:
            return "–"
        return f"{self.mean:.2f}" if self.count == 1 else f"{self.mean:.2f} ± {self.spread:.2f}"


def results_of(plan: Plan, rows: Mapping[str, Row]) -> list[CellResult]:
    """Oracle and defaults of every cell of a plan."""
    return [_result(cell, rows) for cell in plan.cells]


def _result(cell: Cell, rows: Mapping[str, Row]) -> CellResult:
    tried = [rows[trial.hash] for trial in cell.grid if trial.hash in rows]
    done = [row for row in tried if row["status"] == "done" and row["mean"] is not None]
    # Of equal errors the first in the grid, so that the choice does not depend on the order of arrival.
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
    return Average(float(known.mean()), float(known.std(ddof=1)) if known.size > 1 else 0.0, int(known.size))


def average_of(
    results: Iterable[CellResult],
    protocol: Protocol,
    *,
    value: str = "mean",
    where: Callable[[Cell], bool] = lambda cell: True,
) -> Average:
    """A column of the store averaged over the cells that fit."""
    rows = (result.row(protocol) for result in results if where(result.cell))
    return average(row[value] for row in rows if row is not None)


def average_over_objects(results: Iterable[CellResult], protocol: Protocol) -> Average:
    """The average over objects within each seed first, as in the paper; so the spread is over trials, not objects."""
    by_seed: dict[int | None, list[float]] = {}
    for result in results:
        row = result.row(protocol)
        if row is not None:
            by_seed.setdefault(result.cell.seed, []).append(row["mean"])
    return average(float(np.mean(values)) for values in by_seed.values())


def labels_of(plan: Plan, protocol: Protocol = "defaults") -> list[str]:
    """The methods of a plan, in its order; for the oracle those that have a grid to choose from."""
    return unique(cell.label for cell in plan.cells if cell.grid or protocol == "defaults")


def captures_of(plan: Plan) -> list[str]:
    """The captures of a plan, in its order."""
    return unique(cell.capture.name for cell in plan.cells)


def unique(values: Iterable[Value]) -> list[Value]:
    """Each value once, in the order of the first."""
    return list(dict.fromkeys(values))


def choice_of(rows: Sequence[Row], names: Iterable[str]) -> str:
    """The parameters that were best, most frequent first: ``lam=10 mu=0.1 (3 of 5)``."""
    wanted = list(names)
    if not rows or not wanted:
        return ""
    texts = Counter(
        " ".join(f"{name}={_short(row['parameters'][name])}" for name in wanted if name in row["parameters"])
        for row in rows
    )
    text, count = texts.most_common(1)[0]
    return text if len(rows) == 1 else f"{text} ({count} of {len(rows)})"


def _short(value: Any) -> str:
    if isinstance(value, list):
        return "x".join(_short(part) for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
