"""``--json``: one object on standard output and nothing else, whether it went well or not."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from photostereo.core.errors import PhotostereoError, error_code
from photostereo.io.json_text import json_text
from photostereo.io.safe import exists
from photostereo.runtime.signals import ended_by


def print_json(facts: Mapping[str, Any]) -> None:
    """One line on standard output, in ASCII: it may take no other letters, and file names may hold anything."""
    sys.stdout.write(json_text(facts, indent=None, ascii_only=True) + "\n")
    sys.stdout.flush()


def run_as_json(app: typer.Typer, words: Sequence[str]) -> int:
    """Run the command line; an error becomes ``{"error": {"code", "message", "file"}}``. Returns the exit code.

    Codes: ``usage`` (the command line itself), ``capture``, ``parameter``, ``output``, ``dependency``, ``memory``,
    ``system`` (what the operating system refused), ``interrupted``, ``internal`` (a bug; its traceback goes to standard
    error).
    """
    try:
        ended = app(standalone_mode=False)
    except PhotostereoError as problem:
        return _tell(error_code(problem), problem.rendered("terminal"), words)
    except MemoryError:
        return _tell(
            "memory", "There is not enough memory for this. Use fewer or smaller photographs.", words
        )
    except BaseException as problem:
        signal = ended_by()
        # Some versions of typer bring a Click of their own: its errors are known by what they offer.
        if hasattr(problem, "format_message"):
            return _tell("usage", problem.format_message(), words)
        if signal is not None or type(problem).__name__ == "Abort":  # Ctrl-C, whatever it has become by now
            return _tell(
                "interrupted", "Interrupted; nothing was left half-written.", words, 128 + (signal or 2)
            )
        if isinstance(problem, SystemExit):
            raise
        if isinstance(problem, OSError):
            return _tell("system", f"{problem.strerror or problem}: {problem.filename or ''}", words)
        traceback.print_exc()
        return _tell("internal", f"{type(problem).__name__}: {problem}", words, 1)
    return int(ended or 0)


def _tell(code: str, message: str, words: Sequence[str], exit_code: int = 2) -> int:
    print_json({"error": {"code": code, "message": message, "file": file_in(message, words)}})
    return exit_code


def file_in(message: str, words: Sequence[str]) -> str | None:
    """The file or folder that a message speaks of: one at or below a path of the command line.

    >>> file_in("photos/lights.csv, line 3: not a number.", ["solve", "photos"])
    'photos'
    >>> file_in("There is no method x.", ["solve", "photos", "--method", "x"]) is None
    True
    """
    named = [word.rstrip("/") for word in words if len(word) > 1 and not word.startswith("-")]
    named += [str(Path(word).absolute()) for word in named]
    mentioned = [
        word for word in named if word in message and ("/" in word or exists(Path(word)) or "." in word)
    ]
    if not mentioned and len(words) > 1 and words[0] == "solve" and f"{words[1]}/" in message:
        mentioned = [words[1]]
    if not mentioned:
        return None
    root = max(mentioned, key=len)
    rest = message[message.index(root) :]
    # The longest beginning that exists: names may hold blanks, sentences end in points.
    ends = [number for number in range(len(root) + 1, len(rest) + 1) if exists(Path(rest[:number]))]
    return rest[: max(ends)] if ends else root
