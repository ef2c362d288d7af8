"""Speed of the compiled dictionary pass relative to the dense NumPy version, and the difference of their results.

    python -m benchmarks.dictionary_pass          19,304 patches of 8 × 8 × 3, 192 atoms, about 5 % non-zeros
    python -m benchmarks.dictionary_pass --quick  a tenth of the patches

Both versions start from the same state, taken after two passes, and run in turn in one process, so that other
load on the machine affects both. Compilation is excluded. The dense version has as many BLAS threads as NumPy
gives it. The output lists wall times with the ratios of their medians and of their minima, then the processor
time of the same runs, which other load affects less. In single precision the results may differ if a code equals
mu to within rounding; the number of such ties is printed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from photostereo.priors.dictionary.atoms import initial_dictionary
from photostereo.priors.dictionary.compiled import dictionary_pass
from photostereo.runtime.threads import shorten_spinning

SIZE = (8, 8, 3)
MU = 0.4


def dense_pass(R: np.ndarray, D: np.ndarray, B: np.ndarray, mu: float) -> None:
    """The update of the residual in NumPy, in place and without new large arrays."""
    outer = np.empty_like(R)
    for i in range(len(D)):
        R += np.multiply.outer(B[i], D[i], out=outer)
        h = R @ D[i]
        h[np.abs(h) < mu] = 0
        B[i] = h
        direction = h @ R
        length = np.linalg.norm(direction)
        D[i] = direction / length if length > 0 else np.eye(1, D.shape[1])
        R -= np.multiply.outer(B[i], D[i], out=outer)


def make_state(patches: int, dtype: type) -> tuple[np.ndarray, ...]:
    """Patches with sparse codes in a dictionary near the DCT, after two passes from B = 0."""
    rng = np.random.default_rng(0)
    D = initial_dictionary("dct", SIZE)
    K, m = D.shape
    size = rng.uniform(0.5, 1.5, (K, patches)) * rng.choice([-1, 1], (K, patches))
    B = np.where(rng.random((K, patches)) < 0.05, size, 0)
    R = (B.T @ D + 0.05 * rng.standard_normal((patches, m))).astype(dtype)
    D += 0.02 * rng.standard_normal((K, m))
    D = (D / np.linalg.norm(D, axis=1, keepdims=True)).astype(dtype)
    B = np.zeros((K, patches), dtype)
    for _ in range(2):
        dictionary_pass(R, D, B, mu=MU)
    return R, D, B


def timed(form: Callable[[], Any]) -> tuple[float, float]:
    """Wall time and processor time of one call."""
    wall, processor = time.perf_counter(), time.process_time()
    form()
    return time.perf_counter() - wall, time.process_time() - processor


def compare(dtype: type, patches: int, threads: int, dense_runs: int, runs_each: int) -> None:
    state = make_state(patches, dtype)
    numba.set_num_threads(threads)
    dense_times, fast_times = [], []
    for _ in range(dense_runs):
        dense = [x.copy() for x in state]
        dense_times.append(timed(lambda: dense_pass(*dense, MU)))  # noqa: B023 - called at once
        for _ in range(runs_each):
            fast = [x.copy() for x in state]
            fast_times.append(timed(lambda: dictionary_pass(*fast, mu=MU)))  # noqa: B023
    (slow, slow_cpu), (quick, quick_cpu) = (
        np.median(dense_times, axis=0),
        np.median(fast_times, axis=0),
    )
    best = np.min(dense_times, axis=0)[0] / np.min(fast_times, axis=0)[0]
    R, D, B = (np.abs(a - b).max() for a, b in zip(fast, dense, strict=True))
    ties = np.count_nonzero((fast[2] != 0) != (dense[2] != 0))
    cells = [
        f"{np.dtype(dtype).name:8} {threads:7} {np.mean(fast[2] != 0):9.2%}",
        f"{slow * 1e3:8.1f} {quick * 1e3:8.1f} {slow / quick:7.1f} {best:7.1f}",
        f"{slow_cpu * 1e3:8.1f} {quick_cpu * 1e3:8.1f} {slow_cpu / quick_cpu:6.1f}",
        f"{B:8.1e} {D:8.1e} {R:8.1e} {ties:4}",
    ]
    print(" | ".join(cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the patches")
    parser.add_argument("--dense-runs", type=int, default=3)
    parser.add_argument(
        "--runs-each", type=int, default=5, help="compiled runs after each dense one"
    )
    options = parser.parse_args()
    shorten_spinning()  # as every solve does
    patches = 1930 if options.quick else 19304
    print(f"one pass, {patches} patches of 192 values, 192 atoms; milliseconds")
    print(f"{'':26} | {'wall time':^33} | {'processor time':^24} | largest difference")
    heads = [
        "dtype    threads non-zeros",
        "   dense compiled  median  minima",
        "   dense compiled  ratio",
    ]
    print(" | ".join([*heads, "codes    atoms    residual ties"]))
    for dtype in (np.float32, np.float64):
        for threads in sorted({1, min(2, numba.config.NUMBA_NUM_THREADS)}, reverse=True):
            compare(dtype, patches, threads, options.dense_runs, options.runs_each)


if __name__ == "__main__":
    main()
