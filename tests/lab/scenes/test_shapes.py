"""Depth and normals of every shape, against closed forms and against differences of the depth alone."""

import numpy as np
import pytest

from photostereo.core.errors import ParameterError
from photostereo_lab import scenes
from photostereo_lab.scenes import owl as owl_module
from photostereo_lab.scenes import shapes as shapes_module
from photostereo_lab.scenes.jets import variables
from photostereo_lab.scenes.surface import grid

SHAPES = {
    "plane": lambda size: scenes.plane(size, slope=(0.3, -0.7)),
    "step": scenes.step,
    "sphere": scenes.sphere,
    "vase": scenes.vase,
    "relief": scenes.relief,
    "fabric": scenes.fabric,
    "figure": scenes.figure,
}
SMOOTH = ("plane", "sphere", "vase", "relief", "fabric")


def angle(a, b):
    """Degrees between unit vectors, accurate for small angles."""
    return np.rad2deg(np.arctan2(np.linalg.norm(np.cross(a, b), axis=-1), (a * b).sum(-1)))


def depth_at(monkeypatch, shape, size, du, dv):
    """Depth (object units) of the same shape with every sampling point moved by (du, dv)."""

    def moved(wanted):
        u, v, scale = grid(wanted)
        return (*variables(u + du, v + dv), scale)

    with monkeypatch.context() as patch:
        patch.setattr(shapes_module, "grid_variables", moved)
        patch.setattr(owl_module, "grid_variables", moved)
        surface = shape(size)
    return surface.depth / surface.scale


@pytest.mark.parametrize("name", SHAPES)
def test_normals_are_exact(name, monkeypatch):
    shape, size, eps = SHAPES[name], 150, 1e-6
    surface = shape(size)
    here, right, left, up, down = (
        depth_at(monkeypatch, shape, size, *move)
        for move in ((0, 0), (eps, 0), (-eps, 0), (0, eps), (0, -eps))
    )
    slope_u, slope_v = (right - left) / (2 * eps), (up - down) / (2 * eps)
    expected = np.stack([-slope_u, -slope_v, np.ones_like(here)], axis=-1)
    expected /= np.linalg.norm(expected, axis=-1, keepdims=True)
    # A point within eps of a cliff or a crease has two normals; its one-sided slopes differ.
    bend = np.maximum(np.abs(right + left - 2 * here), np.abs(up + down - 2 * here)) / eps
    smooth = surface.mask & (bend < 0.02)
    assert smooth.sum() >= (0.999 if name in SMOOTH else 0.99) * surface.mask.sum()
    assert angle(surface.normals, expected)[smooth].max() < 1e-3


@pytest.mark.parametrize("name", ["sphere", "vase", "relief"])
def test_normals_obey_the_convention_of_rows_and_columns(name):
    """dz/dcol = −n_x/n_z and dz/drow = +n_y/n_z, from the public arrays alone, on a fine sampling."""
    surface = SHAPES[name](1200)
    z, n = surface.depth, surface.normals
    down, right = (z[2:, 1:-1] - z[:-2, 1:-1]) / 2, (z[1:-1, 2:] - z[1:-1, :-2]) / 2
    inner = n[1:-1, 1:-1]
    seen = np.isfinite(down) & np.isfinite(right) & (inner[..., 2] > 0.3)
    assert seen.mean() > 0.2
    assert np.abs(right + inner[..., 0] / np.where(seen, inner[..., 2], 1))[seen].max() < 2e-2
    assert np.abs(down - inner[..., 1] / np.where(seen, inner[..., 2], 1))[seen].max() < 2e-2


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("size", [2, 7, 33, (24, 41), (41, 24)])
def test_arrays_fit_together(name, size):
    surface = SHAPES[name](size)
    frame = (size, size) if isinstance(size, int) else size
    assert surface.mask.shape == frame
    assert surface.depth.dtype == surface.normals.dtype == np.float64
    assert np.array_equal(np.isfinite(surface.depth), surface.mask)
    assert (surface.normals[~surface.mask] == 0).all()
    np.testing.assert_allclose(
        np.linalg.norm(surface.normals[surface.mask], axis=1), 1.0, atol=1e-12
    )
    assert (surface.normals[surface.mask][:, 2] > 0).all()
    with pytest.raises(ValueError, match="read-only"):
        surface.depth[0, 0] = 1.0


@pytest.mark.parametrize("name", ["plane", "sphere", "vase", "relief", "figure"])
def test_shape_does_not_depend_on_the_resolution(name):
    """Pixel centers of an n-pixel frame are centers of every third pixel at 3n."""
    coarse, fine = SHAPES[name](40), SHAPES[name](120)
    same = coarse.mask == fine.mask[1::3, 1::3]
    assert same.mean() > 0.998  # rounding may decide on the outline
    both = coarse.mask & fine.mask[1::3, 1::3]
    difference = np.abs(coarse.depth - fine.depth[1::3, 1::3] / 3.0)[both]
    assert np.quantile(difference, 0.995) < 1e-9  # and on which side of a cliff a pixel lies


def test_sphere_has_the_closed_form():
    surface = scenes.sphere(101, radius=0.8)
    u, v, scale = grid(101)
    z = np.sqrt(np.maximum(0.64 - u**2 - v**2, 0.0))
    expected = np.stack([u, v, z], axis=-1) / 0.8
    assert np.abs(surface.normals - expected)[surface.mask].max() < 1e-12
    assert np.abs(surface.depth - z * scale)[surface.mask].max() < 1e-10
    assert surface.mask.sum() == pytest.approx(np.pi * (0.8 * scale) ** 2, rel=0.005)


def test_vase_is_a_surface_of_revolution():
    """At every height the normal is radial, and its lean does not depend on the angle about the axis."""
    surface = scenes.vase((120, 160))
    u, _, _ = grid((120, 160))
    n = surface.normals
    for row in range(10, 110, 9):
        inside = surface.mask[row]
        z = surface.depth[row] / surface.scale
        radial = n[row, :, 0] * z - n[row, :, 2] * u[row]
        assert np.abs(radial[inside]).max() < 1e-12
        assert np.ptp(n[row, inside, 1]) < 1e-12
        radius = np.hypot(u[row], z)[inside]
        assert np.ptp(radius) < 1e-12


def test_plane_and_step_have_known_depth():
    tilted = scenes.plane((5, 9), slope=(0.5, 0.25))
    np.testing.assert_allclose(np.diff(tilted.depth, axis=1), 0.5, atol=1e-12)
    np.testing.assert_allclose(np.diff(tilted.depth, axis=0), -0.25, atol=1e-12)
    terraces = scenes.step((6, 10), height=7.5, position=0.3)
    assert np.array_equal(terraces.depth, np.where(np.arange(10) >= 3, 7.5, 0.0) * np.ones((6, 1)))
    assert (terraces.normals == [0.0, 0.0, 1.0]).all()


def test_figure_has_cliffs_and_relief_has_none():
    def largest_jump(surface):
        return np.nanmax(np.abs(np.diff(surface.depth, axis=0)))

    figure = scenes.figure(256)
    jumps = np.abs(np.diff(figure.depth, axis=1))
    assert (jumps > 8.0).sum() > 100
    assert largest_jump(scenes.relief(256)) < 3.0
    assert figure.paint is not None
    assert figure.paint.min() >= 0.0 and figure.paint.max() <= 1.0


def test_relief_grain_has_the_slope_it_promises_and_a_seed():
    polished, rough = scenes.relief(200, grain=0.0), scenes.relief(200, grain=0.2)
    grain = (rough.depth - polished.depth) / 1.0
    slopes = np.stack([np.diff(grain, axis=1)[:-1], np.diff(grain, axis=0)[:, :-1]])
    assert np.sqrt((slopes**2).sum(0).mean()) == pytest.approx(0.2, rel=0.15)
    assert np.array_equal(rough.depth, scenes.relief(200, grain=0.2, rng=0).depth)
    assert not np.array_equal(rough.depth, scenes.relief(200, grain=0.2, rng=1).depth)


def test_restriction_keeps_what_faces_the_camera():
    ball = scenes.sphere(64)
    cap = ball.restrict(40.0)
    assert np.array_equal(cap.mask, ball.mask & (ball.normals[..., 2] >= np.cos(np.deg2rad(40.0))))
    assert np.isnan(cap.depth[~cap.mask]).all()


@pytest.mark.parametrize("size", [0, 1, (5,), (5, 6, 7), (5, 1), 2.5, (3.5, 4)])
def test_impossible_sizes_are_refused(size):
    with pytest.raises(ParameterError) as caught:
        scenes.sphere(size)
    assert caught.value.code == "bad-scene-size"


def test_impossible_radius_is_refused():
    with pytest.raises(ParameterError) as caught:
        scenes.sphere(16, radius=0.0)
    assert caught.value.code == "bad-radius"
