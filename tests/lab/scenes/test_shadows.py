"""Cast shadows: known geometry, symmetry, and the compiled march against the readable one."""

import numpy as np
import pytest

from photostereo_lab import scenes
from photostereo_lab.scenes.shadows import cast_shadow, oriented


def cast_shadow_reference(depth, mask, light, *, bias=0.05):
    """The same, readable: one NumPy step per row of the march, every sample looked at."""
    heights, inside, transposed, sign, drift, rise = oriented(depth, mask, light)
    shadow = np.zeros(inside.shape, dtype=bool)
    if rise is not None:
        rows, columns = inside.shape
        for k in range(1, rows):
            # Pixels whose k-th row along the march is still in the frame, and the row they meet there.
            start = slice(0, rows - k) if sign > 0 else slice(k, rows)
            met = slice(k, rows) if sign > 0 else slice(0, rows - k)
            position = np.arange(columns) + drift * k
            left = np.floor(position).astype(int)
            seen = (left >= 0) & (left < columns)
            at, weight = left[seen], (position - left)[seen]
            near, far = heights[met, :][:, at], heights[met, :][:, at + 1]
            surface = near + weight * (far - near)
            ray = heights[start, :columns][:, seen] + k * rise + bias
            shadow[start, seen] |= surface > ray
        shadow &= inside
    return np.ascontiguousarray(shadow.T) if transposed else shadow


BOTH = pytest.mark.parametrize(
    "cast", [cast_shadow, cast_shadow_reference], ids=["compiled", "readable"]
)


def light_at(azimuth, elevation):
    a, e = np.deg2rad(azimuth), np.deg2rad(elevation)
    return np.array([np.cos(a) * np.cos(e), np.sin(a) * np.cos(e), np.sin(e)])


@BOTH
@pytest.mark.parametrize("elevation", [15.0, 30.0, 45.0, 60.0, 80.0])
def test_a_step_throws_a_shadow_as_long_as_its_height_over_the_tangent(cast, elevation):
    height = 20.0
    surface = scenes.step((8, 240), height=height)
    shadow = cast(surface.depth, surface.mask, light_at(0.0, elevation))
    # The edge of the upper terrace is the center of its first column.
    edge, length = 120, height / np.tan(np.deg2rad(elevation))
    dark = np.flatnonzero(shadow[3])
    assert dark.max() == edge - 1
    assert np.array_equal(dark, np.arange(dark.min(), edge))
    assert abs((edge - dark.min()) - length) <= 1.0 + 1e-9
    # To the pixel: those whose ray, with its bias of 0.05, passes below the edge.
    distance = np.arange(1, 120)
    assert len(dark) == (distance * np.tan(np.deg2rad(elevation)) + 0.05 < height).sum()
    assert not cast(surface.depth, surface.mask, light_at(180.0, elevation)).any()


@BOTH
@pytest.mark.parametrize("azimuth", [0.0, 20.0, 45.0, 70.0, 90.0, 135.0, 200.0, 300.0])
def test_a_pillar_throws_its_shadow_away_from_the_light(cast, azimuth):
    depth = np.zeros((121, 121))
    depth[58:63, 58:63] = 30.0
    shadow = cast(depth, np.ones(depth.shape, bool), light_at(azimuth, 45.0))
    row, column = np.nonzero(shadow)
    x, y = column - 60.0, 60.0 - row
    along = -(x * np.cos(np.deg2rad(azimuth)) + y * np.sin(np.deg2rad(azimuth)))
    across = -x * np.sin(np.deg2rad(azimuth)) + y * np.cos(np.deg2rad(azimuth))
    assert along.min() > -3.0
    # 30 long, counted from the pillar's farthest corner.
    assert 30.0 - 1.0 <= along.max() <= 30.0 + 3.0
    assert np.abs(across).max() <= 2.0 * np.sqrt(2.0) + 1.0
    assert 0.8 * 30.0 * 4.0 < len(row) < 1.2 * 30.0 * 6.5


@pytest.mark.parametrize("seed", range(6))
def test_compiled_equals_readable(seed):
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(5, 90)), int(rng.integers(5, 90)))
    depth = np.cumsum(np.cumsum(rng.normal(size=shape), axis=0), axis=1) * 0.3 + 10.0 * (
        rng.random(shape) > 0.97
    )
    mask = rng.random(shape) > 0.1
    depth[~mask] = np.nan
    some = 0
    for azimuth in (0.0, 17.0, 45.0, 90.0, 133.0, 180.0, 222.0, 270.0, 315.0, 351.0):
        for elevation in (4.0, 25.0, 60.0):
            light = light_at(azimuth, elevation)
            shadow = cast_shadow(depth, mask, light)
            assert np.array_equal(shadow, cast_shadow_reference(depth, mask, light))
            assert not shadow[~mask].any()
            some += shadow.sum()
    assert some > 0


def test_compiled_equals_readable_on_the_figure():
    surface = scenes.figure(110)
    for light in scenes.dome_lights(12, max_angle=75.0):
        assert np.array_equal(
            cast_shadow(surface.depth, surface.mask, light),
            cast_shadow_reference(surface.depth, surface.mask, light),
        )


def test_turning_object_and_light_turns_the_shadow():
    surface = scenes.figure(80)
    depth, mask = np.array(surface.depth), np.array(surface.mask)
    light = light_at(33.0, 35.0)
    shadow = cast_shadow(depth, mask, light)
    # np.rot90 turns the picture counter-clockwise: (x, y) → (−y, x).
    turned = cast_shadow(np.rot90(depth), np.rot90(mask), np.array([-light[1], light[0], light[2]]))
    disagree = turned != np.rot90(shadow)
    assert shadow.any()
    assert disagree.sum() == 0


@BOTH
def test_convex_shapes_throw_no_shadow_on_themselves(cast):
    surface = scenes.sphere(150)
    for light in scenes.dome_lights(10, max_angle=80.0):
        lit = surface.normals @ light > 0.0
        assert not (cast(surface.depth, surface.mask, light) & lit).any()


def test_a_light_on_the_axis_sees_everything():
    surface = scenes.figure(60)
    assert not cast_shadow(surface.depth, surface.mask, np.array([0.0, 0.0, 1.0])).any()


def test_smooth_hollow_shadow_matches_dense_ray_casting():
    """A bowl z = x²/2R under a low light: the far wall is lit from where the ray clears the rim."""
    columns = np.arange(401.0)
    x = columns - 200.0
    profile = np.minimum(x**2, 150.0**2) / 300.0
    depth = np.tile(profile, (5, 1))
    shadow = cast_shadow(depth, np.ones(depth.shape, bool), light_at(0.0, 20.0))[2]
    slope = np.tan(np.deg2rad(20.0))
    # The last ray that is blocked grazes the rim at x = 150 (slope 1 there, steeper than the ray).
    blocked = (
        profile[None, :] > profile[:, None] + slope * (columns[None, :] - columns[:, None])
    ) & (columns[None, :] > columns[:, None])
    expected = blocked.any(axis=1)
    assert expected.any()
    assert np.abs(shadow.astype(int) - expected.astype(int)).sum() <= 2
