"""The tables of ``compare`` and ``demo``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from photostereo.io.tables import Table

Rows = Sequence[Mapping[str, Any]]


def comparison_table(rows: Rows) -> Table:
    """Table of errors or, without truth, of unexplained brightness; the lowest value is the best."""
    figures = {"unexplained": "{percent:.1f} %"}
    known = all(row["mean"] is not None for row in rows)
    if known:
        figures = {"mean error": "{mean:.2f}°", "median": "{median:.2f}°", "within 10°": "{within_10deg:.0%}"}
    columns = {"method": "{method}", **figures, **_EXPECTED, "seconds": "{seconds:.2f}", "status": "{status}"}
    rows = [{**row, "percent": 100 * row["unexplained"]} for row in rows]
    return _table("Methods compared", rows, columns, best=("mean" if known else "unexplained", 1))


def results_table(rows: Rows, first: str | None) -> Table:
    """Table of angles to the truth (lowest in bold) or to the ``first`` result, with the expected error of each result."""
    heading = "mean error" if first is None else f"mean angle to {first}"
    angles = {heading: "{mean:.2f}°", "median": "{median:.2f}°", "90 % below": "{p90:.2f}°"}
    columns = {"result": "{name}", "method": "{method}", **angles, **_EXPECTED}
    return _table("Results compared", rows, columns, best=("mean", 2) if first is None else None)


_EXPECTED = {"expected error": "{expects}"}


def _table(title: str, rows: Rows, columns: Mapping[str, str], best: tuple[str, int] | None) -> Table:
    """``columns`` maps headings to cell formats; ``best`` is a value and its column, where the lowest is marked."""
    lines = []
    for row in rows:
        expects = "" if row["expected"] is None else f"{row['expected']:.1f}°, {row['grade']}"
        lines.append([cell.format(**row, expects=expects) for cell in columns.values()])
    values = [] if best is None else [row[best[0]] for row in rows]
    marked = [(values.index(min(values)), best[1])] if best is not None else []
    return Table(title, list(columns), lines, best=marked)
