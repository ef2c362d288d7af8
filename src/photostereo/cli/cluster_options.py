"""Options of the commands that run many trials or captures on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photostereo.batch.limits import Limits
from photostereo.batch.options import RunOptions
from photostereo.cli.composed import Group

GrowingOut = Annotated[
    Path, typer.Option("--out", "-o", metavar="OUT", help="Folder for the results; goes on where it stopped.")
]
OnlyFigures = Annotated[
    bool, typer.Option("--only-figures", help="Draw tables and figures again; compute nothing.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="A Dask scheduler, tcp://host:8786; default: this machine."),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes on this machine; default: one per core.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Run what failed again.")]
Deadline = Annotated[
    float, typer.Option(metavar="SECONDS", help="What takes longer has failed; the others go on.")
]
WaitForWorkers = Annotated[
    float,
    typer.Option("--wait-for-workers", metavar="SECONDS", help="Give up where none is alive for so long."),
]


def run_options(
    scheduler: Scheduler = None,
    workers: Workers = None,
    retry_failed: RetryFailed = False,
    deadline: Deadline = Limits.job,
    wait_for_workers: WaitForWorkers = Limits.without_workers,
) -> RunOptions:
    """Where jobs run, and for how long."""
    return RunOptions(scheduler, workers, retry_failed, Limits(deadline, wait_for_workers))


Running = Annotated[RunOptions, Group(run_options)]
