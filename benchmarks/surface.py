"""Integration: accuracy, and speed and memory as ratios in the same run. Times are processor seconds.

Run: python -m benchmarks.surface [accuracy] [rectangle] [poisson] [robust] [memory] [growth]      (all without arguments)

``accuracy`` and the second scene of ``robust`` need the DiLiGenT captures (PHOTOSTEREO_DATA or ../shared/data).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.captures import ABSENT, diligent_folder
from benchmarks.peak import peak_memory
from photostereo.surface import integrate
from photostereo.surface.robust import RobustProblem, descend, solve_robust
from photostereo.surface.slopes import SlopeSource
from tests.surface.recompute import recomputed_error

#: Options of a run that is converged far beyond what the default asks for.
TIGHT = {"max_iter": 1000, "tol": 1e-8, "inner_rtol": 1e-6}
OBJECTS = ("ball", "bear", "cat", "cow", "pot2", "reading")


def true_normals(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    import cv2
    from scipy.io import loadmat

    place = folder / "pmsData" / f"{name}PNG"
    normals = loadmat(place / "Normal_gt.mat")["Normal_gt"].astype(np.float64)
    return normals, cv2.imread(str(place / "mask.png"), cv2.IMREAD_GRAYSCALE) > 0


def enlarged(normals: np.ndarray, mask: np.ndarray, factor: float) -> tuple[np.ndarray, np.ndarray]:
    """A normal map at a higher resolution: nearest neighbors, smoothed inside the mask over a third of a pixel."""
    import cv2

    big = (
        cv2.resize(
            mask.astype(np.uint8), None, fx=factor, fy=factor, interpolation=cv2.INTER_NEAREST
        )
        > 0
    )
    n = cv2.resize(normals, big.shape[::-1], interpolation=cv2.INTER_NEAREST) * big[..., None]
    share = cv2.GaussianBlur(big.astype(np.float64), (0, 0), factor / 3)
    n = cv2.GaussianBlur(n, (0, 0), factor / 3) / np.maximum(share, 1e-6)[..., None]
    n /= np.maximum(np.linalg.norm(n, axis=-1, keepdims=True), 1e-9)
    return n * big[..., None], big


def ball(size: int, share: float = 0.98) -> tuple[np.ndarray, np.ndarray]:
    middle = (size - 1) / 2
    row, col = np.mgrid[:size, :size]
    x, y = (col - middle) / (middle / share), -(row - middle) / (middle / share)
    mask = x**2 + y**2 < share**2
    return np.stack([x, y, np.sqrt(np.maximum(1 - x**2 - y**2, 1e-6))], axis=-1) * mask[
        ..., None
    ], mask


def wave(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Heights and normals of a breaking wave: it rises smoothly from the left and ends in a step at the middle."""
    row, col = np.mgrid[:size, :size]
    y, x, length, top = (row - size / 2) / (size / 3), col - size / 2, 3 * size / 8, 20 * size / 128
    across = np.where(np.abs(y) < 1, (1 - y**2) ** 2, 0.0)
    along = np.where((x < 0) & (x > -length), 0.5 * (1 + np.cos(np.pi * x / length)), 0.0)
    bend = np.where(
        (x < 0) & (x > -length), -0.5 * np.pi / length * np.sin(np.pi * x / length), 0.0
    )
    turn = np.where(np.abs(y) < 1, -4 * y * (1 - y**2) / (size / 3), 0.0)
    n = np.stack([-top * across * bend, top * turn * along, np.ones_like(x)], axis=-1)
    return top * across * along, n / np.linalg.norm(n, axis=-1, keepdims=True)


def egg_box(size: int) -> np.ndarray:
    """Noisy normals of an egg box, in single precision, computed row by row to save memory."""
    n = np.empty((size, size, 3), dtype=np.float32)
    turn = np.float32(2 * np.pi / 300)
    rng = np.random.default_rng(0)
    x = np.sin(turn * np.arange(size, dtype=np.float32))
    for row, line in enumerate(n):
        line[:, 0], line[:, 1], line[:, 2] = x, np.cos(turn * row), 1.0
        line += np.float32(0.05) * rng.standard_normal(line.shape, dtype=np.float32)
        line /= np.linalg.norm(line, axis=1, keepdims=True)
    return n


def timed(work, repeat: int = 1):
    """The result and the shortest processor time: on a shared machine, wall time includes other load."""
    best, result = np.inf, None
    for _ in range(repeat):
        began = time.process_time()
        result = work()
        best = min(best, time.process_time() - began)
    return result, best


def accuracy() -> None:
    folder = diligent_folder()
    if folder is None:
        print(f"accuracy: skipped, {ABSENT}")
        return
    print("Mean angle (degrees) between the true normals and those of the integrated surface")
    print("| object | pixels | simchony | poisson | robust | robust, tears honored | tears |")
    print("|---|---|---|---|---|---|---|")
    for name in OBJECTS:
        normals, mask = true_normals(folder, name)
        cells = []
        for method in ("simchony", "poisson", "robust"):
            surface = integrate(normals, mask, method=method)
            cells.append(f"{recomputed_error(surface, normals, keep_tears=False).mean():.2f}")
        cells.append(f"{recomputed_error(surface, normals).mean():.2f}")
        print(
            f"| {name} | {np.count_nonzero(mask)} | {' | '.join(cells)} | {surface.tears} |",
            flush=True,
        )


def rectangle() -> None:
    from scipy.fft import dctn, idctn

    from photostereo.surface.poisson import solve_rectangle

    rng = np.random.default_rng(0)
    p, q = rng.normal(size=(2, 2048, 2048))
    solve_rectangle(p[:64], q[:64])
    _, whole = timed(lambda: solve_rectangle(p, q), 3)
    image = rng.normal(size=p.shape)
    _, pair = timed(
        lambda: idctn(dctn(image, norm="ortho", workers=-1), norm="ortho", workers=-1), 3
    )
    print(
        f"rectangle 2048 × 2048: {whole:.2f} s, {whole / pair:.2f} × its two transforms ({pair:.2f} s); limit 3"
    )


def poisson(size: int = 1133) -> None:
    """One megapixel; ``python -m benchmarks.solvers`` compares the solver with others."""
    normals, mask = ball(size)
    normals = normals + 0.02 * np.random.default_rng(0).normal(size=normals.shape)
    integrate(*ball(150))
    surface, seconds = timed(lambda: integrate(normals, mask), 2)
    print(
        f"poisson, {np.count_nonzero(mask)} pixels: {seconds:.1f} s (whole call), {surface.iterations} iterations, "
        f"residual {surface.residual:.1e}"
    )


def robust() -> None:
    scenes = {}
    truth, normals = wave(850)
    scenes["breaking wave"] = (normals, np.ones(truth.shape, dtype=bool))
    folder = diligent_folder()
    if folder is not None:
        scenes["reading × 5.1"] = enlarged(*true_normals(folder, "reading"), 5.1)
    integrate(wave(96)[1], method="robust")
    for name, (n, mask) in scenes.items():
        plain, once = timed(lambda n=n, mask=mask: integrate(n, mask))
        surface, seconds = timed(lambda n=n, mask=mask: integrate(n, mask, method="robust"))
        print(
            f"robust, {name}, {np.count_nonzero(mask)} pixels: {seconds:.0f} s, {seconds / once:.1f} × poisson "
            f"({once:.1f} s); {surface.iterations} iterations, {surface.tears} tears; recomputed normals "
            f"{recomputed_error(plain, n).mean():.2f}° (poisson), {recomputed_error(surface, n).mean():.2f}°",
            flush=True,
        )
        if name == "breaking wave":
            middle = mask.shape[1] // 2
            rows = slice(mask.shape[0] // 2 - 170, mask.shape[0] // 2 + 170)
            step = (truth[:, middle - 1] - truth[:, middle])[rows]
            for label, result in (("poisson", plain), ("robust", surface)):
                kept = (result.depth[:, middle - 1] - result.depth[:, middle])[rows] / step
                print(f"    step kept by {label}: {kept.mean():.1%}")
        problem = RobustProblem(SlopeSource(n, mask).field(mask), **TIGHT)
        begin = np.nan_to_num(surface.depth)
        checks = {
            "carried on tightly from there": lambda p=problem, z=begin: descend(p, z),
            "tight from the beginning": lambda p=problem: solve_robust(p),
        }
        for label, work in checks.items():
            result, long = timed(work)
            off = (surface.depth - result.values)[mask]
            off -= np.median(off)
            near = ", ".join(
                f"{p} % within {np.percentile(np.abs(off), p):.3f}" for p in (50, 95, 99)
            )
            print(
                f"    {label} ({long:.0f} s): energy {result.energy[-1]:.2f} against {surface.energy[-1]:.2f}; "
                f"depth differs by px: {near}; range {np.ptp(result.values[mask]):.0f} px",
                flush=True,
            )


def memory() -> None:
    """Peak memory of a fresh process, minus that of one that integrates almost nothing."""
    print("| method | pixels | peak, MB | bytes a pixel |")
    print("|---|---|---|---|")
    for method in ("simchony", "poisson", "robust"):
        base = _peak(method, 64)[1]
        for size in (600, 850, 1200):
            pixels, peak, _ = _peak(method, size)
            print(
                f"| {method} | {pixels} | {peak / 1e6:.0f} | {(peak - base) / pixels:.0f} |",
                flush=True,
            )


def growth() -> None:
    """``poisson`` and ``robust`` at 1, 3 and 6 megapixels, each in a fresh process: seconds and bytes per pixel."""
    print("| method | pixels | processor s / MP | MB / MP |")
    print("|---|---:|---:|---:|")
    for method in ("poisson", "robust"):
        base = _peak(method, 64)[1]
        for size in (1000, 1732, 2450):
            pixels, peak, seconds = _peak(method, size)
            print(
                f"| {method} | {pixels} | {seconds / pixels * 1e6:.2f} | {(peak - base) / pixels:.0f} |",
                flush=True,
            )


def _peak(method: str, size: int) -> tuple[int, float, float]:
    """Pixels, peak memory and processor seconds of an integration in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.surface", "--peak", method, str(size)]
    answer = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    pixels, peak, seconds = json.loads(answer)
    return pixels, peak, seconds


def main() -> None:
    if sys.argv[1:2] == ["--peak"]:
        integrate(wave(150)[1], method=sys.argv[2])  # compile outside the clock
        normals = egg_box(int(sys.argv[3]))
        surface, seconds = timed(lambda: integrate(normals, method=sys.argv[2]))
        print(json.dumps([int(np.count_nonzero(surface.mask)), peak_memory(), seconds]))
        return
    parts = {f.__name__: f for f in (accuracy, rectangle, poisson, robust, memory, growth)}
    for name in sys.argv[1:] or parts:
        parts[name]()


if __name__ == "__main__":
    main()
