"""How many jobs are run and report their progress: the same for ``sweep``, ``reproduce`` and ``batch``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from photostereo.core.control import Control
from photostereo.core.errors import ParameterError, require_extra

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class RunOptions:
    """Where jobs run, how long they may take, and whether what failed is run again."""

    scheduler: str | None = None  #: address of a Dask scheduler; None for a cluster on this machine
    #: processes of that cluster; None for as many as there are cores and memory for
    workers: int | None = None
    retry_failed: bool = False  #: run again what failed before
    deadline: float = 3600.0  #: seconds that a job may take; one that takes longer has failed
    wait_for_workers: float = 300.0  #: seconds without any worker after which the run ends

    def __post_init__(self) -> None:
        for name in ("deadline", "wait_for_workers"):
            seconds = getattr(self, name)
            if not seconds > 0:
                raise ParameterError(
                    f"{name} must be a positive number of seconds, not {seconds}.",
                    code="bad-deadline",
                    name=name,
                )

    def connect(self) -> AbstractContextManager[Client]:
        """A client of the cluster; a local cluster ends with the block."""
        from photostereo.batch.cluster import connect

        return connect(self.scheduler, workers=self.workers)

    def require(self, device: str) -> None:
        """Raise what is missing before anything is written: Dask, or the device on this machine."""
        require_extra("distributed", "batch", "Many captures or trials")
        if self.scheduler is None:
            require_extra("cryptography", "batch", "Many captures or trials")
            from photostereo.runtime.arrays import find_device  # with NumPy, which the help does without

            find_device(device)


#: On this machine, as it suits it.
HERE = RunOptions()


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
