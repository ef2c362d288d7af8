"""Open a report in the browser, or serve it to this machine alone."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from photostereo.errors import CaptureError, OutputError

#: Nothing outside this machine can connect.
LOOPBACK = "127.0.0.1"


def open_report(out_dir: str | Path) -> Path:
    """Open ``report.html`` of an OUT folder in the user's browser; its path."""
    page = _find_report(out_dir)
    webbrowser.open(page.as_uri())
    return page


def serve(
    out_dir: str | Path, port: int = 0, *, tell: Callable[[str], object] | None = None, browse: bool = False
) -> None:
    """Serve an OUT folder on 127.0.0.1 until interrupted.

    Parameters
    ----------
    out_dir : folder with ``report.html``
    port : 0 takes any free one
    tell : receives the address as one line of text
    browse : open the page in the user's browser too
    """
    with make_server(out_dir, port) as server:
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


def serve_report(out_dir: str | Path, *, port: int = 0, tell: Callable[[str], object] | None = None) -> None:
    """The same as :func:`serve`, under the name that reads well at the command line."""
    serve(out_dir, port, tell=tell)


def make_server(out_dir: str | Path, port: int = 0) -> ThreadingHTTPServer:
    """A server bound to 127.0.0.1 that shows the files of one folder and nothing else."""
    folder = _find_report(out_dir).parent
    try:
        return ThreadingHTTPServer((LOOPBACK, port), partial(_LocalHandler, directory=str(folder)))
    except (OSError, OverflowError) as problem:
        raise OutputError(
            f"Port {port} on {LOOPBACK} cannot be used ({problem}). Choose another with --port, or leave "
            "it out to take any free one."
        ) from None


class _LocalHandler(SimpleHTTPRequestHandler):
    """Static files, silently, and only to those who ask for this machine by its own name."""

    def do_GET(self) -> None:
        if self._is_local():
            super().do_GET()

    def do_HEAD(self) -> None:
        if self._is_local():
            super().do_HEAD()

    def _is_local(self) -> bool:
        # A foreign page could point its own name at 127.0.0.1 and read the files; its name gives it away.
        try:
            name = urlsplit("//" + (self.headers.get("Host") or "")).hostname
        except ValueError:
            name = None
        if name in (LOOPBACK, "localhost"):
            return True
        self.send_error(403, "This page is served to this machine only")
        return False

    def send_head(self) -> Any:
        if self._is_inside(self.translate_path(self.path)):
            return super().send_head()
        self.send_error(404, "File not found")
        return None

    def _is_inside(self, path: str) -> bool:
        """Whether it is a file or folder of ours: no link out of the folder, no pipe that would wait for ever."""
        try:
            real = Path(path).resolve()
            return real.is_relative_to(Path(self.directory).resolve()) and (real.is_file() or real.is_dir())
        except (OSError, ValueError, RuntimeError):  # a name with NUL, too long, or a ring of links
            return False

    def list_directory(self, path: Any) -> None:
        self.send_error(403, "Folders are not listed")

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _find_report(out_dir: str | Path) -> Path:
    """The page of a folder; of the demo's, which has one per method, the one written last."""
    folder = Path(out_dir).resolve()
    page = folder if folder.name == "report.html" else folder / "report.html"
    if page.is_file():
        return page
    below = list(folder.glob("*/report.html"))
    if not below:
        raise CaptureError(
            f"{folder} holds no report.html. Give the OUT folder of a solve, a compare or the demo."
        )
    return max(below, key=lambda path: path.stat().st_mtime)
