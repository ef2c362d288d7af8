"""``photostereo view``: open the report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def view(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Results of a solve, a compare or the demo.")],
    serve: Annotated[
        bool | None,
        typer.Option(
            "--serve/--no-serve",
            help="Serve it on 127.0.0.1, or open the file (default: serve where the result is finer than the page).",
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
) -> None:
    """Open the report."""
    from photostereo.commands.view import run

    run(out, serving=serve, port=port)
