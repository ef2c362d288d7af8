"""How a command ends: errors as a paragraph or as a JSON object, signals, exit codes."""

from __future__ import annotations

import os
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
    # Some versions of Typer bundle their own Click: its errors are recognized by their attributes, and Abort, which Click
    # raises on Ctrl-C, by its name.
    usage = getattr(problem, "format_message", None)
    stopped = (
        isinstance(problem, (Cancelled, KeyboardInterrupt)) or type(problem).__name__ == "Abort"
    )
    if ended_by() is not None or stopped or problem is None:
        if as_json:
            return _fail(
                _facts("interrupted", f"Interrupted; {END}"), as_json, 128 + (ended_by() or 2)
            )
        return tell_end()
    if isinstance(problem, PhotostereoError):
        return _fail({"file": None, "values": {}, **problem.as_dict("terminal")}, as_json)
    unloadable = isinstance(problem, ImportError) and "failed to map segment" in str(problem)
    if isinstance(problem, MemoryError) or unloadable:  # a library did not fit into memory
        return _fail(_facts("memory", NO_MEMORY), as_json)
    if usage is not None and as_json:
        return _fail(_facts("usage", usage()), as_json)
    if usage is not None:
        problem.show()  # type: ignore[attr-defined]
        return int(getattr(problem, "exit_code", 2))
    if isinstance(problem, OSError):
        place = "" if problem.filename is None else f": {os.fsdecode(problem.filename)}"
        words = f"{problem.strerror or problem}{place}. Check the path, permissions and free disk space."
        return _fail(_facts("system", words) | {"file": place[2:] or None}, as_json)
    return _crashed(problem, as_json)


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
