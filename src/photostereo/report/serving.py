"""A report in the browser: opened, or served to this machine alone with the tiles that were too many for its page."""

from __future__ import annotations

import os
import re
import sys
import webbrowser
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from photostereo.core.errors import CaptureError, OutputError, PhotostereoError
from photostereo.io.png import encode_png
from photostereo.io.safe import read_bytes
from photostereo.report.comparison import albedo_share
from photostereo.report.pictures import frame_around
from photostereo.report.pyramid import Layers
from photostereo.report.surface_parts import page_data
from photostereo.solver.result_files import map_array

#: Nothing outside this machine can connect.
LOOPBACK = "127.0.0.1"
#: Where the page asks for tiles, relative to itself.
TILES = "tiles"
_TILE_PATH = re.compile(r"/tiles/(normals|albedo|depth)/([^/]+)/(\d{1,2})/(\d{1,5})/(\d{1,5})\.png")


class ResultTiles:
    """Tiles of the result, or the results, that a page in this folder shows, made from their arrays when asked for.

    Only the folders that the page itself names are looked into: the page's own (``-``) and plain names beside it.
    """

    def __init__(self, folder: Path, page: str) -> None:
        self.folder = folder
        relight = page_data(page).get("relight") or {"sets": {}, "held": 0}
        named = [one.get("folder") for one in relight["sets"].values()]
        self.names = [name or "-" for name in named if name is not None]
        self.names = [name for name in self.names if _is_plain(name) and self._holds(name)]
        self._layers: dict[tuple[str, str], Layers] = {}
        #: The finest level that the page holds itself.
        self.held = relight["held"]

    @property
    def has_finer(self) -> bool:
        """Whether there is anything to add to the page."""
        return bool(self.names) and self.held > 0

    def _place(self, name: str) -> Path:
        return self.folder if name == "-" else self.folder / name

    def _holds(self, name: str) -> bool:
        place = self._place(name)
        return all(is_own(self.folder, place / file) for file in ("normals.npy", "mask.npy"))

    def _array(self, name: str, kind: str, frame: tuple[int, ...] | None = None) -> NDArray[Any]:
        path = self._place(name) / f"{kind}.npy"
        if not is_own(self.folder, path):
            raise FileNotFoundError(path)
        return map_array(path, kind, frame)

    def layers(self, name: str, channel: str) -> Layers:
        """The arrays behind a channel."""
        found = self._layers.get((name, channel))
        if found is None:
            owner = name if channel != "albedo" else self.names[0]
            mask = np.asarray(self._array(owner, "mask"), dtype=bool)
            frame = frame_around(mask)
            if channel == "normals":
                found = Layers(frame, mask, normals=self._array(name, "normals", mask.shape))
            elif channel == "depth":
                found = Layers(frame, mask, depth=self._array(name, "depth", mask.shape))
            else:
                painted = [one for one in self.names if is_own(self.folder, self._place(one) / "albedo.npy")]
                albedos = [self._array(one, "albedo", mask.shape) for one in painted]
                if not albedos:
                    raise FileNotFoundError("albedo.npy")
                shares = (
                    [(albedos[0], 1.0)] if len(albedos) == 1 else [albedo_share(one, mask) for one in albedos]
                )
                found = Layers(frame, mask, albedos=shares)
            self._layers[name, channel] = found
        return found

    def tile(self, channel: str, name: str, level: int, row: int, col: int) -> bytes | None:
        """A tile as PNG; None if there is none."""
        if (name not in self.names and channel != "albedo") or not self.names:
            return None
        try:
            layers = self.layers(name, channel)
        except (OSError, PhotostereoError):
            return None
        rows, cols = layers.layout.tiles(level) if level < layers.layout.levels else (0, 0)
        if row >= rows or col >= cols:
            return None
        make = {"normals": layers.normal_tile, "albedo": layers.albedo_tile, "depth": layers.depth_tile}
        picture = make[channel](level, row, col)
        return encode_png(np.zeros((1, 1, 3), np.uint8) if picture is None else picture, fast=True)


def page_text(page: Path) -> str:
    """The text of a page, if it is a regular file: a pipe would never end."""
    return read_bytes(page, "report", remedy="Solve again.").decode("utf-8", "replace")


def make_server(page: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server bound to 127.0.0.1 that shows a page, the files beside it, and nothing else."""
    folder = Path(os.path.realpath(page.parent))
    tiles = ResultTiles(folder, page_text(page))
    try:
        handler = partial(LocalHandler, directory=str(folder), tiles=tiles)
        return LocalServer((LOOPBACK, port), handler)
    except (OSError, OverflowError) as problem:
        raise OutputError(code="port-unavailable", port=port, host=LOOPBACK, problem=str(problem)) from None


class LocalServer(ThreadingHTTPServer):
    """Says nothing about clients that go away in the middle of an answer, such as a closed tab."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class LocalHandler(SimpleHTTPRequestHandler):
    """Files of one folder and tiles, silently, and only to those who ask for this machine by its own name."""

    #: Seconds after which a client that says nothing is left.
    timeout = 30
    #: Replaced when the request has been understood; one that has not is answered, too.
    path = ""

    def __init__(self, *args: Any, tiles: ResultTiles, **options: Any) -> None:
        self.tiles = tiles
        super().__init__(*args, **options)

    def do_GET(self) -> None:
        if not self._is_local():
            return
        path = self._asked()
        found = _TILE_PATH.fullmatch(path)
        if found:
            channel, name, *numbers = found.groups()
            tile = self.tiles.tile(channel, unquote(name), *map(int, numbers))
            self._send(tile, "image/png")
        elif path == "/report.html" and is_own(self.tiles.folder, self.tiles.folder / "report.html"):
            try:
                page = with_tiles(page_text(self.tiles.folder / "report.html")).encode()
            except PhotostereoError:  # damaged since
                page = None
            self._send(page, "text/html; charset=utf-8")
        elif self._is_ours():
            super().do_GET()

    def do_HEAD(self) -> None:
        if self._is_local() and self._is_ours():
            super().do_HEAD()

    def _send(self, body: bytes | None, kind: str) -> None:
        if body is None:
            self.send_error(404, "There is no such tile")
            return
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _asked(self) -> str:
        try:
            return urlsplit(self.path).path
        except ValueError:  # no address at all, such as "http://["
            return ""

    def _is_ours(self) -> bool:
        if is_own(self.tiles.folder, Path(self.translate_path(self.path))):
            return True
        self.send_error(404, "There is no such file here")
        return False

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

    def list_directory(self, path: Any) -> None:
        self.send_error(403, "Folders are not listed")

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "SAMEORIGIN")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        # A foreign picture with a script has no share in our origin.
        if self._asked() != "/report.html":
            self.send_header("Content-Security-Policy", "sandbox allow-scripts allow-downloads")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def is_own(folder: Path, path: Path) -> bool:
    """Whether it is a file or folder of ours: no link out of the folder, no pipe that would wait for ever."""
    try:
        real = path.resolve()
        return real.is_relative_to(folder) and (real.is_file() or real.is_dir())
    except (OSError, ValueError, RuntimeError):  # a name with NUL, too long, or a ring of links
        return False


def with_tiles(page: str) -> str:
    """The page as it is served: allowed to ask its own server, and no one else, for pictures.

    Both places stand in the head before any name that comes from outside.
    """
    return page.replace("img-src data: blob:", "img-src 'self' data: blob:", 1).replace(
        '<html lang="en">', f'<html lang="en" data-tiles="{TILES}">', 1
    )


def _is_plain(name: str) -> bool:
    return name == "-" or (
        name not in (".", "..") and "/" not in name and "\\" not in name and "\0" not in name
    )


def holds_finer(page: Path) -> bool:
    """Whether a server could show more of this page's result than the page itself holds."""
    try:
        text = page_text(page)
    except PhotostereoError:
        return False
    return ResultTiles(Path(os.path.realpath(page.parent)), text).has_finer


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
        raise CaptureError(code="no-report", file=folder)
    return max(below, key=lambda path: path.stat().st_mtime)
