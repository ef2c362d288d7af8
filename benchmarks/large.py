"""Captures larger than memory: seconds and peak memory of `photostereo solve`, from files to the report.

Run: python -m benchmarks.large [--method dlsr] [--photographs 60] [--memory 6GB] [MEGAPIXELS ...]      (1 4 without)

24 megapixels × 60 photographs take ten minutes and 3 GB of disk; 50 megapixels are for `--method ls`.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np

from benchmarks.surface import egg_box

RUN = "import sys; from photostereo.cli import main; sys.argv[0] = 'photostereo'; main()"


def write_capture(folder: Path, side: int, photographs: int) -> None:
    """A rough egg box with shadows and noise, 16-bit gray, as a plain folder."""
    rng = np.random.default_rng(0)
    lights = rng.normal(size=(photographs, 3)) * [0.5, 0.5, 0.1] + [0, 0, 1]
    lights /= np.linalg.norm(lights, axis=1, keepdims=True)
    normals = egg_box(side)
    folder.mkdir()
    for number, light in enumerate(lights.astype(np.float32)):
        shading = np.maximum(normals @ light, 0) * np.float32(0.5)
        shading += np.float32(0.01) * rng.standard_normal(shading.shape, dtype=np.float32)
        stored = (np.clip(shading, 0, 1) * 65535).astype(np.uint16)
        cv2.imwrite(str(folder / f"{number:03d}.png"), stored, [cv2.IMWRITE_PNG_COMPRESSION, 1])
    np.savetxt(folder / "lights.txt", lights)


def measure(folder: Path, out: Path, method: str, memory: str) -> dict[str, float]:
    """Wall and processor seconds, peak memory, and the seconds of each stage, of one run in a process of its own."""
    command = [
        "solve",
        str(folder),
        "--method",
        method,
        "--memory",
        memory,
        "--out",
        str(out),
        "--force",
        "-q",
    ]
    watch = (
        "import atexit; from pathlib import Path; atexit.register(lambda: print("
        "Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])); "
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", watch + RUN, *command], capture_output=True, text=True, check=True
    )
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    return {
        "wall": wall,
        "processor": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "peak": 1024 * int(done.stdout.split()[-1]),
        **{f"{stage}": seconds for stage, seconds in summary["seconds"].items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("megapixels", nargs="*", type=float, default=[1, 4])
    parser.add_argument("--method", default="dlsr")
    parser.add_argument("--photographs", type=int, default=60)
    parser.add_argument("--memory", default="6GB")
    options = parser.parse_args()
    print("| megapixels | wall, s | processor, s | a megapixel | peak, GB | stages (wall) |")
    print("|---|---|---|---|---|---|")
    for megapixels in options.megapixels:
        side = round(float(np.sqrt(megapixels * 1e6)))
        with tempfile.TemporaryDirectory() as place:
            write_capture(Path(place) / "capture", side, options.photographs)
            facts = measure(Path(place) / "capture", Path(place) / "out", options.method, options.memory)
        stages = ", ".join(
            f"{name} {seconds:.0f}"
            for name, seconds in facts.items()
            if name not in ("wall", "processor", "peak")
        )
        print(
            f"| {megapixels:g} | {facts['wall']:.0f} | {facts['processor']:.0f} | "
            f"{facts['processor'] / megapixels:.1f} | {facts['peak'] / 1e9:.2f} | {stages} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
