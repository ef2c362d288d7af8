"""Progress of a run of many jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from photostereo.core.control import Control


@dataclass
class Progress:
    """Counts of trials (or captures).

    ``failed_earlier`` of the failed ones had failed in an earlier run and were not tried again.
    """

    total: int
    done: int = 0
    failed: int = 0
    running: int = 0
    unit: str = "trials"
    failed_earlier: int = 0

    def __str__(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.done} of {self.total} {self.unit} done{failed}, {self.running} running"


class RunControl(Control):
    """A control of a run of many jobs; its stages are plans. This base class displays nothing."""

    def progress(self, now: Progress) -> None:
        """Something has changed."""

    def end(self) -> None:
        """It has ended."""

    def say(self, text: str) -> None:
        """A line for the user: what is missing, which files were written."""

    def table(self, title: str | None, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A finished table."""


SILENT_RUN = RunControl()


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
