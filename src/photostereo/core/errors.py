"""Errors that the user can fix: what is wrong, in which file, and what to do.

An error carries its message and the facts behind it::

    raise CaptureError(
        f"{path} has {count} photographs; three are the least.",
        code="too-few-photographs",
        file=path,
        found=count,
        remedy="add-photographs",
    )

- The message is one or two sentences for people. It never names an option of the command line.
- ``code`` identifies the problem for programs and tests; it never changes, the message may.
- ``file`` is the file or folder concerned.
- further keywords (``found=2``) are facts for programs, in :attr:`PhotostereoError.values`.
- ``remedy`` names an entry of :mod:`photostereo.core.remedies`: what to do, as a keyword argument in Python, as an
  option in the terminal, as a button in the app. A remedy that is the same in every shell ("Check the exposure.") is
  simply the last sentence of the message.

The command line prints the message of a :class:`PhotostereoError` and exits with code 2; anything else is a bug.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from photostereo.core.remedies import remedy_text


class PhotostereoError(Exception):
    """Base of every error that the user can fix; the attributes are explained above.

    >>> error = CaptureError("The mask is empty.", code="empty-mask", file="mask.png", remedy="whole-frame")
    >>> error.code, error.file.name, error.kind
    ('empty-mask', 'mask.png', 'capture')
    >>> print(error)
    The mask is empty. Use mask="full" for the whole frame.
    >>> print(error.rendered("terminal"))
    The mask is empty. Use --mask full for the whole frame.
    """

    kind: ClassVar[str] = "error"

    def __init__(
        self,
        message: str = "",
        *,
        code: str | None = None,
        file: str | os.PathLike[str] | None = None,
        remedy: str | None = None,
        **values: Any,
    ) -> None:
        self.code = code or self.kind
        self.message = message or without_message(self.code, values)
        super().__init__(self.message)
        self.file = Path(file) if file is not None else None
        self.remedy = remedy
        self.values = values

    def rendered(self, shell: str = "python") -> str:
        """The message with its remedy in the words of a shell: ``"python"``, ``"terminal"`` or ``"app"``."""
        if self.remedy is None:
            return self.message
        return f"{self.message} {remedy_text(self.remedy, shell, self.values)}".strip()

    def __str__(self) -> str:
        return self.rendered()

    def as_dict(self, shell: str = "python") -> dict[str, Any]:
        """For JSON: kind, code, message, file, values."""
        entry: dict[str, Any] = {
            "kind": self.kind,
            "code": self.code,
            "message": self.rendered(shell),
        }
        if self.file is not None:
            entry["file"] = str(self.file)
        if self.values:
            entry["values"] = {name: plain(value) for name, value in self.values.items()}
        return entry

    def about(self, file: str | os.PathLike[str], note: str = "") -> PhotostereoError:
        """Return the same error with its file, if none was known, and a note at the end of its message."""
        make, (message,) = self.__reduce__()
        same: PhotostereoError = make(f"{message} {note}".strip(), file=self.file or file)
        return same.with_traceback(self.__traceback__)

    def __reduce__(self) -> Any:  # keep all fields when it is sent to another process
        make = partial(
            type(self), code=self.code, file=self.file, remedy=self.remedy, **self.values
        )
        return make, (self.message,)


def without_message(code: str, values: Mapping[str, Any]) -> str:
    """Return words for an error that was raised without a message, which only a mistake in a program can do."""
    facts = ", ".join(f"{name}: {value}" for name, value in values.items())
    return f"{code.replace('-', ' ').capitalize()}{facts and f' ({facts})'}."


class CaptureError(PhotostereoError, ValueError):
    """The photographs, lights, mask or truth do not make a capture."""

    kind = "capture"


class ParameterError(PhotostereoError, ValueError):
    """A method or a parameter is unknown, of the wrong type or out of range."""

    kind = "parameter"


class OutputError(PhotostereoError, OSError):
    """The results cannot be written to the requested place."""

    kind = "output"


class MissingDependencyError(PhotostereoError, ImportError):
    """An optional library is missing; the message says how to install it."""

    kind = "dependency"


class PhotostereoWarning(UserWarning):
    """Something the user should know; the work continues."""


class ConvergenceWarning(PhotostereoWarning):
    """An iteration stopped before it met its tolerance; the result is usable but not final."""


#: The end of the message about a mask without pixels; the code is ``"empty-mask"``.
EMPTY_MASK = (
    "is empty: no pixel belongs to the object. A mask is white on the object and black elsewhere."
)


def not_a_folder(path: Path) -> CaptureError:
    """Return the error that photographs are expected in a folder."""
    return CaptureError(
        f"{path} is not a folder. Give the folder that contains the photographs.",
        code="not-a-folder",
        file=path,
    )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint such as ``' Did you mean "pdlnv"?'`` or an empty string."""
    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    if not matches:
        return ""
    return f' Did you mean "{matches[0]}"?'


def require_known(name: str, known: Iterable[str], what: str, code: str = "") -> None:
    """Raise a :class:`ParameterError` if a name is none of the known ones.

    Parameters
    ----------
    name : str
        What the user wrote.
    known : iterable of str
        The names to choose from.
    what : str
        What the name is of, such as ``"method"``.
    code : str
        The code of the error; ``"unknown-WHAT"`` by default.
    """
    choices = list(known)
    if name not in choices:
        hint = did_you_mean(str(name), choices)
        raise ParameterError(
            f'There is no {what} "{name}".{hint} Choose from {", ".join(choices)}.',
            code=code or f"unknown-{what}",
            name=name,
            known=choices,
        )


def plain(value: Any) -> Any:
    """Convert a value to types that JSON supports."""
    if isinstance(value, (str, bool, int, float)) or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):  # an array, or a number of NumPy's
        return plain(value.tolist())
    return str(value)


def require_extra(library: str, extra: str, what: str) -> None:
    """Raise a :class:`MissingDependencyError` that names the extra if a library is not installed."""
    if find_spec(library) is None:
        raise MissingDependencyError(
            f'{what} need {library}. Install it with: pip install "photostereo[{extra}]"',
            code="missing-extra",
            library=library,
            extra=extra,
            what=what,
        )
