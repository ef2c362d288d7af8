"""net and dlnet on the DiLiGenT captures with truth: all photographs, few, and with Poisson noise, in color and in gray.

Draws and noise are those of ``photostereo solve --images 20 --seed 0`` and of the sweeps. Noise is added to the gray
values of gray captures and to each channel of color captures. The expected error of net is next to the true one.

Run: python -m benchmarks.learned [--seeds 5] [--settings all,15dB] [--keep FOLDER]

``--keep`` stores a row per trial, so that a run can be continued and several can share the work. Needs the DiLiGenT
captures (PHOTOSTEREO_DATA or ../shared/data).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import photostereo as ps
from benchmarks.captures import ABSENT, diligent_folder
from photostereo.capture.capture import photographs_of_seed
from photostereo.core.control import SILENT
from photostereo.diagnosis.metrics import summarize_error
from photostereo.io.atomic import write_text
from photostereo.solver.prepared import prepare
from photostereo_lab.corruptions import add_poisson, noise_of_seed

OBJECTS = ("ball", "cat", "bear", "pot2", "reading", "cow")
#: Name → photographs, decibels, tint, and the error asked of dlnet where one was.
SETTINGS: Mapping[str, tuple[int | None, float | None, bool, float | None]] = {
    "all": (None, None, True, 4.8),
    "15dB": (20, 15.0, True, 5.7),
    "5dB": (20, 5.0, True, 7.6),
    "10": (10, None, True, 6.0),
    "6": (6, None, True, 8.0),
    "15dB-gray": (20, 15.0, False, 6.4),
    "5dB-gray": (20, 5.0, False, 9.0),
    "10-gray": (10, None, False, 5.8),
    "6-gray": (6, None, False, None),
}


@lru_cache(maxsize=2)
def whole_capture(path: Path, tint: bool) -> ps.Capture:
    """All photographs of an object, cached for its other trials."""
    return ps.load(path, color=tint)


def capture_of(folder: Path, name: str, setting: str, seed: int) -> ps.Capture:
    """The photographs of a trial."""
    count, decibels, tint, _ = SETTINGS[setting]
    capture = whole_capture(folder / "pmsData" / f"{name}PNG", tint)
    if count is not None:
        capture = capture.take(count, rng=photographs_of_seed(seed))
    return capture if decibels is None else add_poisson(capture, decibels, noise_of_seed(seed))


def trial(capture: ps.Capture) -> dict[str, float]:
    """Mean errors of both methods, and the expected error of net; in degrees."""
    truth, mask = capture.truth, capture.mask
    capture = replace(capture, truth=None)
    prepared = prepare(capture, "dlnet")
    alone = np.zeros((*mask.shape, 3), np.float32)
    alone[mask] = prepared.model.alone(SILENT).normals
    with_prior = ps.solve(capture, "dlnet", prepared=prepared)
    return {
        "net": float(summarize_error(alone, truth, mask).mean),
        "dlnet": float(summarize_error(with_prior.normals, truth, mask).mean),
        "expected": float(with_prior.maps["spread"][mask].mean()),
    }


def row_of(keep: Path, folder: Path, name: str, setting: str, seed: int) -> dict[str, float]:
    """The row of a trial, computed once."""
    path = keep / f"{name}-{setting}-{seed}.json"
    if not path.exists():
        write_text(path, json.dumps(trial(capture_of(folder, name, setting, seed))))
    row: dict[str, float] = json.loads(path.read_text())
    return row


def report(setting: str, rows: Mapping[tuple[str, int], Mapping[str, float]]) -> None:
    """A line for the mean over all objects, and one per object."""
    asked = SETTINGS[setting][3]

    def line(name: str, chosen: list[Mapping[str, float]]) -> str:
        mean = {key: np.mean([row[key] for row in chosen]) for key in ("net", "expected", "dlnet")}
        return f"| {setting} | {name} | {mean['net']:.2f} | {mean['expected']:.2f} | {mean['dlnet']:.2f} |"

    by_seed = [
        np.mean([rows[o, s]["dlnet"] for o in OBJECTS]) for s in sorted({s for _, s in rows})
    ]
    goal = (
        "" if asked is None else f"asked ≤ {asked}: {'yes' if np.mean(by_seed) <= asked else 'no'}"
    )
    print(line("mean", list(rows.values())), "seeds", " ".join(f"{x:.2f}" for x in by_seed), goal)
    for name in OBJECTS:
        print(line(name, [row for (other, _), row in rows.items() if other == name]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    folder = diligent_folder()
    if folder is None:
        print(f"Skipped, {ABSENT}.")
        return
    with TemporaryDirectory() as scratch:
        keep = options.keep or Path(scratch)
        keep.mkdir(parents=True, exist_ok=True)
        print("| setting | object | net | net expects | dlnet |\n|---|---|---|---|---|")
        chosen = options.settings.split(",")
        seeds = {s: range(options.seeds if SETTINGS[s][0] is not None else 1) for s in chosen}
        rows = {
            (setting, name, seed): row_of(keep, folder, name, setting, seed)
            for name in OBJECTS  # each is read once
            for setting in chosen
            for seed in seeds[setting]
        }
        for setting in chosen:
            report(setting, {(o, n): row for (s, o, n), row in rows.items() if s == setting})


if __name__ == "__main__":
    main()
