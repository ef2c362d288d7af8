"""``photostereo methods``: what they are and what they take."""

from __future__ import annotations

from typing import Annotated

import typer

from photostereo.cli.options import complete_method


def methods(
    name: Annotated[
        str | None, typer.Argument(help="One method, in full.", autocompletion=complete_method)
    ] = None,
) -> None:
    """Every method: what it assumes, its parameters and defaults, its citation."""
    from photostereo.commands.methods import run

    run(name)
