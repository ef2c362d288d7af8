"""The server of the app: routes, their responses, and its two ports on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import mimetypes
import secrets
import socket
import webbrowser
from collections.abc import AsyncIterator, Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from photostereo._version import __version__
from photostereo.app import places
from photostereo.app.desk import RESULTS, Desk
from photostereo.app.process import WorkerProcess
from photostereo.app.security import Address, Guard, harmless_name
from photostereo.core.errors import CaptureError, OutputError, PhotostereoError, not_a_folder
from photostereo.io.camera import read_shot
from photostereo.io.images import PLAIN_SUFFIXES, unreadable_folder
from photostereo.io.names import folder_name
from photostereo.report.serving import LOOPBACK, PAGE, ResultTiles, is_own, page_text
from photostereo.results.choice import FORMAT_NAMES
from photostereo.runtime.threads import processors
from photostereo.solver.methods import find_method, method_names

# Windows may register it as plain text, which browsers refuse to run.
mimetypes.add_type("text/javascript", ".js")

#: Maximum bytes of a JSON request, a painted mask, a dropped file and a whole drop; maximum number of files of a drop.
_JSON_LIMIT, _MASK_LIMIT, _FILE_LIMIT, _DROP_LIMIT, _DROP_FILES = (
    1 << 20,
    32 << 20,
    512 << 20,
    64 << 30,
    1000,
)
#: Maximum number of open captures; the least recently used one is closed.
_OPEN = 3


class App:
    """State of the server: open captures, and folders whose files may be served."""

    def __init__(self, address: Address, first: Path | None = None) -> None:
        self.address, self.first = address, first
        self.desks: dict[str, Desk] = {}
        self.drops: dict[str, tuple[Path, list[int]]] = {}
        self.spare = WorkerProcess()

    async def prepare(self, *, compiling: bool) -> None:
        """Start the worker for the next capture and, once, compile the kernels that every solve needs."""
        await self.spare.start()
        stamp = places.state_folder() / f"compiled-{__version__}"
        if not compiling or stamp.exists():
            return
        worker = WorkerProcess()
        try:
            await worker.ask("compile", stamp=str(stamp))
        finally:
            await worker.close()

    async def open(self, folder: Path) -> Desk:
        """Open a folder; return its desk if it is already open."""
        place = folder.expanduser().resolve()
        if not place.is_dir():
            raise not_a_folder(place)
        for desk in self.desks.values():
            if desk.folder == place:
                return desk
        while len(self.desks) >= _OPEN:
            oldest = next((d for d in self.desks.values() if not d.is_solving()), None)
            if oldest is None:
                break
            del self.desks[oldest.id]
            await oldest.close()
        desk, self.spare = Desk(place, self.spare), WorkerProcess()
        self.desks[desk.id] = desk
        places.remember(place)
        await desk.open()
        return desk

    async def close(self) -> None:
        for desk in self.desks.values():
            await desk.close()
        await self.spare.close()

    def desk(self, request: Request) -> Desk:
        desk = self.desks.get(request.path_params["desk"])
        if desk is None:
            raise CaptureError("This capture is no longer open.", code="not-open")
        self.desks[desk.id] = self.desks.pop(desk.id)  # most recently used
        return desk


async def json_of(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request, of limited size."""
    body = await limited(request, _JSON_LIMIT)
    try:
        value = json.loads(body or b"{}")
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise CaptureError("The request is not JSON.", code="bad-question")
    return value


async def limited(request: Request, limit: int) -> bytes:
    """Return the body of a request of at most ``limit`` bytes."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > limit:
            raise CaptureError(f"The limit is {limit >> 20} MB.", code="too-large", limit=limit)
    return bytes(body)


def make_app(address: Address, first: Path | None = None, *, compiling: bool = False) -> Starlette:
    """Make the application; ``first`` is the folder to open, ``compiling`` compiles kernels in the background."""
    state = App(address, first)

    async def index(request: Request) -> Response:
        return FileResponse(Path(__file__).with_name("static") / "index.html")

    async def start(request: Request) -> Response:
        first = None if state.first is None else (await state.open(state.first)).id
        await state.spare.start()
        return JSONResponse(
            {
                "recent": places.recent_captures(),
                "home": str(Path.home()),
                "first": first,
                "results": address.results_origin,
                "formats": FORMAT_NAMES,
                "processors": processors(),
            }
        )

    async def browse(request: Request) -> Response:
        wanted = Path(request.query_params.get("path") or state.first or Path.home()).expanduser()
        try:
            return JSONResponse(places.list_folder(wanted.resolve()))
        except OSError as problem:
            raise unreadable_folder(wanted, problem) from None

    async def opened(folder: Path) -> Response:
        return JSONResponse({"id": (await state.open(folder)).id})

    async def open_folder(request: Request) -> Response:
        return await opened(Path(str((await json_of(request)).get("path", ""))))

    async def example(request: Request) -> Response:
        made = await state.spare.ask(
            "example", folder=str(places.captures_folder() / "example-figure")
        )
        return await opened(Path(made["folder"]))

    async def drop(request: Request) -> Response:
        name = str((await json_of(request)).get("name") or "photographs")
        folder = places.free_place(places.captures_folder(), folder_name(name))
        key = secrets.token_urlsafe(12)
        state.drops[key] = (folder, [0, 0])
        return JSONResponse({"drop": key, "folder": str(folder)})

    async def drop_file(request: Request) -> Response:
        folder, taken = state.drops.get(request.path_params["drop"]) or (None, [0, 0])
        name = harmless_name(request.path_params["name"])
        if folder is None or name is None or taken[0] >= _DROP_FILES:
            raise CaptureError("This kind of file is not accepted.", code="file-refused")
        if not taken[0]:  # there is no folder before there is a photograph
            folder = places.free_place(folder.parent, folder.name)
            folder.mkdir(parents=True)
            state.drops[request.path_params["drop"]] = folder, taken
        taken[0] += 1  # also those that are still on their way
        target = folder / name
        part = folder / f".{secrets.token_hex(6)}.part"
        size = 0
        try:
            with part.open("xb") as file:
                async for piece in request.stream():
                    size += len(piece)
                    if size > _FILE_LIMIT or taken[1] + size > _DROP_LIMIT:
                        raise CaptureError(
                            "The file is too large.", code="too-large", limit=_FILE_LIMIT
                        )
                    file.write(piece)
            # The content of other formats than these cannot be checked.
            checked = target.suffix.lower() in PLAIN_SUFFIXES
            if target.exists() or (checked and read_shot(part).frame is None):
                raise CaptureError(
                    f"{name} is not a photograph, or was added already.", code="file-refused"
                )
            part.rename(target)
        except BaseException:
            taken[0] -= 1
            raise
        finally:
            part.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                folder.rmdir()  # if it is empty
        taken[1] += size
        return JSONResponse({"name": name})

    async def drop_done(request: Request) -> Response:
        found = state.drops.pop(request.path_params["drop"], None)
        if found is None:
            raise CaptureError("Nothing was dropped.", code="file-refused")
        return await opened(found[0])

    async def events(request: Request) -> Response:
        news = state.desk(request).board.messages()
        return StreamingResponse(news, media_type="text/event-stream")

    async def picture(request: Request) -> Response:
        desk, kind = state.desk(request), request.path_params["kind"]
        number = request.path_params["number"]
        file = {"thumb": f"thumbs/{number}.jpg", "view": f"views/{number}.jpg"}.get(
            kind, f"{kind}.png"
        )
        if kind not in ("thumb", "view", "mask", "glance") or not (desk.work / file).is_file():
            raise CaptureError("There is no such picture.", code="no-such-picture")
        kept = {"Cache-Control": "private, max-age=3600"} if kind in ("thumb", "view") else None
        # FileResponse measures a file before it opens it, but a mask may be replaced at any time.
        content = (desk.work / file).read_bytes()
        kind = "image/png" if file.endswith("png") else "image/jpeg"
        return Response(content, headers=kept, media_type=kind)

    async def mask(request: Request) -> Response:
        return JSONResponse(
            await state.desk(request).paint_mask(await limited(request, _MASK_LIMIT))
        )

    async def act(request: Request) -> Response:
        name = request.path_params["what"].replace("-", "_")
        action = getattr(state.desk(request), f"act_{name}", None)
        if action is None:
            raise CaptureError("There is no such action.", code="bad-question")
        return JSONResponse(await action(await json_of(request)) or {})

    async def log(request: Request) -> Response:
        return JSONResponse({"lines": state.desk(request).log()})

    async def methods(request: Request) -> Response:
        return JSONResponse({"methods": [find_method(name).as_dict() for name in method_names()]})

    async def download(request: Request) -> Response:
        desk = state.desk(request)
        file = desk.folder / RESULTS / request.path_params["result"] / request.path_params["file"]
        hidden = any(
            part.startswith(".") for part in request.url.path.split("/")
        )  # unfinished files
        return own_file(desk.folder / RESULTS, file, hidden)

    async def result(request: Request) -> Response:
        key, name = request.path_params["key"], request.path_params["name"]
        folder = next((d.keys[key] for d in state.desks.values() if key in d.keys), None)
        if folder is None:
            raise HTTPException(404)
        page = folder / PAGE
        made = _tiles(folder, page.stat().st_mtime_ns if page.is_file() else 0).content(name)
        return (
            own_file(folder, folder / name)
            if made is None
            else Response(made[0], media_type=made[1])
        )

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        preparing = asyncio.create_task(state.prepare(compiling=compiling))
        yield
        preparing.cancel()
        await asyncio.gather(preparing, state.close(), return_exceptions=True)

    desk = "/api/c/{desk}"
    # The app shares the report's colors and fonts.
    static = StaticFiles(packages=[("photostereo.app", "static"), ("photostereo.report", "static")])
    routes = [
        Route("/", index),
        Mount("/static", static),
        Route("/api/start", start),
        Route("/api/browse", browse),
        Route("/api/methods", methods),
        Route("/api/open", open_folder, methods=["POST"]),
        Route("/api/example", example, methods=["POST"]),
        Route("/api/drop", drop, methods=["POST"]),
        Route("/api/drop/{drop}/done", drop_done, methods=["POST"]),
        Route("/api/drop/{drop}/{name:path}", drop_file, methods=["PUT"]),
        Route(desk + "/events", events),
        Route(desk + "/picture/{kind}/{number:int}", picture),
        Route(desk + "/mask", mask, methods=["PUT"]),
        Route(desk + "/log", log),
        Route(desk + "/file/{result}/{file:path}", download),
        Route(desk + "/{what}", act, methods=["POST"]),
        Route("/r/{key}/{name:path}", result),
    ]
    refused = dict.fromkeys((PhotostereoError, ValueError, TypeError, OSError), refuse)
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=refused)
    app.router.redirect_slashes = False
    app.state.photostereo = state
    app.add_middleware(Guard, address=address)
    return app


async def refuse(request: Request, problem: Exception) -> Response:
    """Turn an error into a response that the page can show."""
    if not isinstance(problem, PhotostereoError):
        return JSONResponse({"code": "bad-question", "message": str(problem)}, 400)
    missing = problem.code.startswith(("no-", "not-open"))
    status = 413 if problem.code == "too-large" else 404 if missing else 400
    return JSONResponse(problem.as_dict("app"), status)


def own_file(folder: Path, file: Path, hidden: bool = False) -> Response:
    """Return a file of this folder for download; links out of the folder are refused."""
    if hidden or not is_own(folder.resolve(), file) or not file.is_file():
        raise CaptureError("There is no such file.", code="no-such-file")
    return FileResponse(file, filename=file.name)


@lru_cache(maxsize=4)
def _tiles(folder: Path, stamp: int) -> ResultTiles:
    """Return the tiles of a result; ``stamp`` is the modification time of its page, 0 without one."""
    return ResultTiles(folder.resolve(), page_text(folder / PAGE) if stamp else "")


def _listening(port: int) -> socket.socket:
    """Bind a socket on the loopback interface; port 0 means any free port."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except (OSError, OverflowError) as problem:
        listener.close()
        raise OutputError(
            code="port-unavailable", port=port, host=LOOPBACK, problem=str(problem)
        ) from None
    return listener


def make_server(
    folder: Path | None, port: int = 0, *, compiling: bool = False
) -> tuple[uvicorn.Server, list[socket.socket], Address]:
    """Return the server, its sockets and its address."""
    sockets = [_listening(port), _listening(0)]
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
