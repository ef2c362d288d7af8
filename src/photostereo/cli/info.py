"""``photostereo info``: what was found in a capture, and what is wrong with it."""

from __future__ import annotations

from typing import Annotated

import typer

from photostereo.cli.composed import composed
from photostereo.cli.options import CapturePath, Reading


@composed
def info(
    capture: CapturePath,
    reading: Reading,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """What was found in a capture, and what is wrong with it."""
    from photostereo.commands.info import run

    run(capture, reading=reading, as_json=as_json)
