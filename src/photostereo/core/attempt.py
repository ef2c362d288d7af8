"""A helper never ends the work.

The main road is photographs, lights, mask, normals, surface, files. Everything beside it (cross-checks, advice, pictures,
the expected error) is attempted: if it fails, the work goes on without it, the failure is a finding, and the log has the
traceback. A check that could not be made is never reported as passed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from traceback import extract_tb
from typing import TypeVar

from photostereo.core.errors import PhotostereoError
from photostereo.core.findings import Finding

Answer = TypeVar("Answer")
Substitute = TypeVar("Substitute")

log = logging.getLogger("photostereo")
# Without a handler of the program, Python would print tracebacks to the terminal.
log.addHandler(logging.NullHandler())


def attempt(
    check: str,
    function: Callable[..., Answer],
    *arguments: object,
    failures: list[Finding],
    otherwise: Substitute,
) -> Answer | Substitute:
    """Call a function that the result does not need, and go on without it if it fails.

    Cancellation, a lack of memory, and errors that the user can fix (:class:`PhotostereoError`) are raised as usual.

    Parameters
    ----------
    check : str
        What the function does, in a few words, such as ``"the search for blurred photographs"``.
    function : callable
        The function; use :func:`functools.partial` for keywords.
    *arguments
        Its arguments.
    failures : list of Finding
        If the function fails, a finding ``"check-failed"`` is appended.
    otherwise
        What to return then. It must not claim that all is well.

    Returns
    -------
    object
        The answer of the function, or ``otherwise``.

    Examples
    --------
    >>> failures = []
    >>> attempt("the logarithm", float, "1.5", failures=failures, otherwise=None)
    1.5
    >>> attempt("the logarithm", float, "one and a half", failures=failures, otherwise=None)
    >>> failures[0].code, failures[0].values["check"]
    ('check-failed', 'the logarithm')
    """
    try:
        return function(*arguments)
    except (MemoryError, PhotostereoError):
        raise
    except Exception as error:
        log.exception("%s failed", check)
        failures.append(failure_of(check, error))
        return otherwise


def failure_of(check: str, error: Exception) -> Finding:
    """The finding about a failed check: what failed, how, and the innermost place in the code."""
    words = " ".join(str(error).split())
    frames = extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return Finding(
        "check-failed", check=check, error=f"{type(error).__name__}: {words}", place=place
    )
