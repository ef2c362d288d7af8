"""Placement of lights."""

import numpy as np
import pytest

from photostereo.core.errors import ParameterError
from photostereo_lab.scenes import dome_lights, place_lights, random_lights, ring_lights


@pytest.mark.parametrize("lights", [dome_lights(50), ring_lights(50), random_lights(50, rng=3)])
def test_lights_are_unit_and_in_front(lights):
    assert lights.shape == (50, 3)
    np.testing.assert_allclose(np.linalg.norm(lights, axis=1), 1.0, atol=1e-14)
    assert (lights[:, 2] > 0.0).all()


def test_dome_fills_its_cap_evenly():
    d, top = 400, np.deg2rad(60.0)
    lights = dome_lights(d, max_angle=60.0)
    assert lights[:, 2].min() >= np.cos(top)
    # Mean and second moments of the uniform distribution on a cap, in closed form.
    c = np.cos(top)
    z1, z2 = (1 + c) / 2, (1 + c + c * c) / 3
    np.testing.assert_allclose(lights.mean(0), [0, 0, z1], atol=2e-3)
    np.testing.assert_allclose(
        lights.T @ lights / d, np.diag([(1 - z2) / 2, (1 - z2) / 2, z2]), atol=3e-3
    )
    # No two lights close together: the spacing is near that of a hexagonal packing.
    cosines = lights @ lights.T - 2.0 * np.eye(d)
    nearest = np.arccos(cosines.max(axis=1))
    area = 2 * np.pi * (1 - c) / d
    assert nearest.min() > 0.6 * np.sqrt(area)


def test_ring_has_one_elevation_and_equal_steps():
    lights = ring_lights(8, elevation=30.0)
    np.testing.assert_allclose(lights[:, 2], 0.5, atol=1e-15)
    np.testing.assert_allclose(
        (lights * np.roll(lights, 1, axis=0)).sum(1), 0.25 + 0.75 * np.cos(np.pi / 4)
    )


def test_random_lights_are_uniform_on_the_cap_and_seeded():
    lights = random_lights(20_000, rng=0, max_angle=50.0)
    c = np.cos(np.deg2rad(50.0))
    histogram, _ = np.histogram(lights[:, 2], bins=10, range=(c, 1.0))
    assert np.abs(histogram - 2000).max() < 5 * np.sqrt(2000)
    assert np.array_equal(random_lights(5, rng=7), random_lights(5, rng=7))
    assert not np.array_equal(random_lights(5, rng=7), random_lights(5, rng=8))


def test_placement_by_name():
    assert np.array_equal(place_lights("dome", 9), dome_lights(9))
    assert np.array_equal(place_lights("ring", 9), ring_lights(9))
    assert np.array_equal(place_lights("random", 9, rng=4), random_lights(9, rng=4))
    with pytest.raises(ParameterError) as caught:
        place_lights("dom", 9)
    assert caught.value.code == "unknown-light-placement"


@pytest.mark.parametrize(
    "make",
    [
        lambda: dome_lights(0),
        lambda: dome_lights(5, max_angle=90.0),
        lambda: ring_lights(5, elevation=0.0),
        lambda: random_lights(5, max_angle=-1.0),
    ],
)
def test_impossible_lights_are_refused(make):
    with pytest.raises(ParameterError):
        make()
