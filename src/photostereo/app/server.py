"""The server of the app: routes, and what each answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import mimetypes
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import resources
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from photostereo._version import __version__
from photostereo.app import places
from photostereo.app.desk import Desk
from photostereo.app.process import WorkerProcess
from photostereo.app.security import Address, Guard, harmless_name, inside
from photostereo.core.errors import CaptureError, PhotostereoError
from photostereo.io.camera import read_shot
from photostereo.io.images import is_image
from photostereo.results.format_names import FORMAT_NAMES

#: Bytes of a question in JSON, of a painted mask, of one dropped file, and of all of a drop; and files of a drop.
_JSON_LIMIT, _MASK_LIMIT, _FILE_LIMIT, _DROP_LIMIT, _DROP_FILES = 1 << 20, 32 << 20, 512 << 20, 64 << 30, 1000
#: Captures that are open at a time; the one that was used least lately is closed.
_OPEN = 3


class App:
    """The state of the server: open captures, and folders whose files may be served."""

    def __init__(self, address: Address, first: Path | None = None) -> None:
        self.address, self.first = address, first
        self.desks: dict[str, Desk] = {}
        self.drops: dict[str, tuple[Path, list[int]]] = {}
        self.spare = WorkerProcess()

    async def prepare(self, *, compiling: bool) -> None:
        """Start the worker of the next capture, and the compilation of what every solve needs, once."""
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
        """Open a folder, or the desk on which it is already."""
        place = folder.expanduser().resolve()
        if not place.is_dir():
            raise CaptureError(f"{place} is not a folder.", code="not-a-folder", file=place)
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
        self.desks[desk.id] = self.desks.pop(desk.id)  # used last
        return desk


async def json_of(request: Request) -> dict[str, Any]:
    """A question in JSON, of limited size."""
    body = await limited(request, _JSON_LIMIT)
    try:
        value = json.loads(body or b"{}")
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise CaptureError("The request is not JSON.", code="bad-question")
    return value


async def limited(request: Request, limit: int) -> bytes:
    """The body of a request, at most this many bytes."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > limit:
            raise CaptureError(f"At most {limit >> 20} MB are accepted.", code="too-large", limit=limit)
    return bytes(body)


def make_app(address: Address, first: Path | None = None, *, compiling: bool = False) -> Starlette:
    """The application; ``first`` is the folder to open, ``compiling`` whether kernels are compiled meanwhile."""
    state = App(address, first)

    async def static(request: Request) -> Response:
        return static_file(request.path_params.get("name", "index.html"))

    async def start(request: Request) -> Any:
        opened = None if state.first is None else (await state.open(state.first)).id
        await state.spare.start()
        return {
            "recent": places.recent_captures(),
            "home": str(Path.home()),
            "first": opened,
            "results": address.results_origin,
            "formats": FORMAT_NAMES,
        }

    async def browse(request: Request) -> Any:
        wanted = Path(request.query_params.get("path") or state.first or Path.home()).expanduser()
        try:
            return places.list_folder(wanted.resolve())
        except OSError as problem:
            said = f"{wanted} cannot be listed ({problem.strerror})."
            raise CaptureError(said, code="unreadable-folder") from None

    async def open_folder(request: Request) -> Any:
        return {"id": (await state.open(Path(str((await json_of(request)).get("path", ""))))).id}

    async def example(request: Request) -> Any:
        made = await state.spare.ask("example", folder=str(places.captures_folder() / "example-figure"))
        return {"id": (await state.open(Path(made["folder"]))).id}

    async def drop(request: Request) -> Any:
        name = str((await json_of(request)).get("name") or "photographs")
        key = secrets.token_urlsafe(12)
        state.drops[key] = (places.new_capture_folder(name), [0, 0])
        return {"drop": key, "folder": str(state.drops[key][0])}

    async def drop_file(request: Request) -> Any:
        folder, taken = state.drops.get(request.path_params["drop"]) or (None, [0, 0])
        name = harmless_name(request.path_params["name"])
        if folder is None or name is None or taken[0] >= _DROP_FILES:
            raise CaptureError("This kind of file is not accepted.", code="file-refused")
        target = folder / name
        part = folder / f".{secrets.token_hex(6)}.part"
        size = 0
        try:
            with part.open("xb") as file:
                async for piece in request.stream():
                    size += len(piece)
                    if size > _FILE_LIMIT or taken[1] + size > _DROP_LIMIT:
                        raise CaptureError("The file is too large.", code="too-large", limit=_FILE_LIMIT)
                    file.write(piece)
            if target.exists() or (is_image(target) and not looks_like_a_picture(part, target.suffix)):
                raise CaptureError(f"{name} is not a photograph, or was added already.", code="file-refused")
            part.rename(target)
        finally:
            part.unlink(missing_ok=True)
        taken[0] += 1
        taken[1] += size
        return {"name": name}

    async def drop_done(request: Request) -> Any:
        found = state.drops.pop(request.path_params["drop"], None)
        if found is None:
            raise CaptureError("Nothing was dropped.", code="file-refused")
        return {"id": (await state.open(found[0])).id}

    async def events(request: Request) -> Response:
        news = state.desk(request).board.messages()
        return StreamingResponse(news, media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    async def picture(request: Request) -> Response:
        desk, kind = state.desk(request), request.path_params["kind"]
        number = request.path_params["number"]
        file = {"thumb": f"thumbs/{number}.jpg", "view": f"views/{number}.jpg"}.get(kind, f"{kind}.png")
        if kind not in ("thumb", "view", "mask", "glance") or not (desk.work / file).is_file():
            raise CaptureError("There is no such picture.", code="no-such-picture")
        kept = "private, max-age=3600" if kind in ("thumb", "view") else "no-store"
        return FileResponse(desk.work / file, headers={"Cache-Control": kept})

    async def edits(request: Request) -> Any:
        return await state.desk(request).change_edits(await json_of(request))

    async def mask(request: Request) -> Any:
        return await state.desk(request).paint_mask(await limited(request, _MASK_LIMIT))

    async def circle(request: Request) -> Any:
        values = [float(v) for v in (await json_of(request)).get("circle", [])]
        if len(values) != 3:
            raise CaptureError("A circle has a center and a radius.", code="bad-question")
        return await state.desk(request).ask("circle", circle=values)

    async def act(request: Request) -> Any:
        desk, what = state.desk(request), request.path_params["what"]
        question = await json_of(request)
        if what in ("preview", "cancel"):
            await getattr(desk, what)()
        elif what == "solve":
            await desk.solve(question)
        elif what == "save-lights":
            target = desk.folder / "lights.csv"
            if target.exists():
                raise CaptureError(code="output-exists", file=target)
            saved = await desk.ask("save_lights", target=str(target))
            await desk.change_edits({})
            return saved
        elif what == "export":
            return await export(desk, question)
        elif what == "reveal":
            return {"shown": places.show_in_folder(desk.result_folder(str(question.get("result"))))}
        else:
            raise CaptureError("There is no such action.", code="bad-question")
        return {}

    async def export(desk: Desk, question: dict[str, Any]) -> Any:
        kind, result = str(question.get("format")), desk.result_folder(str(question.get("result")))
        if kind not in FORMAT_NAMES:
            raise CaptureError("There is no such format.", code="bad-question")
        out = result.with_name(f"{result.name}-{kind}")
        done = await desk.ask("export", result=str(result), out=str(out), formats=[kind])
        return {"files": done["files"], "folder": str(out), "name": out.name}

    async def log(request: Request) -> Any:
        return {"lines": state.desk(request).log()}

    async def methods(request: Request) -> Any:
        from photostereo.solver.methods import find_method, method_names

        return {"methods": [find_method(name).as_dict() for name in method_names()]}

    async def download(request: Request) -> Response:
        desk = state.desk(request)
        folder = desk.folder / "results" / request.path_params["result"]
        file = inside(folder / request.path_params["file"], [desk.folder / "results"])
        hidden = any(part.startswith(".") for part in request.url.path.split("/"))  # unfinished
        if file is None or hidden or not file.is_file():
            raise CaptureError("There is no such file.", code="no-such-file")
        return FileResponse(file, filename=file.name, headers={"Cache-Control": "no-store"})

    async def result(request: Request) -> Response:
        from photostereo.app.result_pages import result_file

        key, name = request.path_params["key"], request.path_params["name"]
        folder = next((d.keys[key] for d in state.desks.values() if key in d.keys), None)
        return result_file(folder, name)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        preparing = asyncio.create_task(state.prepare(compiling=compiling))
        yield
        preparing.cancel()
        await asyncio.gather(preparing, state.close(), return_exceptions=True)

    desk = "/api/c/{desk}"
    routes = [
        Route("/", static),
        Route("/static/{name:path}", static),
        Route("/api/start", answered(start)),
        Route("/api/browse", answered(browse)),
        Route("/api/methods", answered(methods)),
        Route("/api/open", answered(open_folder), methods=["POST"]),
        Route("/api/example", answered(example), methods=["POST"]),
        Route("/api/drop", answered(drop), methods=["POST"]),
        Route("/api/drop/{drop}/done", answered(drop_done), methods=["POST"]),
        Route("/api/drop/{drop}/{name:path}", answered(drop_file), methods=["PUT"]),
        Route(desk + "/events", answered(events)),
        Route(desk + "/picture/{kind}/{number:int}", answered(picture)),
        Route(desk + "/edits", answered(edits), methods=["POST"]),
        Route(desk + "/mask", answered(mask), methods=["PUT"]),
        Route(desk + "/circle", answered(circle), methods=["POST"]),
        Route(desk + "/log", answered(log)),
        Route(desk + "/file/{result}/{file:path}", answered(download)),
        Route(desk + "/{what}", answered(act), methods=["POST"]),
        Route("/r/{key}/{name:path}", answered(result)),
    ]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.router.redirect_slashes = False
    app.state.photostereo = state
    app.add_middleware(Guard, address=address)
    return app


def answered(
    handler: Callable[[Request], Awaitable[Any]],
) -> Callable[[Request], Awaitable[Response]]:
    """A handler whose facts become JSON, and whose errors an answer that the page can show."""

    async def answer(request: Request) -> Response:
        try:
            facts = await handler(request)
        except PhotostereoError as problem:
            status = 413 if problem.code == "too-large" else 400
            missing = problem.code.startswith(("no-", "not-open"))
            return JSONResponse(problem.as_dict("app"), 404 if missing else status)
        except (ValueError, TypeError, OSError) as problem:
            return JSONResponse({"code": "bad-question", "message": str(problem)}, 400)
        if isinstance(facts, Response):
            return facts
        return JSONResponse(facts, headers={"Cache-Control": "no-store"})

    return answer


def static_file(name: str) -> Response:
    """A file of the app's own pages; the report's colors and type are shared."""
    parts = name.split("/")
    if len(parts) > 1 or name.startswith("."):
        return Response(status_code=404)
    package = "photostereo.report" if name == "base.css" else "photostereo.app"
    file = resources.files(package).joinpath("static", name)
    if not file.is_file():
        return Response(status_code=404)
    kind = {".js": "text/javascript"}.get(Path(name).suffix) or mimetypes.guess_type(name)[0] or "text/plain"
    return Response(file.read_bytes(), media_type=kind, headers={"Cache-Control": "no-cache"})


def looks_like_a_picture(part: Path, suffix: str) -> bool:
    """Whether the content of a dropped file is a picture, as its name says; formats without a header that we know pass."""
    known = {".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp", ".pgm", ".ppm"}
    return suffix.lower() not in known or read_shot(part).frame is not None
