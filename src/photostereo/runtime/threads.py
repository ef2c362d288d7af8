"""Number of threads, how they wait, and work done ahead in threads.

By default, waiting threads spin for milliseconds before they sleep, on cores that others need. The compiled
kernels meet at a barrier once per atom: on a machine that is busy with anything else, GNU OpenMP's spinning
makes a pass a hundred times slower. OpenBLAS's threads spin for 2^26 cycles after every matrix product and
occupy half of the next kernel's cores. A short spin costs almost nothing on an idle machine. If it is too short, the
other thread falls asleep while one computes an atom, and waking it takes as long as its share of the work.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from photostereo.core.control import SILENT, Control

T = TypeVar("T")

#: Spin count of GNU OpenMP's threads, a few microseconds. On two free cores a dictionary pass takes 25 ms with 100, 20
#: with 300, 19 with 1000; next to another busy process 40, 41, 50.
SPINS = 300


def shorten_spinning() -> None:
    """Request a short spin from both libraries; the user's own settings take precedence.

    Each reads its setting when it is loaded. The command line calls this before anything else. From Python, OpenBLAS
    is already loaded with NumPy, but the compiled kernels' OpenMP is loaded when they first run.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(SPINS))
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")


def processors() -> int:
    """Return the number of processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS or Windows
        return os.cpu_count() or 1


def in_turn(
    work: Callable[[int], T], count: int, workers: int, control: Control = SILENT, *, ahead: int = 0
) -> Iterator[T]:
    """Yield the results of ``work(0)``, ``work(1)``, ... in order, and compute the next ones meanwhile.

    On a cancellation, an error or an early stop, work in progress is not awaited.

    Parameters
    ----------
    work : callable
        Is called with a number, in a thread.
    count : int
        How many results there are.
    workers : int
        Number of threads.
    control : Control
        Can cancel the work.
    ahead : int
        How many results are computed ahead, and take memory; by default one per thread.
    """
    pool = ThreadPoolExecutor(max_workers=workers)
    try:
        begun = min(ahead or workers, count)
        waiting = deque(pool.submit(work, number) for number in range(begun))
        while waiting:
            result = control.awaited(waiting.popleft())
            if begun < count:
                waiting.append(pool.submit(work, begun))
                begun += 1
            yield result
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
