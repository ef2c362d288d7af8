"""Time to write the report, its size, and the time until it is usable in a browser.

    python benchmarks/report.py [--photographs 96] [--methods 7]

A 612 × 512 synthetic object that fills most of the frame, in color. The targets are less than 5 s, 10 MB and 2 s.
Opening is timed in headless Chromium with software rendering, from the start of the navigation until the relighting
view has been drawn once; the best of five, because other load on the machine can only add to it.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from photostereo.capture import Capture
from photostereo.report import write_comparison, write_report
from photostereo.solver.reconstruction import Reconstruction

HEIGHT, WIDTH = 512, 612
FLAGS = (
    (Path(__file__).parents[1] / "tests" / "chromium-flags.txt").read_text(encoding="utf-8").split()
)


def bumpy_disc(photographs: int) -> tuple[Capture, Reconstruction, Any]:
    """A wavy dome under lights on a spiral: capture, a slightly noisy result, depth."""
    rows, cols = np.mgrid[:HEIGHT, :WIDTH].astype(np.float64)
    x, y = (cols - WIDTH / 2) / 260, (HEIGHT / 2 - rows) / 260
    mask = (x / 1.12) ** 2 + y**2 < 0.93
    depth = 260 * (
        0.8 * np.sqrt(np.maximum(1.35 - x**2 - y**2, 0)) + 0.02 * np.sin(19 * x) * np.cos(17 * y)
    )
    slope_rows, slope_cols = np.gradient(depth)
    normals = np.stack([-slope_cols, slope_rows, np.ones_like(depth)], axis=-1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    normals[~mask] = 0
    k = np.arange(photographs) + 0.5
    elevation, azimuth = np.arcsin(0.3 + 0.65 * k / photographs), k * 2.399963
    lights = np.stack(
        [
            np.cos(azimuth) * np.cos(elevation),
            np.sin(azimuth) * np.cos(elevation),
            np.sin(elevation),
        ],
        axis=1,
    )
    rng = np.random.default_rng(0)
    paint = np.stack(
        [0.5 + 0.4 * np.sin(7 * x + phase) * np.sin(5 * y) for phase in (0, 1, 2)], axis=-1
    )
    paint += rng.normal(0, 0.02, paint.shape)
    shading = np.maximum(np.einsum("hwc,jc->jhw", normals, lights), 0)
    images = (shading[..., None] * paint).astype(np.float32)
    images += rng.normal(0, 0.01, images.shape).astype(np.float32) * mask[None, ..., None]
    found = normals + rng.normal(0, 0.02, normals.shape)
    found /= np.linalg.norm(found, axis=-1, keepdims=True)
    found[~mask] = 0
    capture = Capture(images=images, lights=lights, mask=mask, name="bumpy disc", truth=normals)
    result = Reconstruction(
        normals=found.astype(np.float32),
        albedo=(paint * mask[..., None]).astype(np.float32),
        mask=mask,
        method="pdlnv",
        parameters={"lam": 1.0, "mu": 0.05},
        capture="bumpy disc",
        seconds={"solve": 1.0},
    )
    return capture, result, np.where(mask, depth, np.nan)


def seconds_to_open(page: Path) -> float | None:
    """Best of five loads in Chromium, or None if it is not installed."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        return None
    from playwright.sync_api import sync_playwright

    times = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        for _ in range(5):
            tab = browser.new_page(viewport={"width": 1440, "height": 900})
            tab.goto(page.as_uri())
            tab.wait_for_selector("html[data-ready]")
            times.append(float(tab.evaluate("document.documentElement.dataset.ready")) / 1000)
            tab.close()
        browser.close()
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--photographs", type=int, default=96)
    parser.add_argument("--methods", type=int, default=7)
    options = parser.parse_args()
    capture, result, depth = bumpy_disc(options.photographs)
    others = [replace(result, method=f"method {number + 1}") for number in range(options.methods)]
    print(f"{capture}")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        for name, write in (
            ("report", lambda: write_report(page, result, capture, depth=depth)),
            (f"comparison of {options.methods}", lambda: write_comparison(page, others, capture)),
        ):
            began, busy = time.perf_counter(), time.process_time()
            write()
            wall, busy = time.perf_counter() - began, time.process_time() - busy
            opened = seconds_to_open(page)
            shown = "no Chromium found" if opened is None else f"usable after {opened:.2f} s"
            print(
                f"{name}: {wall:.2f} s ({busy:.2f} s of processor), {page.stat().st_size / 1e6:.2f} MB, "
                f"{shown}"
            )


if __name__ == "__main__":
    main()
