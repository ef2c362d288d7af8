"""Time for loading a capture and solving `ls`, relative to decoding its files with OpenCV; and peak memory.

    python -m benchmarks.loading            a synthetic full-size capture: 96 photographs of 612 × 512, 16-bit RGB
    python -m benchmarks.loading FOLDER     your own capture

Both sides of the ratio run alternately in one process, with the files in the page cache; the best of several
runs counts, because other load on the machine can only make a run slower. Memory is measured in a fresh process:
its peak resident set while it loads and solves, minus that after importing the modules.

Targets: at most 1.5 times the decoding on two threads; at most 1.8 times the float32 gray stack.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np

TIME_TARGET, MEMORY_TARGET = 1.5, 1.8

_MEMORY_SCRIPT = """
import json, sys, tempfile
import numpy as np
import photostereo as ps
from photostereo.capture import load, write_diligent
from photostereo.solver.solve import solve

def resident(field):
    for line in open("/proc/self/status"):
        if line.startswith(field):
            return int(line.split()[1]) * 1024

# A capture of nothing much first, so that libraries and compiled kernels count as imported, not as work.
lights = np.eye(3) + 0.5
truth = np.ones((16, 16, 3))
tiny = ps.Capture(images=np.ones((3, 16, 16)), lights=lights, truth=truth)
with tempfile.TemporaryDirectory() as place:
    solve(load(write_diligent(tiny, place + "/tiny")), method="ls")
open("/proc/self/clear_refs", "w").write("5")
before = resident("VmRSS")
capture = load(sys.argv[1])
loaded = resident("VmHWM")
solve(capture, method="ls")
print(json.dumps({"before": before, "load": loaded - before, "solve": resident("VmHWM") - before,
                  "stack": capture.images.nbytes}))
"""


def make_capture(
    folder: Path, *, photographs: int = 96, height: int = 612, width: int = 512
) -> Path:
    """A full-size ball with texture and sensor noise in the DiLiGenT layout, with files of realistic size."""
    from photostereo.capture import Capture, write_diligent

    rng = np.random.default_rng(0)
    rows, cols = np.mgrid[:height, :width].astype(np.float32)
    x, y = (cols - width / 2) / (0.42 * width), -(rows - height / 2) / (0.42 * width)
    mask = x**2 + y**2 < 1
    normals = np.stack([x, y, np.sqrt(np.maximum(1 - x**2 - y**2, 0))], axis=-1) * mask[..., None]
    lights = rng.normal(size=(photographs, 3)) * [0.4, 0.4, 0] + [0, 0, 1]
    lights /= np.linalg.norm(lights, axis=1, keepdims=True)
    texture = np.stack(
        [0.5 + 0.2 * np.sin(cols / k) * np.cos(rows / (k + 3)) for k in (7, 11, 19)], axis=-1
    )
    images = np.empty((photographs, height, width, 3), dtype=np.float32)
    for image, light in zip(images, lights, strict=True):
        image[:] = texture * np.maximum(normals @ light, 0)[..., None]
        image += rng.normal(scale=0.002, size=image.shape)
    return write_diligent(
        Capture(images=images, lights=lights, mask=mask, truth=normals, name="ball"), folder
    )


def measure_time(folder: Path, turns: int = 7) -> dict[str, float]:
    """Seconds for decoding alone on two threads, and for load and `ls`; the best of several runs of each."""
    from photostereo.capture import load
    from photostereo.solver.solve import solve

    files = [str(folder / name) for name in load(folder).origin.files]

    def decode() -> None:
        with ThreadPoolExecutor(max_workers=2) as pool:
            for _ in pool.map(lambda file: cv2.imread(file, cv2.IMREAD_UNCHANGED), files):
                pass

    def once() -> dict[str, float]:
        times = [_clocks()]
        decode()
        times.append(_clocks())
        capture = load(folder, workers=2)
        times.append(_clocks())
        solve(capture, method="ls")
        times.append(_clocks())
        wall, work = np.diff(np.array(times), axis=0).T
        return {
            "decode": wall[0],
            "load": wall[1],
            "ls": wall[2],
            "both": wall[1] + wall[2],
            "decode_work": work[0],
            "both_work": work[1] + work[2],
        }

    solve(
        load(folder), method="ls"
    )  # compilation and the page cache are warm before anything counts
    rows = [once() for _ in range(turns)]
    best = {name: min(row[name] for row in rows) for name in rows[0]}
    return {
        **best,
        "ratio": best["both"] / best["decode"],
        "work_ratio": best["both_work"] / best["decode_work"],
    }


def _clocks() -> tuple[float, float]:
    """Wall-clock time, and processor time of all threads."""
    return time.perf_counter(), time.process_time()


def measure_memory(folder: Path) -> dict[str, int]:
    """Peak bytes beyond what the modules need, after loading and after `ls`; Linux only."""
    done = subprocess.run(
        [sys.executable, "-c", _MEMORY_SCRIPT, str(folder)],
        check=True,
        capture_output=True,
        text=True,
    )
    return dict(json.loads(done.stdout))


def report(folder: Path) -> bool:
    """Measure one capture, print the figures, and return whether both targets are met."""
    seconds, memory = measure_time(folder), measure_memory(folder)
    ratio = memory["solve"] / memory["stack"]
    print(f"{folder.name}:")
    print(f"  decoding alone, two threads   {seconds['decode'] * 1e3:7.0f} ms")
    print(f"  load                          {seconds['load'] * 1e3:7.0f} ms")
    print(f"  ls                            {seconds['ls'] * 1e3:7.0f} ms")
    print(
        f"  load and ls / decoding        {seconds['ratio']:7.2f}     (target: at most {TIME_TARGET})"
    )
    print(
        f"  the same in processor time    {seconds['work_ratio']:7.2f}     (steady where others use the machine)"
    )
    print(f"  float32 gray stack            {memory['stack'] / 2**20:7.0f} MiB")
    print(f"  peak of load / stack          {memory['load'] / memory['stack']:7.2f}")
    print(f"  peak of load and ls / stack   {ratio:7.2f}     (target: at most {MEMORY_TARGET})")
    return seconds["ratio"] <= TIME_TARGET and ratio <= MEMORY_TARGET


def main() -> int:
    """Run from the command line; return 0 if the targets are met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder", nargs="*", type=Path, help="captures; a synthetic full-size one where missing"
    )
    chosen = parser.parse_args().folder
    if chosen:
        met = [report(folder) for folder in chosen]  # every one of them, also after a miss
        return 0 if all(met) else 1
    with tempfile.TemporaryDirectory() as place:
        return 0 if report(make_capture(Path(place) / "synthetic")) else 1


if __name__ == "__main__":
    sys.exit(main())
