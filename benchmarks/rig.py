"""How long does a part take on a prepared rig? Beside a pseudo-inverse in NumPy, in the same run.

    python -m benchmarks.rig

Accuracy: mean angular error on a glossy rendered coin under eight lights, with the method and with exact ``l1``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

import photostereo as ps
from photostereo_lab.scenes import dome_lights, render_scene

SIZES = ((480, 640, 4), (480, 640, 8), (480, 640, 24), (1080, 1920, 8), (3000, 4000, 8))
REPEATS = 15


def milliseconds(work: Callable[[], object]) -> float:
    """Median time of a call, after one to warm up."""
    work()
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return 1000 * float(np.median(seconds))


def with_numpy(images: np.ndarray, lights: np.ndarray) -> np.ndarray:
    """Least squares as one would write it in NumPy."""
    intensities = images.reshape(len(images), -1).astype(np.float32) / np.float32(255)
    scaled = np.linalg.pinv(lights).astype(np.float32) @ intensities
    length = np.linalg.norm(scaled, axis=0)
    return scaled / np.maximum(length, 1e-6)


def times_of(images: np.ndarray, lights: np.ndarray) -> tuple[float, float, float]:
    """Milliseconds in NumPy, and on a rig by ``ls`` and by ``l1``."""
    times = [milliseconds(partial(with_numpy, images, lights))]
    for method in ("ls", "l1"):
        rig = ps.Rig(lights, method=method)
        times.append(milliseconds(partial(rig.solve, images, out=rig.solve(images))))
    return times[0], times[1], times[2]


def main() -> None:
    print(f"{'size':>18} {'NumPy':>9} {'ls':>9} {'ratio':>6} {'l1':>9}   milliseconds")
    rng = np.random.default_rng(0)
    for height, width, count in SIZES:
        images = rng.integers(0, 255, (count, height, width), dtype=np.uint8)
        numpy, ls, l1 = times_of(images, dome_lights(count))
        size = f"{width} x {height} x {count}"
        print(f"{size:>18} {numpy:9.1f} {ls:9.1f} {ls / numpy:6.2f} {l1:9.1f}")
    coin = render_scene("coin", size=256, lights=dome_lights(8), reflectance="ggx")
    images = coin.images.astype(np.float32)
    for method in ("ls", "l1"):
        normals = ps.Rig.of(coin, method=method).solve(images).normals
        error = ps.angular_error(normals, coin.truth, coin.mask)[coin.mask].mean()
        exact = ps.solve(coin, method).angular_error.mean
        print(f"{method}: {error:.2f} degrees; solved by ps.solve: {exact:.2f}")


if __name__ == "__main__":
    main()
