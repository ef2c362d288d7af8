"""What every worker process observes: one job at a time, on its own share of the threads."""

from __future__ import annotations

import os
import threading

# Numba's portable threading layer must not be entered from two threads of a process at once, and two trials
# in one process would share its cores anyway: a process runs one trial at a time.
_ONE_AT_A_TIME = threading.Lock()


def one_at_a_time() -> threading.Lock:
    """To be held by whatever a worker runs."""
    return _ONE_AT_A_TIME


def set_threads() -> None:
    """As many Numba threads as the worker has of its own; what a user set by hand stays."""
    if "NUMBA_NUM_THREADS" in os.environ:
        return
    try:
        from distributed import get_worker

        wanted = int(get_worker().state.nthreads)
    except (ImportError, ValueError):
        return
    import numba

    numba.set_num_threads(max(1, min(wanted, numba.config.NUMBA_NUM_THREADS)))
