"""``photostereo app``: the local web app."""

from pathlib import Path

from photostereo.cli.terminal import Terminal
from photostereo.core.errors import CaptureError


def app(
    terminal: Terminal, folder: Path | None = None, port: int = 0, browser: bool = True
) -> None:
    """Open the app in the browser, from photographs to results."""
    from photostereo.app.server import run_app

    if folder is not None:
        folder = folder.expanduser().resolve()
        if not folder.exists():
            raise CaptureError(
                f"{folder} does not exist. Give a folder of photographs, or a file that is a capture.",
                code="no-such-capture",
                file=folder,
            )
    run_app(folder, port, terminal.say, browse=browser)
