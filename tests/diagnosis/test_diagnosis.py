"""The diagnosis against closed forms, known noise and Monte Carlo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from photostereo.capture.capture import Capture, Origin
from photostereo.core.findings import Finding, by_code
from photostereo.diagnosis.advice import remarks
from photostereo.diagnosis.diagnose import diagnose
from photostereo.diagnosis.exposure import dark_counts, matte_fit, saturation_share
from photostereo.diagnosis.noise import Noise
from photostereo.lights.geometry import light_geometry
from photostereo.lights.lights import Lights
from photostereo.report.photographs import find_verdicts
from photostereo.report.pictures import Frame


def noisy(capture, sigma, seed=0):
    noise = np.random.default_rng(seed).normal(0, sigma, capture.images.shape)
    return replace(capture, images=capture.images + noise)


def test_no_problem_means_that_nothing_asks_for_attention(make_capture):
    capture = make_capture(24, truth=False)
    read_as = lambda *notes: replace(capture, origin=replace(capture.origin, notes=notes))  # noqa: E731
    routine, lamp = Finding("mask-found", share=0.5), Finding("room-light", share=0.26)
    assert "no-problems" in by_code(diagnose(read_as(routine)).findings)
    found = diagnose(read_as(routine, lamp)).findings
    assert "no-problems" not in by_code(found)
    # What asks for attention comes before what does not, and all of it before what is good.
    said = [finding.code for finding in remarks(read_as(routine, lamp), found)]
    assert said.index("room-light") < said.index("mask-found") < said.index("lights-well-spread")


@pytest.mark.parametrize("sigma", [0.003, 0.02, 0.1])
def test_noise_of_known_strength_is_found(make_capture, sigma):
    capture = noisy(make_capture(24), sigma)
    found = Noise.of_images(capture.images, capture.lights, capture.mask).estimate()
    # The clean sphere itself, with its stripes and attached shadows, must not look like noise.
    assert found.sigma == pytest.approx(sigma, rel=0.12)
    clean = Noise.of_images(make_capture(24).images, capture.lights, capture.mask).estimate()
    assert clean.sigma < 0.002


def test_noise_with_few_photographs_is_put_back_by_the_leverage(make_capture):
    found = [
        Noise.of_images(c.images, c.lights, c.mask).estimate().sigma
        for c in (noisy(make_capture(5), 0.02, seed) for seed in range(3))
    ]
    assert np.mean(found) == pytest.approx(0.02, rel=0.1)


@pytest.mark.parametrize("snr", [8.0, 20.0])
def test_poisson_noise_is_found_in_decibels(make_capture, snr):
    capture = make_capture(24)
    inside = capture.images[:, capture.mask].astype(float)
    alpha = 10 ** (snr / 10) * inside.sum() / (inside**2).sum()
    counted = np.random.default_rng(0).poisson(alpha * np.maximum(capture.images, 0)) / alpha
    assert diagnose(replace(capture, images=counted)).noise.snr_db == pytest.approx(snr, abs=1.2)


def test_expected_error_agrees_with_monte_carlo():
    lights = np.array([[0, 0, 1], [0.7, 0, 0.7], [0, 0.7, 0.7], [-0.7, 0, 0.7], [0, -0.7, 0.7]])
    lights /= np.linalg.norm(lights, axis=1, keepdims=True)
    normal, sigma = 0.6 * np.array([0.2, -0.3, 0.93]), 0.02
    images = (lights @ normal)[:, None, None] + np.random.default_rng(0).normal(
        0, sigma, (5, 200, 200)
    )
    fitted = np.tensordot(np.linalg.pinv(lights), images, axes=1).reshape(3, -1)
    cosine = normal @ fitted / np.linalg.norm(normal) / np.linalg.norm(fitted, axis=0)
    measured = np.degrees(np.sqrt(np.mean(np.arccos(np.minimum(cosine, 1)) ** 2)))
    predicted = (
        Noise.of_images(images, Lights(lights), np.ones((200, 200), bool)).estimate().expected_error
    )
    assert predicted == pytest.approx(measured, rel=0.05)


def test_light_geometry_of_a_ring_in_closed_form():
    # On a ring at elevation e: one singular value is sin e, the two others cos e / √2.
    azimuth, elevation = np.radians(np.arange(0, 360, 30)), np.radians(40)
    ring = np.stack(
        [np.cos(azimuth) * np.cos(elevation), np.sin(azimuth) * np.cos(elevation)], axis=1
    )
    lights = np.column_stack([ring, np.full(12, np.sin(elevation))])
    found = light_geometry(lights)
    expected = np.sort(
        [np.sin(elevation), np.cos(elevation) / np.sqrt(2), np.cos(elevation) / np.sqrt(2)]
    )[::-1]
    assert np.abs(found.singular_values - expected).max() < 1e-12
    assert found.condition == pytest.approx(expected[0] / expected[2])
    assert found.widest_gap == pytest.approx(30)
    assert found.lowest == pytest.approx(40)


def test_the_widest_gap_is_named_by_its_side():
    azimuth = np.radians(np.arange(-100, 101, 20))
    lights = np.column_stack(
        [np.cos(azimuth) * 0.7, np.sin(azimuth) * 0.7, np.full(len(azimuth), 0.714)]
    )
    found = light_geometry(lights)
    assert found.widest_gap == pytest.approx(160)
    assert found.gap_azimuth == pytest.approx(180)


def test_dark_counts_follow_the_attached_shadow(sphere, capture):
    # Where the cosine is clearly negative the pixel is black; where it is large it is lit.
    cosine = np.einsum("hwc,jc->hwj", sphere.normals, capture.lights.directions)
    found = dark_counts(capture.images, capture.mask, capture.intensity_scale())
    assert (found[sphere.mask] >= (cosine <= 0).sum(axis=-1)[sphere.mask]).all()
    assert (found[sphere.mask] <= (cosine < 0.12).sum(axis=-1)[sphere.mask]).all()
    assert (found[~sphere.mask] == -1).all()


def test_saturation_is_seen_and_a_plane_is_not(capture):
    assert saturation_share(capture.images, capture.mask)[0] == 0
    clipped = np.minimum(capture.images, 0.6)
    share, by_photograph = saturation_share(clipped, capture.mask)
    expected = (capture.images[:, capture.mask] >= 0.6).mean(axis=1)
    assert np.abs(by_photograph - expected).max() < 0.01
    assert share == pytest.approx(expected.mean(), abs=0.005)
    assert saturation_share(np.full((3, 20, 20), 0.7), np.ones((20, 20), bool))[0] == 0


def test_residual_is_zero_for_the_truth_and_the_sine_for_a_constant(sphere, capture):
    seen = capture.lights_at(np.flatnonzero(capture.mask))
    exact = matte_fit(capture.images, sphere.normals, seen, capture.mask).residual
    assert exact.max() < 2e-3
    assert np.array_equal(np.isnan(diagnose(capture).residual), ~capture.mask)
    # By definition the residual is the sine of the angle between the pixel's photographs and its shading.
    normals = np.zeros_like(sphere.normals)
    normals[..., 2] = 1
    row, col = np.argwhere(capture.mask)[500]
    y, s = capture.images[:, row, col].astype(float), capture.lights.directions[:, 2]
    cosine = y @ s / np.linalg.norm(y) / np.linalg.norm(s)
    found = matte_fit(capture.images, normals, seen, capture.mask).residual[500]
    assert found == pytest.approx(np.sqrt(1 - cosine**2), abs=1e-3)


def advice(capture, result=None):
    return by_code(diagnose(capture, result).findings)


def wall(lights, **options):
    lights = np.asarray(lights, float)
    lights /= np.linalg.norm(lights, axis=1, keepdims=True)
    images = (
        np.maximum(lights[:, 2], 0)[:, None, None]
        * np.linspace(0.5, 1, 40)[None, None]
        * np.ones((1, 40, 1))
    )
    return Capture(images=images, lights=lights, name="wall", **options)


def test_nearly_coplanar_lights_are_said_so():
    lights = [[np.sin(a), 0.03 * (-1) ** i, np.cos(a)] for i, a in enumerate(np.linspace(-1, 1, 9))]
    values = advice(wall(lights))["coplanar-lights"].values
    assert values["photographs"] == 9 and {"top", "bottom"} <= set(values["missing"].split())


def test_lights_from_one_place_and_a_missing_side_are_said_so():
    narrow = [[0.1 * np.cos(a), 0.1 * np.sin(a), 1] for a in np.arange(0, 6, 0.7)]
    assert advice(wall(narrow))["narrow-lights"].values["degrees"] == pytest.approx(11.4, abs=0.2)
    one_side = [[0.35 * np.cos(a), 0.3 + 0.27 * np.sin(a), 1] for a in np.arange(0, 6, 0.5)]
    assert not {"narrow-lights", "coplanar-lights"} & set(advice(wall(one_side)))  # up to 37° apart
    right = [[np.cos(a), np.sin(a), 1] for a in np.linspace(-1.5, 1.5, 10)]
    assert advice(wall(right))["gap-between-lights"].values["missing"] == "left"


def test_few_dark_noisy_saturated_and_coarse_are_said_so(make_capture):
    assert advice(make_capture(4))["few-photographs"].values["photographs"] == 4
    assert "very-noisy" in advice(noisy(make_capture(12), 0.2))
    clipped = make_capture(12)
    assert "saturated" in advice(replace(clipped, images=np.minimum(clipped.images, 0.6)))
    coarse = replace(make_capture(12), origin=Origin(Path("x"), "test", 8))
    assert "eight-bits" in advice(coarse)
    unmasked = replace(make_capture(12), mask=np.ones(make_capture(12).frame, bool))
    assert "black-background" in advice(unmasked)


def test_a_result_is_judged_too(capture, make_result):
    assert "normals-away" in advice(capture, make_result(tilt=60.0))


def test_a_good_capture_is_not_nagged(make_capture):
    findings = diagnose(noisy(make_capture(24), 0.004)).findings
    assert {finding.severity for finding in findings} == {"good"}, findings


def test_three_photographs_color_and_black_pixels_do_no_harm(make_capture):
    three = diagnose(make_capture(3))
    assert not three.noise.from_residual and three.advice
    capture = make_capture(6)
    color = replace(capture, images=np.repeat(capture.images[..., None], 3, axis=-1))
    assert diagnose(color).dark_count.shape == capture.frame
    black = replace(capture, images=np.zeros_like(capture.images))
    found = diagnose(black)
    assert found.advice and found.noise.sigma == 0


def test_verdicts_are_the_methods_own_or_the_difference_from_matte(capture, result, sphere):
    height, width = capture.frame
    frame = Frame(slice(0, height), slice(0, width), height, width)
    chosen = list(range(len(capture)))

    def verdicts(given, photographs=capture.images):
        return find_verdicts(given, capture, chosen, list(photographs), frame)

    own = verdicts(result)
    assert own.kind == "inliers"
    inside = sphere.mask
    assert np.abs(own.maps[3][inside] - result.maps["inliers"][..., 3][inside]).max() < 1e-6
    errors = np.random.default_rng(0).random((height, width, len(capture)))
    removed = verdicts(replace(result, maps={"errors": errors}))
    assert np.abs(removed.maps[2][inside] - errors[..., 2][inside]).max() < 1e-6
    # The true normals leave nothing over.
    exact = replace(result, normals=sphere.normals, maps={})
    assert max(np.nanmax(np.abs(difference)) for difference in verdicts(exact).maps) < 5e-3
    # A highlight is brighter than matte, in its photograph and at its place.
    images = capture.images.copy()
    images[5, 40:44, 40:44] += 1.0
    shiny = verdicts(exact, images).maps[5]
    assert (shiny[40:44, 40:44] > 0.4).all() and np.nanmax(np.abs(shiny[60:])) < 5e-3


def test_photographs_that_are_dark_altogether_are_told(make_capture):
    """Each pixel's own mean is dark then, so that no pixel looks shadowed."""
    capture = make_capture(15)
    images = capture.images.copy()
    images[2:] *= 0.03
    findings = diagnose(replace(capture, images=images)).findings
    dim = by_code(findings)["dim-photographs"]
    assert dim.severity == "problem" and dim.values["count"] == 13
    assert "mild-shadows" not in by_code(findings)
    assert diagnose(capture).dim_photographs == ()


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("few-photographs", lambda c: c.take(5, rng=0)),
        ("very-noisy", lambda c: noisy(c, 0.2)),
        ("noisy", lambda c: noisy(c, 0.03)),
    ],
)
def test_advice_for_which_the_default_is_recommended(make_capture, code, change):
    assert code in by_code(diagnose(change(make_capture(24))).findings)


def test_photographs_are_looked_at_once_whatever_the_normals(make_capture, result, monkeypatch):
    gray = make_capture(12)
    rgb = np.asarray(gray.images)[..., None] * np.array([0.9, 1.0, 1.1], np.float32)
    capture, again = replace(gray, images=rgb), replace(gray, images=rgb)
    looked, honest = [], Noise.estimate
    monkeypatch.setattr(Noise, "estimate", lambda *a: looked.append(1) or honest(*a))
    before, after = diagnose(capture), diagnose(capture, result)
    assert len(looked) == 1
    apart = diagnose(again, result)
    assert after.findings == apart.findings != before.findings
    assert after.noise == apart.noise == before.noise
    assert np.allclose(after.residual, apart.residual, rtol=1e-4, atol=1e-6, equal_nan=True)
    assert not np.allclose(after.residual, before.residual, equal_nan=True)
