"""Options of the commands that run many trials or captures on a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from photostereo.batch.limits import Limits
from photostereo.batch.options import RunOptions
from photostereo.cli.command import ADVANCED, OUTPUT, RESOURCES
from photostereo.cli.options import option

GrowingOut = Annotated[
    Path,
    option(
        "--out",
        "-o",
        panel=OUTPUT,
        metavar="OUT",
        help="Folder for the results; an earlier run is continued.",
    ),
]
OnlyFigures = Annotated[
    bool, option("--only-figures", help="Draw tables and figures again without computing anything.")
]


@dataclass(frozen=True)
class Running:
    """Where jobs run, and for how long."""

    workers: Annotated[
        int | None,
        option(
            "--workers", panel=RESOURCES, min=1, help="Processes on this machine (default: one per core)."
        ),
    ] = None
    retry_failed: Annotated[
        bool, option("--retry-failed", panel=RESOURCES, help="Run again what failed earlier.")
    ] = False
    scheduler: Annotated[
        str | None,
        option(
            "--scheduler",
            panel=ADVANCED,
            metavar="ADDRESS",
            help="A Dask scheduler, tcp://host:8786 (default: this machine).",
        ),
    ] = None
    deadline: Annotated[
        float,
        option(
            "--deadline",
            panel=ADVANCED,
            metavar="SECONDS",
            help="Time limit per job; jobs that exceed it are marked as failed.",
        ),
    ] = Limits.job
    wait_for_workers: Annotated[
        float,
        option(
            "--wait-for-workers",
            panel=ADVANCED,
            metavar="SECONDS",
            help="Abort if no worker is available for this long.",
        ),
    ] = Limits.without_workers

    def options(self) -> RunOptions:
        """For the library."""
        limits = Limits(self.deadline, self.wait_for_workers)
        return RunOptions(self.scheduler, self.workers, self.retry_failed, limits)
