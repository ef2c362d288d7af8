"""Is a dictionary learned on a sample as good as one learned on all? Mean angular errors of both, and their ratio.

    python -m benchmarks.sample [--method dlsr] [--crops 20] [--snr 5 15] [CAPTURE ...]

Without captures: the six of DiLiGenT (where they are found) and three scenes. 20 photographs with Poisson noise; the
default parameters throughout. "all" is `photostereo.solve`; "sample" is what a large capture does.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import photostereo as ps
from benchmarks.captures import diligent_folder
from photostereo.solver.large import choose_sample, solve_large

SCENES = ("figure", "relief", "vase")


def captures(named: list[str]) -> Iterator[ps.Capture]:
    if named:
        yield from map(ps.load, named)
        return
    folder = diligent_folder()
    if folder is not None:
        yield from map(ps.load, sorted((folder / "pmsData").glob("*PNG")))
    for scene in SCENES:
        yield ps.render_scene(scene, size=300)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("captures", nargs="*")
    parser.add_argument("--method", default="dlsr")
    parser.add_argument("--crops", type=int, default=20)
    parser.add_argument("--snr", type=float, nargs="+", default=[5.0, 15.0])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| capture | SNR | method | pixels | of them in the sample | all | sample | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for capture in captures(options.captures):
        chosen = capture.take(min(20, len(capture)), rng=0)
        seen = choose_sample(chosen.mask, crops=options.crops).index.size
        for snr in options.snr:
            noisy = ps.add_poisson(chosen, snr, rng=0)
            whole = ps.solve(noisy, options.method).angular_error
            part = solve_large(noisy, options.method, crops=options.crops).angular_error
            assert whole is not None and part is not None
            print(
                f"| {capture.name} | {snr:g} dB | `{options.method}` | {chosen.pixel_count} | "
                f"{100 * seen / chosen.pixel_count:.0f} % | {whole.mean:.2f} | {part.mean:.2f} | "
                f"{part.mean / whole.mean:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
