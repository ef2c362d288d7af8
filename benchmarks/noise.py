"""Accuracy under noise on real captures: 20 of 96 photographs, Poisson noise, seeds 0 to 4, one fixed λ and μ per
signal-to-noise ratio for all objects; next to it, the defaults.

Run: python -m benchmarks.noise [seeds]       Needs the DiLiGenT captures (PHOTOSTEREO_DATA or ../shared/data).
"""

from __future__ import annotations

import sys

import numpy as np

import photostereo as ps
from benchmarks.captures import ABSENT, diligent_folder
from photostereo_lab.corruptions import add_poisson

OBJECTS = ("ball", "cat", "bear", "pot2", "reading", "cow")
#: One choice per ratio for every object: λ, μ of DLNV and of PDLNV (p = 2).
FIXED = {
    5: {"dlnv": {"lam": 10.0, "mu": 0.15}, "pdlnv": {"lam": 10.0, "mu": 0.15}},
    15: {"dlnv": {"lam": 10.0, "mu": 0.06}, "pdlnv": {"lam": 3.0, "mu": 0.06}},
}


def mean_error(capture, method, **parameters) -> float:
    return ps.solve(capture, method, **parameters).angular_error.mean


def main() -> None:
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
    folder = diligent_folder()
    if folder is None:
        print(f"Skipped, {ABSENT}.")
        return
    print("| SNR | object | LS | DLNV fixed | DLNV defaults | PLS | PDLNV fixed | PDLNV defaults |")
    print("|---|---|---|---|---|---|---|---|")
    for snr, choices in FIXED.items():
        for name in OBJECTS:
            capture = ps.load(folder / "pmsData" / f"{name}PNG")
            rows = []
            for seed in seeds:
                noisy = add_poisson(capture.take(20, rng=seed), snr, rng=seed)
                rows.append(
                    [
                        mean_error(noisy, "ls"),
                        mean_error(noisy, "dlnv", **choices["dlnv"]),
                        mean_error(noisy, "dlnv"),
                        mean_error(noisy, "pls"),
                        mean_error(noisy, "pdlnv", **choices["pdlnv"]),
                        mean_error(noisy, "pdlnv"),
                    ]
                )
            ls, dlnv, dlnv_auto, pls, pdlnv, pdlnv_auto = np.mean(rows, axis=0)
            print(
                f"| {snr} dB | {name} | {ls:.2f} | {dlnv:.2f} ({dlnv / ls - 1:+.0%}) | {dlnv_auto:.2f} | "
                f"{pls:.2f} | {pdlnv:.2f} ({pdlnv / pls - 1:+.0%}) | {pdlnv_auto:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
