"""How and where many jobs are run: the same for ``sweep``, ``reproduce`` and ``batch``.

They run on a local cluster that fits the machine, or on the user's own by its address. Anyone who reaches a Dask scheduler
can run code in it. The local cluster therefore uses TLS with a temporary key that is kept in memory.
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
                raise ParameterError(code="bad-deadline", name=name, seconds=seconds)

    @contextmanager
    def connect(self) -> Iterator[Client]:
        """A client of the cluster; a local one ends with the block."""
        import dask
        from distributed import Client, LocalCluster
        from distributed.security import Security

        if self.scheduler is not None:
            try:
                client = Client(self.scheduler, timeout="15s")
            except (OSError, ValueError, TimeoutError) as problem:
                raise ParameterError(
                    code="no-scheduler", scheduler=self.scheduler, problem=str(problem)
                ) from None
            with client:
                _require_same_version(client)
                yield client
            return
        with _environment_restored(), dask.config.set(_LOCAL_CLUSTER), ExitStack() as stack:
            with deferred_interrupt():
                cluster = stack.enter_context(
                    LocalCluster(
                        n_workers=self.workers or worker_count(),
                        threads_per_worker=1,
                        processes=True,
                        dashboard_address="127.0.0.1:0",  # not the default, which is a port on every interface
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

    def count(self, status: str) -> None:
        """One more that has ended."""
        self.done += status == "done"
        self.failed += status != "done"

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


#: Memory that a worker should have for itself: a capture of 96 photographs, its noise, its statistics, the dictionary.
#: With less a capture is solved in parts, so only the number of workers depends on it.
BYTES_PER_WORKER = 1.5e9
#: BLAS reads these when it is loaded. Numba's threads are set in the worker (:func:`.process.set_threads`): its
#: variable must not change in a process that has launched them, and Dask sets what it hands to its workers in this
#: process too.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


#: Dask's settings for the local cluster.
_LOCAL_CLUSTER: dict[str, Any] = {
    "distributed.scheduler.allowed-failures": 2,
    # Bundles are assigned by hand; stealing would make a second worker load the same photographs.
    "distributed.scheduler.work-stealing": False,
    "distributed.worker.daemon": True,
    # No pages about the run, which anybody on this machine could read.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.comm.timeouts.connect": "30s",
    "distributed.nanny.pre-spawn-environ": dict.fromkeys(_THREAD_VARIABLES, "1"),
    "distributed.admin.log-format": "%(message)s",
    # Outcomes are in the store; a worker that misses the scheduler while both are closed would print a traceback.
    "logging.distributed": "critical",
}


def worker_count() -> int:
    """One process per core, fewer if memory is short: dictionary learning gains more from jobs side by side than from
    threads within one.
    """
    import psutil  # type: ignore[import-untyped]

    return max(1, min(processors(), int(psutil.virtual_memory().available / BYTES_PER_WORKER)))


@contextmanager
def _environment_restored() -> Iterator[None]:
    """Dask leaves the variables that it sets for its workers in the environment of this process."""
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _require_same_version(client: Client) -> None:
    try:
        client.wait_for_workers(1, timeout=60)
        found = set(client.run(_version).values())
    except Exception as problem:
        raise ParameterError(
            f"The workers of {client.scheduler.address} cannot run photostereo ({problem}). Install photostereo "
            f"{__version__} there, and start at least one.",
            code="no-photostereo-on-workers",
        ) from None
    if found != {__version__}:
        raise ParameterError(
            code="other-version-on-workers",
            found=sorted(found),
            versions=", ".join(sorted(found)),
            version=__version__,
        )


def _version() -> str:
    return __version__
