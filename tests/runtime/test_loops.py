"""Compiled loops from several threads."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import threading
import numba
import numpy as np
from photostereo.runtime.loops import njit, prange

@njit(parallel=True)
def doubled(values):
    result = np.empty_like(values)
    for i in prange(len(values)):
        result[i] = 2 * values[i]
    return result

values, found = np.arange(1000.0), []
def work():
    for _ in range(200):
        found.append(bool((doubled(values) == 2 * values).all()))

threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
assert numba.threading_layer() == "workqueue" and all(found) and len(found) == 600
"""


def test_threads_share_numbas_own_pool() -> None:
    """Without the lock Numba aborts the process (SIGABRT)."""
    environment = {**os.environ, "NUMBA_THREADING_LAYER": "workqueue", "NUMBA_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
