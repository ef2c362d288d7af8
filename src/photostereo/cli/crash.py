"""The last resort of the command line: a file about an error that nobody foresaw, to send with a bug report."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from photostereo._version import __version__
from photostereo.core.findings import by_code

if TYPE_CHECKING:
    from photostereo.cli.terminal import Terminal
    from photostereo.pipeline.pipeline import Pipeline

#: Environment variable that shows tracebacks in the terminal instead, for development.
DEBUG = "PHOTOSTEREO_DEBUG"
#: Libraries whose versions matter for most errors.
LIBRARIES = ("numpy", "scipy", "numba", "cv2", "PIL", "tifffile", "torch")


def write_crash_file(problem: BaseException, terminal: Terminal | None) -> Path | None:
    """Write what is known about an error into the current folder, or else into the folder for temporary files.

    The file contains versions, the command, the stage, the options, sizes and findings so far, and the traceback. It
    contains no pixels.

    Parameters
    ----------
    problem : BaseException
        The error.
    terminal : Terminal, optional
        The terminal of the command, which knows its stage and its pipeline.

    Returns
    -------
    Path or None
        The file; None if it cannot be written anywhere.
    """
    name = f"photostereo-crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    text = "\n".join(_lines(problem, terminal)) + "\n"
    for folder in (Path.cwd(), Path(tempfile.gettempdir())):
        path = folder / name
        with suppress(OSError):
            path.write_bytes(text.encode("utf-8", "backslashreplace"))
            return path
    return None


def _lines(problem: BaseException, terminal: Terminal | None) -> Iterator[str]:
    yield "photostereo stopped because of an error that nobody foresaw. Please report it with this file."
    yield "It contains the command, names of files, options and findings, but no pixels."
    yield ""
    yield f"photostereo {__version__}, Python {platform.python_version()}, {platform.platform()}"
    for name in LIBRARIES:
        if name in sys.modules:
            yield f"{name} {getattr(sys.modules[name], '__version__', 'unknown')}"
    yield f"command: {shlex.join(['photostereo', *sys.argv[1:]])}"
    if terminal is not None:
        yield f"stage: {terminal.current_stage or 'none'}"
        if terminal.pipeline is not None:
            yield from _about(terminal.pipeline)
    yield ""
    yield "".join(traceback.format_exception(problem)).rstrip()


def _about(pipeline: Pipeline) -> Iterator[str]:
    """Yield options, sizes and findings; only of stages that are complete, as nothing may be computed now."""
    settings = pipeline.settings
    yield from _options(settings)
    yield from _options(settings.reading)
    yield f"complete stages: {', '.join(pipeline.complete_stages) or 'none'}"
    capture = pipeline.value_of("capture")
    if capture is not None:
        height, width = capture.frame
        yield f"photographs: {len(capture)} of {width} × {height} pixels"
        yield f"mask: {capture.pixel_count} pixels"
        notes = () if capture.origin is None else capture.origin.notes
        yield f"notes: {', '.join(by_code(notes)) or 'none'}"
    diagnosis = pipeline.value_of("diagnosis")
    if diagnosis is not None:
        yield f"findings: {', '.join(by_code(diagnosis.findings)) or 'none'}"


def _options(settings: Any) -> Iterator[str]:
    """Yield the options that differ from their defaults, an array by its shape only."""
    for entry in fields(settings):
        value = getattr(settings, entry.name)
        if entry.name in ("reading", "about"):
            continue
        if hasattr(value, "shape"):
            yield f"option {entry.name}: array {value.shape}"
        elif value != entry.default:
            yield f"option {entry.name}: {value!r}"
