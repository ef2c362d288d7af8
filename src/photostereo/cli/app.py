"""``photostereo app``: the local web app."""

from __future__ import annotations

from pathlib import Path

from photostereo.cli.command import argument, option
from photostereo.cli.terminal import Terminal
from photostereo.core.errors import CaptureError, require_extra


def app(
    terminal: Terminal,
    folder: Path | None = argument("Folder of photographs to open.", "FOLDER", default=None),
    port: int = option("Port (0: any free port).", min=0, max=65535, default=0),
    browser: bool = option(
        "Open the browser, or only print the address.", flags="--browser/--no-browser", default=True
    ),
) -> None:
    """Open the app in the browser, from photographs to results."""
    require_extra("starlette", "app", "The app's pages")
    require_extra("uvicorn", "app", "The app's pages")
    if folder is not None and not folder.expanduser().is_dir():
        raise CaptureError(code="not-a-folder", file=folder)
    from photostereo.app.launching import run_app

    run_app(folder, port, terminal.say, browse=browser)
