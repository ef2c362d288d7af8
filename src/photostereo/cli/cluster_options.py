"""Options of the commands that run many trials or captures on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photostereo.cli.composed import Group
from photostereo.jobs.limits import Limits

GrowingOut = Annotated[
    Path, typer.Option("--out", "-o", metavar="OUT", help="Folder for the results; goes on where it stopped.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="A Dask scheduler, tcp://host:8786; default: this machine."),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes on this machine; default: one per core.")]
OnlyFigures = Annotated[
    bool, typer.Option("--only-figures", help="Draw tables and figures again; compute nothing.")
]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Run what failed again.")]
Deadline = Annotated[
    float, typer.Option(metavar="SECONDS", help="What takes longer has failed; the others go on.")
]
WaitForWorkers = Annotated[
    float,
    typer.Option("--wait-for-workers", metavar="SECONDS", help="Give up where none is alive for so long."),
]


def limits(
    deadline: Deadline = Limits.job, wait_for_workers: WaitForWorkers = Limits.without_workers
) -> Limits:
    """How long anything may take."""
    return Limits(deadline, wait_for_workers)


Deadlines = Annotated[Limits, Group(limits)]
