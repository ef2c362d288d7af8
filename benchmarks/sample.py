"""Is a dictionary learned on a sample as good as one learned on all? Mean angular errors of both, and their ratio.

    python -m benchmarks.sample [--method dlsr] [--crops 20] [--snr 5 15] [--size 600] [CAPTURE ...]

Without captures: the six of DiLiGenT (if present), and three scenes. 20 photographs with Poisson noise and default
parameters. "all" is `photostereo.solve`; "sample" learns as for a large capture. The objects are small, so their
sample is small too (20 crops of 32 × 32 pixels, about 1,000 patches); scenes have the default sample of 200 crops, and
larger frames than that.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import photostereo as ps
from benchmarks.captures import diligent_folder
from photostereo.solver.tiles import CROPS, choose_sample
from photostereo_lab.corruptions import add_poisson
from photostereo_lab.scenes import render_scene

SCENES = ("figure", "relief", "vase")


def captures(named: list[str], size: int, crops: int) -> Iterator[tuple[ps.Capture, int]]:
    """Captures, and the number of crops to learn on."""
    if named:
        yield from ((ps.load(path), crops) for path in named)
        return
    folder = diligent_folder()
    if folder is not None:
        yield from ((ps.load(path), crops) for path in sorted((folder / "pmsData").glob("*PNG")))
    for scene in SCENES:
        yield render_scene(scene, size=size), CROPS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("captures", nargs="*")
    parser.add_argument("--method", default="dlsr")
    parser.add_argument("--crops", type=int, default=20)
    parser.add_argument("--snr", type=float, nargs="+", default=[5.0, 15.0])
    parser.add_argument("--size", type=int, default=600)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| capture | SNR | method | pixels | of them in the sample | all | sample | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for capture, crops in captures(options.captures, options.size, options.crops):
        chosen = capture.take(min(20, len(capture)), rng=0)
        seen = choose_sample(chosen.mask, crops=crops).index.size
        for snr in options.snr:
            noisy = add_poisson(chosen, snr, rng=0)
            whole = ps.solve(noisy, options.method).angular_error
            part = ps.solve(noisy, options.method, crops=crops).angular_error
            assert whole is not None and part is not None
            print(
                f"| {capture.name} | {snr:g} dB | `{options.method}` | {chosen.pixel_count} | "
                f"{100 * seen / chosen.pixel_count:.0f} % | {whole.mean:.2f} | {part.mean:.2f} | "
                f"{part.mean / whole.mean:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
