"""Five hundred captures of 0.1 megapixels on two workers; one worker is killed and one capture is broken.

``python -m benchmarks.batch [COUNT] [METHOD]``. Everything happens in a temporary folder.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import psutil

from photostereo.batch.ledger import Ledger
from photostereo.batch.options import Progress, RunControl, RunOptions
from photostereo.batch.run import batch
from photostereo.capture import write_diligent
from photostereo.pipeline.settings import Settings
from photostereo_lab.scenes import dome_lights, render_scene

SIDE = 316
SCENES = ("sphere", "vase", "relief", "figure")


class KillsAWorker(RunControl):
    """Kills a worker when a tenth of the captures are done, and keeps the last count."""

    def __init__(self, after: int) -> None:
        self.after, self.killed = after, False

    def progress(self, now: Progress) -> None:
        if not self.killed and now.done >= self.after:
            found = [
                p for p in psutil.Process().children() if "local_worker" in " ".join(p.cmdline())
            ]
            os.kill(found[0].pid, signal.SIGKILL)
            self.killed = True


def make_captures(place: Path, count: int) -> None:
    """Make many folders from few scenes; the first photograph of the last one is truncated."""
    for name in SCENES:
        write_diligent(render_scene(name, size=SIDE, lights=dome_lights(12)), place / f"{name} 000")
    for number in range(len(SCENES), count):
        name = SCENES[number % len(SCENES)]
        shutil.copytree(
            place / f"{name} 000", place / f"{name} {number:03d}", copy_function=os.link
        )
    broken = sorted(place.iterdir())[-1] / "001.png"
    half = broken.read_bytes()[:1000]
    broken.unlink()
    broken.write_bytes(half)


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    settings = Settings().changed(
        method=sys.argv[2] if len(sys.argv) > 2 else "ls", surface=False, report=False
    )
    with tempfile.TemporaryDirectory() as temporary:
        place, out = Path(temporary) / "captures", Path(temporary) / "out"
        place.mkdir()
        make_captures(place, count)
        control = KillsAWorker(count // 10)
        began = time.perf_counter()
        end = batch([place], out, settings, options=RunOptions(workers=2), control=control)
        spent = time.perf_counter() - began
        lines = [
            json.loads(line)["name"] for line in (out / "batch.jsonl").read_text().splitlines()
        ]
        began = time.perf_counter()
        again = batch([place], out, settings, options=RunOptions(workers=2))
        print(
            f"{end.done} done, {end.failed} failed of {end.total}; worker killed: {control.killed}"
        )
        print(
            f"{spent:.1f} s, {spent / count:.3f} s a capture on two workers; again: {time.perf_counter() - began:.1f} s"
        )
        print(f"captures with more than one outcome: {len(lines) - len(set(lines))}")
        print(f"page: {(out / 'index.html').stat().st_size / 1e6:.1f} MB")
        left = [p.name for p in out.iterdir() if p.name.startswith(".")]
        good = (end.done, end.failed) == (count - 1, 1) == (again.done, again.failed) and not left
        good = good and len(lines) == len(set(lines)) == len(Ledger(out).rows()) == count
        print("as it should be" if good else f"NOT as it should be: {end}, {again}, {left}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
