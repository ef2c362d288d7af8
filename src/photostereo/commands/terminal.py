"""What the command line shows while it works and when it is done: rich in a terminal, plain lines
elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from photostereo.core.control import Control, Iteration
from photostereo.io.names import printable
from photostereo.runtime.compiling import telling
from photostereo.runtime.signals import work_begins

#: Without a terminal, one line of progress at most this often, in seconds.
PLAIN_INTERVAL = 5.0


class Terminal(Control):
    """Messages to standard output, progress and errors to standard error. A context manager."""

    def __init__(self, *, quiet: bool = False) -> None:
        work_begins()
        self.quiet = quiet
        self.out = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
        self.err = Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())
        self._bar: Progress | None = None
        self._task: Any = None
        self._stage, self._note = "", ""
        self._total: int | None = None
        self._done, self._began, self._shown = 0, 0.0, 0.0
        self._last_line = time.monotonic()

    def __enter__(self) -> Terminal:
        self._telling = telling(self._note_of_compiling)
        self._telling.__enter__()
        if self.err.is_terminal and not self.quiet:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
                console=self.err,
                transient=True,
            )
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._telling.__exit__(kind, value, trace)
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _note_of_compiling(self, message: str) -> None:
        if not self.quiet:
            self.err.print(message)

    def say(self, message: Any = "") -> None:
        """A line or a table for the user, unless quiet is set."""
        if not self.quiet:
            if isinstance(message, str):
                # Sentences are not broken into lines by us: a path must be one piece to be copied.
                self.out.print(Text(printable(message)), soft_wrap=True)
            else:
                self.out.print(message)

    # The control's side.

    def on_stage(self, name: str, total: int | None) -> None:
        self._stage, self._total, self._done, self._note = name, total, 0, ""
        self._began = self._shown = time.monotonic()
        if self._bar is not None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(escape(printable(name)), total=total, note="")
        elif not self.quiet and self._began - self._last_line > PLAIN_INTERVAL:
            self._print(name)

    def _print(self, line: str) -> None:
        self._last_line = time.monotonic()
        self.err.print(Text(printable(line)))

    def on_advance(self, steps: int) -> None:
        self._done += steps
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=steps, note=self._note)
        elif not self.quiet and time.monotonic() - self._shown > PLAIN_INTERVAL:
            self._shown = time.monotonic()
            total = f"/{self._total}{self._time_left()}" if self._total else ""
            self._print(f"{self._stage}: {self._done}{total} {self._note}".rstrip())

    def _time_left(self) -> str:
        """At the pace of this stage so far."""
        if not 0 < self._done < (self._total or 0):
            return ""
        seconds = (time.monotonic() - self._began) * ((self._total or 0) / self._done - 1)
        return f", {seconds / 60:.0f} min left" if seconds > 90 else f", {seconds:.0f} s left"

    def on_iteration(self, record: Iteration) -> None:
        error = "" if record.error is None else f", error {record.error:.2f}°"
        self._note = f"cost {record.cost:.5g}, change {record.change:.1g}{error}"
