"""The matrix-free solver: kernels against their readable twins, a factorisation, and its memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.sparse.linalg import spsolve

from photostereo.surface import integrate, lattice_kernels, lattice_readable
from photostereo.surface.lattice import Lattice, place_links, place_pixels
from photostereo.surface.links import Laplacian, find_links
from photostereo.surface.multigrid import Multigrid, conjugate_gradients
from photostereo.surface.poisson import assemble, mean_equations
from photostereo.surface.slopes import SlopeSource, slope_field


def random_lattice(shape: tuple[int, int], *, pulled: bool, span: float = 1.0) -> Lattice:
    """Links of a mask with holes, with weights over ``span`` decades."""
    rng = np.random.default_rng(2)
    mask = rng.random(shape) > 0.2
    right, down = (10.0 ** (-span * rng.random(shape)) for _ in range(2))
    right[:, -1] = down[-1] = 0
    right[:, :-1] *= mask[:, :-1] & mask[:, 1:]
    down[:-1] *= mask[:-1] & mask[1:]
    return Lattice(right, down, 0.3 * mask * rng.random(shape) if pulled else None)


def dense(lattice: Lattice) -> np.ndarray:
    """The matrix, column by column."""
    size, shape = lattice.right.size, lattice.right.shape
    columns = [
        lattice_readable.apply_laplacian(lattice.right, lattice.down, lattice.pull, unit.reshape(shape))
        for unit in np.eye(size)
    ]
    return np.stack([column.ravel() for column in columns], axis=1)


@pytest.mark.parametrize("shape", [(13, 17), (8, 6), (1, 9), (7, 1)])
@pytest.mark.parametrize("pulled", [False, True])
def test_kernels_equal_readable(shape: tuple[int, int], pulled: bool) -> None:
    rng = np.random.default_rng(0)
    lattice = random_lattice(shape, pulled=pulled)
    links = lattice.right, lattice.down
    fine, products = rng.normal(size=shape), np.empty(shape[0])
    expected = lattice_readable.apply_laplacian(*links, lattice.pull, fine)
    image = lattice.apply(fine, np.empty(shape), products)
    assert np.abs(image - expected).max() < 1e-14
    assert abs(products.sum() - (fine * expected).sum()) < 1e-12

    degree = lattice_readable.degree(*links, lattice.pull)
    inverse = np.divide(1, degree, out=np.zeros(shape), where=degree > 0).astype(np.float32)
    side, values = rng.normal(size=(2, *shape)).astype(np.float32)
    coarse = rng.normal(size=((shape[0] + 1) // 2, (shape[1] + 1) // 2)).astype(np.float32)

    def close(found: np.ndarray, wanted: np.ndarray) -> bool:
        return bool(np.abs(found - wanted).max() < 1e-5 * max(np.abs(wanted).max(), 1e-30))

    for color in (0, 1):
        relaxed = values.copy()
        lattice_kernels.relax(*links, inverse, side, relaxed, color)
        assert close(relaxed, lattice_readable.relax(*links, inverse, side, values, color))
    change, small, large = np.empty_like(values), np.empty_like(coarse), values.copy()
    lattice_kernels.jacobi_change(*links, inverse, side, values, change)
    assert close(change, lattice_readable.jacobi_change(*links, inverse, side, values))
    lattice_kernels.restrict(*links, change, small)
    assert close(small, lattice_readable.restrict(*links, change))
    lattice_kernels.prolong(*links, inverse, coarse, large)
    assert close(large - values, lattice_readable.prolong(*links, inverse, coarse))


def test_prolongation_of_equal_links_is_linear() -> None:
    """Half of the own block and a quarter of the next along each axis: exact for a plane."""
    right, down = np.ones((16, 20)), np.ones((16, 20))
    right[:, -1] = down[-1] = 0
    inverse = 1 / lattice_readable.degree(right, down, None)
    row, col = np.mgrid[:8, :10] * 2 + 0.5
    fine = lattice_readable.prolong(right, down, inverse, 3 * row - col)
    row, col = np.mgrid[:16, :20]
    assert np.abs(fine - (3 * row - col))[1:-1, 1:-1].max() < 1e-12


@pytest.mark.parametrize("pulled", [False, True])
def test_restriction_is_the_adjoint_and_the_cycle_symmetric(
    pulled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from photostereo.surface import multigrid

    monkeypatch.setattr(multigrid, "COARSEST", 40)
    rng = np.random.default_rng(1)
    lattice = random_lattice((21, 26), pulled=pulled)
    cycle = Multigrid(lattice)
    assert len(cycle.levels) == 4
    linked = cycle.levels[0].inverse > 0
    a, b = rng.normal(size=(2, 21, 26)) * linked
    one = (b * cycle(a)).sum()
    two = (a * cycle(b)).sum()
    assert abs(one - two) < 1e-4 * np.abs(b * cycle(a)).sum()
    assert (a * cycle(a)).sum() > 0


@pytest.mark.parametrize("span", [1.0, 6.0])
def test_equals_a_factorisation(span: float) -> None:
    """Holes, pulls and weights that differ by a million."""
    lattice = random_lattice((60, 73), pulled=True, span=span)
    wanted = np.random.default_rng(5).normal(size=(60, 73)) * (
        lattice_readable.degree(lattice.right, lattice.down, lattice.pull) > 0
    )
    side = lattice_readable.apply_laplacian(lattice.right, lattice.down, lattice.pull, wanted)
    found = conjugate_gradients(lattice, side.copy(), np.zeros_like(side), rtol=1e-12, max_iter=200)
    assert found.residual <= 1e-12
    assert np.abs(found.values - wanted).max() < 1e-7
    assert found.iterations < 60


def test_heights_equal_those_of_a_factorisation(shapes) -> None:
    """Noisy normals that no surface has, uneven weights, a ragged mask: to 1e-6 px."""
    rng = np.random.default_rng(7)
    _, normals, mask, _ = shapes.sphere(171, 0.95)
    mask &= rng.random(mask.shape) > 0.02
    normals = normals + 0.1 * rng.normal(size=normals.shape)
    normals[..., 2] = np.abs(normals[..., 2])
    weights = 10.0 ** (-2 * rng.random(mask.shape))
    surface = integrate(normals, mask, weights=weights)
    assert surface.status == "converged"
    field, links = slope_field(normals, mask, weights=weights), find_links(mask)
    weight, goal = mean_equations(field, links)
    laplacian = Laplacian(links)
    laplacian.set_weights(weight, np.where(surface.labels[mask] > 0, 1e-14, 0.0))
    direct = place_pixels(mask, spsolve(laplacian.matrix.tocsc(), laplacian.right_hand_side(weight, goal)))
    largest = surface.labels == np.bincount(surface.labels[mask]).argmax()
    assert np.abs(shapes.aligned(surface.depth, direct, largest)).max() < 1e-6


def test_assembly_by_strips_equals_the_packed_equations(shapes) -> None:
    rng = np.random.default_rng(9)
    mask = rng.random((150, 40)) > 0.3
    normals = shapes.normals_of(*rng.normal(size=(2, 150, 40)))
    lattice, side, _ = assemble(SlopeSource(normals, mask), mask, None, None)
    weight, goal = mean_equations(slope_field(normals, mask), find_links(mask))
    right, down, expected = place_links(mask, weight, goal)
    assert np.abs(lattice.right - right).max() < 1e-14
    assert np.abs(lattice.down - down).max() < 1e-14
    assert np.abs(side - expected).max() < 1e-12


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


def test_progress_counts_digits(shapes, heard) -> None:
    _, normals, mask, _ = shapes.sphere(161)
    integrate(normals + 0.01, mask, control=heard)
    assert heard.stages == [("integrate", 100)]
    assert min(heard.steps) >= 0 and len(heard.steps) > 3
    assert sum(heard.steps) == 100
