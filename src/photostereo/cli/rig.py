"""``photostereo rig``: prepare a camera and lights that do not move, and measure how fast they solve a part."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from photostereo.cli.options import Reading
from photostereo.cli.terminal import Terminal

if TYPE_CHECKING:
    from photostereo.rig.rig import Rig

#: Parts that are solved to measure the latency; the first few warm the caches.
TRIALS = 20


def rig(
    terminal: Terminal,
    reading: Reading,
    capture: Path,
    out: Path | None = None,
    method: str = "ls",
    force: bool = False,
) -> dict[str, Any]:
    """Prepare a rig from a calibration capture: constant lights, then milliseconds per part."""
    from photostereo.capture.loading import load
    from photostereo.io.atomic import replacing_file
    from photostereo.rig.rig import Rig
    from photostereo.rig.rig_file import save_rig

    target = out or Path(f"{capture.resolve().stem}-rig.npz")
    with replacing_file(target, force=force) as staged:
        calibration = load(capture, control=terminal, **reading.options().given())
        prepared = Rig.of(calibration, method=method)
        save_rig(prepared, staged)
    height, width = calibration.frame
    milliseconds = measure_latency(prepared, height, width)
    terminal.say(f"{prepared}: {milliseconds:.1f} ms for a part of {width} × {height} pixels")
    terminal.say(f"Written: {target}")
    return {
        "out": str(target.absolute()),
        "lights": len(prepared),
        "method": method,
        "height": height,
        "width": width,
        "milliseconds": milliseconds,
    }


def measure_latency(rig: Rig, height: int, width: int) -> float:
    """Median time in milliseconds to solve a part of this size, 8 bits, into memory that exists already."""
    import numpy as np

    images = np.random.default_rng(0).integers(0, 255, (len(rig), height, width), dtype=np.uint8)
    part = rig.solve(images)
    seconds = []
    for _ in range(TRIALS):
        began = time.perf_counter()
        rig.solve(images, out=part)
        seconds.append(time.perf_counter() - began)
    return 1000 * float(np.median(seconds))
