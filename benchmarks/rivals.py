"""Baseline methods: accuracy next to the paper and the published maps, speed against plain loops, memory.

Run: python -m benchmarks.rivals [accuracy] [published] [variants] [outliers] [speed] [memory] [seconds]

Without arguments, all parts run; those that need the shared research captures are skipped if these are missing.
Each part prints one Markdown table; benchmarks/README.md quotes them.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import nnls

import photostereo as ps
from benchmarks.captures import ABSENT, diligent_folder
from photostereo.core.control import SILENT
from photostereo.diagnosis.metrics import angle_between
from photostereo.reflectance.bivariate.model import Bivariate, bernstein_basis, monotone_cone
from photostereo.reflectance.lowrank.model import LowRank, robust_pca
from photostereo.reflectance.sparse.model import (
    LeastAbsolute,
    SparseBayes,
)
from photostereo_lab.corruptions import add_poisson, add_salt_and_pepper
from photostereo_lab.scenes import dome_lights, render_scene
from tests.reflectance.readable import l1_reweighted_readable, robust_pca_readable, sbl_readable

OBJECTS = ("ball", "bear", "cat", "cow", "pot2", "reading")
#: Table II of the paper, mean errors in degrees, all 96 photographs, no shadow masks.
PAPER = {
    "sbl": {"ball": 2.08, "cat": 6.73, "bear": 6.01, "pot2": 11.98, "reading": 12.56, "cow": 22.42},
    "rpca": {
        "ball": 3.20,
        "cat": 7.96,
        "bear": 7.89,
        "pot2": 11.94,
        "reading": 17.42,
        "cow": 11.96,
    },
    "cbr": {"ball": 6.78, "cat": 8.05, "bear": 9.77, "pot2": 10.56, "reading": 19.39, "cow": 15.68},
}
#: Table III of the paper, seconds.
PAPER_SECONDS = {
    "cbr": {"ball": 15.8, "cat": 34.6, "bear": 37.1, "pot2": 31.1, "reading": 22.5, "cow": 27.7},
    "sbl": {
        "ball": 872.2,
        "cat": 2009.6,
        "bear": 3335.0,
        "pot2": 1639.8,
        "reading": 1338.5,
        "cow": 1310.5,
    },
    "rpca": {
        "ball": 1076.3,
        "cat": 2506.2,
        "bear": 4249.1,
        "pot2": 5328.6,
        "reading": 2707.2,
        "cow": 6179.8,
    },
}
SBL_GRID = (1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 1e-1)
RPCA_GRID = (0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
#: The shadow threshold of the comparison with the published maps, which were made with one.
SHADOW = 0.1
CBR_VARIANTS: tuple[dict, ...] = (
    {},
    {"orders": (2, 1), "slope": "falling"},
    {"orders": (2, 1), "slope": "free"},
    {"orders": (2, 1), "slope": "falling", "total": "top"},
    {"orders": (1, 1)},
    {"orders": (3, 1)},
    {"orders": (3, 2)},
    {"orders": (3, 1), "slope": "falling", "total": "top"},
    {"orders": (3, 2), "slope": "falling", "total": "top"},
    {"orders": (4, 1), "slope": "falling", "total": "top"},
    {"orders": (5, 1), "slope": "falling", "total": "top"},
    {"orders": (2, 1), "shadow": 0.05},
    {"orders": (2, 1), "slope": "falling", "total": "top", "shadow": 0.05},
    {"orders": (3, 1), "slope": "falling", "total": "top", "shadow": 0.05},
    {"orders": (4, 1), "slope": "falling", "total": "top", "shadow": 0.05},
    {"orders": (5, 1), "slope": "falling", "total": "top", "shadow": 0.04},
    {"orders": (5, 1), "slope": "falling", "total": "top", "shadow": 0.05},
    {"orders": (5, 1), "slope": "falling", "total": "top", "shadow": 0.1},
)


class Object:
    """Pixels, lights and truth of one DiLiGenT object, as the models take them."""

    def __init__(self, name: str) -> None:
        folder = diligent_folder()
        assert folder is not None
        self.name, self.folder = name, folder
        self.capture = ps.load(self.folder / "pmsData" / f"{name}PNG")
        self.pixels = self.capture.pixels(self.capture.intensity_scale())
        self.lights = self.capture.lights.matrix
        self.truth = self.capture.truth[self.capture.mask]

    def error(self, normals: np.ndarray) -> np.ndarray:
        return angle_between(normals, self.truth)

    def official(self, key: str) -> np.ndarray:
        with np.load(self.folder / "official_normals" / f"{self.name}.npz") as maps:
            return maps[key][self.capture.mask]


def table(header: list[str], rows: list[list]) -> None:
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(f"{c:.2f}" if isinstance(c, float) else str(c) for c in row) + " |")
    print(flush=True)


def accuracy() -> None:
    """Mean errors next to those of the paper; the best of each grid, chosen by the truth as in the paper."""
    print("### Mean angular error, all 96 photographs, no shadow masks\n")
    rows = []
    for name in OBJECTS:
        it = Object(name)

        def mean(model, it=it) -> float:
            return float(it.error(model.alone(SILENT).normals).mean())

        sbl = {
            noise: mean(SparseBayes(it.pixels, it.lights, noise=noise))
            for noise in (*SBL_GRID, None)
        }
        best = min(sbl, key=sbl.__getitem__)
        rpca = {weight: mean(LowRank(it.pixels, it.lights, weight=weight)) for weight in RPCA_GRID}
        weight = min(rpca, key=rpca.__getitem__)
        rows.append(
            [
                name,
                mean(LeastAbsolute(it.pixels, it.lights)),
                sbl[1e-3],
                sbl[None],
                f"{sbl[best]:.2f} ({'auto' if best is None else f'{best:g}'})",
                PAPER["sbl"][name],
                rpca[1.0],
                f"{rpca[weight]:.2f} ({weight:g})",
                PAPER["rpca"][name],
                mean(Bivariate(it.pixels, it.lights)),
                PAPER["cbr"][name],
            ]
        )
    sparse = ["l1", "sbl 1e-3", "sbl auto", "sbl best (λ)", "paper SR"]
    rest = ["rpca C = 1", "rpca best (C)", "paper RPCA", "cbr", "paper CBR"]
    table(["object", *sparse, *rest], rows)


def published() -> None:
    """Comparison with the maps made by the authors' own code, with shadow thresholds."""
    print(
        f"### Against the published normal maps (theirs have shadow thresholds; ours where said, {SHADOW:g})\n"
    )
    rows = []
    for name in OBJECTS:
        it = Object(name)
        runs = {
            "l1": (LeastAbsolute(it.pixels, it.lights), "sbl_ikehata2012"),
            "sbl 1e-6": (SparseBayes(it.pixels, it.lights, noise=1e-6), "sbl_ikehata2012"),
            "sbl 1e-3": (SparseBayes(it.pixels, it.lights), "sbl_ikehata2012"),
            "rpca": (LowRank(it.pixels, it.lights), "rpca_wu2010"),
            "rpca, shadow": (LowRank(it.pixels, it.lights, shadow=SHADOW), "rpca_wu2010"),
            "cbr": (Bivariate(it.pixels, it.lights), "cbr_ikehata2014"),
        }
        for label, (model, key) in runs.items():
            normals, theirs = model.alone(SILENT).normals, it.official(key)
            between = float(angle_between(normals, theirs).mean())
            rows.append(
                [
                    name,
                    label,
                    float(it.error(normals).mean()),
                    float(it.error(theirs).mean()),
                    between,
                ]
            )
    table(["object", "method", "our error", "published error", "angle between the maps"], rows)


def variants() -> None:
    """Orders, slope along the light's angle, constraint and shadow threshold of cbr."""
    print("### Variants of cbr: mean error per object; how many lie within one degree\n")
    objects = [Object(name) for name in OBJECTS]
    published_errors = [float(it.error(it.official("cbr_ikehata2014")).mean()) for it in objects]
    paper = [PAPER["cbr"][name] for name in OBJECTS]
    rows: list[list] = [
        ["published, with thresholds", *published_errors, "", ""],
        ["paper", *paper, "", ""],
    ]
    for options in CBR_VARIANTS:
        errors = [
            float(it.error(Bivariate(it.pixels, it.lights, **options).alone(SILENT).normals).mean())
            for it in objects
        ]
        near = [
            sum(abs(a - b) < 1.0 for a, b in zip(errors, ref, strict=True))
            for ref in (published_errors, paper)
        ]
        words = {"orders": (2, 1), "slope": "rising", "total": "sum", "shadow": 0} | options
        rows.append([", ".join(str(value) for value in words.values()), *errors, *near])
    table(["orders, slope, total, shadow", *OBJECTS, "near published", "near paper"], rows)


def outliers() -> None:
    """dlsr on outliers, for which it is made, and on clean photographs; 20 photographs, default parameters."""
    print("### 20 photographs, defaults: mean error, and seconds of dlsr\n")
    methods = ("ls", "l1", "sbl", "pls", "dlnv", "pdlnv", "dlsr")
    cases: dict[str, Callable] = {
        "clean": lambda capture: capture,
        "20 % salt and pepper": lambda capture: add_salt_and_pepper(capture, 0.2, rng=1),
        "Poisson 5 dB": lambda capture: add_poisson(capture, 5.0, rng=1),
    }
    rows = []
    for name in OBJECTS:
        drawn = Object(name).capture.take(20, rng=0)
        for label, disturb in cases.items():
            capture = disturb(drawn)
            # The classical methods see the photographs as they are, as in their papers.
            results = {
                method: ps.solve(
                    capture, method, strengths="auto" if method.endswith("net") else "given"
                )
                for method in methods
            }
            errors = [results[method].angular_error.mean for method in methods]
            rows.append(
                [name, label, *map(float, errors), float(sum(results["dlsr"].seconds.values()))]
            )
    table(["object", "photographs", *methods, "s"], rows)


def cbr_loop(pixels: np.ndarray, lights: np.ndarray) -> None:
    """The same mathematics as cbr, one pixel at a time, with NumPy and SciPy."""
    cone = monotone_cone(2, 2, "rising")
    t = (lights[2] - lights[2].min()) / np.ptp(lights[2])
    along_angle = bernstein_basis(1, t)
    project = np.linalg.pinv(lights)
    for y in pixels.astype(np.float64):
        along = bernstein_basis(2, y / y.max())[:, 1:]
        phi = (along[:, :, None] * along_angle[:, None, :]).reshape(len(y), -1)
        reduced = phi - lights.T @ (project.T @ phi)
        w = nnls(np.vstack([reduced @ cone.T, cone.sum(axis=1)]), np.append(np.zeros(len(y)), 1.0))[
            0
        ]
        _ = project.T @ (phi @ (cone.T @ w))


def clock(function: Callable, repeat: int = 3) -> float:
    """The fastest of a few runs: other load on the machine can only add to it."""
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times)


def speed() -> None:
    """Compiled models against plain loops over pixels, timed on 500 of them and extrapolated."""
    if diligent_folder() is not None:
        it = Object("cat")
        pixels, lights, title = it.pixels, it.lights, "cat, 45,200 pixels x 96"
    else:
        capture = render_scene(
            "relief", size=(226, 200), lights=dome_lights(96), cast_shadows=False
        )
        pixels = capture.pixels(capture.intensity_scale())
        lights, title = capture.lights.matrix, "synthetic, 45,200 pixels x 96"
    some = np.ascontiguousarray(pixels[:: max(1, len(pixels) // 500)][:500])
    share = len(pixels) / len(some)
    ours: dict[str, Callable] = {
        "l1": lambda p: LeastAbsolute(p, lights).alone(SILENT),
        "sbl": lambda p: SparseBayes(p, lights).alone(SILENT),
        "cbr": lambda p: Bivariate(p, lights).alone(SILENT),
    }
    loops: dict[str, Callable] = {
        "l1": lambda: [
            l1_reweighted_readable(y[None], lights, max_iter=100) for y in some.astype(np.float64)
        ],
        "sbl": lambda: sbl_readable(some.astype(np.float64), lights),
        "cbr": lambda: cbr_loop(some, lights),
    }
    print(f"### Seconds, {title}\n")
    rows = []
    for name, run in ours.items():
        run(some)  # compile
        mine, plain = clock(lambda run=run: run(pixels)), share * clock(loops[name], 1)
        rows.append([name, mine, plain, f"{plain / mine:.0f}x"])
    robust_pca(some, max_iter=2)
    whole = clock(lambda: robust_pca(pixels))
    iterations = robust_pca(pixels).iterations
    per_iteration = whole / iterations
    matrix = pixels.astype(np.float64)
    plain = clock(lambda: robust_pca_readable(matrix, 1 / np.sqrt(len(matrix)), max_iter=2), 1) / 2
    rows.append(["rpca", whole, plain * iterations, f"{plain / per_iteration:.0f}x"])
    table(["method", "ours", "plain loop (rpca: full SVD)", "ratio"], rows)


def seconds() -> None:
    """The paper's Table III next to ours."""
    print(
        "### Seconds: the paper's Table III, and ours from the photographs in memory to the normals\n"
    )
    methods = ("l1", "sbl", "rpca", "cbr", "dlsr")
    rows = []
    small = render_scene("sphere", size=32)
    for method in methods:
        ps.solve(small, method)  # compile
    for name in OBJECTS:
        capture = Object(name).capture
        row: list = [name, int(capture.mask.sum())]
        for method in methods:
            began = time.perf_counter()
            ps.solve(capture, method)
            row.append(time.perf_counter() - began)
            if method in PAPER_SECONDS:
                row.append(PAPER_SECONDS[method][name])
        rows.append(row)
    table(
        [
            "object",
            "pixels",
            "l1",
            "sbl",
            "paper SR",
            "rpca",
            "paper RPCA",
            "cbr",
            "paper CBR",
            "dlsr",
        ],
        rows,
    )


MEMORY_PROGRAM = """
import sys
import numpy as np
from benchmarks.peak import peak_memory
from photostereo.core.control import SILENT
from photostereo.reflectance.bivariate.model import Bivariate
from photostereo.reflectance.lowrank.model import LowRank
from photostereo.reflectance.sparse.model import LeastAbsolute, SparseBayes
name, count = sys.argv[1], int(sys.argv[2])
make = {"l1": LeastAbsolute, "sbl": SparseBayes, "rpca": LowRank, "cbr": Bivariate}.get(name)
rng = np.random.default_rng(0)
L = rng.normal(size=(3, 96)) * 0.5 + np.array([[0.0], [0.0], [1.0]])
L /= np.linalg.norm(L, axis=0)
def pixels(count):
    out = np.empty((count, 96), np.float32)
    for first in range(0, count, 5000):
        n = rng.normal(size=(5000, 3)) * 0.3 + [0, 0, 1]
        out[first : first + 5000] = np.maximum(n @ L, 0)[: count - first]
    return out
def run(Y):
    if name == "dlsr":
        model = SparseBayes(Y, L, noise=None)
        n, u = model.start(SILENT)
        u = model.update_unknowns(model.update_normals(u, np.full(len(Y), 0.4), 0.4 * n), u)
        return model.maps(n, u)
    options = {"max_iter": 3} if name == "rpca" else {}
    model = make(Y, L, **options)
    fit = model.alone(SILENT)
    return model.maps(fit.normals, fit.unknowns)
run(pixels(5000))
Y = pixels(count)
before = peak_memory()
run(Y)
print((peak_memory() - before) / 2**20)
"""


def memory() -> None:
    """Peak memory beyond the photographs, in a separate process."""
    print("### Peak memory beyond the photographs, 300,000 pixels x 96 (photographs: 110 MiB)\n")
    rows = []
    for name in ("l1", "sbl", "rpca", "cbr", "dlsr"):
        done = subprocess.run(
            [sys.executable, "-c", MEMORY_PROGRAM, name, "300000"],
            capture_output=True,
            text=True,
            check=True,
        )
        rows.append([name, f"{float(done.stdout):.0f} MiB"])
    table(["method", "extra"], rows)


PARTS: dict[str, tuple[Callable, bool]] = {
    "accuracy": (accuracy, True),
    "published": (published, True),
    "variants": (variants, True),
    "outliers": (outliers, True),
    "seconds": (seconds, True),
    "speed": (speed, False),
    "memory": (memory, False),
}


def main(arguments: list[str]) -> None:
    for name in arguments or PARTS:
        part, needs_data = PARTS[name]
        if needs_data and diligent_folder() is None:
            print(f"{name}: skipped, {ABSENT}\n")
            continue
        part()


if __name__ == "__main__":
    main(sys.argv[1:])
