"""What a format of light files is; one file per format, and one line in :mod:`.reading`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from photostereo.core.errors import CaptureError
from photostereo.lights.files.table import LightTable


@dataclass(frozen=True)
class LightFormat:
    """A format of light files, one of ours or of another package (entry point ``photostereo.lights``).

    Attributes
    ----------
    name : str
        Unique name, for messages.
    suffixes : tuple of str
        Suffixes of the files, in lower case, such as ``".json"``.
    read : callable
        ``read(path, count)`` returns the :class:`LightTable` in a file; ``count`` is the number of photographs, or None
        if it is not known. It raises a :class:`LightFileError` or a :class:`CaptureError` if the file cannot be used.
    names : tuple of str
        Names of files that are looked for in the folder of a capture.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Path, int | None], LightTable]
    names: tuple[str, ...] = ()


class LightFileError(Exception):
    """A light file that cannot be used: a code, and a sentence that lacks the file's name at its beginning."""

    def about(self, path: Path) -> CaptureError:
        """Return the error that a user sees."""
        code, words = self.args
        return CaptureError(f"{path} {words}", code=code, file=path)
