"""Keep compiled loops on disk, as Numba does, but never run an old one, and never fail because of the disk."""

from __future__ import annotations

import hashlib
import inspect
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba  # noqa: F401 (before its parts, or two threads that import them fail)
from numba.core.caching import FunctionCache
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys
from numba.np import arrayobj  # noqa: F401 (a loop from the disk imports it, perhaps in a thread)


def keep(loop: Any) -> Any:
    """Keep a compiled loop on disk, if a folder can be written."""
    with suppress(RuntimeError):
        loop._cache = _Kept(loop.py_func)
    return loop


@cache
def _file(path: str) -> bytes:
    if os.path.isfile(path):
        return hashlib.sha256(Path(path).read_bytes()).digest()
    return b""


@cache
def _from_elsewhere(function: Any) -> str:
    """Return a hash of what is compiled into a loop: the files of the loops that it calls, and constants."""
    hashed = hashlib.sha256()
    seen = {function}
    waiting = [function]
    while waiting:
        names = waiting[-1].__code__.co_names
        known = waiting.pop().__globals__
        places = [
            known,
            *(vars(known[name]) for name in names if inspect.ismodule(known.get(name))),
        ]
        for value in (place[name] for place in places for name in names if name in place):
            if isinstance(value, (int, float)):
                hashed.update(repr(value).encode())
            elif isinstance(value, CPUDispatcher) and value.py_func not in seen:
                seen.add(value.py_func)
                waiting.append(value.py_func)
                hashed.update(_file(value.py_func.__code__.co_filename))
    return hashed.hexdigest()


class _Kept(FunctionCache):  # type: ignore[misc]
    """Load a compiled loop without the typing rules, which only a compilation needs: saves a quarter of a second.

    Numba's key knows a loop's own file only: after an upgrade it would load a caller with the old loops inside. A damaged
    file is compiled again, and a loop that cannot be kept (the disk is full) by every process.
    """

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), _from_elsewhere(self._py_func))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        try:
            return self._load_overload(sig, target_context)
        except Exception:  # a damaged pickle can raise anything
            return self._forget()

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            self._save_overload(sig, data)
        except OSError:  # the index may name a file of an older version
            self._forget()

    def _forget(self) -> None:
        with suppress(OSError):
            os.unlink(self._cache_file._index_path)
