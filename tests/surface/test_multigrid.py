"""The matrix-free solver: its loops against array operations, a factorization, its memory and its response to canceling."""

from __future__ import annotations

import threading
import time
import tracemalloc
import warnings

import numpy as np
import pytest

from photostereo.core.control import SILENT, Cancelled, Control
from photostereo.core.errors import ConvergenceWarning
from photostereo.surface import integrate, multigrid
from photostereo.surface.lattice import (
    Lattice,
    combine_blocks,
    enlarge,
    jacobi_change,
    prolong,
    relax,
    restrict,
)
from photostereo.surface.multigrid import Multigrid, conjugate_gradients


def neighbors(right: np.ndarray, down: np.ndarray, values: np.ndarray) -> np.ndarray:
    """``N values``: the weighted sum over the four neighbors of each pixel."""
    total = np.zeros(values.shape, dtype=np.result_type(right, values))
    total[:, :-1] += right[:, :-1] * values[:, 1:]
    total[:, 1:] += right[:, :-1] * values[:, :-1]
    total[:-1] += down[:-1] * values[1:]
    total[1:] += down[:-1] * values[:-1]
    return total


@pytest.mark.parametrize("shape", [(7, 5), (5, 7), (1, 9), (9, 1), (30, 40)])
def test_the_coarsest_level_is_solved_exactly(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    right, down, pull = rng.random((3, *shape), dtype=np.float32)
    right[:, -1] = down[-1] = 0
    right[:, shape[1] // 2] *= 1e-6  # nearly torn
    lattice, side = Lattice(right, down, pull), rng.random(shape, dtype=np.float32)
    found = lattice.factorized()(side)
    assert np.abs(laplacian(lattice, found) + 1e-6 * diagonal(lattice) * found - side).max() < 1e-6


def diagonal(lattice: Lattice) -> np.ndarray:
    """``D`` in double precision."""
    right, down = lattice.right.astype(float), lattice.down.astype(float)
    total = neighbors(right, down, np.ones_like(right))
    return total if lattice.pull is None else total + lattice.pull


def laplacian(lattice: Lattice, values: np.ndarray) -> np.ndarray:
    """``A values = D values − N values`` in double precision."""
    right, down = lattice.right.astype(float), lattice.down.astype(float)
    return diagonal(lattice) * values - neighbors(right, down, values)


def random_lattice(shape: tuple[int, int], *, pulled: bool, span: float = 1.0) -> Lattice:
    """Links of a mask with holes, with weights over ``span`` decades."""
    rng = np.random.default_rng(2)
    mask = rng.random(shape) > 0.2
    right, down = ((10.0 ** (-span * rng.random(shape))).astype(np.float32) for _ in range(2))
    right[:, -1] = down[-1] = 0
    right[:, :-1] *= mask[:, :-1] & mask[:, 1:]
    down[:-1] *= mask[:-1] & mask[1:]
    return Lattice(
        right, down, (0.3 * mask * rng.random(shape)).astype(np.float32) if pulled else None
    )


@pytest.mark.parametrize("shape", [(13, 17), (8, 6), (1, 9), (7, 1)])
@pytest.mark.parametrize("pulled", [False, True])
def test_loops_equal_array_operations(shape: tuple[int, int], pulled: bool) -> None:
    rng = np.random.default_rng(0)
    lattice = random_lattice(shape, pulled=pulled)
    links = lattice.right, lattice.down
    fine = rng.normal(size=shape)
    assert np.abs(lattice.apply(fine, np.empty(shape)) - laplacian(lattice, fine)).max() < 1e-14
    degree = diagonal(lattice)
    assert np.abs(lattice.diagonal() - degree).max() < 1e-6
    inverse = np.divide(1, degree, out=np.zeros(shape), where=degree > 0).astype(np.float32)
    side, values = rng.normal(size=(2, *shape)).astype(np.float32)
    coarse = rng.normal(size=((shape[0] + 1) // 2, (shape[1] + 1) // 2)).astype(np.float32)

    def close(found: np.ndarray, wanted: np.ndarray) -> bool:
        return bool(np.abs(found - wanted).max() < 1e-5 * max(np.abs(wanted).max(), 1e-30))

    row, col = np.indices(shape)
    for color in (0, 1):
        relaxed = values.copy()
        relax(*links, inverse, side, relaxed, color)
        chosen = ((row + col) % 2 == color) & (inverse > 0)
        assert close(
            relaxed, np.where(chosen, inverse * (side + neighbors(*links, values)), values)
        )
    change, small, large = np.empty_like(values), np.empty_like(coarse), values.copy()
    jacobi_change(*links, inverse, side, values, change)
    assert close(
        change, np.where(inverse > 0, inverse * (side + neighbors(*links, values)) - values, 0)
    )
    restrict(*links, change, small)
    assert close(small, combine_blocks(np.add, neighbors(*links, change)))
    prolong(*links, inverse, coarse, large)
    assert close(large - values, inverse * neighbors(*links, enlarge(coarse, shape)))


def test_prolongation_of_equal_links_is_linear() -> None:
    """Half of the own block and a quarter of the next along each axis: exact for a plane."""
    right, down = np.ones((2, 16, 20), dtype=np.float32)
    right[:, -1] = down[-1] = 0
    inverse = 1 / Lattice(right, down).diagonal()
    row, col = np.mgrid[:8, :10] * 2 + 0.5
    fine = np.zeros((16, 20), dtype=np.float32)
    prolong(right, down, inverse, (3 * row - col).astype(np.float32), fine)
    row, col = np.mgrid[:16, :20]
    assert np.abs(fine - (3 * row - col))[1:-1, 1:-1].max() < 1e-5


def test_coarse_links_keep_the_energy_of_a_plane() -> None:
    right, down = np.ones((2, 16, 20), dtype=np.float32)
    right[:, -1] = down[-1] = 0
    lattice = Lattice(right, down)
    row, col = np.mgrid[:16, :20].astype(float)
    plane = 3 * row - col
    energies = []
    for picture, links in ((plane, lattice), (plane[::2, ::2], lattice.halved())):
        energies.append((picture * laplacian(links, picture)).sum())
    assert abs(energies[1] / energies[0] - 1) < 0.1  # but for the border


@pytest.mark.parametrize("pulled", [False, True])
def test_the_cycle_is_symmetric_and_positive(pulled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multigrid, "COARSEST", 40)
    rng = np.random.default_rng(1)
    cycle = Multigrid(random_lattice((21, 26), pulled=pulled), SILENT)
    assert len(cycle.levels) == 4
    linked = cycle.levels[0].inverse > 0
    a, b = rng.normal(size=(2, 21, 26)) * linked
    one = (b * cycle(a)).sum()
    two = (a * cycle(b)).sum()
    assert abs(one - two) < 1e-4 * np.abs(b * cycle(a)).sum()
    assert (a * cycle(a)).sum() > 0


@pytest.mark.parametrize("span", [1.0, 6.0])
def test_solves_weights_that_differ_by_a_million(span: float) -> None:
    lattice = random_lattice((60, 73), pulled=True, span=span)
    wanted = np.random.default_rng(5).normal(size=(60, 73)) * (diagonal(lattice) > 0)
    side = laplacian(lattice, wanted)
    found = conjugate_gradients(lattice, side.copy(), np.zeros_like(side), rtol=1e-12, max_iter=200)
    assert found.residual <= 1e-12
    assert np.abs(found.values - wanted).max() < 1e-7
    assert found.iterations < 60


def masks(name: str) -> np.ndarray:
    """Masks that are hard for a multigrid."""
    rng = np.random.default_rng(7)
    row, col = np.mgrid[:190, :230]
    if name == "holes":
        return (np.hypot(row - 95, col - 115) < 94) & (rng.random(row.shape) > 0.1)
    if name == "components":
        return (np.hypot(row % 64 - 32, col % 58 - 29) < 27) | (np.hypot(row - 100, col - 120) < 50)
    if name == "bridges":  # two large blobs, joined by a bridge of one pixel and 60 pixels long
        return (col < 85) | (col > 145) | (row == 97)
    if name == "comb":  # a long path: teeth joined at alternating ends
        return (col % 8 != 7) | ((row < 1) & (col % 16 == 7)) | ((row > 188) & (col % 16 == 15))
    return np.ones(row.shape, dtype=bool)


@pytest.mark.parametrize("name", ["full", "holes", "components", "bridges", "comb"])
@pytest.mark.parametrize("weighted", [False, True])
def test_heights_are_those_of_a_factorization(shapes, name: str, weighted: bool) -> None:
    """Noisy normals that no surface has, uneven weights, difficult masks: to 1e-6 px, at their maximum."""
    mask = masks(name)
    rng = np.random.default_rng(8)
    slopes = 0.5 * rng.normal(size=(2, *mask.shape)) + np.sin(np.arange(mask.shape[1]) / 20)
    normals = shapes.normals_of(*slopes)
    weights = 10.0 ** (-2 * rng.random(mask.shape)) if weighted else None
    surface = integrate(normals, mask, weights=weights)
    assert surface.status == "converged"
    exact = shapes.exact_heights(normals, mask, weights)
    assert np.abs(surface.depth - exact)[mask].max() < 1e-6


def test_memory_of_a_pixel(shapes) -> None:
    """At most 120 bytes, the result included, the given normals not."""
    _, normals, mask, _ = shapes.sphere(60)
    integrate(normals, mask)  # compile first
    row, col = np.mgrid[:500, :600]
    normals = shapes.normals_of(np.sin(col / 20), np.cos(row / 30)).astype(np.float32)
    tracemalloc.start()
    surface = integrate(normals)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert surface.status == "converged"
    assert peak / normals[..., 0].size < 120


def test_progress_is_a_percentage(shapes, heard) -> None:
    _, normals, mask, _ = shapes.sphere(161)
    integrate(normals + 0.01, mask, control=heard)
    assert heard.stages == [("integrate", 100)]
    assert min(heard.steps) >= 0 and len(heard.steps) > 3
    assert sum(heard.steps) == 100


class Gaps(Control):
    """Measures the longest time between two places where the work can be canceled."""

    def __init__(self) -> None:
        self.longest, self._last = 0.0, time.process_time()

    def check(self) -> None:
        now = time.process_time()
        self.longest, self._last = max(self.longest, now - self._last), now
        super().check()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "robust"])
def test_cancelling_is_quick(shapes, method: str) -> None:
    """On one megapixel there are at most 0.4 processor seconds of all threads between two checks: 0.2 s on two cores."""
    integrate(shapes.flap(200)[1], method=method)  # compile first
    normals = shapes.flap(1000)[1].astype(np.float32)
    gaps = Gaps()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        integrate(normals, method=method, control=gaps, max_iter=10)
    assert gaps.longest < 0.4
    control = Control()
    timer = threading.Timer(0.1, control.cancel)
    timer.start()
    with pytest.raises(Cancelled):
        integrate(normals, method=method, control=control)
    timer.join()
