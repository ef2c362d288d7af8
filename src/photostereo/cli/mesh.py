"""``photostereo mesh``: depth and mesh again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photostereo.cli.options import Force, PixelSizeChoice, Quiet, SurfaceMethod


def mesh(
    source: Annotated[Path, typer.Argument(metavar="OUT", help="Results of a solve, or a normal-map PNG.")],
    method: SurfaceMethod = "poisson",
    formats: Annotated[
        str, typer.Option("--format", help="Of ply, glb, obj, stl, with commas; other meshes in OUT go.")
    ] = "ply,glb",
    pixel_size: PixelSizeChoice = None,
    decimate: Annotated[int | None, typer.Option(min=4, help="Reduce to about so many triangles.")] = None,
    full: Annotated[
        bool, typer.Option("--full", help="PLY and STL with every pixel, beyond two million triangles.")
    ] = False,
    watertight: Annotated[
        bool, typer.Option("--watertight", help="Close with walls and a base, for printing.")
    ] = False,
    highpass: Annotated[float | None, typer.Option(help="Flatten shapes wider than so many pixels.")] = None,
    exr: Annotated[bool, typer.Option("--exr", help="Normals and depth as EXR too (extra `exr`).")] = False,
    mask: Annotated[Path | None, typer.Option(help="Mask picture, with a normal-map PNG.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Another folder (default: into OUT; beside the PNG: NAME-mesh)."),
    ] = None,
    flip_y: Annotated[
        bool, typer.Option("--flip-y", help="The DirectX convention for normal pictures.")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Depth and mesh again, with other options, or from any normal map."""
    from photostereo.commands.mesh import run
    from photostereo.core.units import PixelSize
    from photostereo.pipeline.folder import SurfaceChoice

    choice = SurfaceChoice(
        method=method,
        formats=tuple(word.strip().lower() for word in formats.split(",") if word.strip()),
        pixel_size=PixelSize.of(pixel_size),
        decimate=decimate,
        full=full,
        watertight=watertight,
        exr=exr,
        options={} if highpass is None else {"highpass": highpass},
    )
    run(source, choice, mask=mask, out=out, flip_y=flip_y, force=force, quiet=quiet)
