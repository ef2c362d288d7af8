"""How many jobs are run: the same for ``sweep``, ``reproduce`` and ``batch``."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from photostereo.core.errors import ParameterError
from photostereo.core.extras import require_extra

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class RunOptions:
    """Where jobs run, how long they may take, and whether what failed is run again.

    Attributes
    ----------
    scheduler : address of a Dask scheduler; None for a cluster on this machine
    workers : processes of that cluster; None for as many as there are cores and memory for
    retry_failed : run again what failed before
    deadline : seconds that a job may take; one that takes longer has failed
    wait_for_workers : seconds without any worker after which the run ends
    """

    scheduler: str | None = None
    workers: int | None = None
    retry_failed: bool = False
    deadline: float = 3600.0
    wait_for_workers: float = 300.0

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
            from photostereo.runtime.arrays import find_device  # with NumPy, which the help does without

            find_device(device)


#: On this machine, as it suits it.
HERE = RunOptions()
