"""The server of the app: its two ports on this machine, its start and its end."""

from __future__ import annotations

import asyncio
import contextlib
import mimetypes
import os
import socket
import sys
import webbrowser
from asyncio import Transport
from collections.abc import AsyncIterator, Callable
from html import escape
from pathlib import Path
from typing import cast

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from photostereo.app import user_folders
from photostereo.app.endpoints import Endpoints, refuse
from photostereo.app.security import Address, Guard
from photostereo.app.sessions import Sessions
from photostereo.core.errors import PhotostereoError
from photostereo.report.serving import LOOPBACK, port_unavailable

# Windows may register it as plain text, which browsers refuse to run.
mimetypes.add_type("text/javascript", ".js")

#: Seconds for a connection to send the first line of a request; a browser needs milliseconds.
HEADER_SECONDS = 10.0
#: Number of open files and connections to ask the system for, if it allows less by default (256 on macOS).
OPEN_FILES = 8192
#: Share of them for connections; the rest is for files and processes.
CONNECTION_SHARE = 0.75


def make_app(address: Address, first: Path | None = None, *, compiling: bool = False) -> Starlette:
    """Make the application.

    Parameters
    ----------
    address : Address
        Ports and key.
    first : path, optional
        The capture to open.
    compiling : bool
        Compile the numerical loops in the background, if that was never done.
    """
    sessions = Sessions(first)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        preparing = asyncio.create_task(sessions.prepare(compiling=compiling))
        yield
        preparing.cancel()
        await asyncio.gather(preparing, sessions.close(), return_exceptions=True)

    app = Starlette(
        routes=Endpoints(sessions, address.results_origin).routes(),
        lifespan=lifespan,
        exception_handlers=dict.fromkeys(
            (PhotostereoError, ValueError, TypeError, OSError), refuse
        ),
    )
    app.router.redirect_slashes = False
    app.state.sessions = sessions
    app.add_middleware(Guard, address=address)
    return app


class PatientProtocol(H11Protocol):
    """A connection that is closed if it sends no request, so that idle ones cannot use up all of them."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(HEADER_SECONDS, self._close_if_silent)

    def _close_if_silent(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()


class AppServer(uvicorn.Server):
    """Tells the pages that the app ends, before it waits for their connections to close."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        app = cast(Starlette, self.config.app)
        app.state.sessions.end_pages()
        await super().shutdown(sockets)


def make_server(
    first: Path | None, port: int = 0, *, compiling: bool = False
) -> tuple[AppServer, list[socket.socket], Address]:
    """Return the server, its sockets and its address.

    Parameters
    ----------
    first : path, optional
        The capture to open.
    port : int
        The port of the app; 0 for any free one.
    compiling : bool
        See :func:`make_app`.
    """
    sockets = [_listening(port), _listening(0)]
    address = Address(sockets[0].getsockname()[1], sockets[1].getsockname()[1])
    config = uvicorn.Config(
        make_app(address, first, compiling=compiling),
        http=PatientProtocol,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        limit_concurrency=int(CONNECTION_SHARE * allow_open_files()),
        ws="none",
    )
    return AppServer(config), sockets, address


def run_app(first: Path | None, port: int, tell: Callable[[str], None], *, browse: bool) -> None:
    """Run the app until it is interrupted.

    Parameters
    ----------
    first : path, optional
        The capture to open.
    port : int
        The port of the app; 0 for any free one.
    tell : callable
        Receives lines for the user.
    browse : bool
        Open the browser.
    """
    server, sockets, address = make_server(first, port, compiling=True)
    tell(f"The app is running at {address.url}")
    tell("Press Ctrl-C to stop it.")
    page = None
    if browse:
        page = opening_page(address)
        webbrowser.open(page.as_uri())
    try:
        server.run(sockets)
    finally:
        if page is not None:
            page.unlink(missing_ok=True)


def opening_page(address: Address) -> Path:
    """Write a page that leads the browser to the app, readable by this user only.

    The command line of the browser, which all users of the machine can see, then names this page and not the key.
    """
    folder = user_folders.state_folder()
    if Path("/snap/bin").is_dir():  # browsers from there cannot read hidden folders
        folder = Path.home()
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / f"photostereo-app-{address.port}.html"
    page.unlink(missing_ok=True)
    url = escape(address.url)
    text = (
        f'<!doctype html><title>photostereo</title><meta http-equiv="refresh" content="0; url={url}">'
        f'<p><a href="{url}">Open the app</a></p>\n'
    )
    with open(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    return page


def allow_open_files() -> int:
    """Raise the limit on open files of this process, and return it."""
    if sys.platform == "win32":
        return OPEN_FILES
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return most
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        return most
    return soft


def _listening(port: int) -> socket.socket:
    """Bind a socket on the loopback interface; port 0 means any free port."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except (OSError, OverflowError) as problem:
        listener.close()
        raise port_unavailable(port, problem) from None
    return listener
