"""Strengths of photographs from the object itself: detected if one stands out, corrected for every method, recorded."""

from __future__ import annotations

import json

import numpy as np
import pytest

import photostereo as ps
from photostereo.core.errors import ParameterError
from photostereo.diagnosis.noise import MaskPixels
from photostereo.lights.exposure import estimate_strengths
from photostereo.solver.reconstruction import Reconstruction
from photostereo_lab import scenes


@pytest.mark.parametrize(
    ("reflectance", "wrong"), [("lambertian", 6), ("ggx", 6), ("ggx", 0), ("oren-nayar", 0)]
)
def test_photographs_of_another_strength_are_detected_and_no_others(reflectance, wrong) -> None:
    capture = scenes.render_scene(
        "figure",
        size=64,
        lights=scenes.random_lights(20, rng=3, max_angle=45),
        reflectance=reflectance,
    )
    pixels = np.stack([image[capture.mask] for image in capture.images], 1)
    pixels[:, :wrong] *= 1.25
    found = estimate_strengths(
        pixels, capture.lights.matrix, np.zeros(len(pixels), np.float32)
    ).factors
    np.testing.assert_allclose(found[:wrong], 1.25, atol=0.08)
    assert (found[wrong:] == 1.0).all()


@pytest.mark.parametrize("reflectance", ["lambertian", "ggx"])
@pytest.mark.parametrize("kind", ["falling", "automatic"])
def test_an_exposure_that_varies_throughout_is_corrected(reflectance, kind) -> None:
    """Falling by 45 % over the series, or different in every photograph: none stands out."""
    capture = scenes.render_scene(
        "figure",
        size=64,
        lights=scenes.random_lights(20, rng=3, max_angle=45),
        reflectance=reflectance,
    )
    gains = (
        np.linspace(1.0, 0.55, 20)
        if kind == "falling"
        else np.exp(np.random.default_rng(1).normal(0, 0.3, 20))
    )
    pixels = np.stack([image[capture.mask] for image in capture.images], 1) * gains.astype(
        np.float32
    )
    found = estimate_strengths(
        pixels, capture.lights.matrix, np.full(len(pixels), 1e-6, np.float32)
    ).factors
    wrong = np.log(found / gains)
    assert np.std(wrong) < 0.25 * np.std(np.log(gains))


@pytest.mark.parametrize(
    ("reflectance", "within"), [("oren-nayar", 0.02), ("blinn-phong", 0.02), ("ggx", 0.05)]
)
def test_a_relief_that_is_not_matte_is_not_tilted(reflectance, within) -> None:
    """Strengths that fall to one side look like a tilt of the whole."""
    capture = scenes.render_scene(
        "relief", size=80, reflectance=reflectance, texture="marble", rng=3
    )
    gains = np.linspace(1.0, 0.3, len(capture))
    pixels, noise = capture.pixels(), np.zeros(capture.pixel_count, np.float32)
    found = estimate_strengths(pixels * gains.astype(np.float32), capture.lights.matrix, noise)
    wrong = np.log(found.factors / gains)
    assert np.std(wrong) < within
    assert not estimate_strengths(pixels, capture.lights.matrix, noise).corrects


@pytest.mark.parametrize(
    ("name", "reflectance", "count", "rng"),
    [("coin", "ggx", 16, 3), ("fabric", "blinn-phong", 20, 4), ("figure", "oren-nayar", 12, 4)],
)
def test_gloss_and_flat_slopes_are_not_taken_for_the_exposure(
    name, reflectance, count, rng
) -> None:
    """A flat coin mirrors a light almost everywhere; other normals of a fabric explain other strengths."""
    lights = scenes.random_lights(count, rng=rng, max_angle=50)
    capture = scenes.render_scene(name, size=100, lights=lights, reflectance=reflectance, rng=rng)
    pixels, noise = capture.pixels(), np.full(capture.pixel_count, 1e-5, np.float32)
    assert not estimate_strengths(pixels, capture.lights.matrix, noise).corrects
    pixels[:, 1] *= 1.5
    found = estimate_strengths(pixels, capture.lights.matrix, noise).factors
    if name != "fabric":  # its strengths are too uncertain
        assert found[1] == pytest.approx(1.5, abs=0.15) and (np.delete(found, 1) == 1.0).all()


@pytest.mark.parametrize("fault", ["clipped", "lost"])
def test_other_faults_are_not_taken_for_the_exposure(fault) -> None:
    """Most values clipped, or a quarter of them lost."""
    capture = scenes.render_scene(
        "relief", size=80, lights=scenes.dome_lights(14), reflectance="oren-nayar"
    )
    pixels, rng = capture.pixels(), np.random.default_rng(0)
    pixels = (
        np.minimum(pixels, np.quantile(pixels, 0.3))
        if fault == "clipped"
        else np.where(rng.random(pixels.shape) < 0.25, 0, pixels)
    )
    assert not estimate_strengths(
        pixels, capture.lights.matrix, np.zeros(len(pixels), np.float32)
    ).corrects


def test_the_uncertainty_is_that_of_the_estimates() -> None:
    """A matte scene with noise: relative strengths are 1 within a few of their standard errors."""
    capture = scenes.render_scene(
        "figure", size=64, lights=scenes.random_lights(20, rng=3, max_angle=45)
    )
    rng = np.random.default_rng(0)
    pixels = np.stack([image[capture.mask] for image in capture.images], 1)
    pixels = pixels + rng.normal(0, 0.02, pixels.shape).astype(np.float32)
    found = estimate_strengths(
        pixels, capture.lights.matrix, np.full(len(pixels), 0.02**2, np.float32)
    )
    assert not found.corrects
    assert (np.abs(np.log(found.relative)) < 6 * found.uncertainty + 0.01).all()
    few = estimate_strengths(pixels[:100], capture.lights.matrix, np.zeros(100, np.float32))
    assert np.isinf(few.uncertainty).all() and not few.corrects


@pytest.fixture(scope="module")
def drifting():
    """A matte scene whose third photograph is 1.5 times too bright, and the same without that mistake."""
    right = scenes.render_scene("figure", size=72, lights=scenes.dome_lights(12), color=True)
    images = np.array(right.images)
    images[2] *= 1.5
    return right.with_images(images), right


@pytest.mark.parametrize("method", ["ls", "pls", "dlsr", "net"])
def test_every_method_corrects_them(drifting, method: str) -> None:
    wrong, right = drifting
    options = {"max_iter": 2} if method == "dlsr" else {}
    corrected, given = (
        ps.solve(wrong, method, **options),
        ps.solve(wrong, method, strengths="given", **options),
    )
    assert np.flatnonzero(corrected.strengths != 1.0).tolist() == [2]
    assert corrected.strengths[2] == pytest.approx(1.5, abs=0.05)
    assert given.strengths is None
    best = ps.solve(right, method, strengths="given", **options)
    assert corrected.angular_error.mean < best.angular_error.mean + 0.2
    margin = 0.5 if method in ("ls", "pls") else 0.0  # the others resist a single outlier
    assert given.angular_error.mean > corrected.angular_error.mean + margin
    # The color of the albedo is corrected as well.
    inside = wrong.mask & (best.albedo.min(-1) > 0.05)
    assert np.median(np.abs(corrected.albedo[inside] / best.albedo[inside] - 1)) < 0.03


@pytest.mark.parametrize("method", ["ls", "pls"])
def test_a_solve_in_parts_corrects_them(drifting, method: str) -> None:
    wrong, _ = drifting
    whole, parts = ps.solve(wrong, method), ps.solve(wrong, method, crops=200)
    np.testing.assert_allclose(parts.strengths, whole.strengths, atol=0.02)
    assert abs(parts.angular_error.mean - whole.angular_error.mean) < 0.1


def test_the_correction_is_recorded(drifting, tmp_path) -> None:
    wrong, _ = drifting
    result = ps.solve(wrong, "ls")
    ps.save(result, tmp_path / "out", wrong, surface=None, report=False)
    facts = json.loads((tmp_path / "out" / "summary.json").read_text())["strengths"]
    assert facts["corrected"] and facts["choice"] == "auto" and len(facts["factors"]) == len(wrong)
    np.testing.assert_allclose(
        Reconstruction.load(tmp_path / "out").strengths, result.strengths, atol=1e-5
    )
    plain = ps.solve(wrong, "ls", strengths="given").summary()["strengths"]
    assert plain == {"choice": "given", "corrected": False, "factors": {}}


def test_an_unknown_choice_is_refused(drifting) -> None:
    with pytest.raises(ParameterError) as caught:
        ps.solve(drifting[1], "ls", strengths="automatic")
    assert caught.value.code == "unknown-strengths"


def test_mask_pixels_are_the_intensities_of_the_capture(drifting) -> None:
    capture = drifting[0]
    view, pixels = MaskPixels(capture.images, capture.mask), capture.pixels()
    assert len(view) == len(pixels)
    np.testing.assert_allclose(view[::7], pixels[::7], rtol=1e-6)
