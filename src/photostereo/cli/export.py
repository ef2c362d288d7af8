"""``photostereo export``: a result for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photostereo.cli.options import Force, PixelSizeChoice, Quiet, SurfaceMethod


def export(
    source: Annotated[Path, typer.Argument(metavar="RESULT", help="Results of a solve.")],
    to: Annotated[
        str,
        typer.Option(help="Of glb, obj, ply, stl, tiff, exr, material, ptm, relight, with commas."),
    ] = "glb,tiff,ptm,relight",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="A folder (default: RESULT-export).")
    ] = None,
    pixel_size: PixelSizeChoice = None,
    photographs: Annotated[
        Path | None, typer.Option(metavar="CAPTURE", help="Measure a material's roughness from these.")
    ] = None,
    tileable: Annotated[bool, typer.Option("--tileable", help="Make a material that wraps.")] = False,
    linear: Annotated[
        bool, typer.Option("--linear", help="PTM and relight in linear intensities, for measuring.")
    ] = False,
    flip_y: Annotated[bool, typer.Option("--flip-y", help="normals.exr in the DirectX convention.")] = False,
    surface_method: SurfaceMethod = "poisson",
    decimate: Annotated[int | None, typer.Option(min=4, help="About so many triangles in meshes.")] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """A result in the formats that other programs open."""
    from photostereo.commands.export import run
    from photostereo.core.units import PixelSize

    run(
        source,
        out,
        kinds=to.split(","),
        pixel_size=PixelSize.of(pixel_size),
        photographs=photographs,
        tileable=tileable,
        linear=linear,
        flip_y=flip_y,
        surface_method=surface_method,
        decimate=decimate,
        force=force,
        quiet=quiet,
    )
