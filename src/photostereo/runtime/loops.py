"""Numba, for the compiled loops of this package, with a message when it compiles (:mod:`.compiling`).

Numba reports a compilation by an event; a loop that comes from its cache on disk causes none.
"""

from __future__ import annotations

from typing import Any

from numba import njit, prange
from numba.core import event

from photostereo.runtime import compiling

__all__ = ["njit", "prange"]


class _Listener(event.Listener):  # type: ignore[misc]
    def on_start(self, happening: Any) -> None:
        compiling.begun()

    def on_end(self, happening: Any) -> None:
        pass


event.register("numba:compile", _Listener())
