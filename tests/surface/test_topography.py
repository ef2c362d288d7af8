"""Height parameters, filters, leveling and profiles against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from photostereo.core.errors import ParameterError
from photostereo.surface.topography import height_statistics, level, profile, smooth

ROW, COL = np.mgrid[:120, :160].astype(float)
PLANE = 3.0 + 0.25 * COL - 0.1 * ROW


def test_sine_on_a_tilted_plane() -> None:
    amplitude = 1.5
    wave = amplitude * np.cos(2 * np.pi * (COL - 79.5) / 40)  # whole waves, symmetric: no trend
    found = height_statistics(PLANE + wave)
    assert found.sq == pytest.approx(amplitude / np.sqrt(2), rel=1e-9)
    assert found.sa == pytest.approx(2 * amplitude / np.pi, rel=3e-3)
    assert found.sz == pytest.approx(2 * amplitude, rel=7e-3)
    assert found.sp == pytest.approx(amplitude, rel=7e-3)
    assert found.sv == pytest.approx(amplitude, rel=7e-3)
    assert found.ssk == pytest.approx(0.0, abs=1e-9)
    assert found.sku == pytest.approx(1.5, rel=1e-6)
    assert (found.unit, found.pixels) == ("pixel", ROW.size)
    assert found.filter == "plane removed, no S-filter, no L-filter"
    in_mm = height_statistics(PLANE + wave, pixel_size=0.02)
    assert in_mm.sq == pytest.approx(0.02 * found.sq) and in_mm.unit == "mm"
    assert in_mm.sku == pytest.approx(found.sku)


@pytest.mark.parametrize("length", [10.0, 24.0])
def test_gaussian_filter_halves_its_own_wave(length: float) -> None:
    """The transmission of ISO 16610-61: exp(−π (α λc / λ)²), one half at λ = λc."""
    wave = np.cos(2 * np.pi * COL / length)
    for ratio in (0.5, 1.0, 1.7):
        expected = np.exp(-np.pi * (np.sqrt(np.log(2) / np.pi) * ratio) ** 2)
        kept = smooth(wave, ratio * length)
        middle = np.s_[50:70, 60:100]
        assert kept[middle] == pytest.approx(expected * wave[middle], abs=2e-3)
    whole = height_statistics(wave, (60, 50, int(length), 10), leveled=False)
    short = height_statistics(
        wave, (60, 50, int(length), 10), leveled=False, l_filter=0.1 * length, pixel_size=0.1
    )
    assert short.sq == pytest.approx(0.05 * whole.sq, rel=5e-3)
    assert short.filter == f"no form removed, no S-filter, L-filter {0.1 * length:g} mm"


def test_filters_separate_waves() -> None:
    """Roughness on waviness: the S-filter keeps the long wave, the L-filter the short one."""
    long, short = np.cos(2 * np.pi * COL / 80), 0.1 * np.cos(2 * np.pi * ROW / 5)
    z = long + short
    region = (40, 30, 80, 60)
    rough = height_statistics(z, region, l_filter=20)
    wavy = height_statistics(z, region, s_filter=15, leveled=False)
    # The filter leaves 4 % of the wave that is four times as long.
    remainder = 1 - np.exp(-np.log(2) * (20 / 80) ** 2)
    assert rough.sq == pytest.approx(np.hypot(0.1, remainder) / np.sqrt(2), rel=0.01)
    assert wavy.sq == pytest.approx(1 / np.sqrt(2), rel=0.03)


def test_unknown_heights_do_not_count() -> None:
    z = PLANE.copy()
    z[30:60, 40:80] = np.nan
    assert np.nanmax(np.abs(level(z))) < 1e-10
    found = height_statistics(z, l_filter=10)
    assert found.pixels == ROW.size - 30 * 40
    assert found.sz < 1e-9
    flat = np.where(np.isnan(z), np.nan, 7.0)
    assert np.nanmax(np.abs(smooth(flat, 12.0) - 7.0)) < 1e-12
    assert np.isnan(smooth(flat, 12.0)[45, 60])


def test_leveling_by_points() -> None:
    bowl = PLANE + 1e-3 * (COL - 80) ** 2
    corners = [(0, 0), (159, 0), (70.4, 119)]
    leveled = level(bowl, points=corners)
    for col, row in ((1, 1), (158, 1)):
        assert abs(leveled[row, col]) < 0.2
    assert np.abs(level(PLANE, points=corners)).max() < 1e-9
    found = height_statistics(bowl, points=corners)
    assert found.filter.startswith("plane through points removed")
    assert found.sz == pytest.approx(np.ptp(leveled))
    for points in ([(0, 0), (9, 9), (50, 50)], [(0, 0), (3, 9)]):
        with pytest.raises(ParameterError) as caught:
            level(bowl, points=points)
        assert caught.value.code == "no-plane"
    with pytest.raises(ParameterError) as caught:
        level(bowl, points=[(0, 0), (9, 0), (400, 50)])
    assert caught.value.code == "point-outside"


def test_regions() -> None:
    mask = (COL > 100) & (ROW < 20)
    assert height_statistics(PLANE, mask).pixels == mask.sum()
    assert height_statistics(PLANE, (150, -5, 100, 20)).pixels == 10 * 15
    for region, code in (((500, 0, 5, 5), "empty-region"), ((0, 0, 5, -5), "bad-region")):
        with pytest.raises(ParameterError) as caught:
            height_statistics(PLANE, region)
        assert caught.value.code == code
    with pytest.raises(ParameterError) as caught:
        height_statistics(PLANE, s_filter=-1.0)
    assert caught.value.code == "bad-filter"


def test_profile() -> None:
    line = profile(PLANE, (10, 20), (130.5, 83.25), pixel_size=0.1)
    assert line.height == pytest.approx(0.1 * (3.0 + 0.25 * line.col - 0.1 * line.row))
    assert line.distance[-1] == pytest.approx(0.1 * np.hypot(120.5, 63.25))
    assert (line.col[-1], line.row[-1]) == (130.5, 83.25)
    table = line.to_csv().splitlines()
    assert table[0] == "distance_mm,height_mm,col_pixel,row_pixel"
    read = np.loadtxt(table[1:], delimiter=",")
    assert np.abs(read[:, 1] - line.height).max() < 1e-8
    holes = PLANE.copy()
    holes[:, 60] = np.nan
    line = profile(holes, (0, 119), (159, 119))
    assert np.isnan(line.height).sum() == 1 and np.isfinite(line.height[59])
    with pytest.raises(ParameterError) as caught:
        profile(PLANE, (0, 0), (160, 10))
    assert caught.value.code == "profile-outside"
