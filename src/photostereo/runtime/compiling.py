"""A message when loops are compiled.

The first run in a new environment compiles the loops that it needs; Numba keeps them on disk, and later runs load them
without a message. This module does not import Numba, which :mod:`photostereo.runtime.loops` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

MESSAGE = "Compiling for this machine; this happens once and takes up to half a minute."

_say: Callable[[str], None] | None = None


@contextmanager
def announcing(say: Callable[[str], None]) -> Iterator[None]:
    """Inside, ``say`` is called with a line when something is compiled for the first time.

    >>> with announcing(print):
    ...     begun()
    ...     begun()
    Compiling for this machine; this happens once and takes up to half a minute.
    """
    global _say
    before, _say = _say, say
    try:
        yield
    finally:
        _say = before


def begun() -> None:
    """A compilation begins."""
    global _say
    say, _say = _say, None
    if say is not None:
        say(MESSAGE)
