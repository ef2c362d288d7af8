"""Parts of a solve, each by an example."""

from __future__ import annotations

import numpy as np
import pytest

import photostereo as ps
from photostereo.core.control import SILENT
from photostereo.diagnosis.noise import Noise
from photostereo.reflectance.lambertian.model import Lambertian
from photostereo.solver.conditions import measure_conditions
from photostereo.solver.confidence_ball import NoiseEvidence, WithinNoise
from photostereo.solver.estimate_error import second_opinion
from photostereo.solver.methods import method_for
from photostereo.solver.shrinkage import Moved
from photostereo.solver.tiles import bytes_of_row, choose_sample, plan_bands
from photostereo_lab.scenes import render_scene


def test_a_brighter_photograph_is_corrected() -> None:
    scene = render_scene("sphere", size=48)
    pixels = scene.pixels()
    pixels[:, 2] *= 1.5
    noise = Noise(pixels, scene.lights.matrix, scene.mask)
    found = measure_conditions(noise, strengths="auto", model_needs_noise=False)
    assert found.corrects and found.factors[2] == pytest.approx(1.5, abs=0.005)


def test_the_default_method_says_why() -> None:
    method, why = method_for(render_scene("sphere", size=32), "auto")
    assert (method.name, why.code) == ("dlnet", "most-accurate")


def test_second_opinion_of_least_squares_with_shadows() -> None:
    scene = render_scene("sphere", size=48)
    expected, _, apart = second_opinion(ps.solve(scene, "ls"), scene)
    assert 4 < expected < 5 and 3 < apart < expected  # its true error is 4.4°


def test_a_sample_is_crops_one_above_the_other() -> None:
    sample = choose_sample(np.ones((1000, 800), bool), crops=50)
    assert (sample.mask.shape, len(sample.index)) == ((1600, 32), 51200)


def test_bands_of_a_large_capture() -> None:
    bands = plan_bands(
        (4000, 6000), 60, bytes_of_row(6000, 60, 1, prior=260), 4_000_000_000, halo=True
    )
    assert (len(bands), bands[1].own_first - bands[1].first) == (13, 24)


def test_steps_of_a_moved_model() -> None:
    lights = np.array([[0, 0.6, 0], [0, 0, 0.6], [1, 0.8, 0.8]])
    n, t = np.array([[0.1, 0.2, 0.9]]), np.array([[0.0, 0.1, 0.0]])
    moved, direct = Moved(Lambertian(n @ lights, lights), t), Lambertian((n + t) @ lights, lights)
    step = {}, np.array([2.0]), np.array([[0.5, 0.0, 1.0]])
    np.testing.assert_allclose(moved.update_normals(*step), direct.update_normals(*step))


def test_a_prior_stays_within_the_noise() -> None:
    lights = np.array([[0, 0.6, 0, -0.6, 0], [0, 0, 0.6, 0, -0.6], [1, 0.8, 0.8, 0.8, 0.8]])
    own = np.array([[0.1, 0.2, 0.9]])
    model = Lambertian(own @ lights, lights)
    bounded = WithinNoise(model, model.start(SILENT), NoiseEvidence(0.01, 0.01, 0.01, 2.0, own))
    step = {}, np.array([50.0]), np.array([[50.0, 0.0, 0.0]])
    assert np.linalg.norm(model.update_normals(*step) - own) > 1.0
    assert np.linalg.norm(bounded.update_normals(*step) - own) == pytest.approx(0.041, abs=5e-4)
