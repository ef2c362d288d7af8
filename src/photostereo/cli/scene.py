"""``photostereo scene``: a synthetic capture."""

from __future__ import annotations

from typing import Annotated

import typer

from photostereo.cli.options import Force, OutFolder, Quiet


def scene(
    name: Annotated[str, typer.Argument(help="sphere, vase, relief, coin, figure, ...")],
    out: OutFolder,
    size: Annotated[int, typer.Option(min=16, help="Pixels along a side.")] = 256,
    lights: Annotated[int, typer.Option(min=3, help="Number of lights.")] = 20,
    arrangement: Annotated[str, typer.Option(help="Of the lights: dome, ring or random.")] = "dome",
    reflectance: Annotated[
        str, typer.Option(help="lambertian, blinn-phong, ggx or oren-nayar.")
    ] = "lambertian",
    texture: Annotated[str | None, typer.Option(help="Of the albedo.")] = None,
    shadows: Annotated[bool, typer.Option(help="Cast shadows.")] = True,
    color: Annotated[bool, typer.Option("--color", help="Photographs in RGB.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of shape, texture and random lights.")] = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write a synthetic capture with exact truth, in the DiLiGenT layout."""
    from photostereo.commands.scene import run

    run(
        name,
        out,
        size=size,
        lights=lights,
        arrangement=arrangement,
        reflectance=reflectance,
        texture=texture,
        shadows=shadows,
        color=color,
        seed=seed,
        force=force,
        quiet=quiet,
    )
