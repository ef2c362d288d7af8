"""Show a message when loops are compiled.

The first run in a new environment compiles the loops that it needs; Numba caches them on disk, and later runs load them
without a message. This module does not import Numba; :mod:`photostereo.runtime.loops` does.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

MESSAGE = "Compiling for this machine; this happens once and takes up to half a minute."

_say: Callable[[str], None] | None = None


@contextmanager
def announcing(say: Callable[[str], None]) -> Iterator[None]:
    """Within the block, call ``say`` with a message when something is compiled for the first time."""
    global _say
    before = _say
    _say = say
    try:
        yield
    finally:
        _say = before


def begun() -> None:
    """Report that a compilation begins."""
    global _say
    say = _say
    _say = None
    if say is not None:
        say(MESSAGE)
