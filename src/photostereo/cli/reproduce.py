"""``photostereo reproduce``: the tables and figures of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photostereo.cli.cluster_options import GrowingOut, OnlyFigures, Running
from photostereo.cli.composed import composed
from photostereo.cli.options import Device, Quiet
from photostereo.core.errors import ParameterError


@composed
def reproduce(
    *,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="Runs; see --list.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", envvar="PHOTOSTEREO_DATA", help="Has diligent/pmsData and harvard."),
    ] = None,
    out: GrowingOut = Path("reproduction"),
    everything: Annotated[bool, typer.Option("--all", help="Every named run.")] = False,
    listing: Annotated[
        bool, typer.Option("--list", help="List the named runs and what the paper found.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Small grids and few trials: minutes.")] = False,
    only_figures: OnlyFigures = False,
    running: Running,
    device: Device = "cpu",
    quiet: Quiet = False,
) -> None:
    """Every table and figure of the paper, by name, beside the paper's figures."""
    from photostereo.batch.progress import control_for
    from photostereo.lab.paper.reproduce import list_runs
    from photostereo.lab.paper.reproduce import reproduce as run

    if listing:
        for name, title, source in list_runs():
            typer.echo(f"{name:16} {title}\n{'':16}   the paper: {source}")
        return
    if not names and not everything:
        raise ParameterError("Name the runs (see `photostereo reproduce --list`), or say --all.")
    run(
        [] if everything else list(names or ()),
        data,
        out,
        quick=quick,
        only_figures=only_figures,
        options=running,
        device=device,
        control=control_for(quiet=quiet),
    )
