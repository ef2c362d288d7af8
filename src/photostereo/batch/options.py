"""How many jobs are run: the same for ``sweep``, ``reproduce`` and ``batch``."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from photostereo.batch.cluster import connect
from photostereo.batch.limits import Limits
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
    limits : deadlines of a job and of a cluster without workers

    Examples
    --------
    >>> RunOptions(workers=2).limits.job
    3600.0
    """

    scheduler: str | None = None
    workers: int | None = None
    retry_failed: bool = False
    limits: Limits = field(default_factory=Limits)

    def connect(self) -> AbstractContextManager[Client]:
        """A client of the cluster, which ends with the block where it is on this machine."""
        return connect(self.scheduler, workers=self.workers)

    def require(self, device: str) -> None:
        """Raise what is missing before anything is written: Dask, or the device on this machine."""
        require_extra("distributed", "batch", "Many captures or trials")
        if self.scheduler is None:
            from photostereo.runtime.arrays import find_device  # with NumPy, which the help does without

            find_device(device)


#: On this machine, as it suits it.
HERE = RunOptions()
