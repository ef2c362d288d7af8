"""How many threads, and how they wait.

Threads that wait spin by default for milliseconds before they sleep, on cores that others need. The compiled
kernels meet at a barrier once per atom: on a machine that is busy with anything else GNU OpenMP's spinning
makes a pass a hundred times slower. OpenBLAS's threads spin for 2^26 cycles after every matrix product and
take half of the next kernel's cores. A short spin costs next to nothing on an idle machine; too short a one
sends the other thread to sleep while one makes an atom, and to wake it takes as long as its share of the work.
"""

from __future__ import annotations

import os

#: Turns that GNU OpenMP's threads wait awake, some microseconds. Two free cores: a dictionary pass takes 25 ms with 100, 20
#: with 300, 19 with 1000; beside another busy process 40, 41, 50.
SPINS = 300


def shorten_spinning() -> None:
    """Ask both libraries for a short spin; the user's own settings win.

    Each reads its setting when it is loaded. The command line calls this first of all. From Python, OpenBLAS
    has come with NumPy long before, but the compiled kernels' OpenMP is loaded when they first run.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(SPINS))
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")


def processors() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS or Windows
        return os.cpu_count() or 1
