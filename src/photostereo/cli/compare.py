"""``photostereo compare``: several methods on one capture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photostereo.cli.composed import composed
from photostereo.cli.options import (
    CapturePath,
    Device,
    Force,
    Images,
    Quiet,
    Reading,
    Seed,
    complete_method,
    names,
)
from photostereo.commands.settings import parse_settings


def complete_methods(incomplete: str) -> list[str]:
    """What ``--methods <TAB>`` offers after the last comma; a method is not offered twice."""
    given, comma, last = incomplete.rpartition(",")
    return [given + comma + name for name in complete_method(last) if name not in given.split(",")]


@composed
def compare(
    capture: CapturePath,
    *,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods", help="Names with commas (default: all methods).", autocompletion=complete_methods
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="OUT", help="Folder for the results (default: NAME-compare)."),
    ] = None,
    images: Images = None,
    seed: Seed = 0,
    reading: Reading,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", "-s", metavar="METHOD.NAME=VALUE", help="A parameter of one method; repeatable."
        ),
    ] = None,
    meshes: Annotated[bool, typer.Option("--meshes", help="Write a mesh for each method.")] = False,
    report: Annotated[bool, typer.Option(help="The page to look at.")] = True,
    device: Device = "cpu",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Several methods on one capture: a table and side-by-side pictures."""
    from photostereo.commands.compare import run

    run(
        capture,
        out,
        methods=names(methods),
        images=images,
        seed=seed,
        reading=reading,
        settings=parse_settings(settings),
        meshes=meshes,
        report=report,
        device=device,
        force=force,
        quiet=quiet,
    )
