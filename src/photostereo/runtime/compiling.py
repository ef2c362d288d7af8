"""A word to the user when loops are compiled.

The first run in a new environment compiles the loops that it needs; what they become is kept on disk, and later runs
load it. Whoever has a user says so with :func:`telling`; nothing is said where everything comes from the disk. This
module does not import Numba, which :mod:`photostereo.runtime.loops` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

MESSAGE = "Compiling for this machine; this happens once and takes up to half a minute."

_tell: Callable[[str], None] | None = None


@contextmanager
def telling(tell: Callable[[str], None]) -> Iterator[None]:
    """Inside, ``tell`` is called with a line when something is compiled for the first time.

    >>> with telling(print):
    ...     begun()
    ...     begun()
    Compiling for this machine; this happens once and takes up to half a minute.
    """
    global _tell
    before, _tell = _tell, tell
    try:
        yield
    finally:
        _tell = before


def begun() -> None:
    """A compilation begins."""
    global _tell
    tell, _tell = _tell, None
    if tell is not None:
        tell(MESSAGE)
