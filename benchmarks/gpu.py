"""Speed of a GPU relative to two CPU cores, and the difference of their results.

    python -m benchmarks.gpu [CAT] [--json FILE] [--repetitions 20] [--only pass full_frame learned large cat pixelwise]

CAT is DiLiGenT's cat, a folder or an .npz capture; without it the last two steps are skipped. The program binds itself to
two cores, so the CPU times are those of a small computer. GPU times are medians over the repetitions between device
events, after warm-up and compilation; TF32 is off (torch's default). CPU times are medians of three runs of the compiled
kernels (full frame: one run). Times of one (λ, μ) and of the grid of 64 are wall-clock seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CORES = 2
if hasattr(os, "sched_setaffinity"):  # before NumPy and Numba count the cores
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:CORES]))
os.environ |= {
    "NUMBA_NUM_THREADS": str(CORES),
    "OMP_NUM_THREADS": str(CORES),
    "OPENBLAS_NUM_THREADS": str(CORES),
}

import numpy as np  # noqa: E402
import torch  # noqa: E402

from benchmarks.dictionary_pass import MU, make_state  # noqa: E402
from photostereo import Capture, load, solve  # noqa: E402
from photostereo.diagnosis.metrics import angle_between  # noqa: E402
from photostereo.priors.dictionary import compiled, torch_pass  # noqa: E402
from photostereo.solver.prepared import prepare  # noqa: E402
from photostereo.solver.solve import solve_grid  # noqa: E402
from photostereo_lab.corruptions import add_poisson  # noqa: E402
from photostereo_lab.scenes import dome_lights, render_scene  # noqa: E402
from tests.gpu.readable import plain_pass  # noqa: E402

PATCHES, FRAME, PHOTOGRAPHS = 19304, (612, 512), 96
GRID = [
    {"lam": lam, "mu": mu} for lam in np.geomspace(0.5, 50, 8) for mu in np.geomspace(0.05, 0.5, 8)
]


def on_device(work: Callable[[], Any], repetitions: int, warm_up: int = 3) -> dict[str, float]:
    """Milliseconds between two device events around the work: median, smallest, largest."""
    for _ in range(warm_up):
        work()
    times = []
    for _ in range(repetitions):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return {"median_ms": statistics.median(times), "min_ms": min(times), "max_ms": max(times)}


def on_cpu(work: Callable[[], Any], repetitions: int = 3) -> dict[str, float]:
    """Wall-clock milliseconds on the two cores; the first run compiles and does not count."""
    work()
    times = []
    for _ in range(repetitions):
        began = time.perf_counter()
        work()
        times.append(1e3 * (time.perf_counter() - began))
    return {"median_ms": statistics.median(times), "min_ms": min(times), "max_ms": max(times)}


def relative(found: torch.Tensor, expected: np.ndarray) -> float:
    found = found.double().cpu().numpy()
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def measure_pass(repetitions: int) -> dict[str, Any]:
    """One pass, 19,304 patches × 192 × 192 atoms; difference over three passes from the same state."""
    state = make_state(PATCHES, np.float32)
    on_gpu = [torch.tensor(array, device="cuda") for array in state]
    single = [array.copy() for array in state]
    double = [array.astype(np.float64) for array in state]
    for _ in range(3):
        torch_pass.dictionary_pass(*on_gpu, mu=MU, q=1e3)
        compiled.dictionary_pass(*single, mu=MU, q=1e3)
        compiled.dictionary_pass(*double, mu=MU, q=1e3)
    figures: dict[str, Any] = {"nonzeros": float((on_gpu[2] != 0).double().mean())}
    for name, gpu, one, two in zip("RDB", on_gpu, single, double, strict=True):
        figures[f"difference_{name}"] = relative(gpu, one)
        figures[f"difference_from_double_{name}"] = relative(gpu, two)
    bounds = [torch.full((1,), value, device="cuda") for value in (MU, 1e3)]
    batch = [array[None] for array in on_gpu]
    figures["fused"] = on_device(lambda: torch_pass.fused_pass(*batch, *bounds, True), repetitions)
    figures["plain_torch"] = on_device(lambda: plain_pass(*batch, *bounds, True), repetitions)
    figures["cpu"] = on_cpu(lambda: compiled.dictionary_pass(*single, mu=MU, q=1e3))
    return figures


def measure_full_frame(repetitions: int) -> dict[str, Any]:
    """PDLNV p = 2, 50 iterations on all 612 × 512 pixels of 96 photographs in memory."""
    clean = render_scene("relief", size=FRAME, lights=dome_lights(PHOTOGRAPHS), cast_shadows=False)
    capture = add_poisson(clean, 10.0, rng=0)
    options = {"lam": 5.0, "mu": 0.1, "p": 2, "max_iter": 50}
    figures: dict[str, Any] = {"pixels": capture.pixel_count}
    stages: list[dict[str, float]] = []

    def whole() -> None:
        stages.append(solve(capture, "pdlnv", device="cuda", **options).seconds)

    figures["solve_from_capture"] = on_device(whole, repetitions)
    figures["seconds_by_stage"] = {
        name: statistics.median(seconds[name] for seconds in stages[-repetitions:])
        for name in stages[-1]
    }
    prepared = prepare(capture, "pdlnv", device="cuda", **options)
    alone = lambda: solve(capture, "pdlnv", device="cuda", prepared=prepared, **options)  # noqa: E731
    figures["solve_from_statistics"] = on_device(alone, repetitions)
    result = alone()
    solve(capture, "pdlnv", **options | {"max_iter": 1})  # compile
    began = time.perf_counter()
    reference = solve(capture, "pdlnv", **options)
    figures["cpu_ms"] = 1e3 * (time.perf_counter() - began)
    figures["mean_difference_deg"] = difference(result, reference, capture)
    return figures


def profiles() -> str:
    """GPU time of each kernel, for a full-frame solve and one of the learned model."""
    from torch.profiler import ProfilerActivity, profile

    clean = render_scene("relief", size=FRAME, lights=dome_lights(PHOTOGRAPHS), cast_shadows=False)
    options: dict[str, Any] = {"lam": 5.0, "mu": 0.1, "p": 2, "max_iter": 50}
    runs = (
        ("pdlnv", add_poisson(clean, 10.0, rng=0), options),
        ("net", object_in_frame(color=True), {}),
    )
    tables = []
    for method, capture, chosen in runs:
        solve(capture, method, device="cuda", **chosen)
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
            solve(capture, method, device="cuda", **chosen)
        averages = profiled.key_averages()
        tables.append(
            averages.table(sort_by="cuda_time_total", row_limit=40, max_name_column_width=70)
        )
    return "\n".join(tables)


def measure_learned(repetitions: int) -> dict[str, Any]:
    """The learned model on 45,200 pixels and 96 photographs, gray and cut to the object, and in color in a whole frame."""
    figures: dict[str, Any] = {}
    for kind in ("gray", "color"):
        capture = object_in_frame(color=kind == "color")
        figures[kind] = {"pixels": capture.pixel_count, "frame": capture.images.shape[1:]}
        expected = solve(capture, "net")
        for method in ("net", "dlnet"):
            stages: list[dict[str, float]] = []
            figures[kind][method] = on_device(
                lambda: stages.append(solve(capture, method, device="cuda").seconds),  # noqa: B023
                repetitions,
            )
            figures[kind][f"{method}_stages"] = {
                name: statistics.median(seconds[name] for seconds in stages[-repetitions:])
                for name in stages[-1]
            }
        found = solve(capture, "net", device="cuda")
        figures[kind]["mean_difference_deg"] = difference(found, expected, capture)
    return figures


def object_in_frame(*, color: bool) -> Capture:
    """An object of 45,000 pixels; in color a seventh of its frame, as it comes from a camera."""
    capture = render_scene(
        "figure", size=311, lights=dome_lights(PHOTOGRAPHS), cast_shadows=False, color=color
    )
    capture = add_poisson(capture, 20.0, rng=0)
    if not color:
        return capture
    around = ((0, FRAME[0] - 311), (0, FRAME[1] - 311))
    return Capture(
        images=np.pad(capture.images, ((0, 0), *around, (0, 0))),
        lights=capture.lights,
        mask=np.pad(capture.mask, around),
        truth=np.pad(capture.truth, (*around, (0, 0))),
        name=capture.name,
    )


def large_capture(height: int, width: int, photographs: int) -> Capture:
    """A carved tablet as tiles, with noise made on the GPU; in the computer's memory."""
    tile = render_scene("relief", size=(500, 750), lights=dome_lights(photographs))
    images = np.empty((photographs, height, width), dtype=np.float32)
    for target, image in zip(images, tile.images, strict=True):
        drawn = torch.as_tensor(np.array(image), device="cuda").tile(
            -(-height // 500), -(-width // 750)
        )
        drawn = drawn[:height, :width] + 0.01 * torch.randn(height, width, device="cuda")
        target[:] = drawn.clamp(0, 1).cpu().numpy()
    return Capture(images=images, lights=tile.lights, name="tablet")


def measure_large() -> dict[str, Any]:
    """DLSR on 24 megapixels × 60 photographs, from the photographs in memory to the normals."""
    solve(large_capture(400, 600, 60), "dlsr", device="cuda", crops=40)  # compile
    capture = large_capture(4000, 6000, 60)
    torch.cuda.reset_peak_memory_stats()
    figures: dict[str, Any] = {"megapixels": capture.pixel_count / 1e6}
    for run in ("first", "second"):
        began = time.perf_counter()
        result = solve(capture, "dlsr", device="cuda")
        figures[run] = {"seconds": time.perf_counter() - began, "stages": dict(result.seconds)}
    figures["peak_gb"] = torch.cuda.max_memory_allocated() / 1e9
    rows = slice(1000, 1400)
    part = Capture(images=capture.images[:, rows, :600], lights=capture.lights, name="part")
    expected = solve(part, "dlsr", lam=result.parameters["lam"], mu=result.parameters["mu"])
    inside = (slice(40, -40), slice(40, -40))
    apart = angle_between(result.normals[rows, :600][inside], expected.normals[inside])
    figures["mean_difference_from_part_on_cpu_deg"] = float(apart.mean())
    return figures


def difference(found: Any, expected: Any, capture: Capture) -> float:
    return float(angle_between(found.normals[capture.mask], expected.normals[capture.mask]).mean())


def measure_cat(cat: Capture, repetitions: int) -> dict[str, Any]:
    """PDLNV on cat, 20 photographs, 5 dB: the CPU's normals, one solve, and a grid of 64."""
    noisy = add_poisson(cat.take(20, rng=0), 5.0, rng=0)
    options = {"p": 2, "max_iter": 50}
    chosen = {"lam": 10.0, "mu": 0.2}
    figures: dict[str, Any] = {}
    for name, setting in {"chosen": chosen, "automatic": {}}.items():
        expected = solve(noisy, "pdlnv", **options, **setting)
        found = solve(noisy, "pdlnv", device="cuda", **options, **setting)
        figures[f"{name}_mean_difference_deg"] = difference(found, expected, noisy)
        figures[f"{name}_error_cpu_gpu"] = [expected.angular_error.mean, found.angular_error.mean]
    prepared = prepare(noisy, "pdlnv", device="cuda", **options)

    def descent_ms(settings: list[dict[str, float]]) -> float:
        results = solve_grid(noisy, "pdlnv", settings, device="cuda", prepared=prepared, **options)
        return 1e3 * sum(result.seconds["solve"] for result in results)

    for name, settings in {"one": [chosen], "grid_of_64": GRID}.items():
        descent_ms(settings)
        times = [descent_ms(settings) for _ in range(repetitions)]
        figures[name] = {
            "median_ms": statistics.median(times),
            "min_ms": min(times),
            "max_ms": max(times),
        }
    figures["grid_over_one"] = figures["grid_of_64"]["median_ms"] / figures["one"]["median_ms"]
    for method, setting in (("pdlnv", options | chosen), ("dlsr", {})):
        gpu = on_device(lambda: solve(noisy, method, device="cuda", **setting), repetitions)  # noqa: B023
        cpu = on_cpu(lambda: solve(noisy, method, **setting))  # noqa: B023
        found, expected = (
            solve(noisy, method, device="cuda", **setting),
            solve(noisy, method, **setting),
        )
        figures[method] = {
            "gpu": gpu,
            "cpu": cpu,
            "ratio": cpu["median_ms"] / gpu["median_ms"],
            "mean_difference_deg": difference(found, expected, noisy),
        }
    return figures


def measure_pixelwise(cat: Capture, repetitions: int) -> dict[str, Any]:
    """The pixelwise methods on all 96 photographs of cat, from the photographs in memory to the normals."""
    figures: dict[str, Any] = {}
    for method in ("ls", "pls", "l1", "sbl", "rpca"):
        gpu = on_device(lambda: solve(cat, method, device="cuda"), repetitions)  # noqa: B023
        cpu = on_cpu(lambda: solve(cat, method))  # noqa: B023
        found, expected = solve(cat, method, device="cuda"), solve(cat, method)
        figures[method] = {
            "gpu": gpu,
            "cpu": cpu,
            "ratio": cpu["median_ms"] / gpu["median_ms"],
            "gpu_stages": found.seconds,
            "cpu_stages": expected.seconds,
            "mean_difference_deg": difference(found, expected, cat),
            "error_cpu_gpu": [expected.angular_error.mean, found.angular_error.mean],
        }
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cat", type=Path, nargs="?")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--profile", action="store_true", help="only profile two solves by kernel")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        parser.exit(1, "This benchmark needs an NVIDIA GPU and a PyTorch built for it.\n")
    if arguments.profile:
        parser.exit(0, profiles())
    figures: dict[str, Any] = {
        "machine": {
            "gpu": torch.cuda.get_device_name(),
            "cpu": platform.processor() or platform.machine(),
            "cores": CORES,
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "tf32": torch.backends.cuda.matmul.allow_tf32,
            "repetitions": arguments.repetitions,
        }
    }
    steps = {
        "pass": lambda: measure_pass(arguments.repetitions),
        "full_frame": lambda: measure_full_frame(arguments.repetitions),
        "learned": lambda: measure_learned(arguments.repetitions),
        "large": measure_large,
    }
    if arguments.cat is not None:
        cat = load(arguments.cat).gray()
        steps["cat"] = lambda: measure_cat(cat, arguments.repetitions)
        steps["pixelwise"] = lambda: measure_pixelwise(cat, arguments.repetitions)
    for name in arguments.only or steps:
        figures[name] = steps[name]()
        print(json.dumps({name: figures[name]}, indent=1), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
