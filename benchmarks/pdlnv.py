"""PDLNV against the paper's literal algorithm: seconds, final cost, memory, and how little the number of photographs
matters.

Run: python -m benchmarks.pdlnv
"""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np

from benchmarks.literal import literal_pdlnv
from benchmarks.peak import peak_memory
from photostereo import Capture, solve
from photostereo.priors.dictionary.prior import DictionaryPrior
from photostereo.reflectance.piecewise.model import Piecewise
from photostereo_lab.corruptions import add_poisson
from photostereo_lab.scenes import dome_lights, render_scene

LAM, MU, ITERATIONS = 10.0, 0.1, 50


def capture_of(photographs: int, size):
    clean = render_scene("relief", size=size, lights=dome_lights(photographs), cast_shadows=False)
    return add_poisson(clean, 10.0, rng=0)


def profiled(function):
    """Seconds inside each step of the solve, by wrapping the steps."""
    spent: dict[str, float] = {}

    def wrap(owner, name, label):
        original = getattr(owner, name)

        def timed(*args, **kwargs):
            began = time.perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                spent[label] = spent.get(label, 0.0) + time.perf_counter() - began

        setattr(owner, name, timed)
        return lambda: setattr(owner, name, original)

    restore = [
        wrap(DictionaryPrior, "update", "dictionary pass"),
        wrap(DictionaryPrior, "pull", "pull (adjoint)"),
        wrap(DictionaryPrior, "follow", "residual (extraction)"),
        wrap(DictionaryPrior, "cost", "cost of the prior"),
        wrap(Piecewise, "_reduce", "statistics"),
        wrap(Piecewise, "update_normals", "normals"),
        wrap(Piecewise, "update_unknowns", "slopes"),
        wrap(Piecewise, "cost", "cost of the model"),
    ]
    try:
        return function(), spent
    finally:
        for undo in restore:
            undo()


def main() -> None:
    small = capture_of(24, (128, 128))
    options = {"lam": LAM, "mu": MU, "p": 2, "begin": "ls"}
    solve(small, "pdlnv", max_iter=2, **options)  # compile

    print("cost after 50 iterations, 128 x 128, 24 photographs")
    ours = solve(small, "pdlnv", max_iter=ITERATIONS, **options)
    pixels = small.pixels(small.intensity_scale())
    literal = literal_pdlnv(
        pixels, small.lights.matrix, small.mask, lam=LAM, mu=MU, iterations=ITERATIONS
    )
    print(f"  ours {ours.history[-1].cost:.4f}   literal {literal.costs[-1]:.4f}")
    assert ours.history[-1].cost <= literal.costs[-1] * (1 + 1e-6)

    print("612 x 512, full frame, 96 photographs, p = 2")
    full = capture_of(96, (612, 512))
    began = time.perf_counter()
    result, spent = profiled(lambda: solve(full, "pdlnv", max_iter=ITERATIONS, **options))
    seconds = time.perf_counter() - began
    pixels = full.pixels(full.intensity_scale())
    literal = literal_pdlnv(pixels, full.lights.matrix, full.mask, lam=LAM, mu=MU, iterations=2)
    extrapolated = ITERATIONS * float(np.mean(literal.seconds))
    print(
        f"  ours     {seconds:8.2f} s, 50 iterations, set-up included "
        f"({result.history[-1].figures['nonzeros']:.1%} non-zeros)"
    )
    print(
        f"  literal  {extrapolated:8.2f} s, extrapolated from 2 iterations of {np.mean(literal.seconds):.2f} s, no set-up"
    )
    print(f"  ratio    {extrapolated / seconds:8.1f}   (asked: at least 30)")
    print(
        f"  cost after 2 iterations: ours {result.history[1].cost:.1f}, literal {literal.costs[1]:.1f}"
    )
    print("  where the time goes:")
    for label, value in sorted(spent.items(), key=lambda item: -item[1]):
        print(f"    {label:24s} {value:7.2f} s  {value / seconds:5.1%}")

    # A quarter of λ for a quarter of the photographs: the same balance, and so about the same number of codes.
    few = full.take(np.arange(0, 96, 4))
    many, less = [], []
    for _ in range(3):
        many += seconds_of(full, LAM, options)
        less += seconds_of(few, LAM / 4, options)
    ratio = float(np.median(many) / np.median(less))
    print(
        f"  one iteration: 96 photographs {np.median(many):.3f} s, 24 photographs {np.median(less):.3f} s, "
        f"ratio {ratio:.2f}   (asked: at most 1.1)"
    )
    run_memory()


def seconds_of(capture, lam, options) -> list[float]:
    history = solve(capture, "pdlnv", max_iter=15, **{**options, "lam": lam}).history
    return [record.seconds for record in history[3:]]


def run_memory() -> None:
    """Peak memory beyond the loaded capture, in a separate process."""
    output = subprocess.run(
        [sys.executable, "-m", "benchmarks.pdlnv", "--memory"],
        capture_output=True,
        text=True,
        check=True,
    )
    print(output.stdout, end="")


def memory() -> None:
    rng = np.random.default_rng(0)
    images = np.empty(
        (96, 612, 512), dtype=np.float32
    )  # made in place: nothing else may raise the peak
    for image in images:
        rng.random(out=image, dtype=np.float32)
    capture = Capture(images, dome_lights(96), name="noise")
    before = peak_memory()
    solve(capture, "pdlnv", lam=LAM, mu=MU, max_iter=3)
    used = (peak_memory() - before) / 2**20
    print(f"  peak memory {used:.0f} MB above the loaded capture (asked: at most 1000)")


if __name__ == "__main__":
    memory() if "--memory" in sys.argv else main()
