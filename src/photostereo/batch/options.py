"""How and where many jobs run: the same for ``sweep``, ``reproduce`` and ``batch``.

They run on a local cluster that fits the machine, or on the user's own cluster at an address. Anyone with access to a
Dask scheduler can run code in it, so the local cluster uses TLS with a temporary key that is kept in memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from photostereo._version import __version__
from photostereo.core.control import Control
from photostereo.core.errors import ParameterError, require_extra
from photostereo.runtime.signals import deferred_interrupt
from photostereo.runtime.threads import processors

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class RunOptions:
    """Where jobs run, how long they may take, and whether failed ones are retried."""

    scheduler: str | None = None  #: address of a Dask scheduler; None for a cluster on this machine
    #: processes of that cluster; None for one per core, as far as memory allows
    workers: int | None = None
    retry_failed: bool = False  #: retry jobs that failed before
    deadline: float = 3600.0  #: time limit of a job, in seconds; exceeding it is a failure
    wait_for_workers: float = 300.0  #: seconds without any worker after which the run ends

    def __post_init__(self) -> None:
        for name in ("deadline", "wait_for_workers"):
            seconds = getattr(self, name)
            if not seconds > 0:
                raise ParameterError(code="bad-deadline", name=name, seconds=seconds)

    @contextmanager
    def connect(self) -> Iterator[Client]:
        """Connect to the cluster; a local one ends with the block."""
        from unittest.mock import patch

        import dask
        from distributed import Client, LocalCluster
        from distributed.security import Security

        if self.scheduler is not None:
            try:
                client = Client(self.scheduler, timeout="15s")
            except (OSError, ValueError, TimeoutError) as problem:
                address = self.scheduler
                raise ParameterError(
                    code="no-scheduler", scheduler=address, problem=str(problem)
                ) from None
            with client:
                _require_same_version(client)
                yield client
            return
        # Dask leaves the variables that it sets for its workers in this process; they are restored.
        with patch.dict(os.environ), dask.config.set(_LOCAL_CLUSTER), ExitStack() as stack:
            with deferred_interrupt():
                cluster = stack.enter_context(
                    LocalCluster(
                        n_workers=self.workers or worker_count(),
                        threads_per_worker=1,
                        processes=True,
                        dashboard_address="127.0.0.1:0",  # the default listens on every interface
                        scheduler_kwargs={"dashboard": False},
                        host="127.0.0.1",
                        protocol="tls",
                        security=Security.temporary(),
                        memory_limit=0,
                        silence_logs="CRITICAL",
                    )
                )
                client = stack.enter_context(Client(cluster))
            yield client

    def require(self, device: str) -> None:
        """Raise if Dask, or the device on this machine, is missing, before anything is written."""
        require_extra("distributed", "batch", "Many captures or trials")
        if self.scheduler is None:
            require_extra("cryptography", "batch", "Many captures or trials")
            from photostereo.runtime.arrays import (
                find_device,
            )  # imports NumPy, which the help does not need

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
#: BLAS reads these when it is loaded. Numba's threads are set in the worker (:func:`.process.set_threads`): its
#: variable must not change in a process that has launched them, and Dask also sets its workers' variables in this
#: process.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


#: Dask's settings for the local cluster.
_LOCAL_CLUSTER: dict[str, Any] = {
    "distributed.scheduler.allowed-failures": 2,
    # Bundles are assigned explicitly; stealing would make a second worker load the same photographs.
    "distributed.scheduler.work-stealing": False,
    "distributed.worker.daemon": True,
    # No dashboard, which any user of this machine could read.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.comm.timeouts.connect": "30s",
    "distributed.nanny.pre-spawn-environ": dict.fromkeys(_THREAD_VARIABLES, "1"),
    "distributed.admin.log-format": "%(message)s",
    # Outcomes are in the store; a worker that loses the scheduler during shutdown would print a traceback.
    "logging.distributed": "critical",
}


def worker_count() -> int:
    """One process per core, as jobs gain more from it than from threads; fewer if memory is short."""
    import psutil  # type: ignore[import-untyped]

    return max(1, min(processors(), int(psutil.virtual_memory().available / BYTES_PER_WORKER)))


def _require_same_version(client: Client) -> None:
    try:
        client.wait_for_workers(1, timeout=60)
        found = sorted(set(client.run(_version).values()))
    except Exception as problem:
        where = {"address": client.scheduler.address, "version": __version__}
        raise ParameterError(
            code="no-photostereo-on-workers", problem=str(problem), **where
        ) from None
    if found != [__version__]:
        versions = ", ".join(found)
        raise ParameterError(
            code="other-version-on-workers", versions=versions, version=__version__
        )


def _version() -> str:
    return __version__
