"""``photostereo lights``: where the lamps were."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photostereo.cli.composed import composed
from photostereo.cli.options import BallReading, CapturePath, Force, Quiet


@composed
def lights(
    capture: CapturePath,
    finding: BallReading,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Where to write (default: CAPTURE/lights.csv)."),
    ] = None,
    picture: Annotated[bool, typer.Option(help="The picture to check it by, beside the file.")] = True,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Where the lamps were: directions and strengths from a ball in the photographs."""
    from photostereo.commands.lights import run

    run(capture, out, finding=finding, picture=picture, force=force, quiet=quiet)
