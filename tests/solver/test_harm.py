"""A small part of the harm suite: a prior is never worse than its model alone, and fine detail stays.

``python -m benchmarks.harm`` runs all of it.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from photostereo.reflectance.lambertian.model import Lambertian
from photostereo.reflectance.within_noise import WithinNoise


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
    suite.Cell("coin", 20, 0.005, "16 bits", False),
    suite.Cell("fabric", 8, 0.002, "8 bits", False),
    suite.Cell("figure", 12, 0.01, "16 bits", True),
]


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_a_prior_does_no_harm(cell) -> None:
    for outcome in suite.run_cell(cell, ("dlnv", "dlsr"), 64):
        assert not outcome.harm and not outcome.flat, str(outcome)


def test_steins_share_has_the_least_error() -> None:
    """A shrinking estimator with known freedom: the share is that of the least true error, known here."""
    rng = np.random.default_rng(0)
    azimuth = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    lights = np.stack([np.cos(azimuth), np.sin(azimuth), np.full(12, np.sqrt(0.5))]) * np.sqrt(2 / 3)
    sigma, weight = 0.05, 12.0  # L Lᵀ = 4 I, so the prior weighs three times as much as the photographs
    for detail in (0.001, 0.05, 0.2):
        truth = np.array([0.0, 0.0, 0.7]) + detail * rng.normal(size=(20_000, 3))
        model = Lambertian(truth @ lights + rng.normal(0, sigma, (20_000, 12)), lights)
        start = model.start(None)
        # A prior that knows the mean and no detail at all: no code is kept.
        pull = weight * np.tile([0.0, 0.0, 0.7], (20_000, 1))
        normals = model.update_normals({}, np.full(20_000, weight), pull)
        bounded = WithinNoise(model, start, sigma)
        bounded._variance = sigma**2
        share = bounded.share_of_shift(normals, weight, 0.0)
        shift = normals - start[0]
        best = ((truth - start[0]) * shift).sum() / (shift * shift).sum()
        assert share == pytest.approx(min(best, 1.0), abs=0.02)
