"""Solve parts in front of a camera as they come: replace ``photographs`` with the calls of your camera.

python examples/rig_camera.py my-rig.npz
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import photostereo as ps


def photographs(count: int, frames: int = 5) -> Iterator[NDArray[np.uint8]]:
    """One stack of pictures per part: switch on each light in turn and take a picture."""
    rng = np.random.default_rng(0)
    for _ in range(frames):
        yield rng.integers(0, 255, (count, 480, 640), dtype=np.uint8)


def main(file: str) -> None:
    rig = ps.load_rig(file)
    part = None
    for number, images in enumerate(photographs(len(rig))):
        began = time.perf_counter()
        part = rig.solve(images, out=part)
        steep = part.normals[..., 2] < 0.8
        milliseconds = 1000 * (time.perf_counter() - began)
        print(f"part {number}: {steep.mean():.1%} steep, {milliseconds:.1f} ms")


if __name__ == "__main__":
    main(sys.argv[1])
