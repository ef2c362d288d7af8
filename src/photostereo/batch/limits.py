"""How long a run waits before it writes down that something did not come."""

from __future__ import annotations

from dataclasses import dataclass

from photostereo.batch.progress import as_time
from photostereo.core.errors import ParameterError


@dataclass(frozen=True)
class Limits:
    """Deadlines in seconds; what passes one is a failed row with its reason, and the run goes on or ends.

    Attributes
    ----------
    job : for one trial or capture, from when its worker begins it
    without_workers : for a cluster in which no worker is alive

    Examples
    --------
    >>> Limits(job=60).without_workers
    300.0
    """

    job: float = 3600.0
    without_workers: float = 300.0

    def __post_init__(self) -> None:
        for name in ("job", "without_workers"):
            if not getattr(self, name) > 0:
                raise ParameterError(
                    f"A deadline must be a positive number of seconds, not {getattr(self, name)}."
                )

    def words_for_job(self) -> str:
        """What is written down for a job that passed its deadline."""
        return (
            f"Given up after {as_time(self.job)} without a result: the deadline. The worker was hung or stopped, or "
            "more time is needed (--deadline)."
        )

    def words_without_workers(self) -> str:
        """What is written down for jobs that no worker was there for."""
        return (
            f"No worker was alive for {as_time(self.without_workers)}. Look at what ended them (memory, a limit on "
            "processes or open files), then run again with --retry-failed."
        )
