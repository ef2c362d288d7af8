"""A capture open in the app: its worker, corrections, solves and results."""

from __future__ import annotations

import asyncio
import secrets
import shlex
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from photostereo.app import places
from photostereo.app.process import Event, WorkerProcess
from photostereo.capture.edits import Edits, read_edits, write_edits
from photostereo.core.errors import CaptureError, ParameterError, PhotostereoError
from photostereo.io.atomic import clear_leftovers
from photostereo.io.json_text import json_text
from photostereo.results.choice import FORMAT_NAMES
from photostereo.solver.methods import find_method
from photostereo.solver.result_files import read_summary

#: The first and the refined method of a preview.
PREVIEWS = ("ls", "auto")
#: Folder for results inside a capture.
RESULTS = "results"
#: Minimum and maximum seconds between two messages (the maximum detects closed connections).
_PACE, _HEARTBEAT = 0.08, 15.0


class Board:
    """State of the pages, in named parts with versions. All of it runs in the server's event loop, without locks."""

    def __init__(self, **parts: Any) -> None:
        self.parts: dict[str, Any] = parts
        self._versions = dict.fromkeys(parts, 1)
        self._changed = asyncio.Event()

    def __getitem__(self, name: str) -> Any:
        return self.parts[name]

    def put(self, **parts: Any) -> None:
        for name, value in parts.items():
            self.parts[name] = value
            self._versions[name] = self._versions.get(name, 0) + 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def messages(self) -> AsyncIterator[str]:
        """Yield server-sent events: all parts first, then the changed ones."""
        sent: dict[str, int] = {}
        while True:
            news = {
                name: self.parts[name]
                for name, version in self._versions.items()
                if sent.get(name) != version
            }
            waiting = self._changed
            if news:
                sent = dict(self._versions)
                yield f"data: {json_text(news, indent=None, ascii_only=True)}\n\n"
                await asyncio.sleep(_PACE)
                continue
            try:
                await asyncio.wait_for(waiting.wait(), _HEARTBEAT)
            except TimeoutError:
                yield ": still here\n\n"


class Desk:
    """An open capture; ``keys`` are the random names under which its result folders are served.

    The page's requests are methods: ``act_NAME`` takes the JSON object of the request and returns that of the answer.
    """

    def __init__(self, folder: Path, worker: WorkerProcess | None = None) -> None:
        self.folder, self.id = folder, secrets.token_hex(6)
        self._home = tempfile.TemporaryDirectory(
            prefix="photostereo-app-", ignore_cleanup_errors=True
        )
        self.work = Path(self._home.name)
        self.keys: dict[str, Path] = {}
        try:
            edits = read_edits(folder)
        except PhotostereoError:  # reported when the folder is read
            edits = Edits()
        self.board = Board(
            capture={"folder": str(folder), "name": folder.name, "files": []},
            photographs=[],
            opening={"state": "running"},
            looking={"state": "idle"},
            edits=edits.as_dict(),
            results=[],
            **dict.fromkeys(("lights", "mask", "glance", "findings", "job", "preview")),
        )
        self._desk = worker or WorkerProcess()
        self._desk.on_event = self._on_event
        self._solver: WorkerProcess | None = None
        self._look: int | None = None
        self._look_again = self._closed = self._unexamined = False
        self._background: set[asyncio.Task[Any]] = set()
        self.refresh_results()

    async def open(self) -> None:
        """Find and copy the photographs, then analyze them."""
        self.board.put(photographs=[], opening={"state": "running"})
        await self._desk.send("open", **self._place)

    async def close(self) -> None:
        """Stop the workers and remove temporary files."""
        self._closed = True
        await self._desk.close()
        if self._solver is not None:
            await self._solver.close()
        self._home.cleanup()

    # Corrections.

    async def act_edits(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Change corrections by name, store them beside the photographs, and update the page."""
        now = read_edits(self.folder).as_dict()
        edits = Edits.from_dict({**now, **changes})
        self._require_names(edits)
        write_edits(self.folder, edits)
        self.board.put(edits=edits.as_dict())
        await self.look()
        return edits.as_dict()

    def _require_names(self, edits: Edits) -> None:
        """Require that corrections name photographs of this capture and leave at least three."""
        files = set(self.board["capture"]["files"])
        unknown = [
            name
            for name in (*edits.leave_out, *edits.keep, *edits.moved_lights)
            if name not in files
        ]
        if unknown:
            raise ParameterError(f"There is no photograph {unknown[0]}.", code="unknown-photograph")
        if len(files - set(edits.leave_out)) < 3:
            raise ParameterError(
                "At least three photographs are needed.", code="too-few-photographs"
            )

    async def paint_mask(self, picture: bytes) -> dict[str, Any]:
        file = self.work / f"painted-{secrets.token_hex(4)}.png"
        file.write_bytes(picture)
        done = await self.ask("paint", picture=str(file))
        file.unlink(missing_ok=True)
        self.board.put(edits=read_edits(self.folder).as_dict())
        await self.look()
        return done

    async def act_circle(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the lights for a circle while it is being dragged."""
        circle = [float(value) for value in question.get("circle", [])]
        if len(circle) != 3:
            raise CaptureError("A circle has a center and a radius.", code="bad-question")
        return await self.ask("circle", circle=circle)

    async def act_save_lights(self, question: Mapping[str, Any]) -> dict[str, Any]:
        target = self.folder / "lights.csv"
        if target.exists():
            raise CaptureError(f"{target} already exists.", code="output-exists", file=target)
        answer = await self.ask("save_lights", target=str(target))
        await self.act_edits({})
        return answer

    async def look(self) -> None:
        """Recompute what the page shows; a running analysis is canceled first. During a solve, which needs the memory, only
        the small copies are analyzed."""
        if self.board["opening"]["state"] != "done" or self._closed:
            return
        if self._look is not None:
            self._look_again = True
            await self._desk.cancel(self._look)
            return
        self.board.put(looking={"state": "running"})
        self._look = await self._desk.send("look", **self._place, whole=not self.is_solving())

    async def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Run a task in the desk's worker and return its result; raise its error."""
        if self._look is not None and do in ("circle", "paint"):
            self._look_again = do == "paint"
            await self._desk.cancel(self._look)
        return await self._desk.ask(do, **self._place, **arguments)

    @property
    def _place(self) -> dict[str, str]:
        """Arguments of every task."""
        return {"folder": str(self.folder), "work": str(self.work)}

    # Solves.

    async def act_preview(self, question: Mapping[str, Any]) -> None:
        """Solve the small copies, first with a fast method, then with a better one."""
        if self.is_solving() or self.board["opening"]["state"] != "done":
            raise ParameterError("A solve is already running.", code="busy")
        await self._next_preview(0)

    async def _next_preview(self, number: int) -> None:
        method = PREVIEWS[number]
        out = self.work / f"preview-{method}"
        await self._begin_job(
            "preview", {"number": number, "method": method, "refining": number > 0}
        )
        await self._desk.send("preview", **self._place, out=str(out), method=method)

    async def act_solve(self, choice: Mapping[str, Any]) -> None:
        """Solve the photographs themselves, in a separate process."""
        if self.is_solving():
            raise ParameterError("A solve is already running.", code="busy")
        settings, words = solve_settings(choice)
        out = places.free_place(self.folder / RESULTS, settings["method"])
        command = ["photostereo", "solve", str(self.folder), *words, "--out", str(out)]
        self._solver = WorkerProcess(self._on_event)
        facts = {"method": settings["method"], "out": str(out), "command": shlex.join(command)}
        await self._begin_job("solve", facts)
        about = {
            "folder": str(self.folder),
            "out": str(out),
            "settings": settings,
            "command": command,
        }
        task = await self._solver.send("solve", **about)
        self.board.put(job={**self.board["job"], "task": task, "pid": self._solver.pid})

    async def act_cancel(self, question: Mapping[str, Any]) -> None:
        job = self.board["job"]
        if not self.is_solving():
            return
        self.board.put(job={**job, "state": "canceling"})
        worker = self._solver if job["kind"] == "solve" else self._desk
        if worker is not None:
            for task in worker.running("solve", "preview"):
                await worker.cancel(task)

    def log(self) -> list[str]:
        """Return the last lines that the workers printed."""
        return [*self._desk.log, *([] if self._solver is None else self._solver.log)]

    def is_solving(self) -> bool:
        job = self.board["job"]
        return job is not None and job["state"] in ("running", "canceling")

    async def _begin_job(self, kind: str, facts: Mapping[str, Any]) -> None:
        self.board.put(
            job={"kind": kind, "state": "running", "began": time.time(), "stages": [], **facts}
        )
        if self._look is not None:  # it restarts
            await self._desk.cancel(self._look)

    # Events of the workers.

    def _on_event(self, event: Event) -> None:
        handler = getattr(self, f"_on_{event['do']}", None)
        if handler is not None:
            handler(event)

    def _on_open(self, event: Event) -> None:
        kind = event["event"]
        if kind == "found":
            self.board.put(capture=event["capture"])
        elif kind == "photograph":
            self.board.put(photographs=[*self.board["photographs"], event["photograph"]])
        elif kind == "done":
            self.board.put(opening={"state": "done", **event["result"]})
            self._later(self.look())
        elif kind != "progress":
            self.board.put(opening={"state": "failed", "error": event.get("error")})

    def _on_look(self, event: Event) -> None:
        kind = event["event"]
        if kind in ("lights", "mask", "glance", "findings"):
            self.board.put(**{kind: event[kind]})
        elif kind == "progress":
            self.board.put(looking={"state": "running", "stage": event["stages"][-1]["stage"]})
        else:
            self._look = None
            self._unexamined = kind == "done" and not event["result"]["whole"]
            if kind == "done":
                self.board.put(looking={"state": "idle"})
            elif kind == "failed":
                self.board.put(looking={"state": "failed", "error": event["error"]})
            if (
                self._look_again
                or kind == "cancelled"
                or (self._unexamined and not self.is_solving())
            ):
                self._look_again = False
                self._later(self.look())

    def _on_preview(self, event: Event) -> None:
        job = self.board["job"]
        self._on_solve(event)
        if event["event"] != "done":
            return
        self.board.put(preview=self._entry(Path(event["result"]["out"]), preview=True))
        number = job["number"] + 1
        if number < len(PREVIEWS) and job["state"] == "running":
            self._later(self._next_preview(number))

    def _on_solve(self, event: Event) -> None:
        job = self.board["job"]
        if event["event"] == "progress":
            self.board.put(job={**job, "stages": event["stages"]})
            return
        ended = {"state": event["event"], "ended": time.time(), "error": event.get("error")}
        if event["event"] == "done":
            ended |= {
                "summary": event["result"]["summary"],
                "result": Path(event["result"]["out"]).name,
            }
            self.refresh_results()
        elif "out" in job:
            clear_leftovers(Path(job["out"]))  # left by a killed process
        self.board.put(job={**job, **ended})
        if self._unexamined:
            self._later(self.look())

    def _later(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # Results.

    def refresh_results(self) -> None:
        """List the results of this capture, latest first."""
        folders = [path.parent for path in (self.folder / RESULTS).glob("[!.]*/summary.json")]
        folders.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        self.board.put(
            results=[entry for path in folders if (entry := self._entry(path)) is not None]
        )

    def _entry(self, folder: Path, *, preview: bool = False) -> dict[str, Any] | None:
        try:
            summary = read_summary(folder)
        except PhotostereoError:
            return None
        known = (key for key, path in self.keys.items() if path == folder)
        key = next(known, None) or secrets.token_urlsafe(16)
        self.keys[key] = folder
        files = sorted(
            f.name for f in folder.iterdir() if f.is_file() and not f.name.startswith(".")
        )
        return {
            "name": folder.name,
            "key": key,
            "preview": preview,
            "method": summary.get("method"),
            "expected": summary.get("expected_error") or {},
            "seconds": sum((summary.get("seconds") or {}).values()),
            "made": (folder / "summary.json").stat().st_mtime,
            "files": files,
            "folder": str(folder),
            "command": (summary.get("provenance") or {}).get("command"),
            "python": python_call(self.folder, summary),
        }

    async def act_export(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Export a result in another format, into a folder beside it."""
        result, kind = self._result_folder(question), str(question.get("format"))
        if kind not in FORMAT_NAMES:
            raise CaptureError("There is no such format.", code="bad-question")
        out = result.with_name(f"{result.name}-{kind}")
        done = await self.ask("export", result=str(result), out=str(out), formats=[kind])
        return {"files": done["files"], "folder": str(out), "name": out.name}

    async def act_reveal(self, question: Mapping[str, Any]) -> dict[str, Any]:
        return {"shown": places.show_in_folder(self._result_folder(question))}

    def _result_folder(self, question: Mapping[str, Any]) -> Path:
        name = str(question.get("result"))
        if all(entry["name"] != name for entry in self.board["results"]):
            raise CaptureError(f"There is no result {name}.", code="no-such-result")
        return self.folder / RESULTS / name


def solve_settings(choice: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the checked settings of a solve from the page's request, and the same as command-line arguments."""
    method = str(choice.get("method", "best"))
    given = {str(name): value for name, value in dict(choice.get("parameters") or {}).items()}
    resolved = find_method(method).resolve(given)
    words = ["--method", method]
    for name in given:
        words += ["--set", f"{name}={given[name]}"]
    settings: dict[str, Any] = {"method": method, **{name: resolved[name] for name in given}}
    scale = float(choice.get("scale", 1.0))
    if scale != 1.0:
        settings["scale"] = scale
        words += ["--scale", f"{scale:g}"]
    return settings, words


def python_call(folder: Path, summary: Mapping[str, Any]) -> str:
    """Return Python code that computes the same result."""
    command = shlex.split((summary.get("provenance") or {}).get("command") or "")
    options = dict(pairwise(command))
    sets = dict(word.split("=", 1) for flag, word in pairwise(command) if flag == "--set")
    choice = {"method": options.get("--method", summary.get("method")), "parameters": sets}
    settings, _ = solve_settings({**choice, "scale": options.get("--scale", 1.0)})
    given = "".join(f", {name}={value!r}" for name, value in settings.items())
    return (
        "import photostereo as ps\n\n"
        f"ps.Pipeline({str(folder)!r}{given}).write({options.get('--out', 'results')!r})\n"
    )
