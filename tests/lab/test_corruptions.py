"""Noise has the statistics it is defined by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from photostereo.capture import Capture
from photostereo.core.errors import CaptureError, ParameterError
from photostereo.core.findings import by_code
from photostereo_lab.corruptions import (
    add_gaussian,
    add_poisson,
    add_salt_and_pepper,
    signal_to_noise,
)

ALL = [
    lambda c, rng: add_poisson(c, 10, rng),
    lambda c, rng: add_salt_and_pepper(c, 0.2, rng),
    lambda c, rng: add_gaussian(c, 0.1, rng),
]


@pytest.fixture
def clean() -> Capture:
    rng = np.random.default_rng(0)
    mask = np.zeros((90, 80), dtype=bool)
    mask[10:-10, 10:-10] = True
    lights = rng.normal(size=(8, 3)) * 0.4 + np.array([0, 0, 1])
    return Capture(
        images=rng.uniform(0, 1, size=(8, 90, 80)) ** 2, lights=lights, mask=mask, name="flat"
    )


@pytest.mark.parametrize("snr", [-3.0, 5.0, 20.0, 40.0])
@pytest.mark.parametrize("color", [False, True])
def test_poisson_reaches_the_ratio(clean, snr, color):
    if color:
        clean = replace(clean, images=np.random.default_rng(1).uniform(0, 2, size=(8, 90, 80, 3)))
    # 33,600 entries: the squared error is known to about one per cent, 0.05 dB.
    assert signal_to_noise(clean, add_poisson(clean, snr, rng=1)) == pytest.approx(snr, abs=0.1)


def test_poisson_is_poisson(clean):
    """On the scale of photons: whole numbers whose variance is their mean, at each level of intensity."""
    levels = np.repeat(np.array([0.05, 0.2, 0.5, 1.0]), 2)
    flat = replace(clean, images=levels[:, None, None] * np.ones((1, 90, 80)))
    noisy = add_poisson(flat, 8, rng=2)
    photons = 10**0.8 * levels.sum() / (levels**2).sum()
    counts = noisy.images[:, clean.mask].astype(np.float64) * photons
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-4)
    for level, count in zip(levels, counts, strict=True):
        assert count.mean() == pytest.approx(photons * level, rel=0.05)
        assert count.var() == pytest.approx(photons * level, rel=0.08)


def test_poisson_is_neither_clipped_nor_rescaled(clean):
    noisy = add_poisson(clean, 5, rng=0)
    assert noisy.images.max() > 1.5
    assert noisy.images[:, clean.mask].mean() == pytest.approx(
        clean.images[:, clean.mask].mean(), rel=0.02
    )


def test_background_does_not_count(clean):
    bright = clean.images.copy()
    bright[:, ~clean.mask] = 100
    loud = replace(clean, images=bright)
    np.testing.assert_array_equal(
        add_poisson(loud, 10, rng=0).images, add_poisson(clean, 10, rng=0).images
    )


@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 1.0])
def test_salt_and_pepper_shares(clean, fraction):
    middle = replace(clean, images=np.full((8, 90, 80), 0.5))
    values = add_salt_and_pepper(middle, fraction, rng=0).images[:, clean.mask]
    spread = 4 * np.sqrt(0.25 / values.size)
    assert (values == 0).mean() == pytest.approx(fraction / 2, abs=spread)
    assert (values == 1).mean() == pytest.approx(fraction / 2, abs=spread)
    assert (values == 0.5).mean() == pytest.approx(1 - fraction, abs=spread)


def test_salt_and_pepper_hits_entries_not_channels(clean):
    color = replace(clean, images=np.full((8, 90, 80, 3), 0.5))
    lost = add_salt_and_pepper(color, 0.3, rng=0).images != 0.5
    lost = lost[:, clean.mask]
    np.testing.assert_array_equal(lost.all(axis=-1), lost.any(axis=-1))
    assert add_salt_and_pepper(color, 0.3, rng=0, salt=0.7).images.max() == np.float32(0.7)


def test_gaussian_statistics(clean):
    error = (add_gaussian(clean, 0.2, rng=0).images - clean.images)[:, clean.mask].astype(
        np.float64
    )
    assert error.std() == pytest.approx(0.2, rel=0.02)
    assert abs(error.mean()) < 4 * 0.2 / np.sqrt(error.size)
    assert (add_gaussian(clean, 0.2, rng=0).images < 0).any()
    np.testing.assert_array_equal(
        add_gaussian(clean, 0, rng=0).images[:, clean.mask], clean.images[:, clean.mask]
    )


@pytest.mark.parametrize("add", ALL)
def test_what_all_noise_has_in_common(clean, add):
    before = clean.images.copy()
    one, same, other = add(clean, 7), add(clean, np.random.default_rng(7)), add(clean, 8)
    np.testing.assert_array_equal(one.images, same.images)
    assert (one.images != other.images).mean() > 0.1
    assert not one.images[:, ~clean.mask].any()
    assert one.images.dtype == np.float32
    np.testing.assert_array_equal(clean.images, before)
    np.testing.assert_array_equal(one.lights.directions, clean.lights.directions)
    generator = np.random.default_rng(7)
    first, second = add(clean, generator), add(clean, generator)
    assert (first.images != second.images).any()


@pytest.mark.parametrize("add", ALL)
def test_photographs_get_independent_noise_of_the_same_kind(clean, add):
    flat = replace(clean, images=np.full((8, 90, 80), 0.5))
    error = (add(flat, 3).images - 0.5)[:, clean.mask].astype(np.float64)
    correlation = np.corrcoef(error)
    off = correlation[~np.eye(8, dtype=bool)]
    assert np.abs(off).max() < 5 / np.sqrt(error.shape[1])
    # Neighboring pixels too.
    assert abs(np.corrcoef(error[:, 1:].ravel(), error[:, :-1].ravel())[0, 1]) < 5 / np.sqrt(
        error.size
    )
    # The order of the photographs has no influence on how strong the noise is.
    assert error.std(axis=1).max() / error.std(axis=1).min() < 1.15


def test_order_of_photographs_does_not_change_the_exposure(clean):
    turned = clean.take(np.arange(8)[::-1])
    here, there = add_poisson(clean, 10, rng=0), add_poisson(turned, 10, rng=0)
    step = np.unique(here.images)[1]  # one photon
    assert np.unique(there.images)[1] == pytest.approx(step, rel=1e-6)


def test_noise_is_noted(tmp_path, clean):
    from photostereo.capture.capture import Origin

    known = replace(clean, origin=Origin(path=tmp_path, layout="npz", notes=("first",)))
    assert by_code(add_poisson(known, 5, rng=0).origin.notes).keys() == {"note", "noise-added"}


def test_bad_parameters(clean):
    for value in (float("nan"), float("inf"), "5"):
        for add in (add_poisson, add_salt_and_pepper, add_gaussian):
            with pytest.raises(ParameterError) as caught:
                add(clean, value)
            assert caught.value.code == "bad-noise"
    for value in (-0.1, 1.1):
        with pytest.raises(ParameterError) as caught:
            add_salt_and_pepper(clean, value)
        assert caught.value.code == "bad-noise"
    with pytest.raises(ParameterError) as caught:
        add_gaussian(clean, -1)
    assert caught.value.code == "bad-noise"
    with pytest.raises(CaptureError) as caught:
        add_poisson(replace(clean, images=clean.images - 0.5), 5)
    assert caught.value.code == "negative-intensities"
    with pytest.raises(CaptureError) as caught:
        add_poisson(replace(clean, images=np.zeros((8, 90, 80))), 5)
    assert caught.value.code == "black-photographs"
