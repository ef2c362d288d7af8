"""A Dask cluster that the user has started, as an executor of jobs.

Anyone who can reach a Dask scheduler can run code on its workers; see ``SECURITY.md``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from photostereo._version import __version__
from photostereo.batch.executor import DeadWorkerError
from photostereo.core.errors import ParameterError

if TYPE_CHECKING:
    from distributed import Client, Future

#: Seconds for a worker to come back after a restart; the others continue meanwhile, so a longer wait costs nothing.
RESTART_SECONDS = 20
#: Seconds to wait for the scheduler to answer, and for its first worker.
CONNECT_SECONDS = 15
FIRST_WORKER_SECONDS = 60


class ClusterAnswer:
    """The outcome of a job on a cluster."""

    def __init__(self, future: Future) -> None:
        self.future = future

    def done(self) -> bool:
        return bool(self.future.done())

    def result(self, timeout: float) -> Any:
        from distributed.scheduler import KilledWorker

        try:
            return self.future.result(timeout=timeout)
        except (KilledWorker, CancelledError, TimeoutError):
            raise DeadWorkerError from None

    def cancel(self) -> None:
        with suppress(Exception):  # the scheduler may be gone too
            self.future.cancel(force=True)


class Cluster:
    """The workers of a Dask scheduler."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def workers(self) -> Collection[str]:
        return list(self.client.nthreads())

    def submit(self, worker: str, call: Callable[[], Any]) -> ClusterAnswer:
        return ClusterAnswer(self.client.submit(call, workers=[worker], pure=False))

    def restart(self, worker: str) -> None:
        def work() -> None:  # a worker without a nanny does not come back
            with suppress(Exception):  # the scheduler may be gone too
                self.client.restart_workers(
                    [worker], timeout=RESTART_SECONDS, raise_for_error=False
                )

        threading.Thread(target=work, daemon=True).start()


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Connect to the scheduler at an address; its workers must have this version of photostereo."""
    from distributed import Client

    try:
        client = Client(address, timeout=f"{CONNECT_SECONDS}s")
    except (OSError, ValueError, TimeoutError) as problem:
        raise ParameterError(
            f"No Dask scheduler answers at {address} ({problem}). Start one with `dask scheduler` "
            "and its workers with `dask worker`, or give no address to use this machine.",
            code="no-scheduler",
            scheduler=address,
            problem=str(problem),
        ) from None
    with client:
        _require_same_version(client)
        yield Cluster(client)


def _require_same_version(client: Client) -> None:
    try:
        client.wait_for_workers(1, timeout=FIRST_WORKER_SECONDS)
        versions = sorted(set(client.run(_version).values()))
    except Exception as problem:
        raise ParameterError(
            f"The workers of {client.scheduler.address} cannot run photostereo ({problem}). "
            f"Install photostereo {__version__} there, and start at least one.",
            code="no-photostereo-on-workers",
            problem=str(problem),
            address=client.scheduler.address,
            version=__version__,
        ) from None
    if versions != [__version__]:
        others = ", ".join(versions)
        raise ParameterError(
            f"The workers have photostereo {others} and this is {__version__}: their results "
            "would not be comparable. Install the same version everywhere.",
            code="other-version-on-workers",
            versions=others,
            version=__version__,
        )


def _version() -> str:
    return __version__
