"""Gradients, slope, curvature and contrast of normal maps, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.core.errors import ParameterError
from photostereo.surface import differential
from photostereo.surface.differential import contrast, curvature, gradients, slope


def grid(size: int = 121) -> tuple[np.ndarray, np.ndarray]:
    """x to the right and y up, in pixels, zero in the middle."""
    row, col = np.mgrid[:size, :size].astype(float)
    return col - size // 2, size // 2 - row


def from_gradients(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    n = np.dstack([-p, -q, np.ones_like(p)])
    return n / np.linalg.norm(n, axis=-1, keepdims=True)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("sigma", [0.7, 1.0, 3.0])
def test_ball_has_one_curvature_up_to_its_edge(sign: float, sigma: float) -> None:
    radius = 70.0
    x, y = grid()
    mask = np.hypot(x, y) < 58
    z = np.sqrt(np.maximum(radius**2 - x**2 - y**2, 1.0))
    n = np.dstack([sign * x, sign * y, z]) / radius
    result = curvature(n, mask, sigma=sigma)
    assert np.abs(result.mean[mask] - sign / radius).max() < 1e-12
    assert np.abs(result.gaussian[mask] - 1 / radius**2).max() < 1e-12
    assert np.abs(result.largest[mask] - sign / radius).max() < 1e-6
    assert np.isnan(result.mean[~mask]).all()
    expected = np.degrees(np.arcsin(np.hypot(x, y)[mask] / radius))
    assert np.abs(slope(n, mask)[mask] - expected).max() < 1e-9
    p = gradients(n, mask)
    assert np.abs(p[mask][:, 0] + sign * (x / z)[mask]).max() < 1e-12
    assert np.abs(p[mask][:, 1] + sign * (y / z)[mask]).max() < 1e-12


@pytest.mark.parametrize("turn", [0.0, 0.6, np.pi / 2])
def test_cylinder_bends_in_one_direction_only(turn: float) -> None:
    """An axis at any angle in the picture; the radius in millimeters."""
    radius = 80.0
    x, y = grid()
    across = x * np.cos(turn) + y * np.sin(turn)
    mask = np.abs(across) < 60
    tilt = across / radius
    n = np.dstack([tilt * np.cos(turn), tilt * np.sin(turn), np.sqrt(np.maximum(1 - tilt**2, 0.1))])
    result = curvature(n, mask, pixel_size=0.25)
    assert result.unit == "1/mm"
    assert np.abs(result.mean[mask] - 0.5 / (0.25 * radius)).max() < 1e-12
    assert np.abs(result.gaussian[mask]).max() < 1e-12
    assert np.abs(result.largest[mask] - 1 / (0.25 * radius)).max() < 1e-9
    assert np.abs(result.smallest[mask]).max() < 1e-9


def test_tilted_cylinder_and_saddle() -> None:
    """The curvatures do not depend on how the surface is turned toward the camera."""
    x, y = grid()
    # z = f(x, y) with H and K from the second derivatives, in the middle of the picture.
    for a, b, c, p, q in ((0.01, -0.004, 0.003, 0.4, -0.7), (0.0, 0.008, 0.0, 1.5, 0.0)):
        n = from_gradients(p + 2 * a * x + c * y, q + 2 * b * y + c * x)
        w = 1 + p**2 + q**2
        gaussian = (4 * a * b - c**2) / w**2
        mean = -((1 + q**2) * 2 * a - 2 * p * q * c + (1 + p**2) * 2 * b) / (2 * w**1.5)
        result = curvature(n, sigma=0.5)
        assert result.mean[60, 60] == pytest.approx(mean, rel=2e-3)
        assert result.gaussian[60, 60] == pytest.approx(gaussian, rel=4e-3, abs=1e-9)


def test_plane_is_flat_and_without_contrast() -> None:
    n = np.full((40, 50, 3), [-0.6, 0.3, 0.5])
    result = curvature(n)
    assert np.abs(result.mean).max() < 1e-14
    assert np.abs(result.gaussian).max() < 1e-14
    assert np.nanmax(contrast(n)) < 1e-5
    assert gradients(n)[0, 0] == pytest.approx([1.2, -0.6])


def test_waves() -> None:
    """Curvature at the crest, and contrast: the standard deviation of the angle."""
    amplitude, length = 0.5, 40.0
    k = 2 * np.pi / length
    x, _ = grid(241)
    p = -amplitude * k * np.sin(k * x)
    n = from_gradients(p, np.zeros_like(p))
    result = curvature(n, sigma=0.5)
    assert result.mean[120, 120] == pytest.approx(amplitude * k**2 / 2, rel=5e-3)
    assert result.mean[120, 140] == pytest.approx(-amplitude * k**2 / 2, rel=5e-3)
    fine = from_gradients(0.01 * np.sin(2 * np.pi / 6 * x), np.zeros_like(p))
    expected = np.degrees(0.01 / np.sqrt(2))
    assert contrast(fine, sigma=6.0)[120, 120] == pytest.approx(expected, rel=0.02)
    # A ball has none to speak of.
    x, y = grid()
    ball = np.dstack([x, y, np.sqrt(100.0**2 - x**2 - y**2)]) / 100.0
    assert np.nanmax(contrast(ball, sigma=3.0)) < 0.2


def test_bands_and_unknown_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A map in many bands is the same; a line of pixels has no curvature; holes are left out."""
    rng = np.random.default_rng(3)
    n = from_gradients(*rng.normal(0, 0.2, (2, 60, 70)))
    n[20:25, 30:40] = 0.0
    n[40, 40] = np.nan
    whole = curvature(n, np.ones((60, 70)), sigma=2.0)
    bands = differential.row_bands
    monkeypatch.setattr(differential, "row_bands", lambda h, w: bands(h, w, 7 * w))
    parts = curvature(n, np.ones((60, 70)), sigma=2.0)
    np.testing.assert_array_equal(whole.mean, parts.mean)
    assert np.isnan(whole.mean[20:25, 30:40]).all() and np.isnan(whole.mean[40, 40])
    assert np.isfinite(whole.mean).sum() == 60 * 70 - 51
    line = np.zeros((60, 70), bool)
    line[10] = True
    assert np.isnan(curvature(n, line).mean).all()
    with pytest.raises(ParameterError) as caught:
        curvature(n, sigma=0.0)
    assert caught.value.code == "bad-sigma"
