"""Options of the commands that run many trials or captures on a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from photostereo.batch.options import RunOptions
from photostereo.cli.command import ADVANCED, OUTPUT, RESOURCES
from photostereo.cli.options import option

GrowingOut = Annotated[
    Path, option("--out -o", OUTPUT, "Folder for the results; an earlier run is continued.", "OUT")
]
OnlyFigures = Annotated[
    bool, option("--only-figures", None, "Draw tables and figures again without computing anything.")
]


@dataclass(frozen=True)
class Running:
    """Where jobs run, and for how long."""

    workers: Annotated[
        int | None,
        option("--workers", RESOURCES, "Processes on this machine (default: one per core).", min=1),
    ] = None
    retry_failed: Annotated[bool, option("--retry-failed", RESOURCES, "Run again what failed earlier.")] = (
        False
    )
    scheduler: Annotated[
        str | None,
        option(
            "--scheduler", ADVANCED, "A Dask scheduler, tcp://host:8786 (default: this machine).", "ADDRESS"
        ),
    ] = None
    deadline: Annotated[
        float,
        option(
            "--deadline", ADVANCED, "Time limit per job; jobs that exceed it are marked as failed.", "SECONDS"
        ),
    ] = RunOptions.deadline
    wait_for_workers: Annotated[
        float,
        option("--wait-for-workers", ADVANCED, "Abort if no worker is available for this long.", "SECONDS"),
    ] = RunOptions.wait_for_workers

    def options(self) -> RunOptions:
        """For the library."""
        return RunOptions(**vars(self))
