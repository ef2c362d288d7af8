"""What the coordinator of a batch asks of a pool of worker processes.

Two modules provide it: :mod:`.local_pool` for this machine, with nothing to install, and :mod:`.cluster` for a Dask
cluster at an address. A worker runs one job at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol


class DeadWorkerError(Exception):
    """The process that ran a job ended before it returned an outcome."""


class Answer(Protocol):
    """The outcome of a job, once there is one."""

    def done(self) -> bool:
        """Return whether the job has ended, or its worker has."""

    def result(self, timeout: float) -> Any:
        """Return what the job returned, raise what it raised, or :class:`DeadWorkerError`."""

    def cancel(self) -> None:
        """Forget the job; it may still run to its end."""


class Executor(Protocol):
    """Worker processes, each addressed by a name that is never used again once the process has ended."""

    def workers(self) -> Collection[str]:
        """Return the names of the workers that are alive; dead ones are replaced."""

    def submit(self, worker: str, call: Callable[[], Any]) -> Answer:
        """Run a call, which must be picklable, on a worker that is idle."""

    def restart(self, worker: str) -> None:
        """End a worker that hangs; another one replaces it, under another name."""
