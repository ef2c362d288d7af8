"""Typical captures, from files to page: seconds of each stage, processor time, peak memory and accuracy.

Run: python -m benchmarks.everyday [--place FOLDER] [--again] [ROW ...]

A row is METHOD:MEGAPIXELSxPHOTOGRAPHS, with a c at the end for color: dlnet:1.5x12 fast:12x24c, or METHOD@cuda for a
GPU. Without rows: all of the table. Captures and finished rows are kept in FOLDER (build/everyday), so that an interrupted
run can continue; --again repeats finished rows. ``ls``, which itself takes almost no time, is the reference: reading,
surface, meshes and page.

Each capture is a full frame of glossy stone with cast shadows and 1 % of noise, on which the network cannot be skipped.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

import photostereo as ps
from benchmarks.peak import peak_memory, reset_peak_memory
from photostereo.runtime.threads import shorten_spinning
from photostereo_lab.scenes import render_scene
from photostereo_lab.scenes.lights import dome_lights

#: What the whole table consists of.
ROWS = [
    f"{method}:{size}"
    for size in ("1.5x12", "1.5x24", "1.5x12c", "6x12", "6x24", "12x12", "12x24", "12x24c")
    for method in ("ls", "fast", "dlnet")
]
#: Pixels of the rendered frame; larger captures are tiles of it.
RENDERED = (1000, 1500)
NOISE = 0.01


def write_capture(folder: Path, megapixels: float, photographs: int, *, color: bool) -> None:
    """Write noisy 16-bit photographs as a plain folder, and the true normals beside it."""
    height = round(float(np.sqrt(megapixels * 1e6 / 1.5)))
    frame, lights = (height, round(1.5 * height)), np.asarray(dome_lights(photographs))
    scene = render_scene("relief", size=RENDERED, lights=lights, reflectance="ggx", color=color)
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for number, image in enumerate(scene.images):
        whole = _tiled(image, frame)
        noisy = whole + np.float32(NOISE) * rng.standard_normal(whole.shape, dtype=np.float32)
        stored = (np.clip(noisy, 0, 1) * 65535).astype(np.uint16)
        stored = stored[..., ::-1] if color else stored  # OpenCV writes BGR
        cv2.imwrite(str(folder / f"{number:03d}.png"), stored, [cv2.IMWRITE_PNG_COMPRESSION, 1])
    np.save(folder.with_suffix(".npy"), _tiled(scene.truth, frame))
    np.savetxt(folder / "lights.txt", lights)


def _tiled(picture: np.ndarray, frame: tuple[int, int]) -> np.ndarray:
    repeats = [-(-side // own) for side, own in zip(frame, picture.shape, strict=False)]
    return np.tile(picture, (*repeats, *[1] * (picture.ndim - 2)))[: frame[0], : frame[1]]


class Stages(ps.Control):
    """Wall and processor seconds of each stage, and its peak memory."""

    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = {}
        self.name, self.since = "start", (0.0, 0.0)

    def on_stage(self, name: str, total: int | None) -> None:
        now = (time.perf_counter(), time.process_time())
        spent = self.spent.setdefault(self.name, [0.0, 0.0, 0.0])
        if self.name != "start":
            spent[0] += now[0] - self.since[0]
        spent[1] += now[1] - self.since[1]
        spent[2] = max(spent[2], peak_memory() / 1e9)
        reset_peak_memory()
        self.name, self.since = name, now


def solve_here(folder: Path, method: str, out: Path) -> None:
    """Solve once in this process; return time and memory as JSON."""
    control = Stages()
    name, _, device = method.partition("@")
    ps.Pipeline(folder, method=name, device=device or "cpu", control=control).write(out, force=True)
    control.on_stage("end", None)
    normals, truth = np.load(out / "normals.npy"), np.load(folder.with_suffix(".npy"))
    error = np.degrees(np.arccos(np.clip((normals * truth).sum(-1), -1, 1))).mean()
    peak = max(spent[2] for spent in control.spent.values())
    print(json.dumps({"peak": peak, "error": float(error), "stages": control.spent}))


def measure(row: str, place: Path) -> dict[str, float | dict[str, list[float]]]:
    """Measure one row, in a separate process."""
    found = re.fullmatch(r"([\w@]+):([\d.]+)x(\d+)(c?)", row)
    if found is None:
        raise SystemExit(f"{row} is not a row: METHOD:MEGAPIXELSxPHOTOGRAPHS, perhaps with a c")
    folder = place / row.partition(":")[2].replace(".", "_")
    if not (folder / "lights.txt").exists():
        write_capture(folder, float(found[2]), int(found[3]), color=bool(found[4]))
    shorten_spinning()  # as the command line does
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = ["-m", "benchmarks.everyday", "--place", str(place), "--solve", str(folder), found[1]]
    done = subprocess.run([sys.executable, *command], stdout=subprocess.PIPE, text=True, check=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "megapixels": float(found[2]),
        "wall": wall,
        "processor": processor,
        **json.loads(done.stdout.splitlines()[-1]),
    }


def lines(facts: dict[str, dict]) -> Iterator[str]:  # type: ignore[type-arg]
    """The table, and below it the stages of every row."""
    yield "| | wall, s | processor, s | a megapixel | peak, GB | error |"
    yield "|---|---:|---:|---:|---:|---:|"
    for row, found in facts.items():
        yield (
            f"| {row} | {found['wall']:.1f} | {found['processor']:.1f} | {found['processor'] / found['megapixels']:.1f} "
            f"| {found['peak']:.2f} | {found['error']:.2f}° |"
        )
    for row, found in facts.items():
        stages = (
            f"{name} {wall:.1f} ({own:.1f}; {peak:.2f})"
            for name, (wall, own, peak) in found["stages"].items()
        )
        yield f"\n{row}, wall (processor; GB): " + ", ".join(stages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--place", type=Path, default=Path("build/everyday"))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--solve", nargs=2, metavar=("FOLDER", "METHOD"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.solve:
        solve_here(Path(options.solve[0]), options.solve[1], options.place / "out")
        return
    kept = options.place / "rows.json"
    facts = json.loads(kept.read_text()) if kept.exists() else {}
    for row in options.rows or ROWS:
        if row not in facts or options.again:
            facts[row] = measure(row, options.place)
            kept.write_text(json.dumps(facts, indent=1))
            print(next(line for line in lines(facts) if line.startswith(f"| {row} ")), flush=True)
    print("\n".join(lines({row: facts[row] for row in options.rows or ROWS})))


if __name__ == "__main__":
    main()
