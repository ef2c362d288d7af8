"""Patches against plain NumPy, the adjoint against inner products, and the coverage of the mask."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photostereo.core.errors import ParameterError
from photostereo.priors.dictionary.patches import PatchGrid

from .readable import adjoint, adjoint_readable, extract, extract_readable


@st.composite
def grids(draw: st.DrawFn) -> PatchGrid:
    """A random picture, mask, patch size and stride."""
    height, width = draw(st.integers(1, 21)), draw(st.integers(1, 21))
    w_x, w_y = draw(st.integers(1, min(width, 9))), draw(st.integers(1, min(height, 9)))
    stride = draw(st.integers(1, min(w_x, w_y)))
    mask = np.random.default_rng(draw(st.integers(0, 2**31))).random((height, width)) < draw(
        st.floats(0.01, 1)
    )
    mask[draw(st.integers(0, height - 1)), draw(st.integers(0, width - 1))] = True
    return PatchGrid.from_mask(mask, size=(w_x, w_y, draw(st.sampled_from([1, 3]))), stride=stride)


def random_arrays(grid: PatchGrid, dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    n = rng.standard_normal((grid.n_pixels, 3)).astype(dtype)
    return n, rng.standard_normal((grid.n_patches, grid.patch_length)).astype(dtype)


@settings(max_examples=150, deadline=None)
@given(grids())
def test_adjoint_by_inner_products(grid):
    n, P = random_arrays(grid)
    left, right = np.vdot(extract(grid, n), P), np.vdot(n, adjoint(grid, P))
    assert abs(left - right) <= 1e-13 * np.linalg.norm(extract(grid, n)) * np.linalg.norm(P)


@settings(max_examples=100, deadline=None)
@given(grids())
def test_kernels_equal_plain_numpy(grid):
    n, P = random_arrays(grid)
    np.testing.assert_array_equal(extract(grid, n), extract_readable(grid, n))
    np.testing.assert_allclose(adjoint(grid, P), adjoint_readable(grid, P), rtol=0, atol=1e-13)


@settings(max_examples=100, deadline=None)
@given(grids())
def test_count_is_the_diagonal_and_every_mask_pixel_is_covered(grid):
    assert grid.count.shape == (grid.n_pixels,) and grid.count.min() >= 1
    n, _ = random_arrays(grid)
    ones = np.ones((grid.n_pixels, 3))
    np.testing.assert_array_equal(adjoint(grid, extract(grid, ones)), grid.count[:, None] * ones)
    np.testing.assert_allclose(adjoint(grid, extract(grid, n)), grid.count[:, None] * n, rtol=1e-13)


@settings(max_examples=50, deadline=None)
@given(grids())
def test_only_patches_that_touch_the_mask_are_kept_and_none_is_missing(grid):
    w_x, w_y, _ = grid.size
    expected = [
        (row, col)
        for row in grid.row_starts
        for col in grid.col_starts
        if grid.mask[row : row + w_y, col : col + w_x].any()
    ]
    assert list(zip(grid.window_rows, grid.window_cols, strict=True)) == expected
    assert (
        grid.row_starts[-1] == grid.mask.shape[0] - w_y
        and grid.col_starts[-1] == grid.mask.shape[1] - w_x
    )
    assert np.diff(grid.row_starts).max(initial=1) <= w_y


@settings(max_examples=50, deadline=None)
@given(grids())
def test_in_place_forms_and_the_pull(grid):
    n, P = random_arrays(grid)
    R = P.copy()
    assert grid.add_extract(n, R) is R
    np.testing.assert_array_equal(R, P + extract(grid, n))
    # The residual P(n) - X of any patches X gives back the pull of X.
    np.testing.assert_allclose(
        grid.pull(n, extract(grid, n) - P), adjoint(grid, P), rtol=0, atol=1e-12
    )


def test_the_papers_frame_has_19304_patches():
    full = np.ones((612, 512), dtype=bool)
    grid = PatchGrid.from_mask(full)
    assert (grid.n_patches, grid.patch_length) == (19304, 192)
    assert PatchGrid.from_mask(full, size=(8, 8, 1)).n_patches == 3 * 19304
    assert grid.count.max() == 4 and grid.count.sum() == 19304 * 64


def test_order_inside_a_patch_is_component_then_y_then_x():
    height, width = 5, 7
    rows, cols = np.mgrid[:height, :width]
    n = (
        np.stack([100 * c + 10 * rows + cols for c in range(3)], axis=-1)
        .reshape(-1, 3)
        .astype(float)
    )
    grid = PatchGrid.from_mask(np.ones((height, width), bool), size=(3, 2, 3), stride=2)
    second = extract(grid, n)[1]  # one step to the right
    np.testing.assert_array_equal(second[:6], [2, 3, 4, 12, 13, 14])
    np.testing.assert_array_equal(second[6:12], second[:6] + 100)


def test_components_apart_are_the_same_values():
    mask = np.random.default_rng(1).random((20, 17)) < 0.3
    together, apart = (PatchGrid.from_mask(mask, size=(5, 4, w_z), stride=3) for w_z in (3, 1))
    n, _ = random_arrays(together)
    np.testing.assert_array_equal(extract(together, n).reshape(-1, 20), extract(apart, n))
    np.testing.assert_array_equal(together.count, apart.count)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_is_kept_and_threads_do_not_matter(dtype):
    grid = PatchGrid.from_mask(np.random.default_rng(1).random((60, 50)) < 0.5)
    n, P = random_arrays(grid, dtype)
    threads = numba.get_num_threads()
    results = []
    try:
        for count in (1, threads):
            numba.set_num_threads(count)
            results.append((extract(grid, n), adjoint(grid, P)))
    finally:
        numba.set_num_threads(threads)
    assert results[0][0].dtype == results[0][1].dtype == dtype
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


def test_the_grid_is_read_only_and_copies_the_mask():
    mask = np.ones((9, 9), dtype=bool)
    grid = PatchGrid.from_mask(mask, size=(3, 3, 3), stride=2)
    mask[:] = False
    assert grid.n_pixels == 81
    with pytest.raises(ValueError, match="read-only"):
        grid.mask[0, 0] = False


@pytest.mark.parametrize(
    ("shape", "size", "stride", "code"),
    [
        ((10, 10), (11, 4, 3), 4, "patch-larger-than-picture"),
        ((10, 20), (4, 11, 3), 4, "patch-larger-than-picture"),
        ((20, 20), (4, 4, 3), 5, "stride-larger-than-patch"),
        ((20, 20), (8, 4, 3), 5, "stride-larger-than-patch"),
        ((20, 20), (8, 8, 3), (4, 4), "bad-stride"),
        ((20, 20), (4, 4, 3), 0, "bad-stride"),
        ((20, 20), (4, 4, 3), 1.5, "bad-stride"),
        ((20, 20), (4, 4, 2), 2, "bad-patch-depth"),
        ((20, 20), (0, 4, 3), 2, "bad-patch-size"),
        ((20, 20), (4, 4), 2, "bad-patch-size"),
    ],
)
def test_bad_sizes_and_strides(shape, size, stride, code):
    with pytest.raises(ParameterError) as caught:
        PatchGrid.from_mask(np.ones(shape, dtype=bool), size=size, stride=stride)
    assert caught.value.code == code


def test_empty_mask_and_wrong_arrays():
    with pytest.raises(ParameterError) as caught:
        PatchGrid.from_mask(np.zeros((10, 10), dtype=bool))
    assert caught.value.code == "empty-mask"
    grid = PatchGrid.from_mask(np.ones((10, 10), dtype=bool))
    for wrong in (np.zeros((99, 3)), np.zeros((100, 3), dtype=int)):
        with pytest.raises(ValueError):
            extract(grid, wrong)
    with pytest.raises(ValueError):
        grid.add_extract(np.zeros((100, 3)), np.zeros((grid.n_patches, 384))[:, ::2])
