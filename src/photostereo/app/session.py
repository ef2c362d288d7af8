"""A capture open in the app: its worker, corrections, solves and results."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import shlex
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from photostereo.app import protocol, user_folders
from photostereo.app.errors import NotFoundError, RequestError, bad_request
from photostereo.app.process import WorkerProcess
from photostereo.app.protocol import Event
from photostereo.app.python_code import is_outdated, python_call, solve_settings
from photostereo.app.shared_state import PageState, SharedState
from photostereo.app.work_folder import WorkFolder
from photostereo.capture.edits import Edits, read_edits, write_edits
from photostereo.capture.options import KEYWORDS
from photostereo.core.errors import PhotostereoError
from photostereo.io.atomic import clear_leftovers
from photostereo.io.schema import NUMBER, check_facts
from photostereo.results.choice import FORMAT_NAMES
from photostereo.solver.result_files import read_summary

#: Methods of a preview: the first shows something at once, the second shows what to expect.
PREVIEWS = ("ls", "auto")
#: Folder for results inside a capture.
RESULTS = "results"
#: Fewest photographs that a capture may be reduced to.
FEWEST = 3


def session_id(folder: Path) -> str:
    """Return the name of a capture in addresses: the same after a restart, so that old tabs find their way."""
    return hashlib.blake2b(os.fsencode(folder), digest_size=6).hexdigest()


class Session:
    """An open capture. The page's requests are in :data:`ACTIONS`.

    Parameters
    ----------
    folder : path
        The photographs.
    worker : WorkerProcess, optional
        A process that is already running.

    Attributes
    ----------
    page : SharedState
        What the pages show.
    keys : dict
        The result folders, by the random names under which they are served.
    """

    def __init__(self, folder: Path, worker: WorkerProcess | None = None) -> None:
        self.folder = folder
        self.id = session_id(folder)
        self.keys: dict[str, Path] = {}
        self._home = WorkFolder()
        self.work = self._home.path
        self._edits = Edits()
        with suppress(PhotostereoError):  # reported when the folder is read
            self._edits = read_edits(folder)
        self.page = SharedState(
            PageState(
                capture={"folder": str(folder), "name": folder.name, "files": []},
                edits=self._edits.as_dict(),
                opening={"state": "running"},
                looking={"state": "idle"},
            )
        )
        self.worker = worker or WorkerProcess()
        self.worker.on_event = self._on_event
        self._solver: WorkerProcess | None = None
        self._look: int | None = None  # number of the running task
        self._must_look_again = False
        self._is_unexamined = False  # the last look skipped the photographs themselves
        self._is_closed = False
        self._background: set[asyncio.Task[Any]] = set()
        self.refresh_results()

    @property
    def state(self) -> PageState:
        return self.page.state

    async def open(self) -> None:
        """Find and copy the photographs, then analyze them."""
        self.page.put(photographs=[], opening={"state": "running"})
        await self.worker.send(protocol.OpenFolder(str(self.folder), str(self.work)))

    async def close(self, reason: str = "closed") -> None:
        """Stop the workers, remove temporary files and tell the pages."""
        self._is_closed = True
        self.page.end(reason)
        await self.worker.close()
        if self._solver is not None:
            await self._solver.close()
        self._home.remove()

    # Corrections.

    async def change_edits(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Change corrections by name, store them beside the photographs, and update the page."""
        edits = Edits.from_dict({**read_edits(self.folder).as_dict(), **changes})
        self._require_possible(edits)
        write_edits(self.folder, edits)
        self._put_edits(edits)
        await self.look()
        return edits.as_dict()

    def _put_edits(self, edits: Edits) -> None:
        """Show corrections, and mark the results that were made with others."""
        self._edits = edits
        self.page.put(edits=edits.as_dict())
        self.refresh_results()

    def _require_possible(self, edits: Edits) -> None:
        """Require that corrections name photographs and files of this capture and leave enough photographs."""
        files = set(self.state.capture["files"])
        for name in (*edits.leave_out, *edits.keep, *edits.moved_lights):
            if name not in files:
                raise RequestError(f"There is no photograph {name}.", code="unknown-photograph")
        if len(files - set(edits.leave_out)) < FEWEST:
            raise RequestError("At least three photographs are needed.", code="too-few-photographs")
        for file in (edits.mask, edits.lights):
            if file and file not in KEYWORDS and not (self.folder / file).is_file():
                raise RequestError(f"There is no file {file}.", code="missing-file")

    async def paint_mask(self, picture: bytes) -> dict[str, Any]:
        """Store a mask that was painted on the small copies, an encoded picture."""
        file = self.work / f"painted-{secrets.token_hex(4)}.png"
        file.write_bytes(picture)
        await self._interrupt_look(and_look_again=True)
        try:
            answer = await self.worker.ask(
                protocol.PaintMask(str(self.folder), str(self.work), str(file))
            )
        finally:
            file.unlink(missing_ok=True)
        self._put_edits(read_edits(self.folder))
        await self.look()
        return answer

    async def try_circle(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the lights for a circle while it is being dragged."""
        circle = Edits.from_dict({**Edits().as_dict(), "circle": request["circle"]}).circle
        if circle is None:
            raise bad_request("A circle has a center and a radius.")
        await self._interrupt_look(and_look_again=False)
        return await self.worker.ask(protocol.TryCircle(str(self.folder), str(self.work), circle))

    async def save_lights(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Write the estimated lights as ``lights.csv`` beside the photographs."""
        target = self.folder / "lights.csv"
        if target.exists():
            raise RequestError(f"{target} already exists.", code="output-exists", file=target)
        answer = await self.worker.ask(
            protocol.SaveLights(str(self.folder), str(self.work), str(target))
        )
        await self.change_edits({})
        return answer

    async def look(self) -> None:
        """Recompute what the page shows; a running analysis is canceled first.

        During a solve, which needs the memory, only the small copies are analyzed.
        """
        if self.state.opening["state"] != "done" or self._is_closed:
            return
        if self._look is not None:
            self._must_look_again = True
            await self.worker.cancel(self._look)
            return
        self.page.put(looking={"state": "running"})
        task = protocol.Look(str(self.folder), str(self.work), whole=not self.is_solving())
        self._look = await self.worker.send(task)

    async def _interrupt_look(self, *, and_look_again: bool) -> None:
        """Cancel a running analysis for something that the user waits for."""
        if self._look is not None:
            self._must_look_again = and_look_again
            await self.worker.cancel(self._look)

    # Solves.

    async def preview(self, request: Mapping[str, Any]) -> None:
        """Solve the small copies, first with a fast method, then with a better one."""
        if self.is_solving() or self.state.opening["state"] != "done":
            raise RequestError("A solve is already running.", code="busy")
        await self._next_preview(0)

    async def _next_preview(self, number: int) -> None:
        method = PREVIEWS[number]
        await self._begin_job("preview", number=number, method=method, refining=number > 0)
        out = self.work / f"preview-{method}"
        await self.worker.send(protocol.Preview(str(self.folder), str(self.work), str(out), method))

    async def solve(self, request: Mapping[str, Any]) -> None:
        """Solve the photographs themselves, in a separate process."""
        if self.is_solving():
            raise RequestError("A solve is already running.", code="busy")
        settings, arguments = solve_settings(request)
        method = settings["method"]
        out = user_folders.free_place(self.folder / RESULTS, method)
        command = ["photostereo", "solve", str(self.folder), *arguments, "--out", str(out)]
        self._solver = WorkerProcess(self._on_event)
        await self._begin_job("solve", method=method, out=str(out), command=shlex.join(command))
        await self._solver.send(protocol.Solve(str(self.folder), str(out), settings, command))
        self._change_job(pid=self._solver.pid)

    async def cancel(self, request: Mapping[str, Any]) -> None:
        """Stop the running solve or preview."""
        job = self.state.job
        if job is None or not self.is_solving():
            return
        self._change_job(state="canceling")
        worker = self._solver if job["kind"] == "solve" else self.worker
        if worker is not None:
            for number in worker.running(protocol.Solve, protocol.Preview):
                await worker.cancel(number)

    def log(self) -> list[str]:
        """Return the last lines that the workers printed."""
        lines = list(self.worker.log)
        if self._solver is not None:
            lines += self._solver.log
        return lines

    def is_solving(self) -> bool:
        job = self.state.job
        return job is not None and job["state"] in ("running", "canceling")

    async def _begin_job(self, kind: str, **values: Any) -> None:
        job = {"kind": kind, "state": "running", "began": time.time(), "stages": [], **values}
        self.page.put(job=job)
        if self._look is not None:  # it restarts
            await self.worker.cancel(self._look)

    def _change_job(self, **values: Any) -> None:
        self.page.put(job={**(self.state.job or {}), **values})

    # Events of the workers.

    def _on_event(self, event: Event) -> None:
        handler = EVENTS.get(type(event.task))
        if handler is not None:
            handler(self, event)

    def _on_open(self, event: Event) -> None:
        values = event.values
        if event.kind == "found":
            self.page.put(capture=values["capture"])
        elif event.kind == "photograph":
            self.page.put(photographs=[*self.state.photographs, values["photograph"]])
        elif event.kind == "done":
            self.page.put(opening={"state": "done", **values["result"]})
            self._later(self.look())
        elif event.kind != "progress":
            self.page.put(opening={"state": "failed", "error": values.get("error")})

    def _on_look(self, event: Event) -> None:
        values = event.values
        if event.kind in ("lights", "mask", "glance", "findings"):
            self.page.put(**{event.kind: values[event.kind]})
        elif event.kind == "progress":
            stage = values["stages"][-1]["stage"]
            self.page.put(looking={"state": "running", "stage": stage})
        else:
            self._end_look(event)

    def _end_look(self, event: Event) -> None:
        self._look = None
        self._is_unexamined = event.kind == "done" and not event.values["result"]["whole"]
        if event.kind == "done":
            self.page.put(looking={"state": "idle"})
        elif event.kind == "failed":
            self.page.put(looking={"state": "failed", "error": event.values["error"]})
        was_put_off = self._is_unexamined and not self.is_solving()
        if self._must_look_again or event.kind == "canceled" or was_put_off:
            self._must_look_again = False
            self._later(self.look())

    def _on_preview(self, event: Event) -> None:
        job = self.state.job or {}
        self._on_solve(event)
        if event.kind != "done":
            return
        self.page.put(preview=self._describe(Path(event.values["result"]["out"]), preview=True))
        number = job["number"] + 1
        if number < len(PREVIEWS) and job["state"] == "running":
            self._later(self._next_preview(number))

    def _on_solve(self, event: Event) -> None:
        if event.kind == "progress":
            self._change_job(stages=event.values["stages"])
            return
        self._change_job(state=event.kind, ended=time.time(), error=event.values.get("error"))
        job = self.state.job or {}
        if event.kind == "done":
            result = event.values["result"]
            self.refresh_results()
            self._change_job(summary=result["summary"], result=Path(result["out"]).name)
        elif "out" in job:
            clear_leftovers(Path(job["out"]))  # left by a killed process
        if self._is_unexamined:
            self._later(self.look())

    def _later(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # Results.

    def refresh_results(self) -> None:
        """List the results of this capture, latest first."""
        folders = [path.parent for path in (self.folder / RESULTS).glob("[!.]*/summary.json")]
        folders.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        results = [self._describe(path) for path in folders]
        self.page.put(results=[result for result in results if result is not None])

    def _describe(self, folder: Path, *, preview: bool = False) -> dict[str, Any] | None:
        """Return what the page shows of a result; None if it is damaged."""
        try:
            summary = read_summary(folder)
            python = python_call(self.folder, summary, str(folder))
        except PhotostereoError:
            return None
        files = [path.name for path in folder.iterdir() if path.is_file()]
        made = (folder / "summary.json").stat().st_mtime
        return {
            "name": folder.name,
            "key": self._key_of(folder),
            "preview": preview,
            "method": summary.get("method"),
            "expected": summary.get("expected_error") or {},
            "seconds": sum((summary.get("seconds") or {}).values()),
            "made": made,
            "outdated": not preview and is_outdated(summary, self.folder, self._edits, made),
            "files": sorted(name for name in files if not name.startswith(".")),
            "folder": str(folder),
            "command": (summary.get("provenance") or {}).get("command"),
            "python": python,
        }

    def _key_of(self, folder: Path) -> str:
        for key, path in self.keys.items():
            if path == folder:
                return key
        key = secrets.token_urlsafe(16)
        self.keys[key] = folder
        return key

    async def export(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Export a result in another format, into a folder beside it."""
        result = self._result_folder(request["result"])
        kind = request["format"]
        if kind not in FORMAT_NAMES:
            raise bad_request("There is no such format.")
        out = result.with_name(f"{result.name}-{kind}")
        answer = await self.worker.ask(protocol.Export(str(result), str(out), [kind]))
        return {"files": answer["files"], "folder": str(out), "name": out.name}

    async def reveal(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Show a result in the system's file manager."""
        return {"shown": user_folders.show_in_folder(self._result_folder(request["result"]))}

    def _result_folder(self, name: str) -> Path:
        if all(entry["name"] != name for entry in self.state.results):
            raise NotFoundError(f"There is no result {name}.", code="no-such-result")
        return self.folder / RESULTS / name


#: What happens when a worker reports about a task of a session.
EVENTS: Mapping[type[protocol.Task], Callable[[Session, Event], None]] = {
    protocol.OpenFolder: Session._on_open,
    protocol.Look: Session._on_look,
    protocol.Preview: Session._on_preview,
    protocol.Solve: Session._on_solve,
}


@dataclass(frozen=True)
class Action:
    """A request of the page about an open capture."""

    run: Callable[[Session, Mapping[str, Any]], Awaitable[Mapping[str, Any] | None]]
    #: names and types of its values, as for :func:`photostereo.io.schema.check_facts`
    fields: Mapping[str, Any]

    async def __call__(self, session: Session, request: Mapping[str, Any]) -> dict[str, Any]:
        """Check a request, carry it out, and return the answer to the page."""
        check_facts(request, dict(self.fields), bad_request, closed=True)
        return dict(await self.run(session, request) or {})


#: The requests of the page by name. ``static/api.js`` declares the same names and values.
ACTIONS: Mapping[str, Action] = {
    "edits": Action(
        Session.change_edits,
        {
            "mask?": str,
            "lights?": str,
            "circle?": [NUMBER],
            "leave_out?": [str],
            "keep?": [str],
            "moved_lights?": {str: [NUMBER]},
        },
    ),
    "circle": Action(Session.try_circle, {"circle": [NUMBER]}),
    "save-lights": Action(Session.save_lights, {}),
    "preview": Action(Session.preview, {}),
    "solve": Action(
        Session.solve,
        {"method?": str, "parameters?": {str: (str, NUMBER)}, "scale?": NUMBER},
    ),
    "cancel": Action(Session.cancel, {}),
    "export": Action(Session.export, {"result": str, "format": str}),
    "reveal": Action(Session.reveal, {"result": str}),
}
