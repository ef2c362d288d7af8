"""Compiled kernels before the work begins: one worker of each machine compiles, the others find them in the cache.

Numba compiles a kernel at its first call and keeps it on disk. With a cold cache every worker would compile the
same kernels at the same time, which takes minutes on a small machine, without a word.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from photostereo.batch.limits import Limits
from photostereo.batch.progress import RunControl

if TYPE_CHECKING:
    from distributed import Client

#: Compilation is announced after this number of seconds; with a warm cache it takes less.
COLD_SECONDS = 5.0

_warm: set[tuple[str, str]] = set()


def warm_workers(
    client: Client, methods: Iterable[str], limits: Limits, control: RunControl, device: str = "cpu"
) -> None:
    """Let one worker of each machine compile what the methods need, and wait for it."""
    from distributed import wait

    one_each: dict[str, str] = {}
    for address in client.nthreads():
        one_each.setdefault(address.rsplit(":", 1)[0], address)
    names = tuple(dict.fromkeys(methods))
    tasks = [
        client.submit(warm_up_all, names, device, workers=[name], pure=False) for name in one_each.values()
    ]
    if not tasks:
        return
    began = time.monotonic()
    try:
        wait(tasks, timeout=COLD_SECONDS)
    except TimeoutError:
        control.say(
            "Compiling the numerical kernels, once in a new environment: this may take a minute or two."
        )
        try:
            wait(tasks, timeout=min(limits.job, limits.without_workers))
            control.say(f"Compiled in {time.monotonic() - began:.0f} s.")
        except TimeoutError:  # a worker died or hangs: the trials will tell
            for task in tasks:
                task.cancel(force=True)


def warm_up_all(methods: Iterable[str], device: str = "cpu") -> None:
    """Warm up several methods."""
    for method in methods:
        warm_up(method, device)


def warm_up(method: str, device: str = "cpu") -> None:
    """Compile a method's kernels (or fetch them from the cache) outside any timing, on a small surface."""
    if (method, device) in _warm:
        return
    _warm.add((method, device))
    import numpy as np

    from photostereo.capture import Capture
    from photostereo.solver.methods import find_method
    from photostereo.solver.solve import solve

    rng = np.random.default_rng(0)
    angle = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    lights = np.stack([0.5 * np.cos(angle), 0.5 * np.sin(angle), np.full(12, 0.8)], axis=1)
    capture = Capture(rng.random((12, 64, 64)), lights, name="warm-up")
    try:
        entry = find_method(method)
        brief: dict[str, Any] = {"lam": 1.0, "mu": 0.1} if entry.has_prior else {}
        if any(parameter.name == "max_iter" for parameter in entry.parameters):
            brief["max_iter"] = 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solve(capture, method, device=entry.device_or_cpu(device), **brief)
    except Exception:  # the trial itself will say what is wrong
        return
