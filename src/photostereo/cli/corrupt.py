"""``photostereo corrupt``: a capture with noise."""

from __future__ import annotations

from typing import Annotated

import typer

from photostereo.cli.options import CapturePath, Color, Force, Images, OutFolder, Quiet, Seed


def corrupt(
    capture: CapturePath,
    out: OutFolder,
    poisson: Annotated[float | None, typer.Option(metavar="DB", help="Poisson noise at this SNR.")] = None,
    salt_pepper: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Share of entries set to 0 or 1.")
    ] = None,
    gaussian: Annotated[
        float | None, typer.Option(metavar="SIGMA", help="Gaussian noise, intensities in [0, 1].")
    ] = None,
    images: Images = None,
    seed: Seed = 0,
    color: Color = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """A capture with noise added, in the DiLiGenT layout."""
    from photostereo.commands.corrupt import run

    run(
        capture,
        out,
        poisson=poisson,
        salt_pepper=salt_pepper,
        gaussian=gaussian,
        images=images,
        seed=seed,
        color=color,
        force=force,
        quiet=quiet,
    )
