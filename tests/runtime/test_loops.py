"""Compiled loops from several threads."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

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


@pytest.mark.skipif(sys.platform != "linux", reason="GNU OpenMP")
def test_a_forked_process_says_that_it_cannot_use_threads() -> None:
    """GNU OpenMP would end it, and a pool of such processes would wait for ever; a cold parent may fork."""
    code = """
import multiprocessing as mp, sys
import numpy as np
from photostereo.core.errors import PhotostereoError
from photostereo.runtime.loops import njit, prange
@njit(parallel=True)
def double(x):
    out = np.empty_like(x)
    for i in prange(len(x)):
        out[i] = 2 * x[i]
    return out
def job(n):
    return double(np.full(n, 1.0)).sum()
with mp.get_context("fork").Pool(1) as pool:
    assert pool.map(job, [5]) == [10]
assert job(5) == 10
with mp.get_context("fork").Pool(1) as pool:
    try:
        print(pool.map(job, [5]))
    except PhotostereoError as problem:
        assert problem.code == "forked-after-threads"
"""
    environment = {**os.environ, "NUMBA_THREADING_LAYER": "omp", "NUMBA_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=120)


def test_threads_share_the_rows_of_a_loop_also_in_a_forked_process() -> None:
    """Every row once, whatever the number of threads; the threads of the pool do not survive a fork."""
    code = """
import multiprocessing as mp, sys
import numpy as np
from photostereo.runtime import loops
from photostereo.runtime.loops import shared
loops.WORTHWHILE = 0
def add(first, last, values, out):
    for i in range(first, last):
        out[i] += 2 * values[i]
loops.njit = lambda cache, **options: loops.numba.njit(**options)  # nothing to keep
add = shared(of="values")(add)
def job(n):
    out = np.zeros(n)
    add(np.arange(float(n)), out)
    return out.tolist()
for n in (0, 1, 2, 3, 10):
    assert job(n) == [2.0 * i for i in range(n)], n
assert len(loops._pool()._threads) == 2
if sys.platform == "linux":
    with mp.get_context("fork").Pool(1) as pool:
        assert pool.map_async(job, [10]).get(60) == [job(10)]
"""
    environment = {**os.environ, "NUMBA_NUM_THREADS": "3"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=120)


def test_a_loop_from_the_cache_does_not_load_what_only_a_compilation_needs(tmp_path) -> None:
    code = """
import math, sys
import numba
from photostereo.runtime.loops import njit
@njit(cache=True)
def three():
    return 3
assert three() == 3
if len(sys.argv) > 1:
    assert three.stats.cache_hits and "numba.cpython.mathimpl" not in sys.modules
assert numba.njit(lambda x: math.hypot(x, 4.0))(3.0) == 5.0
"""
    program = tmp_path / "program.py"
    program.write_text(code)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    for words in ([], ["again"]):
        subprocess.run(
            [sys.executable, str(program), *words], check=True, timeout=120, env=environment
        )


@pytest.mark.parametrize("module", ["small_matmul", "numba_cache"])
def test_numba_may_be_imported_by_two_threads(module: str) -> None:
    """Another program may import photostereo in a thread while it imports other parts of it."""
    program = (
        "import sys, threading, time\n"
        "from importlib import import_module\n"
        "ahead = threading.Thread(target=import_module, args=['photostereo.runtime.loops'])\n"
        "ahead.start()\n"
        "time.sleep(float(sys.argv[1]))\n"
        f"import_module('photostereo.runtime.{module}')\n"
        "ahead.join()\n"
    )
    for seconds in (0.002, 0.01, 0.03, 0.06):
        run = [sys.executable, "-c", program, str(seconds)]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
