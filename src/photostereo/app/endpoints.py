"""The addresses of the app and what they answer."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from photostereo.app import user_folders
from photostereo.app.arrange import arrange
from photostereo.app.drops import Drop, accepted_suffixes
from photostereo.app.errors import NotFoundError, RequestError, TooLargeError, bad_request
from photostereo.app.session import ACTIONS, RESULTS, Session, session_id
from photostereo.app.sessions import Sessions
from photostereo.core.errors import PhotostereoError
from photostereo.io.names import folder_name
from photostereo.report.serving import PAGE, ResultTiles, is_own, page_text
from photostereo.results.choice import FORMAT_NAMES
from photostereo.runtime.threads import processors
from photostereo.solver.methods import find_method, method_names

#: Maximum bytes of a JSON request: the names of ten thousand photographs.
JSON_LIMIT = 1 << 20
#: Maximum bytes of a painted mask, a picture of the size of the small copies.
MASK_LIMIT = 32 << 20
#: Files of the small copies by the kind of picture in an address.
PICTURES = {
    "thumb": "thumbs/{number}.jpg",
    "view": "views/{number}.jpg",
    "mask": "mask.png",
    "glance": "glance.png",
}


class Endpoints:
    """Answers requests; each method is named in :meth:`routes`."""

    def __init__(self, sessions: Sessions, results_origin: str) -> None:
        self.sessions = sessions
        self.results_origin = results_origin

    def routes(self) -> Sequence[BaseRoute]:
        """Return the addresses of the app."""
        # The app shares the report's colors and fonts.
        static = StaticFiles(
            packages=[("photostereo.app", "static"), ("photostereo.report", "static")]
        )
        capture = "/api/c/{capture}"
        return [
            Route("/", self.index),
            Mount("/static", static),
            Route("/api/start", self.start),
            Route("/api/browse", self.browse),
            Route("/api/methods", self.methods),
            Route("/api/open", self.open_folder, methods=["POST"]),
            Route("/api/example", self.open_example, methods=["POST"]),
            Route("/api/drop", self.begin_drop, methods=["POST"]),
            Route("/api/drop/{drop}/done", self.end_drop, methods=["POST"]),
            Route("/api/drop/{drop}/{name:path}", self.drop_file, methods=["PUT"]),
            Route(capture + "/events", self.events),
            Route(capture + "/picture/{kind}/{number:int}", self.picture),
            Route(capture + "/mask", self.paint_mask, methods=["PUT"]),
            Route(capture + "/log", self.log),
            Route(capture + "/file/{result}/{file:path}", self.download),
            Route(capture + "/{action}", self.act, methods=["POST"]),
            Route("/r/{key}/{name:path}", self.result),
        ]

    def _session(self, request: Request) -> Session:
        return self.sessions.get(request.path_params["capture"])

    # The start page.

    async def index(self, request: Request) -> Response:
        return FileResponse(Path(__file__).with_name("static") / "index.html")

    async def start(self, request: Request) -> Response:
        """What the page needs to know at first."""
        first = await self.sessions.start()
        recent = [
            {**entry, "id": session_id(Path(entry["folder"]))}
            for entry in user_folders.recent_captures()
        ]
        return JSONResponse(
            {
                "recent": recent,
                "home": str(Path.home()),
                "first": first,
                "results": self.results_origin,
                "formats": FORMAT_NAMES,
                "processors": processors(),
                "accepts": sorted(accepted_suffixes()),
            }
        )

    async def methods(self, request: Request) -> Response:
        return JSONResponse({"methods": [find_method(name).as_dict() for name in method_names()]})

    async def browse(self, request: Request) -> Response:
        """The content of a folder, to choose a capture."""
        default = self.sessions.first or Path.home()
        path = user_folders.user_path(request.query_params.get("path") or str(default))
        return JSONResponse(user_folders.list_folder(path))

    async def open_folder(self, request: Request) -> Response:
        text = (await json_object(request)).get("path")
        if not isinstance(text, str) or not text:
            raise bad_request("The path is missing.")
        session = await self.sessions.open(user_folders.user_path(text))
        return JSONResponse({"id": session.id})

    async def open_example(self, request: Request) -> Response:
        return JSONResponse({"id": (await self.sessions.open_example()).id})

    # Dropped photographs.

    async def begin_drop(self, request: Request) -> Response:
        name = str((await json_object(request)).get("name") or "photographs")
        folder = user_folders.free_place(user_folders.captures_folder(), folder_name(name))
        key = secrets.token_urlsafe(12)
        self.sessions.drops[key] = Drop(folder)
        return JSONResponse({"drop": key, "folder": str(folder)})

    async def drop_file(self, request: Request) -> Response:
        drop = self.sessions.drops.get(request.path_params["drop"])
        if drop is None:
            raise RequestError("This kind of file is not accepted.", code="file-refused")
        name = await drop.receive(request.path_params["name"], request.stream())
        return JSONResponse({"name": name})

    async def end_drop(self, request: Request) -> Response:
        drop = self.sessions.drops.pop(request.path_params["drop"], None)
        if drop is None:
            raise RequestError("Nothing was dropped.", code="file-refused")
        arrange(drop.folder)
        return JSONResponse({"id": (await self.sessions.open(drop.folder)).id})

    # An open capture.

    async def events(self, request: Request) -> Response:
        messages = self._session(request).page.messages()
        return StreamingResponse(messages, media_type="text/event-stream")

    async def picture(self, request: Request) -> Response:
        work = self._session(request).work
        kind = request.path_params["kind"]
        name = PICTURES.get(kind, "").format(number=request.path_params["number"])
        file = work / name
        if not name or not file.is_file():
            raise NotFoundError("There is no such picture.", code="no-such-picture")
        headers = {}
        if kind in ("thumb", "view"):
            headers["Cache-Control"] = "private, max-age=3600"
        # FileResponse measures a file before it opens it, but a mask may be replaced at any time.
        content = file.read_bytes()
        media_type = "image/png" if file.suffix == ".png" else "image/jpeg"
        return Response(content, headers=headers, media_type=media_type)

    async def paint_mask(self, request: Request) -> Response:
        session = self._session(request)
        return JSONResponse(await session.paint_mask(await limited_body(request, MASK_LIMIT)))

    async def act(self, request: Request) -> Response:
        session = self._session(request)
        action = ACTIONS.get(request.path_params["action"])
        if action is None:
            raise NotFoundError("There is no such action.", code="bad-request")
        return JSONResponse(await action(session, await json_object(request)))

    async def log(self, request: Request) -> Response:
        return JSONResponse({"lines": self._session(request).log()})

    async def download(self, request: Request) -> Response:
        results = self._session(request).folder / RESULTS
        file = results / request.path_params["result"] / request.path_params["file"]
        is_unfinished = any(part.startswith(".") for part in request.url.path.split("/"))
        if is_unfinished:
            raise _no_such_file()
        return own_file(results, file)

    # Results, on an origin of their own.

    async def result(self, request: Request) -> Response:
        folder = self.sessions.result_folder(request.path_params["key"])
        name = request.path_params["name"]
        if folder is None:
            raise HTTPException(404)
        page = folder / PAGE
        stamp = page.stat().st_mtime_ns if page.is_file() else 0
        content = _tiles(folder, stamp).content(name)
        if content is None:
            return own_file(folder, folder / name)
        body, media_type = content
        return Response(body, media_type=media_type)


async def json_object(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request, of limited size."""
    return read_json_object(await limited_body(request, JSON_LIMIT))


def read_json_object(body: bytes) -> dict[str, Any]:
    """Read strict JSON; NaN, lone surrogates and a nesting of thousands are refused like anything else.

    >>> read_json_object(b'{"circle": [1, 2, 3]}')
    {'circle': [1, 2, 3]}
    """
    try:
        value = json.loads(body or b"{}", parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise bad_request("The request is not JSON.")
    return value


def _refuse_constant(text: str) -> None:
    raise ValueError(text)


async def limited_body(request: Request, limit: int) -> bytes:
    """Return the body of a request of at most ``limit`` bytes."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > limit:
            raise TooLargeError(f"The limit is {limit >> 20} MB.", code="too-large", limit=limit)
    return bytes(body)


async def refuse(request: Request, problem: Exception) -> Response:
    """Turn an error into a response that the page can show."""
    if isinstance(problem, RequestError):
        return JSONResponse(problem.as_dict("app"), problem.status)
    if isinstance(problem, PhotostereoError):
        return JSONResponse(problem.as_dict("app"), RequestError.status)
    return JSONResponse(bad_request(str(problem)).as_dict("app"), RequestError.status)


def own_file(folder: Path, file: Path) -> Response:
    """Return a file of this folder for download; links out of the folder are refused."""
    if not is_own(folder.resolve(), file) or not file.is_file():
        raise _no_such_file()
    return FileResponse(file, filename=file.name)


def _no_such_file() -> NotFoundError:
    return NotFoundError("There is no such file.", code="no-such-file")


@lru_cache(maxsize=4)
def _tiles(folder: Path, stamp: int) -> ResultTiles:
    """Return the tiles of a result; ``stamp`` is the modification time of its page, 0 without one."""
    return ResultTiles(folder.resolve(), page_text(folder / PAGE) if stamp else "")
