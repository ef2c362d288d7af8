"""``photostereo figure``: results side by side, for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photostereo.cli.options import Force, Quiet, names


def figure(
    sources: Annotated[
        list[Path], typer.Argument(metavar="RESULT...", help="Results of solves, a compare, or a sweep.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FIG", help="A .pdf, .svg or .png.")],
    truth: Annotated[
        Path | None, typer.Option(help="A capture with truth, or true normals as .npy or .png: error maps.")
    ] = None,
    zoom: Annotated[list[str] | None, typer.Option(metavar="X,Y,W,H", help="A close-up; repeatable.")] = None,
    relit: Annotated[
        list[str] | None, typer.Option(metavar="X,Y,Z", help="A row lit from there; repeatable.")
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Only these, with commas.")] = None,
    limit: Annotated[float | None, typer.Option(min=0.1, help="Degrees at which the colors end.")] = None,
    width: Annotated[float, typer.Option(min=1.0, max=40.0, help="Inches.")] = 7.16,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Results side by side, for a paper: normals, close-ups, errors, relit."""
    from photostereo.commands.figure import run

    run(
        sources,
        out,
        truth=truth,
        zooms=zoom or [],
        lights=relit or [],
        methods=names(methods),
        limit=limit,
        width=width,
        force=force,
        quiet=quiet,
    )
