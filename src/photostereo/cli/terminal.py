"""Output of the command line, during work and at the end: rich in a terminal, plain lines elsewhere."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from photostereo.batch.options import Progress, RunControl, as_time
from photostereo.core.control import Iteration, Stage
from photostereo.io.names import printable
from photostereo.runtime.compile_notice import announcing
from photostereo.runtime.signals import work_begins

if TYPE_CHECKING:
    from rich.console import Console

    from photostereo.pipeline.pipeline import Pipeline

#: Minimum time between lines of progress without a terminal, in seconds.
PLAIN_INTERVAL = 5.0
#: Stages that take less than this share of the total time are not listed in the summary, to keep it short.
NAMED_SHARE = 0.03
#: Words in a table up to this number of letters are never broken; paths are longer.
LONGEST_WORD = 16
#: How cells with numbers begin.
FIGURES = "+-–.≈<0123456789"


class Terminal(RunControl):
    """Prints messages to standard output, and progress to standard error: a bar or, elsewhere, a line now and then."""

    #: The terminal of the command that runs or ran last.
    latest: ClassVar[Terminal | None] = None

    def __init__(
        self, *, quiet: bool = False, out: Console | None = None, err: Console | None = None
    ) -> None:
        from rich.console import Console

        work_begins()
        self.quiet = quiet
        #: Names of the options given on the command line.
        self.given: frozenset[str] = frozenset()
        #: Whether some of the command's jobs failed; it then ends with exit code 1.
        self.some_failed = False
        #: What the command works on, if it has a pipeline: reported if the command crashes.
        self.pipeline: Pipeline | None = None
        Terminal.latest = self
        self.out = out or Console(highlight=False)
        self.err = err or Console(stderr=True, highlight=False)
        self._bar: Any = None
        self._stage = Stage()
        self._printed = time.monotonic()  # time of the last progress line, without a terminal

    def __enter__(self) -> Terminal:
        self._announcing = announcing(self._say_compiling)
        self._announcing.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._announcing.__exit__(*problem)
        self.finish()
        self.end()

    @property
    def current_stage(self) -> str:
        """The name of the stage that began last; empty if none has."""
        return self._stage.name

    # Messages.

    def say(self, text: Any = "") -> None:
        """Print a line or a table unless quiet is set."""
        self._print(self.out, text)

    def say_all(self, lines: Iterable[str]) -> None:
        """Print lines of :mod:`photostereo.cli.messages`; unless quiet is set, they are not even made."""
        if not self.quiet:
            text = "\n".join(lines)
            if text:
                self.say(text)

    def table(
        self, title: str | None, header: Sequence[str], rows: Sequence[Sequence[str]]
    ) -> None:
        self.say(text_table(header, rows, title))

    def _say_compiling(self, message: str) -> None:
        self._stage.forget_pace()
        self._print(self.err, message)

    def _print(self, console: Console, text: Any) -> None:
        from rich.text import Text

        if self.quiet:
            return
        self.end()
        if isinstance(text, str):
            console.print(Text(wrapped(printable(text), console)), soft_wrap=True)
            return
        # A table that is too wide for the terminal is shown without its frame.
        if sum(column.min_width + 3 for column in text.columns) >= console.width:
            text.box = None
            text.pad_edge = False
            text.collapse_padding = True
        console.print(text)

    def summary(self, total: float | None = None) -> str:
        """Return the time per stage, of a total, e.g. ``"Time: iterations 4.0 s, other 0.3 s"``. Ends the stage."""
        self.finish()
        total = total or sum(self.seconds.values())
        named = {
            name: spent for name, spent in self.seconds.items() if spent >= NAMED_SHARE * total
        }
        named["other"] = total - sum(named.values())
        parts = [f"{name} {spent:.1f} s" for name, spent in named.items() if spent >= 0.05]
        return f"Time: {', '.join(parts)}" if parts else ""

    # Progress.

    def on_stage(self, name: str, total: int | None) -> None:
        self._stage = Stage(name, total)
        self._show(name)

    def on_advance(self, steps: int) -> None:
        stage = self._stage
        stage.reach(stage.done + steps)
        self._show(
            f"{stage.name}: {stage.done}{f'/{stage.total}' if stage.total else ''}", stage.note
        )

    def on_iteration(self, record: Iteration) -> None:
        error = "" if record.error is None else f", error {record.error:.2f}°"
        self._stage.note = f"cost {record.cost:.5g}, change {record.change:.1g}{error}"

    def progress(self, now: Progress) -> None:
        """Show the counts of many jobs instead of steps."""
        stage = self._stage
        failed = f"{now.failed} failed, " if now.failed else ""
        if now.done + now.failed != stage.done:
            stage.reach(now.done + now.failed)
        stage.total = now.total
        stage.note = f"{failed}{now.running} running"
        self._show(f"{stage.name}: {now}")

    def _show(self, line: str, note: str = "") -> None:
        """Draw the bar; without a terminal, print a line now and then."""
        if self.quiet:
            return
        seconds = self._stage.seconds_left
        left = "" if seconds is None else f"{as_time(seconds)} left"
        if self.err.is_terminal:
            self._draw(left)
        elif time.monotonic() - self._printed > PLAIN_INTERVAL:
            self._printed = time.monotonic()
            self._print(self.err, ", ".join(word for word in (line, left, note) if word))

    def _draw(self, left: str) -> None:
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar

        if self._bar is None:
            shown = [f"{{task.fields[{name}]}}" for name in ("stage", "count", "left", "note")]
            first, *others = (TextColumn(field, markup=False) for field in shown)
            bar = BarColumn(min(30, self.err.width // 4))
            self._bar = Bar(first, bar, *others, console=self.err, transient=True)
            self._bar.add_task("", total=None, stage="", count="", left="", note="")
        stage = self._stage
        count = f"{stage.done}/{stage.total}" if stage.total else ""
        texts = {"stage": printable(stage.name), "count": count, "left": left}
        room = self.err.width - self._bar.columns[1].bar_width - len(" ".join(texts.values())) - 2
        note = stage.note if len(stage.note) <= room else ""
        (task,) = self._bar.task_ids
        self._bar.update(task, total=stage.total, completed=stage.done, note=note, **texts)
        self._bar.start()  # does nothing if already started

    def end(self) -> None:
        """Remove the bar, so that nothing is printed behind it."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def wrapped(text: str, console: Console) -> str:
    """Wrap text between words, keeping paths in one piece; unchanged if the output is not a terminal."""
    if not console.is_terminal:
        return text
    wrapper = textwrap.TextWrapper(console.width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(map(wrapper.fill, text.split("\n")))


def text_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None
) -> Any:
    """Build a table for the terminal; columns of numbers, except the first column, are right-aligned."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=None if title is None else Text(printable(title)), title_justify="left")
    for number, name in enumerate(header):
        figures = number > 0 and all(not row[number] or row[number][0] in FIGURES for row in rows)
        words = " ".join([name, *(str(row[number]) for row in rows)]).split() or [""]
        # Lines break between words only; a path or a sentence without spaces may still be cut.
        longest = min(max(map(len, words)), LONGEST_WORD)
        table.add_column(
            Text(printable(name)), justify="right" if figures else "left", min_width=longest
        )
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    return table
