"""Meshes: orientation, volume, tears, pinched vertices, solids, decimation, colors."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.core.control import Cancelled, Control
from photostereo.core.conventions import srgb_from_linear
from photostereo.core.errors import ParameterError
from photostereo.surface import Surface, build_mesh, integrate
from photostereo.surface.mesh import build_small_mesh, decimate_mesh
from photostereo.surface.triangles import Squares, boundary_edges, split_pinched, triangulate


def surface_of(depth: np.ndarray, mask: np.ndarray, right=None, down=None) -> Surface:
    nothing = np.zeros(mask.shape, dtype=bool)
    return Surface(
        np.where(mask, depth, np.nan),
        mask,
        mask.astype(np.int32),
        nothing if right is None else right,
        nothing.copy() if down is None else down,
        "given",
        "direct",
        0,
        0.0,
    )


@pytest.mark.parametrize("pixel_size", [1.0, 0.05])
def test_ball_is_outward_with_the_right_volume(shapes, pixel_size: float) -> None:
    """Integrated normals, closed by a base: the cap of a ball plus the plate, to 1 %."""
    share, base = 0.95, 3.0
    _, normals, mask, radius = shapes.sphere(141, share)
    surface = integrate(normals, mask)
    mesh = build_mesh(surface, normals, pixel_size=pixel_size, base=base * pixel_size).to_trimesh()
    assert mesh.is_watertight
    assert mesh.is_winding_consistent
    height = radius * (1 - np.sqrt(1 - share**2))
    cap = np.pi * height**2 * (3 * radius - height) / 3
    plate = np.pi * (share * radius) ** 2 * base
    assert abs(mesh.volume / ((cap + plate) * pixel_size**3) - 1) < 0.01
    open_mesh = build_mesh(surface, normals, pixel_size=pixel_size).to_trimesh()
    assert (open_mesh.face_normals[:, 2] > 0).all()
    # Geometric normals agree with those of the map: neither is mirrored.
    agreement = np.einsum(
        "ij,ij->i", open_mesh.face_normals, open_mesh.vertex_normals[open_mesh.faces[:, 0]]
    )
    assert agreement.min() > 0.9
    top = open_mesh.vertices[open_mesh.vertices[:, 2].argmax()]
    assert np.abs(top[:2]).max() <= pixel_size


def test_frame_is_right_handed(shapes) -> None:
    """A slope up to the right and up in the picture rises along +x and +y."""
    normals = shapes.normals_of(np.full((6, 8), 0.5), np.full((6, 8), -0.25))
    mesh = build_mesh(integrate(normals), normals)
    x, y, z = mesh.vertices.T
    fit = np.linalg.lstsq(np.stack([x, y, np.ones_like(x)], axis=1), z, rcond=None)[0]
    assert np.abs(fit[:2] - [0.5, 0.25]).max() < 1e-9


def test_no_triangle_across_a_tear(shapes) -> None:
    _, normals = shapes.flap(48)
    surface = integrate(normals, method="robust")
    faces, pixels = triangulate(Squares(surface))
    row, col = np.divmod(pixels[faces], 48)
    for a, b in ((0, 1), (1, 2), (2, 0)):
        lower = np.where(row[:, a] < row[:, b], a, b)
        upper_row = np.minimum(row[:, a], row[:, b])
        straight = (col[:, a] == col[:, b]) & (row[:, a] != row[:, b])
        first_col = np.take_along_axis(col, lower[:, None], axis=1)[:, 0]
        assert not surface.torn_down[upper_row[straight], first_col[straight]].any()
    crossing = (row.min(axis=1) == 23) & (row.max(axis=1) == 24) & (col.min(axis=1) > 24)
    assert surface.torn_down[23, 25:-1].all()
    assert not crossing.any()
    mesh = build_mesh(surface, normals)
    assert np.abs(np.diff(mesh.vertices[mesh.faces, 2], axis=1)).max() < 3.0


def test_mask_border_and_every_corner() -> None:
    """Three of four pixels give one triangle in the right corner; all triangles are counter-clockwise."""
    for missing in range(4):
        mask = np.ones((2, 2), dtype=bool)
        mask.ravel()[missing] = False
        surface = surface_of(np.zeros((2, 2)), mask)
        faces, pixels = triangulate(Squares(surface))
        assert faces.shape == (1, 3)
        assert set(pixels.tolist()) == set(np.flatnonzero(mask).tolist())
        row, col = np.divmod(pixels[faces[0]], 2)
        x, y = col.astype(float), -row.astype(float)
        area = (x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0])
        assert area == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_random_tears_and_masks_make_manifolds(seed: int) -> None:
    """No edge has three triangles, no triangles overlap, and the solid over any mask is watertight."""
    rng = np.random.default_rng(seed)
    mask = rng.random((20, 24)) > 0.25
    depth = rng.normal(size=mask.shape)
    right, down = rng.random((2, *mask.shape)) < 0.15
    surface = surface_of(depth, mask, right & mask, down & mask)
    faces, pixels = triangulate(Squares(surface))
    edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    _, copies = np.unique(edges, axis=0, return_counts=True)
    assert copies.max() <= 2
    row, col = np.divmod(pixels[faces], 24)
    cells = np.stack([row.min(axis=1), col.min(axis=1)], axis=1)
    _, per_cell = np.unique(cells, axis=0, return_counts=True)
    assert per_cell.max() <= 2
    mesh = build_mesh(
        surface, np.zeros((20, 24, 3)) + np.array([0.0, 0.0, 1.0]), base=1.0
    ).to_trimesh()
    assert mesh.is_watertight
    assert mesh.is_winding_consistent
    assert mesh.volume > 0


def test_pinched_vertex_is_split() -> None:
    """Two triangles that touch in one vertex get two; a fan keeps one."""
    faces, origin = split_pinched(np.array([[0, 1, 2], [2, 3, 4]]), np.ones(5, dtype=bool))
    assert len(origin) == 6
    assert sorted(origin.tolist()) == [0, 1, 2, 2, 3, 4]
    assert (origin[faces] == [[0, 1, 2], [2, 3, 4]]).all()
    fan = np.array([[0, 1, 2], [0, 2, 3]])
    assert len(split_pinched(fan, np.ones(4, dtype=bool))[1]) == 4
    assert len(boundary_edges(fan, 4)) == 4


def test_decimation_keeps_shape_color_and_solidity(shapes) -> None:
    _, normals, mask, _ = shapes.sphere(101, 0.9)
    albedo = np.where(mask, np.linspace(0.1, 1.0, 101), 0.0)
    whole = build_mesh(integrate(normals, mask), normals, albedo, base=5.0, pixel_size=0.01)
    small = decimate_mesh(whole, 2000)
    assert abs(len(small.faces) - 2000) <= 20
    assert small.is_watertight
    assert abs(small.to_trimesh().volume / whole.to_trimesh().volume - 1) < 0.01
    assert np.abs(np.linalg.norm(small.vertex_normals, axis=1) - 1).max() < 1e-6
    right = small.vertex_colors[small.vertices[:, 0] > 0.3, 0].mean()
    left = small.vertex_colors[small.vertices[:, 0] < -0.3, 0].mean()
    assert right > left + 30
    assert decimate_mesh(whole, len(whole.faces)) is whole
    with pytest.raises(ParameterError) as caught:
        decimate_mesh(whole, 2)
    assert caught.value.code == "too-few-triangles" and caught.value.values == {"triangles": 2}


@pytest.mark.parametrize("channels", [(), (3,)])
def test_colors_are_srgb_of_the_albedo(channels: tuple[int, ...]) -> None:
    normals = np.zeros((3, 3, 3)) + np.array([0.0, 0.0, 1.0])
    albedo = np.full((3, 3, *channels), 0.25)
    albedo[0, 0] = 1.0
    mesh = build_mesh(integrate(normals), normals, albedo)
    white = np.percentile(albedo, 99)
    expected = np.rint(255 * srgb_from_linear(np.array([1.0, 0.25 / white])))
    assert mesh.vertex_colors[0, 0] == expected[0]
    assert (mesh.vertex_colors[1:, :3] == expected[1]).all()


def test_vertex_normals_are_the_maps_or_the_meshs(shapes) -> None:
    normals = shapes.normals_of(np.full((5, 5), 0.75), np.zeros((5, 5)))
    holed = normals.copy()
    holed[2, 2] = np.nan
    mesh = build_mesh(integrate(holed, np.ones((5, 5))), holed)
    assert np.abs(mesh.vertex_normals - [-0.6, 0.0, 0.8]).max() < 1e-3


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"pixel_size": 0.0}, "bad-pixel-size"),
        ({"pixel_size": np.nan}, "bad-pixel-size"),
        ({"base": -1.0}, "bad-base"),
    ],
)
def test_sizes_must_be_positive(options: dict, code: str) -> None:
    normals = np.zeros((3, 3, 3)) + np.array([0.0, 0.0, 1.0])
    with pytest.raises(ParameterError) as caught:
        build_mesh(integrate(normals), normals, **options)
    assert caught.value.code == code


def test_only_suspect_vertices_are_looked_at(shapes) -> None:
    """The corners of squares that are not whole are enough: the same mesh as if every vertex were suspect."""
    rng = np.random.default_rng(6)
    surface = surface_of(np.zeros((30, 31)), rng.random((30, 31)) > 0.2)
    faces, pixels = triangulate(Squares(surface))
    every, every_origin = split_pinched(faces, np.ones(pixels.size, dtype=bool))
    suspect = Squares(surface).near_partial().ravel()[pixels]
    assert not suspect.all()
    some, origin = split_pinched(faces, suspect)
    assert len(origin) > pixels.size
    assert np.array_equal(origin, every_origin) and np.array_equal(some, every)


def test_a_simplified_mesh_says_so(shapes) -> None:
    _, normals, mask, _ = shapes.sphere(81)
    surface = integrate(normals, mask)
    full = build_mesh(surface, normals)
    assert full.full_triangles == len(full.faces) and full.tolerance == 0
    few = build_mesh(surface, normals, triangles=3000)
    assert few.full_triangles == len(full.faces) and 0 < few.tolerance < 0.2
    small = build_small_mesh(surface, normals, triangles=1000)
    assert 900 < len(small.faces) <= 1010


def test_cancelling(shapes) -> None:
    """Building a mesh stops at its next step; a mesh of two million triangles has many."""
    _, normals, mask, _ = shapes.sphere(81)
    surface = integrate(normals, mask)

    class Counting(Control):
        checks = 0

        def check(self) -> None:
            self.checks += 1
            super().check()

    control = Counting()
    build_small_mesh(surface, normals, triangles=500, control=control)
    assert control.checks > 20
    control.cancel()
    with pytest.raises(Cancelled):
        build_mesh(surface, normals, control=control)
