"""The rivals on the shared DiLiGenT captures: the paper's figures, the published maps, exact solvers."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import photostereo as ps
from photostereo.core.control import SILENT
from photostereo.diagnosis.metrics import angle_between
from photostereo.reflectance.bivariate.model import Bivariate
from photostereo.reflectance.lowrank.model import LowRank
from photostereo.reflectance.sparse.model import SparseBayes
from photostereo_lab.corruptions import add_salt_and_pepper

from .test_bivariate import check_optimal
from .test_sparse import check_against_program

pytestmark = pytest.mark.data


@cache
def captured(folder: Path, name: str):
    """Capture, scaled pixels, lights (3, d) and truth of one object with all 96 photographs."""
    capture = ps.load(folder / "diligent" / "pmsData" / f"{name}PNG")
    pixels = capture.pixels(capture.intensity_scale())
    return capture, pixels, capture.lights.matrix, capture.truth[capture.mask]


def mean_error(model, truth) -> float:
    return float(angle_between(model.alone(SILENT).normals, truth).mean())


@pytest.mark.parametrize(("name", "paper"), [("ball", 2.08), ("cat", 6.73)])
def test_sbl_is_the_papers_sparse_regression(data_dir, name, paper) -> None:
    _, pixels, lights, truth = captured(data_dir, name)
    assert abs(mean_error(SparseBayes(pixels, lights, noise=1e-3), truth) - paper) < 0.15


def test_l1_equals_the_linear_program_on_real_pixels(data_dir) -> None:
    for name in ("ball", "cat", "pot2"):
        _, pixels, lights, _ = captured(data_dir, name)
        some = np.random.default_rng(0).choice(len(pixels), 110, replace=False)
        check_against_program(pixels[some], lights, 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "paper", "published"), [("ball", 3.20, 2.06), ("bear", 7.89, 6.50)]
)
def test_rpca_is_the_papers_and_with_shadows_the_published_one(
    data_dir, name, paper, published
) -> None:
    capture, pixels, lights, truth = captured(data_dir, name)
    assert mean_error(LowRank(pixels, lights, tol=1e-6), truth) < paper + 0.5
    shadowed = LowRank(pixels, lights, shadow=0.1, tol=1e-6)
    assert abs(mean_error(shadowed, truth) - published) < 1.0
    with np.load(data_dir / "diligent" / "official_normals" / f"{name}.npz") as maps:
        theirs = maps["rpca_wu2010"][capture.mask]
    assert angle_between(shadowed.alone(SILENT).normals, theirs).mean() < 2.0


@pytest.mark.parametrize(("name", "paper"), [("cat", 8.05), ("reading", 19.39)])
def test_cbr_is_near_the_papers_row(data_dir, name, paper) -> None:
    _, pixels, lights, truth = captured(data_dir, name)
    assert abs(mean_error(Bivariate(pixels, lights), truth) - paper) < 1.0


@pytest.mark.parametrize(
    ("orders", "slope", "total"), [((2, 1), "rising", "sum"), ((3, 2), "falling", "top")]
)
def test_cbr_is_optimal_on_real_pixels(data_dir, orders, slope, total) -> None:
    for name in ("cat", "cow", "reading"):
        _, pixels, lights, _ = captured(data_dir, name)
        some = np.random.default_rng(0).choice(len(pixels), 40, replace=False)
        batch = np.ascontiguousarray(pixels[some])
        fit = Bivariate(batch, lights, orders=orders, slope=slope, total=total).alone(SILENT)
        for y, n, a in zip(
            batch.astype(np.float64), fit.normals, fit.unknowns["coefficients"], strict=True
        ):
            check_optimal(y, lights, n, a, orders, slope, total)


@pytest.mark.slow
def test_dlsr_withstands_salt_and_pepper_and_does_no_harm_without(data_dir) -> None:
    drawn = captured(data_dir, "cat")[0].take(20, rng=0)
    dirty = add_salt_and_pepper(drawn, 0.2, rng=1)
    errors = {
        method: ps.solve(dirty, method).angular_error.mean for method in ("sbl", "pdlnv", "dlsr")
    }
    assert errors["dlsr"] < min(errors["sbl"], errors["pdlnv"])
    clean = {method: ps.solve(drawn, method).angular_error.mean for method in ("sbl", "dlsr")}
    assert clean["dlsr"] < clean["sbl"] + 0.2
