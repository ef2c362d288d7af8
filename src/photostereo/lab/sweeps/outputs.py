"""The folder of one named run: its tables, figures and the page that shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from photostereo.batch.options import SILENT_RUN, RunControl
from photostereo.io.safe import read_npz
from photostereo.io.tables import Table
from photostereo.lab.sweeps.plan import Plan
from photostereo.lab.sweeps.store import Store
from photostereo.lab.sweeps.style import save_figure
from photostereo.lab.sweeps.summary import CellResult, results_of

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
