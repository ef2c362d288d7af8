"""Start the server on two ports of this machine and open the browser."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from photostereo.app.security import LOOPBACK, Address
from photostereo.app.server import make_app
from photostereo.core.errors import OutputError


def listening(port: int) -> socket.socket:
    """Bind a socket on the loopback interface; port 0 means any free port."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except (OSError, OverflowError) as problem:
        listener.close()
        raise OutputError(code="port-unavailable", port=port, host=LOOPBACK, problem=str(problem)) from None
    return listener


def make_server(
    folder: Path | None, port: int = 0, *, compiling: bool = False
) -> tuple[uvicorn.Server, list[socket.socket], Address]:
    """Return the server, its sockets and its address."""
    sockets = [listening(port), listening(0)]
    address = Address(sockets[0].getsockname()[1], sockets[1].getsockname()[1])
    config = uvicorn.Config(
        make_app(address, folder, compiling=compiling),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        ws="none",
    )
    return uvicorn.Server(config), sockets, address


def run_app(folder: Path | None, port: int, tell: Callable[[str], None], *, browse: bool) -> None:
    server, sockets, address = make_server(folder, port, compiling=True)
    tell(f"The app is running at {address.url}")
    tell("Press Ctrl-C to stop it.")
    if browse:
        webbrowser.open(address.url)
    server.run(sockets)
