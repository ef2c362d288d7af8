"""How and where many jobs run: the same for ``sweep``, ``reproduce`` and ``batch``.

They run in processes on this machine, or on the user's own Dask cluster at an address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from photostereo.core.control import Control
from photostereo.core.errors import ParameterError, require_extra
from photostereo.runtime.threads import processors

if TYPE_CHECKING:
    from photostereo.batch.executor import Executor


@dataclass(frozen=True)
class RunOptions:
    """Where jobs run, how long they may take, and whether failed ones are retried."""

    scheduler: str | None = None  #: address of a Dask scheduler; None for this machine
    #: processes on this machine; None for one per core, as far as memory allows
    workers: int | None = None
    retry_failed: bool = False  #: retry jobs that failed before
    deadline: float = 3600.0  #: time limit of a job, in seconds; exceeding it is a failure
    wait_for_workers: float = 300.0  #: seconds without any worker after which the run ends

    def __post_init__(self) -> None:
        for name in ("deadline", "wait_for_workers"):
            seconds = getattr(self, name)
            if not seconds > 0:
                raise ParameterError(
                    f"{name} must be a positive number of seconds, not {seconds}.",
                    code="bad-deadline",
                    name=name,
                    seconds=seconds,
                )

    @contextmanager
    def connect(self, jobs: int | None = None) -> Iterator[Executor]:
        """Start workers on this machine, which end with the block, or connect to the cluster.

        Parameters
        ----------
        jobs : int, optional
            Number of jobs, if it is known and time is all that matters: no more workers are started,
            and they share the processors. Otherwise each has one thread.
        """
        if self.scheduler is None:
            from photostereo.batch.local_pool import local_pool

            count = self.workers or worker_count()
            threads = 1
            if jobs is not None:
                count = max(1, min(count, jobs))
                threads = max(1, processors() // count)
            with local_pool(count, threads) as pool:
                yield pool
        else:
            from photostereo.batch.cluster import connected

            with connected(self.scheduler) as cluster:
                yield cluster

    def require(self, device: str) -> None:
        """Raise if Dask, or the device on this machine, is missing, before anything is written."""
        if self.scheduler is not None:
            require_extra("distributed", "batch", "A cluster")
            return
        from photostereo.runtime.arrays import find_device  # NumPy, which the help does not need

        find_device(device)


#: On this machine, with defaults that suit it.
HERE = RunOptions()


@dataclass
class Progress:
    """Counts of trials (or captures).

    ``failed_earlier`` of the failed ones failed in an earlier run and were not retried.
    """

    total: int
    done: int = 0
    failed: int = 0
    running: int = 0
    unit: str = "trials"
    failed_earlier: int = 0

    def count(self, status: str) -> None:
        """Count one more ended job."""
        self.done += status == "done"
        self.failed += status != "done"

    def __str__(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.done} of {self.total} {self.unit} done{failed}, {self.running} running"


class RunControl(Control):
    """A control for a run of many jobs; its stages are plans. This base class displays nothing."""

    def progress(self, now: Progress) -> None:
        """Called when the counts have changed."""

    def end(self) -> None:
        """Called when the run has ended."""

    def say(self, text: str) -> None:
        """Receive a line for the user: what is missing, which files were written."""

    def table(
        self, title: str | None, header: Sequence[str], rows: Sequence[Sequence[str]]
    ) -> None:
        """Receive a finished table."""


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


#: Memory that each worker should have: for a capture of 96 photographs, its noise, its statistics and the dictionary.
#: With less, a capture is solved in parts, so only the number of workers depends on it.
BYTES_PER_WORKER = 1.5e9


def worker_count() -> int:
    """One process per core, as jobs gain more from it than from threads; fewer if memory is short."""
    import psutil  # type: ignore[import-untyped]

    return max(1, min(processors(), int(psutil.virtual_memory().available / BYTES_PER_WORKER)))
