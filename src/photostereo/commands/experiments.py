"""The commands ``reproduce`` and ``sweep``; what they call is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photostereo.errors import ParameterError
from photostereo.jobs.limits import Limits

_Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="OUT", help="Folder for the results; goes on where it stopped.")
]
_Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="A Dask scheduler, tcp://host:8786; default: this machine."),
]
_Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes on this machine; default: one per core.")
]
_Redraw = Annotated[
    bool, typer.Option("--only-figures", help="Draw tables and figures again; compute nothing.")
]
_Retry = Annotated[bool, typer.Option("--retry-failed", help="Run failed trials again.")]
_Deadline = Annotated[
    float, typer.Option(metavar="SECONDS", help="A trial that takes longer has failed; the others go on.")
]
_Wait = Annotated[
    float,
    typer.Option("--wait-for-workers", metavar="SECONDS", help="Give up where none is alive for so long."),
]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


def reproduce_command(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="Runs; see --list.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", envvar="PHOTOSTEREO_DATA", help="Has diligent/pmsData and harvard."),
    ] = None,
    out: _Out = Path("reproduction"),
    everything: Annotated[bool, typer.Option("--all", help="Every named run.")] = False,
    listing: Annotated[
        bool, typer.Option("--list", help="List the named runs and what the paper found.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Small grids and few trials: minutes.")] = False,
    scheduler: _Scheduler = None,
    workers: _Workers = None,
    only_figures: _Redraw = False,
    retry_failed: _Retry = False,
    deadline: _Deadline = Limits.job,
    wait_for_workers: _Wait = Limits.without_workers,
    quiet: _Quiet = False,
) -> None:
    """Every table and figure of the paper, by name, beside the paper's figures."""
    from photostereo.jobs.progress import monitor_for
    from photostereo.paper.reproduce import list_runs, reproduce

    if listing:
        for name, title, source in list_runs():
            typer.echo(f"{name:16} {title}\n{'':16}   the paper: {source}")
        return
    if not names and not everything:
        raise ParameterError("Name the runs (see `photostereo reproduce --list`), or say --all.")
    reproduce(
        [] if everything else list(names or ()),
        data,
        out,
        quick=quick,
        scheduler=scheduler,
        workers=workers,
        only_figures=only_figures,
        retry_failed=retry_failed,
        limits=Limits(deadline, wait_for_workers),
        monitor=monitor_for(quiet=quiet),
    )


def sweep_command(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan as TOML; see docs/sweeps.md.")],
    out: _Out,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="Where the plan's captures are.")] = None,
    scheduler: _Scheduler = None,
    workers: _Workers = None,
    only_figures: _Redraw = False,
    retry_failed: _Retry = False,
    deadline: _Deadline = Limits.job,
    wait_for_workers: _Wait = Limits.without_workers,
    quiet: _Quiet = False,
) -> None:
    """Your own experiment: captures × noise × photographs × seeds × methods × parameter grids."""
    from photostereo.jobs.progress import monitor_for
    from photostereo.jobs.sweep import sweep

    sweep(
        plan,
        out,
        data=data,
        scheduler=scheduler,
        workers=workers,
        only_figures=only_figures,
        retry_failed=retry_failed,
        limits=Limits(deadline, wait_for_workers),
        monitor=monitor_for(quiet=quiet),
    )


def register(app: typer.Typer) -> None:
    """Add the two commands to the command line."""
    app.command("reproduce")(reproduce_command)
    app.command("sweep")(sweep_command)
