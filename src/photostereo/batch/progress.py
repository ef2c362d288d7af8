"""Who is told how a run goes: nobody, a terminal, or lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from photostereo.core.control import Control
from photostereo.io.names import printable
from photostereo.runtime.signals import work_begins

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Progress:
    """Where a run stands: counts of trials (or captures), and the seconds that are left as far as one can
    tell.
    """

    total: int
    done: int
    failed: int
    running: int
    seconds_left: float | None = None
    unit: str = "trials"

    def __str__(self) -> str:
        left = "" if self.seconds_left is None else f", {as_time(self.seconds_left)} left"
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.done} of {self.total} {self.unit} done{failed}, {self.running} running{left}"


class RunControl(Control):
    """A control of a run of many jobs; its stages are plans. This base class ignores what it is told."""

    def progress(self, now: Progress) -> None:
        """Something has changed."""

    def end(self) -> None:
        """It has ended."""

    def say(self, text: str) -> None:
        """A line for the user: what is missing, where the dashboard is, which files were written."""

    def table(self, title: str, header: list[str], rows: list[list[str]]) -> None:
        """A finished table."""


SILENT_RUN = RunControl()


class TerminalControl(RunControl):
    """A live line: trials done, running, failed, time left."""

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console

        self._console = console or Console(stderr=True)
        self._bar: Any = None
        self._task: Any = None

    def on_stage(self, name: str, total: int | None) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        self._bar.start()
        self._task = self._bar.add_task(name, total=total, note="")

    def progress(self, now: Progress) -> None:
        if self._bar is None:
            return
        left = "" if now.seconds_left is None else f"{as_time(now.seconds_left)} left"
        failed = f"[red]{now.failed} failed[/red] " if now.failed else ""
        note = f"{failed}{now.running} running {left}"
        self._bar.update(self._task, total=now.total, completed=now.done + now.failed, note=note)

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def say(self, text: str) -> None:
        self._console.print(printable(text), highlight=False, markup=False, soft_wrap=True)

    def table(self, title: str, header: list[str], rows: list[list[str]]) -> None:
        from rich.markup import escape
        from rich.table import Table

        table = Table(title=title, title_justify="left")
        for number, column in enumerate(header):
            table.add_column(column, justify="left" if number == 0 else "right")
        for row in rows:
            table.add_row(*(escape(printable(cell)) for cell in row))
        self._console.print(table)


class LineControl(RunControl):
    """Plain lines, not more often than every few seconds."""

    def __init__(self, write: Callable[[str], object] | None = None, every: float = 10.0) -> None:
        self._write = write or (lambda text: sys.stderr.write(printable(text) + "\n"))
        self._every = every
        self._last = 0.0
        self._name = ""
        self._now: Progress | None = None

    def on_stage(self, name: str, total: int | None) -> None:
        self._name, self._last, self._now = name, time.monotonic(), None

    def progress(self, now: Progress) -> None:
        self._now = now
        if time.monotonic() - self._last >= self._every:
            self._last = time.monotonic()
            self._write(f"{self._name}: {now}")

    def end(self) -> None:
        if self._now is not None:
            self._write(f"{self._name}: {self._now}")

    def say(self, text: str) -> None:
        self._write(text)

    def table(self, title: str, header: list[str], rows: list[list[str]]) -> None:
        widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
        self._write(title)
        for row in [header, *rows]:
            cells = (
                cell.ljust(w) if i == 0 else cell.rjust(w)
                for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            self._write("  " + "  ".join(cells))


def control_for(*, quiet: bool = False) -> RunControl:
    """A live view where standard error is a terminal, lines otherwise, nothing when quiet."""
    work_begins()
    if quiet:
        return SILENT_RUN
    return TerminalControl() if sys.stderr.isatty() else LineControl()


def as_time(seconds: float) -> str:
    """
    >>> as_time(42), as_time(150), as_time(4000)
    ('42 s', '2 min 30 s', '1 h 06 min')
    """
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
