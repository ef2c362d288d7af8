"""Captures larger than memory: seconds and peak memory of `photostereo solve`, from files to the report.

Run: python -m benchmarks.large [--method dlsr] [--photographs 60] [--memory 6GB] [--mask] [--rough] [MEGAPIXELS ...]

Without sizes: 1 and 4 megapixels. The scene is a carved tablet with cast shadows and noise, rendered once and tiled to a
frame of 2 : 3; with --mask only the outline of a figure in it (31 %) is solved; --rough is an egg box with noisy normals,
the worst case for a dictionary. 24 megapixels × 60 photographs take 2.5 GB of disk for the photographs and
2.9 GB for the decoded ones; 50 megapixels are for `--method ls`.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from benchmarks.surface import egg_box
from photostereo_lab.scenes import render_scene
from photostereo_lab.scenes.lights import dome_lights

RUN = "import sys; from photostereo.cli import main; sys.argv[0] = 'photostereo'; main()"
#: The longest side of what is rendered; larger frames are tiles of it.
RENDERED = 2000
NOISE = 0.01


def tablet(height: int, width: int, lights: np.ndarray) -> Iterator[np.ndarray]:
    """Photographs of the carved tablet, tiled."""
    scene = render_scene(
        "relief", size=(min(height, RENDERED), min(width, RENDERED)), lights=lights
    )
    rows, cols = -(-height // scene.frame[0]), -(-width // scene.frame[1])
    for image in scene.images:
        yield np.tile(image, (rows, cols))[:height, :width]


def rough(height: int, width: int, lights: np.ndarray) -> Iterator[np.ndarray]:
    """Photographs of an egg box with noisy normals."""
    normals = egg_box(max(height, width))[:height, :width]
    for light in lights.astype(np.float32):
        yield np.maximum(normals @ light, 0) * np.float32(0.5)


def write_capture(
    folder: Path, height: int, width: int, photographs: int, *, is_rough: bool
) -> None:
    """16-bit gray photographs with noise, as a plain folder, and ``outline.png`` beside it."""
    rng = np.random.default_rng(0)
    lights = np.asarray(dome_lights(photographs))
    folder.mkdir()
    for number, image in enumerate((rough if is_rough else tablet)(height, width, lights)):
        noisy = image + np.float32(NOISE) * rng.standard_normal(image.shape, dtype=np.float32)
        stored = (np.clip(noisy, 0, 1) * 65535).astype(np.uint16)
        cv2.imwrite(str(folder / f"{number:03d}.png"), stored, [cv2.IMWRITE_PNG_COMPRESSION, 1])
    np.savetxt(folder / "lights.txt", lights)
    outline = render_scene(
        "figure", size=(500, 750), lights=dome_lights(3), cast_shadows=False
    ).mask
    large = (
        cv2.resize(outline.astype(np.float32), (width, height), interpolation=cv2.INTER_CUBIC) > 0.5
    )
    cv2.imwrite(str(folder.parent / "outline.png"), large.astype(np.uint8) * 255)


def measure(folder: Path, out: Path, options: list[str]) -> dict[str, float]:
    """Wall and processor seconds, peak memory, and the seconds of each stage, of one run in a separate process."""
    command = ["solve", str(folder), *options, "--out", str(out), "--force", "-q"]
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("megapixels", nargs="*", type=float, default=[1, 4])
    parser.add_argument("--method", default="dlsr")
    parser.add_argument("--photographs", type=int, default=60)
    parser.add_argument("--memory", default="6GB")
    parser.add_argument("--mask", action="store_true")
    parser.add_argument("--rough", action="store_true")
    options = parser.parse_args()
    print("| megapixels | wall, s | processor, s | a megapixel | peak, GB | stages (wall) |")
    print("|---|---|---|---|---|---|")
    for megapixels in options.megapixels:
        height = round(float(np.sqrt(megapixels * 1e6 / 1.5)))
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "capture"
            write_capture(
                folder, height, round(1.5 * height), options.photographs, is_rough=options.rough
            )
            words = ["--method", options.method, "--memory", options.memory]
            words += ["--mask", str(Path(place) / "outline.png")] if options.mask else []
            facts = measure(folder, Path(place) / "out", words)
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
