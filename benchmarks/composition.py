"""Every model alone and with the dictionary prior, with default parameters, on captures with truth.

    python -m benchmarks.composition pmsData/catPNG pmsData/bearPNG ... [--photographs 20] [--snr 5]

Mean angular error in degrees, averaged over the captures; nothing is tuned.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import photostereo as ps
from photostereo.reflectance.entry import registered_models
from photostereo_lab.corruptions import add_poisson


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("captures", nargs="+")
    parser.add_argument("--photographs", type=int, default=20)
    parser.add_argument("--snr", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    scenes: dict[str, list[ps.Capture]] = {"clean": [], "noisy": []}
    for path in options.captures:
        chosen = ps.load(path).take(options.photographs, rng=options.seed)
        scenes["clean"].append(chosen)
        scenes["noisy"].append(add_poisson(chosen, options.snr, rng=options.seed))
    print(
        f"| model | clean | with the prior | {options.snr:g} dB | with the prior |\n|---|---|---|---|---|"
    )
    for model in registered_models():
        cells = []
        for captures in scenes.values():
            for prior in (None, "dictionary"):
                errors = [
                    ps.solve(capture, model, prior=prior).angular_error.mean for capture in captures
                ]
                cells.append(f"{np.mean(errors):.2f}")
        print(f"| `{model}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
