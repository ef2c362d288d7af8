"""Processor time of the main steps on one thread, for comparing two versions.

    python -m benchmarks.steps [NAME ...]          in a checkout of each version

DiLiGenT's cat if present, all 96 photographs, or 20 of them at 5 dB; otherwise a rendered relief. The fastest of several
runs counts: other load on the machine can only add to it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

import cv2
import numpy as np

import photostereo as ps
from benchmarks.captures import diligent_folder
from photostereo.diagnosis import diagnose as diagnosis
from photostereo_lab.corruptions import add_poisson
from photostereo_lab.scenes import dome_lights, render_scene

GIVEN = {"lam": 10.0, "mu": 0.1, "max_iter": 10}


def steps() -> dict[str, tuple[Callable[[], object], int]]:
    """Name → function to run, and how often."""
    folder = diligent_folder()
    place = None if folder is None else folder / "pmsData" / "catPNG"
    everything = (
        render_scene("relief", size=(226, 200), lights=dome_lights(96), cast_shadows=False)
        if place is None
        else ps.load(place)
    )
    noisy = add_poisson(everything.take(20, rng=0), 5.0, rng=1)
    normals = ps.solve(everything, "ls").normals

    def looked_at_anew() -> object:
        diagnosis._SEEN.clear()
        return ps.diagnose(everything)

    found: dict[str, tuple[Callable[[], object], int]] = {
        "ls, 96 photographs": (lambda: ps.solve(everything, "ls"), 15),
        "ls, 20 photographs": (lambda: ps.solve(noisy, "ls"), 15),
        "pls, 96": (lambda: ps.solve(everything, "pls"), 7),
        **{
            f"{name}, 20": (lambda name=name: ps.solve(noisy, name), 5)
            for name in ("l1", "sbl", "rpca", "cbr")
        },  # type: ignore[misc]
        "dlnv, 20, λ and μ given, 10 iterations": (lambda: ps.solve(noisy, "dlnv", **GIVEN), 5),
        "pdlnv, 20, the same": (lambda: ps.solve(noisy, "pdlnv", p=2, begin="ls", **GIVEN), 5),
        "pdlnv, 96, the same": (lambda: ps.solve(everything, "pdlnv", p=2, begin="ls", **GIVEN), 5),
        "dlsr, 20, defaults": (lambda: ps.solve(noisy, "dlsr"), 3),
        "diagnose": (looked_at_anew, 7),
        "integrate, simchony": (lambda: ps.integrate(normals, method="simchony"), 9),
        "integrate, poisson": (lambda: ps.integrate(normals, everything.mask), 5),
    }
    return found if place is None else {**found, "load": (lambda: ps.load(place), 5)}


def processor_time(step: Callable[[], object], repeat: int) -> float:
    step()  # compile
    spent = []
    for _ in range(repeat):
        began = time.process_time()
        step()
        spent.append(time.process_time() - began)
    return float(np.min(spent))


def main() -> None:
    if (
        os.environ.get("OPENBLAS_NUM_THREADS") != "1"
    ):  # it is read when NumPy is loaded, so in a process of its own
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        command = [sys.executable, "-m", "benchmarks.steps", *sys.argv[1:]]
        sys.exit(subprocess.run(command, check=False, env={**os.environ, **one}).returncode)
    cv2.setNumThreads(1)
    wanted = sys.argv[1:]
    for name, (step, repeat) in steps().items():
        if not wanted or any(word in name for word in wanted):
            print(f"{name:42s} {1000 * processor_time(step, repeat):8.1f} ms", flush=True)


if __name__ == "__main__":
    main()
