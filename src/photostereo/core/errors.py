"""What can be wrong with a capture, a parameter or an output folder, in the user's words.

Every message is one paragraph that says what is wrong, in which file, and what to do about it. The command
line prints the message of a :class:`PhotostereoError` and exits with code 2; anything else is a bug.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PhotostereoError(Exception):
    """Base of every error that the user can mend."""


class CaptureError(PhotostereoError, ValueError):
    """The photographs, lights, mask or truth do not make a capture."""


class ParameterError(PhotostereoError, ValueError):
    """A method or a parameter is unknown, of the wrong type or out of range."""


class OutputError(PhotostereoError, OSError):
    """The results cannot be written where they were asked for."""


class MissingDependencyError(PhotostereoError, ImportError):
    """An optional library is needed; the message says how to install it."""


class PhotostereoWarning(UserWarning):
    """Something the user should know; the work goes on."""


class ConvergenceWarning(PhotostereoWarning):
    """An iteration stopped before it met its tolerance; the result is usable but not final."""


def error_code(problem: BaseException) -> str:
    """The kind of an error in one word, for programs.

    >>> error_code(CaptureError("no photographs"))
    'capture'
    """
    codes = {
        CaptureError: "capture",
        ParameterError: "parameter",
        OutputError: "output",
        MissingDependencyError: "dependency",
        PhotostereoError: "error",
    }
    return next((code for kind, code in codes.items() if isinstance(problem, kind)), "internal")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint such as ``' Did you mean "pdlnv"?'`` or an empty string.

    >>> did_you_mean("pdnlv", ["ls", "pls", "pdlnv"])
    ' Did you mean "pdlnv"?'
    >>> did_you_mean("zebra", ["ls", "pls"])
    ''
    """
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f' Did you mean "{close[0]}"?' if close else ""
