"""A small part of the harm suite: a prior is never worse than its model alone, and fine detail stays.

``python -m benchmarks.harm`` runs all of it.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import uniform_filter
from scipy.optimize import lsq_linear

import photostereo as ps
from photostereo.core.control import SILENT
from photostereo.diagnosis.noise import Noise
from photostereo.diagnosis.noise_fields import noise_fields
from photostereo.priors.dictionary.patches import PatchGrid
from photostereo.priors.dictionary.prior import DictionaryPrior
from photostereo.reflectance.lambertian.model import Lambertian
from photostereo.solver.confidence_ball import NoiseEvidence, WithinNoise, is_matte
from photostereo.solver.shrinkage import best_share
from photostereo.solver.state import SolveState
from photostereo_lab.corruptions import add_gaussian, add_salt_and_pepper
from photostereo_lab.scenes import render_scene


def _suite():
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "harm.py"
    spec = importlib.util.spec_from_file_location("harm_suite", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["harm_suite"] = module
    spec.loader.exec_module(module)
    return module


suite = _suite()
CELLS = [
    suite.Cell("relief", 8, 0.002, "16 bits", False),
    suite.Cell("fabric", 8, 0.002, "8 bits", False),
    suite.Cell("figure", 12, 0.02, "JPEG", False),
]
#: What no estimate of noise alone tells: models whose error is bias.
BIASED = [
    ("cbr+dictionary", suite.Cell("coin", 48, 0.05, "16 bits", False)),
    ("rpca+dictionary", suite.Cell("coin", 8, 0.01, "16 bits", False)),
    ("pdlnv", suite.Cell("coin", 12, 0.002, "JPEG", False)),
]


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_a_prior_does_no_harm(cell) -> None:
    for outcome in suite.Suite(48).run(cell, ("dlnv", "dlsr")):
        assert not outcome.harm and not outcome.flat, str(outcome)


@pytest.mark.parametrize(("method", "cell"), BIASED, ids=str)
def test_nor_on_a_model_that_is_biased(method, cell) -> None:
    outcome = suite.Suite(48).run(cell, (method,))[0]
    assert not outcome.harm and not outcome.flat, str(outcome)


def test_the_learned_model_is_at_home_on_matte_surfaces() -> None:
    outcome = suite.Suite(48).run(CELLS[0], ("dlnet",))[0]
    assert not outcome.harm and not outcome.flat and not outcome.beyond_matte, str(outcome)


def test_the_suite_knows_harm_when_it_sees_it() -> None:
    """What was wrong once: a prior far too strong flattens detail, and the suite says so."""
    cell, figures = CELLS[0], suite.Figures
    flat = suite.Outcome(cell, "dlsr", figures(2.76, 0.4), figures(0.2, 1.0), 0.19)
    assert flat.harm and flat.flat and flat.below and flat.beyond_matte
    # The model alone had lost the detail already: counted, but not the prior's doing.
    lost = suite.Outcome(cell, "dlsr", figures(0.2, 0.4), figures(0.2, 0.5), 0.19)
    assert not lost.harm and not lost.flat and lost.below and not lost.beyond_matte


def test_a_run_goes_on_where_it_ended(tmp_path, monkeypatch) -> None:
    known = tmp_path / "known.jsonl"
    first = suite.Suite(32, known).run(CELLS[0], ("dlnv",))
    monkeypatch.setattr(suite.ps, "solve", None)
    assert suite.Suite(32, known).run(CELLS[0], ("dlnv",)) == first


def test_every_beginning_of_the_cells_is_spread() -> None:
    cells = suite.cells()
    assert len(set(cells)) == len(cells) == 576
    assert {(c.scene, c.coding) for c in cells[:40]} == {
        (s, c) for s in suite.SCENES for c in suite.CODING
    }


def _descent(scale: float, noise: float, blocky: bool, matte: bool = False):
    """Dictionary learning on a rough surface of known truth: model, prior, start, end, true noise."""
    rng = np.random.default_rng(0)
    side = 48
    azimuth = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    lights = np.stack([np.cos(azimuth), np.sin(azimuth), np.full(12, np.sqrt(0.5))]) * np.sqrt(
        2 / 3
    )
    truth = np.array([0.0, 0.0, 0.7]) + scale * rng.normal(size=(side * side, 3))
    disturbed = noise * rng.normal(size=(side, side, 12))
    if blocky:  # as JPEG leaves it: the noise hangs together over 4 × 4 pixels
        disturbed = np.kron(noise * rng.normal(size=(side // 4, side // 4, 12)), np.ones((4, 4, 1)))
    pixels = truth @ lights + disturbed.reshape(-1, 12)
    plain, mask = Lambertian(pixels, lights), np.ones((side, side), bool)
    start = plain.start(SILENT)
    evidence = NoiseEvidence(
        noise, noise, noise, 1.94, noise_fields(pixels, lights, noise), matte=matte
    )
    model = WithinNoise(plain, start, evidence, mask=mask)
    prior = DictionaryPrior(
        PatchGrid.from_mask(mask, size=(8, 8, 3), stride=4), lam=4.0, mu=1.5 * noise / 2.0
    )
    end = SolveState(*start, prior.begin(start[0]))
    for number in range(8):
        end.step(model, prior, number)
    end.history = (None,) * 8
    return model, prior, start, end, start[0] - truth


@pytest.mark.parametrize(
    ("scale", "blocky"), [(0.005, False), (0.05, False), (0.2, False), (0.05, True)]
)
def test_steins_share_has_the_least_error(scale: float, blocky: bool) -> None:
    """The share that is tried out without the truth is the one of the least true error, which is known here."""
    model, prior, start, end, noise = _descent(scale, 0.05, blocky)
    coarse, share = best_share(model, prior, start, end, SILENT)
    shift = end.normals - start[0]
    best = -(noise * shift).sum() / (shift * shift).sum()
    assert coarse == share == pytest.approx(np.clip(best, 0.0, 1.0), abs=0.08)


@pytest.mark.parametrize("scale", [0.005, 0.02, 0.05])
def test_coarse_and_fine_shares_have_the_least_error(scale: float) -> None:
    """On a matte surface, against the best shares by the truth; the answer beats that with one share."""
    model, prior, start, end, noise = _descent(scale, 0.05, False, matte=True)
    shares = best_share(model, prior, start, end, SILENT)
    parts = model.parts(end.normals - start[0])
    np.testing.assert_allclose(sum(parts), end.normals - start[0], atol=1e-12)
    means = uniform_filter(parts[0].reshape(48, 48, 3), (7, 7, 1))[3:-3, 3:-3]
    assert np.square(means).mean() > 0.5 * np.square(parts[0]).mean()  # coarse
    best = lsq_linear(np.stack([part.ravel() for part in parts], 1), -noise.ravel(), (0, 1)).x
    assert abs(shares[0] - best[0]) < 0.2 and abs(shares[1] - best[1]) < 0.05  # few coarse values
    both, one = (
        np.square(model.tempered(end.normals, used) - start[0] + noise).sum()
        for used in (shares, best_share(_descent(scale, 0.05, False)[0], prior, start, end, SILENT))
    )
    assert both < one


@pytest.mark.parametrize(
    ("reflectance", "noise", "expected"),
    [
        ("lambertian", 0.01, True),
        ("lambertian", 0.05, True),
        ("ggx", 0.01, False),
        ("ggx", 0.05, False),
        ("lambertian", 0.2, False),  # too noisy to tell
    ],
)
def test_gloss_is_told_from_noise(reflectance: str, noise: float, expected: bool) -> None:
    scene = add_gaussian(render_scene("figure", size=64, reflectance=reflectance), noise, rng=0)
    pixels = scene.images[:, scene.mask].T
    assert is_matte(Noise(pixels, scene.lights.matrix, scene.mask)) == expected


class Flattened(Lambertian):
    """A model that is off by more than noise: it takes the surface for half as rough as it is."""

    bends = True

    def __init__(self, pixels, lights) -> None:
        super().__init__(0.5 * (pixels + np.array([0.0, 0.0, 0.7]) @ lights), lights)


@pytest.mark.parametrize("scale", [0.005, 0.05, 0.2])
def test_the_share_knows_a_models_bias(scale: float) -> None:
    """A prior that flattens what is too flat already does harm; noise alone does not tell, least squares does."""
    rng = np.random.default_rng(0)
    side, noise = 48, 0.05
    azimuth = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    lights = np.stack([np.cos(azimuth), np.sin(azimuth), np.full(12, np.sqrt(0.5))]) * np.sqrt(
        2 / 3
    )
    truth = np.array([0.0, 0.0, 0.7]) + scale * rng.normal(size=(side * side, 3))
    pixels, mask = (
        truth @ lights + noise * rng.normal(size=(side * side, 12)),
        np.ones((side, side), bool),
    )
    model = Flattened(pixels, lights)
    start = model.start(SILENT)
    evidence = NoiseEvidence.of(
        model, Noise(pixels, lights, mask), lambda other: Flattened(other, lights)
    )
    bounded = WithinNoise(model, start, evidence)
    prior = DictionaryPrior(
        PatchGrid.from_mask(mask, size=(8, 8, 3), stride=4), lam=4.0, mu=1.5 * noise / 4.0
    )
    end = SolveState(*start, prior.begin(start[0]))
    for number in range(8):
        end.step(bounded, prior, number)
    end.history = (None,) * 8
    coarse, share = best_share(bounded, prior, start, end, SILENT)
    shift = end.normals - start[0]
    best = -((start[0] - truth) * shift).sum() / (shift * shift).sum()
    assert coarse == share == pytest.approx(np.clip(best, 0.0, 1.0), abs=0.15)


def test_three_photographs_leave_the_prior_nothing_to_remove() -> None:
    """Without a residual noise cannot be told from texture: 5.1° where least squares alone had 1.2°, once."""
    outcome = suite.Suite(32).run(suite.Cell("relief", 3, 0.005, "8 bits", False), ("dlnv",))[0]
    assert not outcome.harm and not outcome.flat, str(outcome)


def test_a_pixel_whose_curve_bent_around_an_outlier_keeps_its_normal() -> None:
    """Few entries, many times too bright: PLS bends its curve around them, and the prior must not undo that."""
    clean = render_scene("relief", size=96)
    capture = add_salt_and_pepper(clean, 0.05, np.random.default_rng(0))
    alone, with_prior = (
        ps.solve(capture, method).angular_error.mean for method in ("pls", "pdlnv")
    )
    assert with_prior < 0.97 * alone
