"""Runs cases one after another in this process and reports each as a line of JSON.

A process of its own, so that a crash, a hang or an exhausted memory ends it and not the fuzzer. What it may write is
watched by an audit hook: anything outside its work folder is a failure.
"""

from __future__ import annotations

import io
import json
import os
import resource
import shutil
import socket
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import typer.main

from .app import APP, ask_app
from .captures import SMALL, capture_in
from .cases import METHODS, Case, make_case
from .checks import complaints, snapshot
from .further import HTTP
from .plugins import PLUGIN, installed

#: Bytes that a run may take beyond what the process has before it. The largest sound input needs a hundredth of it.
MEMORY = 700 << 20
#: Processor seconds that a run may take; a sound one takes a hundredth.
SECONDS = 20.0
#: Where Python and Numba keep compiled code, and matplotlib its list of fonts.
_CACHES = ("__pycache__", "/matplotlib", "/temporary", "/dev/null", "/proc/self/clear_refs")

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EVENTS = (
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.symlink",
    "os.link",
    "os.truncate",
    "os.chmod",
)


class Watch:
    """Notes every write outside the work folder while it is on."""

    def __init__(self, home: Path) -> None:
        self.home, self.on, self.seen = str(home), False, list[str]()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.on or event not in (*_EVENTS, "open"):
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & _WRITING):
            return
        for place in arguments[: 2 if event in ("os.rename", "os.link") else 1]:
            if isinstance(place, (str, bytes)):
                path = os.path.abspath(os.fsdecode(place))
                if not path.startswith(self.home) and not any(cache in path for cache in _CACHES):
                    self.seen.append(f"{event} {path}")


def run(words: list[str]) -> tuple[int | None, str, str]:
    """Exit code (None where something escaped), what was said, and what was said of errors."""
    from photostereo import cli

    out, err = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)
    )
    before = sys.argv, sys.stdout, sys.stderr
    sys.argv, sys.stdout, sys.stderr = ["photostereo", *words], out, err
    code: int | None = 0
    try:
        cli.main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        code = None
        err.write(traceback.format_exc().encode("utf-8", "backslashreplace").decode())
    finally:
        sys.argv, sys.stdout, sys.stderr = before
    said = (stream.buffer.getvalue().decode("utf-8", "replace") for stream in (out, err))  # type: ignore[attr-defined]
    return code, *said


def ask(words: list[str]) -> tuple[int | None, str, str]:
    """Serve a folder and send requests; each must be answered, and nothing may be said on standard error."""
    from photostereo.core.errors import PhotostereoError
    from photostereo.report.serving import make_server

    err = io.StringIO()
    before, sys.stderr = sys.stderr, err
    try:
        with make_server(Path(words[1]) / "report.html") as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            for text in words[2:]:
                method, path, host = text.split(" ")
                with socket.create_connection(server.server_address[:2], timeout=120) as line:
                    line.sendall(
                        f"{method} {path} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode("latin-1")
                    )
                    answer = line.makefile("rb").read()
                status = answer.split(b" ")[1:2]
                if not answer.startswith(b"HTTP/1.0 ") or status in ([b"500"], [b"502"], [b"503"]):
                    err.write(f"Traceback? {text}: {answer[:80]!r}\n")
                if "evil" in host and status == [b"200"]:
                    err.write(f"Traceback? {host} was served\n")
            server.shutdown()
        return 0, "", err.getvalue()
    except PhotostereoError as problem:
        return 2, "", f"Error: {problem}"
    except OSError as problem:
        code = 2 if isinstance(problem, FileNotFoundError | IsADirectoryError) else None
        return code, "", f"Error: {problem!r}"
    finally:
        sys.stderr = before


def examine(case: Case, watch: Watch) -> dict[str, object]:
    """Run a case and say what was wrong, if anything."""
    before = snapshot(case.folder)
    watch.seen, base = [], _peak(reset=True)
    began = time.process_time()
    watch.on = True
    try:
        with _limited_memory():
            code, said, error = _RUNNERS.get(case.words[0], run)(case.words)
    finally:
        watch.on = False
    wrong = complaints(case, code, said, error, before)
    wrong += [f"wrote outside its folder: {place}" for place in watch.seen[:3]]
    spent = time.process_time() - began
    if spent > SECONDS:
        wrong.append(f"took {spent:.0f} s of the processor")
    grown = _peak() - base
    if grown > MEMORY:
        wrong.append(f"took {grown >> 20} MB")
    return {
        "kind": case.kind,
        "code": code,
        "spoilt": case.spoilt,
        "words": [
            os.fsencode(word).decode("utf-8", "backslashreplace")[:200] for word in case.words
        ],
        "seconds": round(spent, 3),
        "wrong": wrong,
        "error": error[-4000:] if wrong else error[:300],
    }


def run_with_plugin(words: list[str]) -> tuple[int | None, str, str]:
    """Install a plugin for one run."""
    with installed(*words[1:4]):
        return run(words[4:])


_RUNNERS = {HTTP: ask, APP: ask_app, PLUGIN: run_with_plugin}


@contextmanager
def _limited_memory() -> Iterator[None]:
    """No more address space than the run may need: what asks for more is refused, as on a small machine."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2 * MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _peak(*, reset: bool = False) -> int:
    """The most memory that this process has had, since the last reset."""
    if reset:
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            return 1 << 62
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    """Read case numbers from standard input; one line of JSON for each."""
    seed, templates, work = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    keep = len(sys.argv) > 4
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    log = os.open(work / "native.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):  # libraries in C write there by themselves
        os.dup2(log, stream)
    os.chdir(work)
    for method in METHODS:  # compiled before time is taken
        small = SMALL if method.startswith(("dl", "pd")) else ()
        run(
            [
                "solve",
                str(capture_in(templates / "archive")),
                "--out",
                str(work / f"warm-{method}"),
                "-m",
                method,
                *small,
            ]
        )
    typer.main.get_command = cache(typer.main.get_command)  # a tenth of the time of a run
    watch = Watch(work)
    np.seterr(all="ignore")
    for line in sys.stdin:
        number = int(line)
        try:
            case = make_case(seed, number, templates, work)
            answer = examine(case, watch)
            if not keep:
                shutil.rmtree(case.folder, ignore_errors=True)
        except Exception:
            answer = {
                "kind": "?",
                "code": None,
                "wrong": ["the fuzzer itself failed"],
                "error": traceback.format_exc(),
            }
        answers.write(json.dumps({"number": number, **answer}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
