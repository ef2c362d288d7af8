"""Numba for the compiled loops of this package, with a message when it compiles (:mod:`.compile_notice`).

Numba reports a compilation by an event; a loop loaded from its cache on disk causes none.

If neither OpenMP nor TBB is installed, Numba's own thread pool aborts the process if two threads use it at once. In that
case, parallel loops of different threads wait for each other. GNU OpenMP ends a process that was forked from one that
has used it, and a pool of such processes would wait forever. In that case, an error is raised.
"""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, wraps
from itertools import pairwise
from typing import Any

import numpy as np

from photostereo.core.errors import PhotostereoError

try:
    import numba
    from numba import get_num_threads, prange
    from numba.core import event
except ValueError as problem:  # such as NUMBA_NUM_THREADS=0
    raise PhotostereoError(
        f"Numba cannot start: {problem} Check the environment variables that begin with NUMBA_.",
        code="bad-numba-settings",
    ) from problem

from photostereo.runtime import compile_notice
from photostereo.runtime.numba_cache import keep

__all__ = ["NUMBA_VERSION", "get_num_threads", "njit", "prange", "shared"]

#: Major and minor version of Numba.
NUMBA_VERSION: tuple[int, int] = numba.version_info.short

#: If the largest array of a loop is smaller than this, a second thread is not worthwhile: waking it takes 50 µs.
WORTHWHILE = 1 << 16

if numba.config.DISABLE_JIT:
    # Loops in Python would take hours, and some exist only in machine code.
    raise PhotostereoError(
        "The environment variable NUMBA_DISABLE_JIT is set, but photostereo needs Numba's "
        "compiler. Unset it.",
        code="compiler-off",
    )


class _Listener(event.Listener):  # type: ignore[misc]
    def on_start(self, happening: Any) -> None:
        compile_notice.begun()

    def on_end(self, happening: Any) -> None:
        pass


event.register("numba:compile", _Listener())

#: Held by a caller of a parallel loop while Numba's threads cannot be shared.
_ONE_AT_A_TIME = threading.RLock()
#: Threading layers whose threads several callers may use at once.
_SAFE_LAYERS = ("omp", "tbb")
#: The name of the layer in a process that was forked from one that used GNU OpenMP: it must not be used.
_FORKED = "forked"


class _Layer:
    """Numba's threading layer, which is known after the first call of a parallel loop."""

    name = ""


def _forked() -> None:
    _pool.cache_clear()  # its threads exist only in the parent
    if _Layer.name == "omp":
        _Layer.name = _FORKED


if sys.platform == "linux":  # GNU OpenMP; other systems spawn processes or use other libraries
    os.register_at_fork(after_in_child=_forked)


def njit(**options: Any) -> Any:
    """Like ``numba.njit``, but parallel loops can be called from any thread and let other threads run meanwhile.

    A parallel loop is called from Python only, never from another compiled loop.
    """
    caching = options.pop("cache", False)

    def decorate(function: Any) -> Any:
        compiled = numba.njit(nogil=True, **options)(function)
        if caching:
            compiled = keep(compiled)
        if options.get("parallel"):
            return _one_at_a_time(compiled)
        return compiled

    return decorate


def _one_at_a_time(loop: Any) -> Callable[..., Any]:
    """Let callers of a parallel loop wait for each other if Numba's threads cannot be shared."""

    @wraps(loop.py_func)
    def run(*values: Any) -> Any:
        if _Layer.name == _FORKED:
            raise PhotostereoError(
                "This process was forked from one that has already solved with several threads, "
                "and cannot use threads itself. Start workers with "
                'multiprocessing.get_context("spawn") or "forkserver".',
                code="forked-after-threads",
            )
        if _Layer.name in _SAFE_LAYERS:
            return loop(*values)
        with _ONE_AT_A_TIME:
            answer = _first_call(loop, values)
            _Layer.name = numba.threading_layer()
            return answer

    return run


def _first_call(loop: Any, values: tuple[Any, ...]) -> Any:
    """Call a parallel loop, which starts Numba's threads; a layer that was asked for may not work here."""
    layer = numba.config.THREADING_LAYER
    try:
        return loop(*values)
    except ValueError as problem:
        if layer == "default" or _Layer.name:
            raise
        reason = str(problem).partition("\n")[0].rstrip(".")
        raise PhotostereoError(
            f"Numba cannot use the threads that the environment variable NUMBA_THREADING_LAYER "
            f"asks for ({layer}): {reason}. Unset it.",
            code="no-threading-layer",
            layer=layer,
        ) from problem


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(numba.config.NUMBA_NUM_THREADS, thread_name_prefix="loops")


def shared(of: str, **options: Any) -> Any:
    """Compile a loop ``f(first, last, ...)`` over the rows of the array named ``of``, and split it among threads.

    It is called without ``first`` and ``last``. Each row may write only values that no other row accesses. Numba's
    ``parallel`` does the same, but takes three to six times as long to compile.
    """

    def decorate(function: Any) -> Callable[..., None]:
        compiled = njit(cache=True, **options)(function)
        place = list(inspect.signature(function).parameters).index(of) - 2

        @wraps(function)
        def run(*values: Any) -> None:
            rows = len(values[place])
            workers = min(get_num_threads(), rows)
            if workers < 2 or max(v.size for v in values if isinstance(v, np.ndarray)) < WORTHWHILE:
                compiled(0, rows, *values)
                return
            if not compiled.signatures:  # here, as a compilation imports what it needs
                compiled.compile(tuple(map(numba.typeof, (0, rows, *values))))
            own, *others = pairwise(rows * k // workers for k in range(workers + 1))
            waiting = [_pool().submit(compiled, *part, *values) for part in others]
            compiled(*own, *values)
            for part in waiting:
                part.result()

        return run

    return decorate
