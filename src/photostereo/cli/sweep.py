"""``photostereo sweep``: an experiment of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photostereo.cli.cluster_options import GrowingOut, OnlyFigures, Running
from photostereo.cli.composed import composed
from photostereo.cli.options import Device, Quiet


@composed
def sweep(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan as TOML; see docs/lab/sweeps.md.")],
    out: GrowingOut,
    *,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="Where the plan's captures are.")] = None,
    only_figures: OnlyFigures = False,
    running: Running,
    device: Device = "cpu",
    quiet: Quiet = False,
) -> None:
    """Your own experiment: captures × noise × photographs × seeds × methods × parameter grids."""
    from photostereo.batch.progress import control_for
    from photostereo.lab.sweeps.sweep import sweep as run

    run(
        plan,
        out,
        data=data,
        only_figures=only_figures,
        options=running,
        device=device,
        control=control_for(quiet=quiet),
    )
