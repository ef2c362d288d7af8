"""Keep compiled loops on disk, as Numba does, but never run an old one, and never fail because of the disk.

Numba keeps them beside the package or in the user's cache folder. If neither can be written (a read-only installation
in a container), they are kept in a private folder among the temporary files, so that a user compiles once, not each
time. The cache extends a private class of Numba's; if another version has a different one, Numba's own cache is used.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import stat
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba  # before its parts, or two threads that import them fail

try:
    from numba.core.caching import FunctionCache
    from numba.core.registry import CPUDispatcher
    from numba.core.runtime import rtsys
    from numba.np import arrayobj  # noqa: F401 (a loop from the disk imports it, perhaps in a thread)
except ImportError:
    FunctionCache = object
    CPUDispatcher = rtsys = None

#: Methods of Numba's cache that ours replaces or calls.
_METHODS = ("_index_key", "_load_overload", "_save_overload")
#: Whether this version of Numba has the cache that ours extends.
EXTENDS = all(hasattr(FunctionCache, name) for name in _METHODS)


def keep(loop: Any) -> Any:
    """Keep the machine code of a compiled loop on disk, if some folder can be written; return the loop."""
    try:
        _attach_cache(loop)
    except RuntimeError:  # no such folder
        _keep_privately(loop)
    return loop


def _attach_cache(loop: Any) -> None:
    """Give a loop its cache; raise a ``RuntimeError`` if no folder can be written."""
    if EXTENDS:
        loop._cache = _KeptCode(loop.py_func)
    else:
        loop.enable_caching()


def _keep_privately(loop: Any) -> None:
    folder = private_folder()
    if folder is None:
        return
    # Numba looks up the folder when a cache is made.
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        with suppress(RuntimeError):
            _attach_cache(loop)
    finally:
        numba.config.CACHE_DIR = before


def private_folder() -> Path | None:
    """Return a folder among the temporary files that only this user can write, as code is loaded from it."""
    user = os.getuid() if hasattr(os, "getuid") else None
    path = Path(tempfile.gettempdir()) / f"photostereo-compiled-{user}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
    except OSError:
        return None
    is_private = user is None or (status.st_uid == user and not status.st_mode & 0o077)
    return path if stat.S_ISDIR(status.st_mode) and is_private else None


@cache
def _file(path: str) -> bytes:
    if os.path.isfile(path):
        return hashlib.sha256(Path(path).read_bytes()).digest()
    return b""


@cache
def _from_elsewhere(function: Any) -> str:
    """Return a hash of what is compiled into a loop: the files of the loops that it calls, and constants."""
    digest = hashlib.sha256()
    visited = {function}
    waiting = [function]
    while waiting:
        loop = waiting.pop()
        for value in _globals_of(loop):
            if isinstance(value, (int, float)):
                digest.update(repr(value).encode())
                continue
            # The Python function of another loop, or of a piece of code that we generate.
            callee = getattr(
                value, "py_func" if isinstance(value, CPUDispatcher) else "_defn", None
            )
            if inspect.isfunction(callee) and callee not in visited:
                visited.add(callee)
                digest.update(_file(callee.__code__.co_filename))
                if isinstance(value, CPUDispatcher):
                    waiting.append(callee)
    return digest.hexdigest()


def _globals_of(function: Any) -> list[Any]:
    """Return the values of the global names in a function, and of the names in the modules that it uses."""
    names = function.__code__.co_names
    scope = function.__globals__
    modules = [scope[name] for name in names if inspect.ismodule(scope.get(name))]
    places = [scope, *map(vars, modules)]
    return [place[name] for place in places for name in names if name in place]


class _KeptCode(FunctionCache):  # type: ignore[misc]
    """Load a compiled loop without the typing rules, which only a compilation needs: saves a quarter of a second.

    Numba's key knows a loop's own file only: after an upgrade it would load a caller with the old loops inside. A damaged
    file is compiled again, and a loop that cannot be kept (the disk is full) by every process.
    """

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), _from_elsewhere(self._py_func))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            rtsys.initialize(target_context)
            return self._load_overload(sig, target_context)
        except Exception:  # a damaged pickle can raise anything
            return self._forget()

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            self._save_overload(sig, data)
        except Exception:  # the index may name a file of an older version
            self._forget()

    def _forget(self) -> None:
        with suppress(OSError, AttributeError):
            os.unlink(self._cache_file._index_path)
