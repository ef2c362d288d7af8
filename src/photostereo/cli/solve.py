"""``photostereo solve``: normals, albedo, depth, mesh and a report."""

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
    PixelSizeChoice,
    Quiet,
    Reading,
    Seed,
    Settings,
    SurfaceMethod,
    complete_method,
)
from photostereo.commands.settings import parse_settings


@composed
def solve(
    capture: CapturePath,
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="OUT", help="Folder for the results (default: NAME-METHOD)."),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            help="A name of `photostereo methods`, or fast or best.",
            autocompletion=complete_method,
        ),
    ] = "auto",
    prior: Annotated[
        str | None, typer.Option("--prior", help="A prior on a method that has none: dictionary.")
    ] = None,
    settings: Settings = None,
    images: Images = None,
    seed: Seed = 0,
    reading: Reading,
    surface: Annotated[bool, typer.Option(help="Depth and mesh.")] = True,
    surface_method: SurfaceMethod = "poisson",
    pixel_size: PixelSizeChoice = None,
    material: Annotated[
        bool, typer.Option("--material", help="A flat sample: also its maps for renderers and game engines.")
    ] = False,
    tileable: Annotated[bool, typer.Option("--tileable", help="The same, and the maps wrap.")] = False,
    report: Annotated[bool, typer.Option(help="The page to look at.")] = True,
    flip_y: Annotated[bool, typer.Option("--flip-y", help="normals.png in the DirectX convention.")] = False,
    checkpoint: Annotated[Path | None, typer.Option(help="Save the state here every ten iterations.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on from a saved state.")] = None,
    device: Device = "cpu",
    memory: Annotated[
        str | None, typer.Option(help="Stay within so much, e.g. 4GB (default: half of what is free).")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else; errors too.")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Normals, albedo, depth, mesh and a report of a capture."""
    from photostereo.commands.solve import run
    from photostereo.core.units import PixelSize
    from photostereo.pipeline.folder import SurfaceChoice

    run(
        capture,
        out,
        method=method,
        prior=prior,
        parameters=parse_settings(settings),
        images=images,
        seed=seed,
        reading=reading,
        surface=SurfaceChoice(method=surface_method, pixel_size=PixelSize.of(pixel_size))
        if surface
        else None,
        material="tileable" if tileable else "plain" if material else None,
        report=report,
        flip_y=flip_y,
        checkpoint=checkpoint,
        resume=resume,
        device=device,
        memory=memory,
        as_json=as_json,
        force=force,
        quiet=quiet,
    )
