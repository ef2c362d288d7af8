"""``photostereo compare``: several methods on one capture, or results that are there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photostereo.cli.composed import composed
from photostereo.cli.options import (
    Device,
    Force,
    Images,
    PixelSizeChoice,
    Quiet,
    Reading,
    Seed,
    complete_method,
    names,
)
from photostereo.commands.settings import parse_settings
from photostereo.core.errors import ParameterError


def complete_methods(incomplete: str) -> list[str]:
    """What ``--methods <TAB>`` offers after the last comma; a method is not offered twice."""
    given, comma, last = incomplete.rpartition(",")
    return [given + comma + name for name in complete_method(last) if name not in given.split(",")]


@composed
def compare(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="CAPTURE | RESULT RESULT...", help="Photographs to solve, or results of solves."
        ),
    ],
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
    pixel_size: PixelSizeChoice = None,
    truth: Annotated[
        Path | None, typer.Option(help="For results: a capture with truth, or true normals as .npy or .png.")
    ] = None,
    report: Annotated[bool, typer.Option(help="The page to look at.")] = True,
    device: Device = "cpu",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Several methods on one capture, or results that are there: a table and side-by-side pictures."""
    from photostereo.commands import compare_results
    from photostereo.commands.compare import run
    from photostereo.core.units import PixelSize
    from photostereo.solver.result_files import is_result

    size = PixelSize.of(pixel_size)
    if len(sources) > 1 or is_result(sources[0]):
        if methods is not None or settings:
            raise ParameterError("--methods and --set solve a capture; results that are there take neither.")
        compare_results.run(sources, out, truth=truth, pixel_size=size, force=force, quiet=quiet)
        return
    if truth is not None:
        raise ParameterError("--truth goes with results; a capture that is solved brings its own.")
    run(
        sources[0],
        out,
        methods=names(methods),
        images=images,
        seed=seed,
        reading=reading,
        settings=parse_settings(settings),
        meshes=meshes,
        pixel_size=size,
        report=report,
        device=device,
        force=force,
        quiet=quiet,
    )
