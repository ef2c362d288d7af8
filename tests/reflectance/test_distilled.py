"""The distilled network of one capture, which answers for the set network."""

import numpy as np
import pytest

import photostereo as ps
from photostereo.core.control import SILENT
from photostereo.reflectance.learned.distilled import training
from photostereo.reflectance.learned.distilled.network import Distilled, inputs
from photostereo.reflectance.learned.distilled.training import WIDTH, distill
from photostereo.reflectance.learned.matte import Witness
from photostereo.solver.bands import solve_band
from photostereo_lab.scenes import render_scene


def answers_of(pixels):
    """Normals that are a smooth function of the intensities, and their expected errors."""
    rows = np.random.default_rng(1).standard_normal((pixels.shape[1], 3))
    pixels = pixels / np.sqrt((pixels**2).mean(1, keepdims=True))
    normals = np.tanh(pixels @ rows) + np.array([0, 0, 2])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return Witness(normals.astype(np.float32), np.full(len(pixels), 0.05**2, np.float32))


def some_pixels(count, seed=0):
    rng = np.random.default_rng(seed)
    pixels = rng.random((count, 8)).astype(np.float32)
    matte = Witness(np.tile(np.float32([0, 0, 1]), (count, 1)), np.full(count, 0.01, np.float32))
    return pixels, matte


def test_outputs_are_those_of_the_layers():
    rng = np.random.default_rng(0)
    sizes = [(20, WIDTH), (WIDTH, WIDTH), (WIDTH, 4)]
    layers = tuple(
        (
            rng.standard_normal(size).astype(np.float32),
            rng.standard_normal(size[1]).astype(np.float32),
        )
        for size in sizes
    )
    miss, shown = (
        rng.standard_normal(WIDTH + 1).astype(np.float32),
        rng.random((333, 20)).astype(np.float32),
    )
    found, _ = Distilled(np.zeros(20), np.ones(20), [layers, layers], [miss, miss], 0.0).outputs(
        shown
    )
    hidden = shown.astype(float)
    for matrix, offset in layers[:2]:
        hidden = np.maximum(hidden @ matrix + offset, 0)
    expected = np.column_stack(
        [hidden @ layers[2][0] + layers[2][1], hidden @ miss[:-1] + miss[-1]]
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


def test_it_learns_and_knows_what_it_did_not():
    pixels, matte = some_pixels(20_000)
    taught = answers_of(pixels)
    # One pixel in eight, brightest in the last photograph, has answers that do not follow from what is seen.
    odd = pixels[:, -1] > pixels[:, :-1].max(1)
    noise = np.random.default_rng(2).standard_normal((odd.sum(), 3)).astype(np.float32)
    taught.normals[odd] += 0.2 * noise
    taught.normals[odd] /= np.linalg.norm(taught.normals[odd], axis=1, keepdims=True)
    network = distill(pixels, None, matte, taught, np.zeros(len(pixels)), training.LEAST_PIXELS)
    assert network is not None
    fresh, matte = some_pixels(5000, seed=7)
    normals, errors, trusted = network.answer(fresh, None, matte, np.arange(5000), SILENT)
    odd, truth = fresh[:, -1] > fresh[:, :-1].max(1), answers_of(fresh)
    miss = np.linalg.norm(normals - truth.normals, axis=1)
    assert np.sqrt(np.mean(miss[~odd & trusted] ** 2)) < 0.2 * 0.05
    assert trusted[~odd].mean() > 0.8
    assert trusted[odd].mean() < 0.4
    np.testing.assert_allclose(errors, 0.05, rtol=0.1)


def test_small_captures_have_none():
    pixels, matte = some_pixels(3000)
    assert (
        distill(pixels, None, matte, answers_of(pixels), np.zeros(3000), training.LEAST_PIXELS - 1)
        is None
    )


def test_what_is_seen_does_not_depend_on_brightness():
    pixels, matte = some_pixels(50)
    colors = np.stack([pixels, 0.5 * pixels, 0.2 * pixels], -1)
    np.testing.assert_allclose(
        inputs(pixels, colors, matte), inputs(9 * pixels, 9 * colors, matte), rtol=1e-4
    )
    assert inputs(pixels, colors, matte).shape == (50, 4 * 8 + 4)


def test_a_capture_in_parts_is_as_good(monkeypatch):
    cloudpickle = pytest.importorskip("cloudpickle")
    capture = render_scene("relief", size=(128, 192), reflectance="ggx")
    alone = ps.solve(capture, "net", crops=8).angular_error
    asked = []
    answer = Distilled.answer
    monkeypatch.setattr(training, "LEAST_PIXELS", 0)
    monkeypatch.setattr(training, "VISITS", 12.0)

    def counted(self, *args):
        found = answer(self, *args)
        asked.append(1.0 - found[2].mean())
        return found

    def elsewhere(capture, bands, learned):
        learned = cloudpickle.loads(cloudpickle.dumps(learned))  # as if sent to a worker
        for band in bands:
            yield band, solve_band(capture, learned, band)

    monkeypatch.setattr(Distilled, "answer", counted)
    helped = ps.solve(capture, "net", crops=8, deal=elsewhere).angular_error
    assert 0.0 < np.mean(asked) < 0.5
    assert helped.mean < 1.01 * alone.mean + 0.02
