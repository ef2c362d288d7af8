"""Meshes that are coarse where a surface is smooth: no cracks, a bounded error, borders and tears intact."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.surface import adaptive, build_mesh, integrate
from photostereo.surface.adaptive import block_errors, triangulate_adaptively
from photostereo.surface.integrated import Surface
from photostereo.surface.triangles import Squares, boundary_edges, triangulate


def surface_of(
    depth: np.ndarray, mask: np.ndarray | None = None, torn_down: np.ndarray | None = None
) -> Surface:
    mask = np.ones(depth.shape, dtype=bool) if mask is None else mask
    none = np.zeros(depth.shape, dtype=bool)
    torn = none.copy() if torn_down is None else torn_down
    return Surface(
        np.where(mask, depth, np.nan),
        mask,
        mask.astype(np.int32),
        none,
        torn,
        "poisson",
        "direct",
        0,
        0.0,
    )


@pytest.fixture(scope="module")
def hill() -> Surface:
    """Flat on the left, rough on the right, in a round mask with a hole and a tear."""
    row, col = np.mgrid[:150, :203]
    z = 0.05 * col + np.where(col > 120, 2 * np.sin(row / 3) * np.cos(col / 4), 0.0)
    mask = ((row - 75) / 74) ** 2 + ((col - 101) / 100) ** 2 < 1
    mask[40:50, 60:64] = False
    torn = np.zeros(z.shape, dtype=bool)
    torn[90, 30:80] = True
    return surface_of(z, mask, torn)


def patch_error(block: np.ndarray) -> float:
    """The error of one block, given its (s + 1, s + 1) heights."""
    share = np.linspace(0.0, 1.0, len(block))
    a, b, c, d = block[0, 0], block[0, -1], block[-1, 0], block[-1, -1]
    above, below = a + (b - a) * share, c + (d - c) * share
    patch = above + (below - above) * share[:, None]
    return float(np.abs(block - patch).max() + 0.25 * abs(a + d - b - c))


def test_errors_of_blocks() -> None:
    depth = np.random.default_rng(0).normal(size=(37, 29))
    errors = block_errors(depth, np.ones((36, 28), dtype=bool))
    single = [patch_error(depth[r : r + 3, c : c + 3]) for r in (0, 2) for c in (0, 2)]
    assert abs(errors[0][1, 1] - single[3]) < 1e-6
    own = patch_error(depth[:5, :5])
    assert abs(errors[1][0, 0] - max(own, *single)) < 1e-6
    assert np.isinf(errors[1][-1]).sum() == 0  # 36 = 9 · 4 squares
    assert np.isinf(errors[2][-1]).all()  # 36 = 4.5 · 8


def height_of_mesh(surface: Surface, faces: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    """The mesh seen from above, at every pixel: barycentric, triangle by triangle."""
    rows, cols = np.divmod(pixels, surface.mask.shape[1])
    made = np.full(surface.mask.shape, np.nan)
    for face in faces:
        r, c = rows[face], cols[face]
        z = surface.depth[r, c]
        here = np.mgrid[r.min() : r.max() + 1, c.min() : c.max() + 1].reshape(2, -1)
        system = np.stack([r, c, np.ones(3)])
        share = np.linalg.solve(system, np.vstack([here, np.ones(here.shape[1])]))
        inside = (share > -1e-9).all(axis=0)
        made[here[0, inside], here[1, inside]] = (z @ share)[inside]
    return made


def test_error_is_bounded_and_borders_stay(hill: Surface) -> None:
    full, all_pixels = triangulate(Squares(hill))
    budget = len(full) // 4
    faces, pixels, tolerance = triangulate_adaptively(Squares(hill), budget)
    assert len(faces) <= 1.1 * budget
    made = height_of_mesh(hill, faces, pixels)
    off = np.abs(made - hill.depth)[np.isfinite(made)]
    assert 0 < tolerance < 1
    assert off.max() <= 2 * tolerance + 1e-9
    assert np.isfinite(made[hill.mask]).mean() > 0.995  # all but single pixels of the border

    def outline(faces: np.ndarray, pixels: np.ndarray) -> set[tuple[int, int]]:
        return {(int(pixels[a]), int(pixels[b])) for a, b in boundary_edges(faces, len(pixels))}

    # The same boundary edges, tear and hole included: no cracks anywhere inside.
    assert outline(faces, pixels) == outline(full, all_pixels)


def test_every_triangle_faces_the_camera(hill: Surface) -> None:
    faces, pixels, _ = triangulate_adaptively(Squares(hill), 4000)
    rows, cols = np.divmod(pixels, hill.mask.shape[1])
    x, y = cols[faces].astype(float), -rows[faces].astype(float)
    area = (x[:, 1] - x[:, 0]) * (y[:, 2] - y[:, 0]) - (x[:, 2] - x[:, 0]) * (y[:, 1] - y[:, 0])
    full, _ = triangulate(Squares(hill))
    assert (area > 0).all()
    assert area.sum() == pytest.approx(len(full))  # a full triangle has twice the area ½


def test_rough_ground_keeps_more(hill: Surface) -> None:
    _, pixels, _ = triangulate_adaptively(Squares(hill), 8000)
    cols = pixels % hill.mask.shape[1]
    inner = (pixels // hill.mask.shape[1] > 60) & (pixels // hill.mask.shape[1] < 85)
    smooth = np.count_nonzero(inner & (cols > 70) & (cols < 100))
    rough = np.count_nonzero(inner & (cols > 140) & (cols < 170))
    assert rough > 5 * smooth


def test_small_surfaces_and_full_ones_are_whole(shapes) -> None:
    _, normals, mask, _ = shapes.sphere(41)
    surface = integrate(normals, mask)
    whole = build_mesh(surface, normals)
    assert len(whole.faces) == len(triangulate(Squares(surface))[0])
    few = build_mesh(surface, normals, triangles=600)
    assert len(few.faces) < len(whole.faces)
    assert len(build_mesh(surface, normals, triangles=None).faces) == len(whole.faces)
    solid = build_mesh(surface, normals, base=3.0, triangles=1600)
    assert solid.is_watertight


def test_levels_differ_by_one() -> None:
    rng = np.random.default_rng(4)
    errors = block_errors(
        10 * rng.random((65, 65)) * (np.arange(65) < 6), np.ones((64, 64), dtype=bool)
    )
    split = adaptive.balanced_splits(errors, 0.5)
    level = np.zeros((64, 64), dtype=int)
    for number, cut in enumerate(split, start=1):
        level[~np.kron(cut, np.ones((2**number,) * 2, dtype=bool))[:64, :64]] = number
    assert np.abs(np.diff(level, axis=0)).max() <= 1
    assert np.abs(np.diff(level, axis=1)).max() <= 1
    assert level.max() >= 4
