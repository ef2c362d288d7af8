"""Questions to the app's server, in this process: spoilt captures and results are opened, looked at, solved, served.

The tasks that the server gives to a process of its own run here, so that a traceback in them is seen as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import traceback
from pathlib import Path
from typing import Any

import numpy as np

#: A word that the worker understands: serve this folder by the app and ask.
APP = "app-http"
_ODD: tuple[Any, ...] = (
    *(None, 0, -1, 1e308, "x", "", [], {}, [1, 2], True, "../x", "\x1b[31m", ["shot0.jpg"]),
    *(
        {"shot0.jpg": [0, 0, 1]},
        {"shot0.jpg": [0, 0, 0]},
        {"x": 1},
        [8, 8, 6],
        [8, 8, "nan"],
        "auto",
        "full",
    ),
)
_KEYS = ("mask", "lights", "circle", "leave_out", "moved_lights", "nothing", "photostereo-edits")
_PATHS = (
    *("/", "/static/app.js", "/static/../server.py", "/api/start", "/api/browse", "/api/browse?path=%00", "/api/x"),
    *("/api/browse?path=/nowhere", "/api/c/{desk}/picture/thumb/0", "/api/c/{desk}/picture/view/99999999999999999"),
    *("/api/c/{desk}/picture/x/0", "/api/c/{desk}/log", "/api/c/nothing/log", "/api/c/{desk}/file/{result}/normals.npy"),
    *("/api/c/{desk}/file/{result}/../../lights.txt", "/api/c/{desk}/file/%2e%2e/x", "/api/methods", "/r/x/y"),
)  # fmt: skip
_RESULT = (
    "report.html",
    "summary.json",
    "normals.npy",
    "../x",
    "tiles/normals/-/0/0/0.png",
    "tiles/albedo/-/9/9/9.png",
)
_ACTS = (
    "preview",
    "solve",
    "cancel",
    "reopen",
    "save-lights",
    "export",
    "reveal",
    "x",
    "edits",
    "circle",
    "mask",
)


def questions(rng: np.random.Generator) -> list[str]:
    """A few questions: method, path and body, as JSON."""
    return [json.dumps(_question(rng)) for _ in range(5)]


def _question(rng: np.random.Generator) -> tuple[str, str, Any]:
    def pick(choices: Any) -> Any:
        return choices[int(rng.integers(len(choices)))]

    kind = rng.random()
    if kind < 0.25:
        return pick(("GET", "HEAD", "POST")), pick(_PATHS), None
    if kind < 0.4:
        return "GET", "/r/{key}/" + pick(_RESULT), None
    if kind < 0.5:
        name = pick(("a.jpg", "../a.jpg", "lights.csv", "a.exe", "%2e%2e%2fa.jpg", "a\x01.jpg"))
        return pick((("POST", "/api/drop", {"name": pick(_ODD)}), ("PUT", "/api/drop/{drop}/" + name, "body"),
                     ("POST", "/api/drop/{drop}/done", {})))  # fmt: skip
    what = pick(_ACTS)
    body: Any = {pick(_KEYS): pick(_ODD)}
    if what == "solve":
        body = {
            "method": pick(("ls", "x", None, 5)),
            "scale": pick((1, 0.5, 0, "x")),
            "parameters": pick(({}, 5, {"x": 1})),
        }
    elif what in ("export", "reveal"):
        body = {
            "format": pick(("ply", "stl", "x", None)),
            "result": pick(("ls", "..", None, "nowhere")),
        }
        what = "export"
    return (
        ("PUT" if what == "mask" else "POST"),
        "/api/c/{desk}/" + what,
        pick((body, body, body, "not JSON", [])),
    )


def ask_app(words: list[str]) -> tuple[int | None, str, str]:
    """Open a folder in the app and ask; every question must be answered, by 4xx if it is odd."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            wrong = asyncio.run(_ask(Path(words[1]), [json.loads(word) for word in words[2:]]))
        return 0, "", said.getvalue() + wrong
    except BaseException:
        return None, "", said.getvalue() + traceback.format_exc()


async def _ask(folder: Path, asked: list[Any]) -> str:
    import httpx

    from photostereo.app import server, session, sessions, user_folders
    from photostereo.app.security import Address

    wrong: list[str] = []
    session.WorkerProcess = sessions.WorkerProcess = _in_process(wrong)  # type: ignore[misc]
    user_folders.captures_folder = lambda: folder.parent / "out"
    user_folders.state_folder = lambda: folder.parent / "out" / "state"
    user_folders.show_in_folder = lambda path: False
    address = Address(50001, 50002)
    app = server.make_app(address)
    transport = httpx.ASGITransport(app, raise_app_exceptions=True)
    names = {"desk": "-", "key": "-", "drop": "-", "result": "ls"}
    async with httpx.AsyncClient(transport=transport, base_url=address.origin) as client:
        client.cookies.set(address.cookie, address.token)
        client.headers["Origin"] = address.origin
        for method, path, body in [("POST", "/api/open", {"path": str(folder)}), *asked]:
            at = path.replace("{", "%(").replace("}", ")s") % names if "%" not in path else path
            base = address.results_origin if at.startswith("/r/") else address.origin
            content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            try:
                answer = await client.request(method, base + at, content=content)
            except httpx.InvalidURL:
                continue
            if answer.status_code >= 500:
                wrong.append(f"Traceback? {method} {at}: {answer.status_code}")
            found = (
                answer.json()
                if "json" in answer.headers.get("content-type", "") and answer.content
                else {}
            )
            if answer.status_code == 200 and isinstance(found, dict):
                names |= {
                    "desk": found.get("id", names["desk"]),
                    "drop": found.get("drop", names["drop"]),
                }
            desk = app.state.sessions.open_sessions.get(names["desk"])
            names["key"] = next(iter(desk.keys), "-") if desk else "-"
            await asyncio.sleep(0)
    await app.state.sessions.close()
    return "\n".join(wrong)


def _in_process(wrong: list[str]) -> type:
    """A worker whose tasks are done as soon as they are sent."""
    from photostereo.app.process import WorkerProcess
    from photostereo.app.protocol import read_task
    from photostereo.app.tasks import Tasks
    from photostereo.app.worker import Reporter, run_task
    from photostereo.io.json_text import json_text

    class InProcess(WorkerProcess):
        async def start(self) -> None:
            """There is no process."""

        async def _write(self, message: dict[str, Any]) -> None:
            if "cancel" in message:
                return
            number, task = message["task"], read_task(message)
            own = self.__dict__.setdefault("_own", Tasks())

            def emit(event: str, **facts: Any) -> None:
                line = json_text(facts, indent=None, ascii_only=True)
                if (facts.get("error") or {}).get("code") == "internal":
                    wrong.append(f"Traceback? {task}: {facts['error']['message']}")
                self._receive(number, event, json.loads(line))

            run_task(own, task, Reporter(emit))

    return InProcess
