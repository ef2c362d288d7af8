"""The learned model is neither too flat on rough solids nor uneven on flat, glossy surfaces seen by a wide lens.

Both are rendered here with formulas of their own, not by the generator of the training.
"""

import numpy as np
import pytest

from photostereo.diagnosis.metrics import angle_between
from photostereo.reflectance.learned.model import Learned


def lights_on_dome(count, widest):
    """Return directions (count, 3) on a spiral, up to ``widest`` degrees from the axis."""
    number = np.arange(count) + 0.5
    z = 1 - number / count * (1 - np.cos(np.radians(widest)))
    azimuth = number * np.pi * (1 + 5**0.5)
    across = np.sqrt(1 - z * z)
    return np.stack([across * np.cos(azimuth), across * np.sin(azimuth), z], 1)


def rough_sphere(slope, size=72):
    """A matte sphere whose pixels are made of facets with slopes of this rms, with 2 % of haze."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[1 : -1 : size * 1j, -1 : 1 : size * 1j]
    squared = x * x + y * y
    mask = squared < 0.97
    normals = np.stack([x, y, np.sqrt(np.maximum(1 - squared, 0))], -1)[mask]
    lights = lights_on_dome(40, 60.0)
    first = np.cross(normals, [0.0, 0.3, 1.0])
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.cross(normals, first)
    total, areas = 0.0, 0.0
    for _ in range(200):
        one, two = slope * rng.standard_normal((2, 1, 1))
        facet = normals + one * first + two * second
        area = np.maximum(facet[:, 2:], 0)  # as the camera sees it
        facet /= np.linalg.norm(facet, axis=1, keepdims=True)
        total = total + area * np.maximum(facet @ lights.T, 0)
        areas = areas + area
    return total / areas + 0.02, lights, normals, mask


def glossy_canvas(power, size=64):
    """A flat painting, slopes of about 1°, that a lens with a half angle of 20° sees up close."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[1 : -1 : size * 1j, -1 : 1 : size * 1j]
    view = np.stack([-0.36 * x, -0.36 * y, np.ones_like(x)], -1)
    view /= np.linalg.norm(view, axis=-1, keepdims=True)
    slopes = 0.012 * rng.standard_normal((size, size, 2))
    normals = np.concatenate([slopes, np.ones((size, size, 1))], -1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    lights = lights_on_dome(36, 70.0)
    half = lights[:, None, None] + view
    half /= np.linalg.norm(half, axis=-1, keepdims=True)
    paint = np.kron(0.15 + 0.3 * rng.random((size // 8, size // 8)), np.ones((8, 8)))
    images = paint * np.einsum("hwc,dc->dhw", normals, lights)
    images += 0.8 * np.maximum((half * normals).sum(-1), 0) ** power
    images = np.rint(images / images.max() * 1023) / 1023
    mask = np.ones((size, size), bool)
    return images.reshape(len(lights), -1).T, lights, normals.reshape(-1, 3), mask


def answer(pixels, lights, mask):
    """Return normals and expected errors in degrees."""
    pixels = np.ascontiguousarray(pixels / np.percentile(pixels, 99), dtype=np.float32)
    model = Learned(pixels, np.ascontiguousarray(lights.T), mask=mask)
    found = model._answer()
    return found.normals, np.degrees(found.spread)


@pytest.mark.parametrize("slope", [0.1, 0.2])
def test_rough_solids_are_as_steep_as_they_are(slope):
    pixels, lights, normals, mask = rough_sphere(slope)
    found, expected = answer(pixels, lights, mask)
    tilt, true_tilt = (np.arccos(np.clip(n[:, 2], -1, 1)) for n in (found, normals))
    assert 0.98 < tilt.mean() / true_tilt.mean() < 1.03  # 0.96 and 0.98 before
    error = angle_between(found, normals).mean()
    assert error < 1.7  # 2.0 and 1.6 before; least squares 5.8 and 7.9
    assert 0.7 < expected.mean() / error < 2.2


@pytest.mark.parametrize(("power", "limit"), [(40, 2.2), (200, 1.3)])
def test_flat_is_flat(power, limit):
    pixels, lights, normals, mask = glossy_canvas(power)
    found, expected = answer(pixels, lights, mask)
    error = angle_between(found, normals).mean()
    assert error < limit  # 6.9 and 4.8 before; least squares 11.8 and 4.1
    assert 0.5 < expected.mean() / error < 1.5
