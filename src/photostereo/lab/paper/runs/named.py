"""What a named run is: a plan made from the data folder, the maps it wants, and a report drawn from the
store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from photostereo.lab.paper.catalog import Catalog
from photostereo.lab.sweeps.outputs import RunOutputs
from photostereo.lab.sweeps.plan import Block
from photostereo.lab.sweeps.summary import CellResult, Row


def no_maps(results: Sequence[CellResult]) -> list[Row]:
    """For runs whose figures need numbers only."""
    return []


@dataclass(frozen=True)
class NamedRun:
    """One experiment of the paper.

    Attributes
    ----------
    name : as users type it
    title : one line
    source : where it is in the paper, and what the paper finds
    blocks : the plan, from the data folder and whether it is to be quick; empty where its objects are missing
    report : writes tables and figures from the store
    maps : after the trials, the rows whose maps the figures need
    """

    name: str
    title: str
    source: str
    blocks: Callable[[Catalog, bool], list[Block]]
    report: Callable[[RunOutputs], None]
    maps: Callable[[Sequence[CellResult]], list[Row]] = no_maps


def maps_caption(result: CellResult) -> str:
    """What stands below a method's name in a figure of maps."""
    if result.shown is None:
        return ""
    return f"{result.shown['mean']:.2f}°" + ("" if result.cell.grid else ", defaults")


def best_rows(results: Sequence[CellResult], capture: str | None = None) -> list[Row]:
    """The oracle's rows, and those of methods without a grid, of the first seed only: what a figure of maps shows."""
    chosen = []
    seen = set()
    for result in results:
        key = (result.cell.capture.name, result.cell.images, result.cell.corruption, result.cell.label)
        if result.shown is not None and key not in seen and capture in (None, result.cell.capture.name):
            seen.add(key)
            chosen.append(result.shown)
    return chosen
