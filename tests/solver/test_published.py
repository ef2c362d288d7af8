"""Published and measured figures on the shared research captures."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from photostereo import cli, load, solve
from photostereo.cli.info import describe
from photostereo.diagnosis.diagnose import diagnose
from photostereo.diagnosis.metrics import angle_between
from photostereo_lab.corruptions import add_poisson, add_salt_and_pepper

pytestmark = pytest.mark.data

#: Mean angular error of PLS, knots k Imax / p, p = 1 ... 5, all 96 photographs.
PLS = {
    "ball": (4.10, 3.70, 3.67, 3.67, 3.82),
    "cat": (8.41, 6.68, 7.32, 7.53, 7.71),
    "bear": (8.39, 8.70, 10.30, 11.45, 12.09),
    "pot2": (14.65, 10.41, 9.44, 9.88, 10.51),
    "reading": (19.80, 21.35, 20.14, 20.07, 19.99),
    "cow": (25.60, 22.15, 18.16, 16.01, 14.58),
}
#: Mean and median of least squares, as published.
LS = {
    "ball": (4.10, 2.41),
    "cat": (8.41, 6.52),
    "bear": (8.39, 6.18),
    "pot2": (14.65, 11.60),
    "reading": (19.80, 12.50),
    "cow": (25.60, 26.32),
}


@pytest.fixture(scope="module")
def captures(data_dir):
    return {name: load(data_dir / "diligent" / "pmsData" / f"{name}PNG") for name in PLS}


@pytest.mark.parametrize("name", PLS)
def test_least_squares_is_the_published_one(captures, name: str) -> None:
    error = solve(captures[name], "ls", strengths="given").angular_error
    assert (error.mean, error.median) == pytest.approx(LS[name], abs=0.01)
    assert error.unknown_truth == (73 if name == "pot2" else 0)


@pytest.mark.parametrize("name", PLS)
def test_pls_is_the_measured_one(captures, name: str) -> None:
    found = [
        solve(captures[name], "pls", p=p, strengths="given").angular_error.mean for p in range(1, 6)
    ]
    assert found == pytest.approx(PLS[name], abs=0.05)


def test_pls_through_the_command_line(data_dir, tmp_path, monkeypatch, capsys) -> None:
    folder = data_dir / "diligent" / "pmsData" / "ballPNG"
    words = [
        "solve",
        str(folder),
        "-m",
        "pls",
        "--set",
        "p=3",
        "-o",
        str(tmp_path / "o"),
        "--no-surface",
        "--no-report",
    ]
    monkeypatch.setattr(sys, "argv", ["photostereo", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code
    summary = json.loads((tmp_path / "o" / "summary.json").read_text())
    assert summary["angular_error"]["mean"] == pytest.approx(PLS["ball"][2], abs=0.05)


@pytest.mark.parametrize("name", ["cat", "hippo"])
@pytest.mark.parametrize("lights", ["refined", "directions"])
def test_harvard_loads_with_both_light_files_in_any_order(data_dir, name: str, lights: str) -> None:
    capture = load(data_dir / "harvard" / name, lights=lights)
    assert len(capture) == 20
    order = np.random.default_rng(0).permutation(20)
    first, second = (
        solve(capture, "ls", strengths="given"),
        solve(capture.take(order), "ls", strengths="given"),
    )
    seen = capture.images[:, capture.mask].max(axis=0) > 0
    assert (
        angle_between(first.normals[capture.mask], second.normals[capture.mask])[seen].max() < 1e-2
    )


def test_info_describes_each_shared_capture(captures, data_dir) -> None:
    for name, capture in captures.items():
        facts = describe(capture)
        assert (
            facts["layout"] == "DiLiGenT"
            and facts["photographs"] == 96
            and facts["bit_depth"] == 16
        )
        assert facts["name"].startswith(name) and facts["truth"] == "normals"
    for name in ("cat", "hippo"):
        facts = describe(load(data_dir / "harvard" / name))
        assert facts["photographs"] == 20 and facts["bit_depth"] == 8 and facts["truth"] == "none"
    # A glossy ball under 96 well-placed lights.
    assert not [
        finding for finding in diagnose(captures["ball"]).findings if finding.severity != "good"
    ]


@pytest.mark.parametrize(("name", "snr", "gain"), [("cat", 5, 0.40), ("ball", 15, 0.0)])
def test_dictionary_learning_under_noise(captures, name: str, snr: int, gain: float) -> None:
    """One draw; `python -m benchmarks.noise` has all seeds and objects. One λ, μ per ratio for every object."""
    noisy = add_poisson(captures[name].take(20, rng=0), snr, rng=0)
    mu = {5: 0.15, 15: 0.06}[snr]
    ls = solve(noisy, "ls", strengths="given").angular_error.mean
    assert (
        solve(noisy, "dlnv", lam=10.0, mu=mu, strengths="given").angular_error.mean
        < (1 - gain) * ls
    )
    assert solve(noisy, "dlnv", strengths="given").angular_error.mean < (1 - gain) * ls
    pls = solve(noisy, "pls", strengths="given").angular_error.mean
    assert (
        solve(
            noisy, "pdlnv", lam={5: 10.0, 15: 3.0}[snr], mu=mu, max_iter=25, strengths="given"
        ).angular_error.mean
        < pls
    )


@pytest.mark.slow
def test_defaults_do_not_harm_a_clean_capture(captures) -> None:
    capture = captures["reading"]
    for with_prior, alone in (("dlnv", "ls"), ("pdlnv", "pls")):
        without = solve(capture, alone, strengths="given").angular_error.mean
        assert solve(capture, with_prior, strengths="given").angular_error.mean < without + 0.2


def test_robust_dictionary_learning_under_salt_and_pepper(captures) -> None:
    noisy = add_salt_and_pepper(captures["bear"].take(20, rng=0), 0.2, rng=0)
    error = {
        name: solve(noisy, name, strengths="given").angular_error.mean
        for name in ("sbl", "pdlnv", "dlsr")
    }
    assert error["dlsr"] < min(error["sbl"], error["pdlnv"])
