"""Open a report in the browser, or serve it on this machine only, with the tiles that did not fit into the page."""

from __future__ import annotations

import io
import os
import re
import sys
import webbrowser
from collections.abc import Callable
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from photostereo.core.errors import CaptureError, OutputError, PhotostereoError
from photostereo.io.png import encode_png
from photostereo.io.safe import read_bytes
from photostereo.report.document import parse_page
from photostereo.report.pictures import frame_around
from photostereo.report.pyramid import Layers, albedo_share
from photostereo.solver.result_files import map_array

#: Only this machine can connect.
LOOPBACK = "127.0.0.1"
PAGE = "report.html"
#: Path of the tiles, relative to the page.
TILES = "tiles"
_TILE_PATH = re.compile(
    rf"{TILES}/(normals|albedo|depth)/([^/]+)/(\d{{1,2}})/(\d{{1,5}})/(\d{{1,5}})\.png"
)


class ResultTiles:
    """Tiles of the results that a page shows, computed on request from its own folder (``-``) and those that it names."""

    def __init__(self, folder: Path, page: str) -> None:
        self.folder = folder
        relight = parse_page(page).data.get("relight") or {"sets": {}, "held": 0}
        named = [one.get("folder") for one in relight["sets"].values()]
        self.names = [name or "-" for name in named if name is not None]
        self.names = [
            name for name in self.names if self._file(name, "normals") and self._file(name, "mask")
        ]
        self.layers = cache(self._layers)
        #: The finest level that the page holds.
        self.held = relight["held"]

    def content(self, name: str) -> tuple[bytes, str] | None:
        """Return the page, allowed to request tiles, or a tile, with its media type; None for any other name."""
        try:
            if name == PAGE and is_own(self.folder, self.folder / PAGE):
                return with_tiles(
                    page_text(self.folder / PAGE)
                ).encode(), "text/html; charset=utf-8"
            if found := _TILE_PATH.fullmatch(name):
                channel, result, *numbers = found.groups()
                tile = self._tile(channel, result, *map(int, numbers))
                if tile is None:
                    return None
                return (tile, "image/png")
        except (OSError, PhotostereoError):  # damaged
            pass
        return None

    def _file(self, name: str, kind: str) -> Path | None:
        path = (self.folder if name == "-" else self.folder / name) / f"{kind}.npy"
        return path if is_own(self.folder, path) else None

    def _array(self, name: str, kind: str, frame: tuple[int, ...] | None = None) -> NDArray[Any]:
        if (path := self._file(name, kind)) is None:
            raise FileNotFoundError(kind)
        return map_array(path, kind, frame)

    def _layers(self, name: str, channel: str) -> Layers:
        """Return the arrays of a channel; all results share the albedo."""
        mask = np.asarray(
            self._array(self.names[0] if channel == "albedo" else name, "mask"), dtype=bool
        )
        arrays: dict[str, Any] = {}
        if channel == "albedo":
            painted = [one for one in self.names if self._file(one, "albedo")] or self.names[:1]
            albedos = [self._array(one, "albedo", mask.shape) for one in painted]
            several = len(albedos) > 1
            arrays["albedos"] = [
                albedo_share(one, mask) if several else (one, 1.0) for one in albedos
            ]
        else:
            arrays[channel] = self._array(name, channel, mask.shape)
        return Layers(frame_around(mask), mask, **arrays)

    def _tile(self, channel: str, name: str, level: int, row: int, col: int) -> bytes | None:
        if (name not in self.names and channel != "albedo") or not self.names:
            return None
        layers = self.layers(name, channel)
        rows, cols = layers.tiles(level) if level < layers.levels else (0, 0)
        if row >= rows or col >= cols:
            return None
        picture = layers.make_tile(channel, level, row, col)
        return encode_png(np.zeros((1, 1, 3), np.uint8) if picture is None else picture, fast=True)


def page_text(page: Path) -> str:
    """Read a page. It must be a regular file: reading a pipe could block forever."""
    return read_bytes(page, "report", remedy="Solve again.").decode("utf-8", "replace")


def port_unavailable(port: int, problem: Exception) -> OutputError:
    """Return the error that a port of this machine cannot be opened."""
    return OutputError(
        f"Port {port} on {LOOPBACK} cannot be used ({problem}). Choose another, or 0 for any free "
        "port.",
        code="port-unavailable",
        port=port,
        host=LOOPBACK,
        problem=str(problem),
    )


def make_server(page: Path, port: int = 0) -> ThreadingHTTPServer:
    """Return a server bound to 127.0.0.1 for a page and the files beside it, and nothing else."""
    folder = Path(os.path.realpath(page.parent))
    tiles = ResultTiles(folder, page_text(page))
    try:
        handler = partial(LocalHandler, directory=str(folder), tiles=tiles)
        return LocalServer((LOOPBACK, port), handler)
    except (OSError, OverflowError) as problem:
        raise port_unavailable(port, problem) from None


class LocalServer(ThreadingHTTPServer):
    """A server that ignores clients that disconnect during a response, such as a closed tab."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class LocalHandler(SimpleHTTPRequestHandler):
    """Serves files of one folder and tiles, without logging, and only if the Host header names this machine."""

    #: Seconds after which an idle client is disconnected.
    timeout = 30
    #: Set when the request has been parsed; a malformed request is answered, too.
    path = ""

    def __init__(self, *args: Any, tiles: ResultTiles, **options: Any) -> None:
        self.tiles = tiles
        super().__init__(*args, **options)

    def send_head(self) -> Any:
        """Send headers for a tile, the page or another file, or an error; return the body still to send."""
        # DNS rebinding: a foreign page could point its own name at 127.0.0.1 and read the files.
        host = re.sub(r":\d*$", "", self.headers.get("Host") or "")
        if host.lower() not in (LOOPBACK, "localhost"):
            self.send_error(403, "This page is served to this machine only")
        elif (made := self.tiles.content(unquote(self._asked()).lstrip("/"))) is not None:
            content, kind = made
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            return io.BytesIO(content)
        elif is_own(self.tiles.folder, Path(self.translate_path(self.path))):
            return super().send_head()
        else:
            self.send_error(404, "There is no such file here")
        return None

    def _asked(self) -> str:
        return self.path.partition("?")[0]

    def list_directory(self, path: Any) -> None:
        self.send_error(403, "Folders are not listed")

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "SAMEORIGIN")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        # A foreign picture with a script must not share our origin.
        if self._asked() != f"/{PAGE}":
            self.send_header("Content-Security-Policy", "sandbox allow-scripts allow-downloads")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def is_own(folder: Path, path: Path) -> bool:
    """Whether a path is a file or folder inside ``folder``: no link out of it, no pipe that would block forever."""
    try:
        real = path.resolve()
        return real.is_relative_to(folder) and (real.is_file() or real.is_dir())
    except (OSError, ValueError, RuntimeError):  # a name with NUL, too long, or a symlink loop
        return False


def with_tiles(page: str) -> str:
    """Return the page as it is served: it may load pictures from its own server, and from nowhere else."""
    # Both strings precede any name from outside.
    return page.replace("img-src data: blob:", "img-src 'self' data: blob:", 1).replace(
        '<html lang="en">', f'<html lang="en" data-tiles="{TILES}">', 1
    )


def holds_finer(page: Path) -> bool:
    """Whether a server can show finer tiles than the page itself holds."""
    try:
        tiles = ResultTiles(Path(os.path.realpath(page.parent)), page_text(page))
    except PhotostereoError:
        return False
    return bool(tiles.names) and tiles.held > 0


def open_report(out_dir: str | Path) -> Path:
    """Open ``report.html`` of an OUT folder in the user's browser; return its path."""
    page = find_report(out_dir)
    webbrowser.open(page.as_uri())
    return page


def serve(
    out_dir: str | Path,
    port: int = 0,
    *,
    tell: Callable[[str], object] = lambda text: None,
    browse: bool = False,
) -> None:
    """Serve an OUT folder on 127.0.0.1 until interrupted; ``tell`` receives the address, ``browse`` opens it."""
    with make_server(find_report(out_dir), port) as server:
        address = f"http://{LOOPBACK}:{server.server_address[1]}/{PAGE}"
        tell(f"Serving {address} on this machine only; press Ctrl-C to stop.")
        if browse:
            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            tell("Stopped.")


def find_report(out_dir: str | Path) -> Path:
    """Return the page of a folder; the latest, if it has several results, as the demo and the app write them."""
    folder = Path(out_dir).resolve()
    page = folder if folder.name == PAGE else folder / PAGE
    if page.is_file():
        return page
    below = [*folder.glob(f"*/{PAGE}"), *folder.glob(f"results/*/{PAGE}")]
    if not below:
        raise CaptureError(
            f"{folder} has no report.html. Give the output folder of a solve, a comparison or the "
            "demo.",
            code="no-report",
            file=folder,
        )
    return max(below, key=lambda path: path.stat().st_mtime)
