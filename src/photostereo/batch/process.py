"""What every worker process observes: one job at a time, on its own threads, with kernels compiled beforehand."""

from __future__ import annotations

import os
import threading
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from photostereo.core.errors import PhotostereoError, error_code

O = TypeVar("O")  # noqa: E741

# Numba's portable threading layer must not be entered from two threads of a process at once, and two jobs in one
# process would share its cores anyway.
_ONE_AT_A_TIME = threading.Lock()


def run_safely(work: Callable[[], O], fail: Callable[[str, str], O]) -> O:
    """Run a job; whatever goes wrong with it is an outcome, made by ``fail`` from words and a code."""
    with _ONE_AT_A_TIME:
        try:
            set_threads()
            return work()
        except PhotostereoError as problem:
            return fail(str(problem), error_code(problem))
        except MemoryError:
            return fail("The worker ran out of memory.", "memory")
        except Exception as problem:
            last = traceback.extract_tb(problem.__traceback__)[-1]
            where = f"{os.path.basename(last.filename)}, line {last.lineno}"
            return fail(f"{type(problem).__name__}: {problem} ({where})", "internal")


def set_threads() -> None:
    """As many Numba threads as the worker has of its own; NUMBA_NUM_THREADS, if set, has priority."""
    if "NUMBA_NUM_THREADS" in os.environ:
        return
    try:
        from distributed import get_worker

        wanted = int(get_worker().state.nthreads)
    except (ImportError, ValueError):
        return
    import numba

    numba.set_num_threads(max(1, min(wanted, numba.config.NUMBA_NUM_THREADS)))


@cache
def warm_up(method: str, device: str = "cpu") -> None:
    """Compile a method's kernels, or load them from Numba's cache on disk, by a small solve.

    A run calls this before it starts its workers: with a cold cache each of them would compile the same kernels.
    Workers call it before they measure a time.
    """
    import numpy as np

    from photostereo.capture import Capture
    from photostereo.solver.methods import find_method
    from photostereo.solver.solve import solve

    angle = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    lights = np.stack([0.5 * np.cos(angle), 0.5 * np.sin(angle), np.full(12, 0.8)], axis=1)
    capture = Capture(np.random.default_rng(0).random((12, 64, 64)), lights, name="warm-up")
    try:
        entry = find_method(method)
        brief: dict[str, Any] = {"lam": 1.0, "mu": 0.1, "max_iter": 1} if entry.has_prior else {}
        known = {parameter.name for parameter in entry.parameters}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = {name: value for name, value in brief.items() if name in known}
            solve(capture, method, device=entry.device_or_cpu(device), **values)
    except Exception:  # the job itself will report what is wrong
        return
