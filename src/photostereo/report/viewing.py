"""Open a report in the browser, or serve it to this machine alone."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from pathlib import Path

from photostereo.core.errors import CaptureError
from photostereo.report.serving import LOOPBACK, make_server


def open_report(out_dir: str | Path) -> Path:
    """Open ``report.html`` of an OUT folder in the user's browser; its path."""
    page = find_report(out_dir)
    webbrowser.open(page.as_uri())
    return page


def serve(
    out_dir: str | Path, port: int = 0, *, tell: Callable[[str], object] | None = None, browse: bool = False
) -> None:
    """Serve an OUT folder on 127.0.0.1 until interrupted, on any free port by default. ``tell`` receives the
    address as one line of text; with ``browse`` the page is opened in the user's browser.
    """
    with make_server(find_report(out_dir), port) as server:
        address = f"http://{LOOPBACK}:{server.server_address[1]}/report.html"
        if tell is not None:
            tell(f"Serving {address} on this machine only; press Ctrl-C to stop.")
        if browse:
            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            if tell is not None:
                tell("Stopped.")


def find_report(out_dir: str | Path) -> Path:
    """The page of a folder; of the demo's, which has one per method, the one written last."""
    folder = Path(out_dir).resolve()
    page = folder if folder.name == "report.html" else folder / "report.html"
    if page.is_file():
        return page
    below = list(folder.glob("*/report.html"))
    if not below:
        raise CaptureError(
            f"{folder} has no report.html. Give the output folder of a solve, a comparison or the demo.",
            code="no-report",
            file=folder,
        )
    return max(below, key=lambda path: path.stat().st_mtime)
