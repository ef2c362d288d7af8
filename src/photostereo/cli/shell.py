"""How a command ends: errors as a paragraph or as a JSON object, signals, exit codes."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Mapping
from typing import Any

from photostereo.cli.crash import DEBUG, write_crash_file
from photostereo.cli.terminal import Terminal, wrapped
from photostereo.core.control import Cancelled
from photostereo.core.errors import PhotostereoError
from photostereo.io.json_text import json_text
from photostereo.io.names import printable
from photostereo.runtime.signals import END, ended_by, tell_end

#: Used if Python itself runs out of memory: the cause is unknown.
NO_MEMORY = "There is not enough memory. Use fewer or smaller photographs, or crop them."


def print_json(facts: Mapping[str, Any]) -> None:
    """Print one line in ASCII: standard output may not support other characters, and file names may contain any."""
    sys.stdout.write(json_text(facts, indent=None, ascii_only=True) + "\n")
    sys.stdout.flush()


def end_with(problem: BaseException | None, *, as_json: bool) -> int:
    """Report an exception, or a signal that raised none, and return the exit code.

    As JSON an error is ``{"error": {"kind", "code", "message", "file", "values"}}``. Kinds: ``capture``, ``parameter``,
    ``output``, ``dependency``, ``usage`` (the command line itself), ``memory``, ``system`` (an error of the operating
    system), ``interrupted``, ``internal`` (a bug; ``file`` has the details).
    """
    if problem is None or ended_by() is not None or _is_interruption(problem):
        return _interrupted(as_json)
    if isinstance(problem, PhotostereoError):
        return _fail({"file": None, "values": {}, **problem.as_dict("terminal")}, as_json)
    if isinstance(problem, MemoryError) or _is_unloadable(problem):
        return _fail(_facts("memory", NO_MEMORY), as_json)
    if hasattr(problem, "format_message"):
        return _misused(problem, as_json)
    if isinstance(problem, OSError):
        return _refused_by_system(problem, as_json)
    return _crashed(problem, as_json)


def _is_interruption(problem: BaseException) -> bool:
    """Whether the work was canceled. Click raises Abort on Ctrl-C; some versions of Typer bundle their own Click."""
    return isinstance(problem, (Cancelled, KeyboardInterrupt)) or type(problem).__name__ == "Abort"


def _is_unloadable(problem: BaseException) -> bool:
    """Whether a library did not fit into memory."""
    return isinstance(problem, ImportError) and "failed to map segment" in str(problem)


def _interrupted(as_json: bool) -> int:
    if not as_json:
        return tell_end()
    code = 128 + (ended_by() or signal.SIGINT)
    return _fail(_facts("interrupted", f"Interrupted; {END}"), as_json, code)


def _misused(problem: Any, as_json: bool) -> int:
    """Report an error of Click, recognized by its attributes: the command line itself is wrong."""
    if as_json:
        return _fail(_facts("usage", problem.format_message()), as_json)
    problem.show()
    return int(getattr(problem, "exit_code", 2))


def _refused_by_system(problem: OSError, as_json: bool) -> int:
    file = None if problem.filename is None else os.fsdecode(problem.filename)
    place = "" if file is None else f": {file}"
    cause = problem.strerror or problem
    message = f"{cause}{place}. Check the path, permissions and free disk space."
    return _fail(_facts("system", message) | {"file": file}, as_json)


def _crashed(problem: BaseException, as_json: bool) -> int:
    """Report an error that nobody foresaw: one line, and a file with the details."""
    if os.environ.get(DEBUG):
        if not as_json:
            raise problem
        traceback.print_exception(problem)
    path = write_crash_file(problem, Terminal.latest)
    said = " ".join(str(problem).split())[:200]
    message = f"photostereo failed with an internal error ({type(problem).__name__}: {said})."
    if path is not None:
        message += f" Please report it with {path}, which contains details but no pixels."
    return _fail(_facts("internal", message) | {"file": path and str(path)}, as_json, 1)


def _facts(kind: str, message: str) -> dict[str, Any]:
    return {"kind": kind, "code": kind, "message": message, "file": None, "values": {}}


def _fail(facts: Mapping[str, Any], as_json: bool, code: int = 2) -> int:
    """Print one unwrapped paragraph, so that paths can be copied from it, or a JSON object."""
    if as_json:
        print_json({"error": facts})
        return code
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    text = Text(wrapped(f"Error: {printable(facts['message'])}", console))
    text.stylize("bold red", 0, len("Error:"))
    console.print(text, soft_wrap=True)
    return code
