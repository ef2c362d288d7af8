"""Linear solvers for the masked Poisson problem, side by side: time, memory and iterations to the same residual.

Run: python -m benchmarks.solvers [MEGAPIXELS ...]      (1 3 6 without arguments)

``pyamg`` is compared if it is installed; the package itself does not use it. Every figure comes from a fresh process, and
memory is what the solver needs beyond the assembled problem.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np

from benchmarks.peak import peak_memory, reset_peak_memory
from benchmarks.surface import ball, egg_box
from photostereo.runtime.threads import shorten_spinning
from photostereo.surface.multigrid import conjugate_gradients
from photostereo.surface.poisson import assemble
from photostereo.surface.slopes import SlopeSource

RTOL = 1e-10
SOLVERS = (
    "multigrid",
    "dct-float32",
    "dct-float64",
    "pyamg-ruge-stuben",
    "pyamg-aggregation",
    "spsolve",
)
#: Sizes above this take minutes or more memory than a laptop has.
LARGEST = {"spsolve": 1.5, "pyamg-ruge-stuben": 3.5, "pyamg-aggregation": 3.5}
#: A solver that needs more iterations than this is reported as not converged.
MOST_ITERATIONS = 200


def problem(name: str, megapixels: float):
    """The lattice, the right-hand side, a start and the mask."""
    if name == "ball":
        normals, mask = ball(round(1e3 * np.sqrt(megapixels / 0.755)))
        normals = (normals + 0.02 * np.random.default_rng(0).normal(size=normals.shape)).astype(
            np.float32
        )
    else:
        normals = egg_box(round(1e3 * np.sqrt(megapixels)))
        mask = np.ones(normals.shape[:2], dtype=bool)
    return (*assemble(SlopeSource(normals, mask), mask), mask)


def sparse_matrix(lattice, mask):
    """The matrix over the pixels of the mask, with one of them fixed so that it is not singular."""
    from scipy.sparse import csr_array

    number = np.full(mask.shape, -1, dtype=np.int32)
    number[mask] = np.arange(np.count_nonzero(mask), dtype=np.int32)
    right, down = lattice.right[:, :-1] > 0, lattice.down[:-1] > 0
    first = np.concatenate([number[:, :-1][right], number[:-1][down]])
    second = np.concatenate([number[:, 1:][right], number[1:][down]])
    weight = np.concatenate([lattice.right[:, :-1][right], lattice.down[:-1][down]])
    size = int(number.max()) + 1
    degree = np.bincount(first, weight, size) + np.bincount(second, weight, size)
    degree[0] *= 2
    rows = np.concatenate([first, second, np.arange(size, dtype=np.int32)])
    cols = np.concatenate([second, first, np.arange(size, dtype=np.int32)])
    return csr_array((np.concatenate([-weight, -weight, degree]), (rows, cols)), shape=(size, size))


def cosine_solver(lattice, mask, dtype):
    """The inverse of the Laplacian of the bounding rectangle with the mean weight, by two cosine transforms."""
    from scipy.fft import dctn, idctn

    height, width = mask.shape
    weight = 0.5 * (lattice.right[lattice.right > 0].mean() + lattice.down[lattice.down > 0].mean())
    rows = 2.0 - 2.0 * np.cos(np.pi * np.arange(height) / height)
    cols = 2.0 - 2.0 * np.cos(np.pi * np.arange(width) / width)
    scale = (weight * (rows[:, None] + cols)).astype(dtype)
    scale[0, 0] = np.inf

    def precondition(residual):
        spectrum = dctn(residual.astype(dtype), norm="ortho", overwrite_x=True, workers=2)
        spectrum /= scale
        smooth = idctn(spectrum, norm="ortho", overwrite_x=True, workers=2)
        smooth[~mask] = 0
        return smooth

    return precondition


def preconditioned(lattice, side, start, precondition):
    """Conjugate gradients with any preconditioner: the values and the number of iterations."""
    values, residual, image = start, side, np.empty_like(side)
    goal = RTOL * np.linalg.norm(side)
    residual -= lattice.apply(values, image)
    direction, before = np.zeros_like(side), 1.0
    for iteration in range(MOST_ITERATIONS):
        if np.linalg.norm(residual) <= goal:
            return values, iteration
        smooth = precondition(residual)
        energy = float(np.einsum("ij,ij->", residual, smooth))
        direction *= energy / before
        direction += smooth
        before = energy
        lattice.apply(direction, image)
        step = energy / float(np.einsum("ij,ij->", direction, image))
        image *= step
        residual -= image
        np.multiply(direction, step, out=image)
        values += image
    return values, MOST_ITERATIONS


def solve(solver: str, lattice, side, start, mask) -> tuple[np.ndarray, int]:
    """Heights inside the mask and iterations."""
    if solver == "multigrid":
        solution = conjugate_gradients(lattice, side, start, rtol=RTOL, max_iter=MOST_ITERATIONS)
        return solution.values[mask], solution.iterations
    if solver.startswith("dct"):
        precondition = cosine_solver(lattice, mask, solver[4:])
        values, iterations = preconditioned(lattice, side, start, precondition)
        return values[mask], iterations
    matrix = sparse_matrix(lattice, mask)
    if solver == "spsolve":
        from scipy.sparse.linalg import spsolve

        return spsolve(matrix.tocsc(), side[mask], permc_spec="MMD_AT_PLUS_A"), 1
    import pyamg
    from scipy.sparse import csr_matrix

    build = pyamg.ruge_stuben_solver if "ruge" in solver else pyamg.smoothed_aggregation_solver
    levels, counted = build(csr_matrix(matrix), max_coarse=500), []
    # Its stopping rule uses the preconditioned residual; 1e-10 there is about the same accuracy.
    values = levels.solve(
        side[mask], tol=RTOL, maxiter=MOST_ITERATIONS, accel="cg", residuals=counted
    )
    return values, len(counted) - 1


def measure(name: str, solver: str, megapixels: float) -> dict[str, float]:
    """One figure in this process."""
    shorten_spinning()
    lattice, side, start, mask = problem(name, 0.05)
    solve(solver, lattice, side, start, mask)  # compile outside the clock
    lattice, side, start, mask = problem(name, megapixels)
    wanted, pixels = side.copy(), int(np.count_nonzero(mask))
    reset_peak_memory()
    base, wall, cpu = peak_memory(), time.perf_counter(), time.process_time()
    values, iterations = solve(solver, lattice, side, start, mask)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = peak_memory() - base
    picture, image = np.zeros(mask.shape), np.empty(mask.shape)
    picture[mask] = values
    residual = np.linalg.norm(wanted - lattice.apply(picture, image)) / np.linalg.norm(wanted)
    return {
        "pixels": pixels,
        "cpu": cpu / pixels * 1e6,
        "wall": wall / pixels * 1e6,
        "bytes": peak / pixels,
        "iterations": iterations,
        "residual": float(residual),
    }


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2], sys.argv[3], float(sys.argv[4]))))
        return
    print("| problem | MP | solver | processor s / MP | ratio | MB / MP | iterations | residual |")
    print("|---|---|---|---|---|---|---|---|")
    for name in ("ball", "egg box"):
        for megapixels in [float(word) for word in sys.argv[1:]] or (1.0, 3.0, 6.0):
            first = None
            for solver in SOLVERS:
                if megapixels > LARGEST.get(solver, np.inf):
                    continue
                command = [
                    sys.executable,
                    "-m",
                    "benchmarks.solvers",
                    "--one",
                    name,
                    solver,
                    str(megapixels),
                ]
                answer = subprocess.run(command, capture_output=True, text=True, check=False)
                if answer.returncode:
                    print(
                        f"| {name} | {megapixels:g} | {solver} | {answer.stderr.splitlines()[-1]} | | | | |"
                    )
                    continue
                f = json.loads(answer.stdout)
                first = first or f["cpu"]
                print(
                    f"| {name} | {megapixels:g} | {solver} | {f['cpu']:.2f} | {f['cpu'] / first:.1f} | "
                    f"{f['bytes']:.0f} | {f['iterations']} | {f['residual']:.0e} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
