"""``photostereo app``: the local web app."""

from pathlib import Path

from photostereo.cli.terminal import Terminal
from photostereo.core.errors import not_a_folder


def app(
    terminal: Terminal, folder: Path | None = None, port: int = 0, browser: bool = True
) -> None:
    """Open the app in the browser, from photographs to results."""
    if folder is not None and not folder.expanduser().is_dir():
        raise not_a_folder(folder)
    from photostereo.app.server import run_app

    run_app(folder, port, terminal.say, browse=browser)
