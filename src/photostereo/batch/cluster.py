"""Where jobs run: a local cluster that fits the machine, or the user's own by its address.

Anyone who reaches a Dask scheduler can run code in it. The local cluster therefore uses TLS with a temporary key that
is kept in memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from photostereo._version import __version__
from photostereo.core.errors import ParameterError
from photostereo.runtime.signals import deferred_interrupt
from photostereo.runtime.threads import processors

if TYPE_CHECKING:
    from distributed import Client

#: Memory that a worker should have for itself: a capture of 96 photographs, its noise, its statistics, the dictionary.
#: With less a capture is solved in parts, so only the number of workers depends on it.
BYTES_PER_WORKER = 1.5e9
#: BLAS reads these when it is loaded. Numba's threads are set in the worker (:func:`.process.set_threads`): its
#: variable must not change in a process that has launched them, and Dask sets what it hands to its workers in this
#: process too.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def worker_count() -> int:
    """One process per core, fewer if memory is short: dictionary learning gains more from jobs side by side than from
    threads within one.
    """
    import psutil  # type: ignore[import-untyped]

    return max(1, min(processors(), int(psutil.virtual_memory().available / BYTES_PER_WORKER)))


@contextmanager
def connect(scheduler: str | None = None, *, workers: int | None = None) -> Iterator[Client]:
    """A client of the cluster at an address such as ``tcp://host:8786``, or of a local one that ends with the
    block.
    """
    import dask
    from distributed import Client, LocalCluster
    from distributed.security import Security

    if scheduler is not None:
        try:
            client = Client(scheduler, timeout="15s")
        except (OSError, ValueError, TimeoutError) as problem:
            raise ParameterError(
                f"No Dask scheduler answers at {scheduler} ({problem}). Start one with `dask scheduler` and its workers "
                "with `dask worker`, or give no address to use this machine.",
                code="no-scheduler",
                scheduler=scheduler,
            ) from None
        with client:
            _require_same_version(client)
            yield client
        return
    settings: dict[str, Any] = {
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
    with _environment_restored(), dask.config.set(settings), ExitStack() as stack:
        with deferred_interrupt():
            cluster = stack.enter_context(
                LocalCluster(
                    n_workers=workers or worker_count(),
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
            f"The workers have photostereo {', '.join(sorted(found))} and this is {__version__}: their results would not "
            "be comparable. Install the same version everywhere.",
            code="other-version-on-workers",
            found=sorted(found),
        )


def _version() -> str:
    return __version__
