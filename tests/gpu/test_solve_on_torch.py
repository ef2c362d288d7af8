"""Whole solves on torch: equal to the CPU's, resumed, batched, and refused in plain words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from photostereo.capture.intensities import intensities
from photostereo.core.control import Control
from photostereo.core.errors import ParameterError
from photostereo.diagnosis.metrics import angle_between
from photostereo.runtime.arrays import find_device
from photostereo.solver.descent import FETCH_EVERY
from photostereo.solver.prepared import prepare
from photostereo.solver.solve import solve, solve_grid
from photostereo.solver.state import SolveState
from photostereo.solver.tiles import OF_A_RESULT, OF_THE_PROGRAM, TEMPORARIES, bytes_of_row
from photostereo_lab.corruptions import add_poisson
from photostereo_lab.scenes import dome_lights, render_scene


@pytest.fixture(scope="module")
def noisy():
    clean = render_scene("relief", size=48, lights=dome_lights(10), reflectance="blinn-phong")
    return add_poisson(clean, 12.0, rng=0)


def difference(a, b, mask) -> np.ndarray:
    return angle_between(a.normals[mask], b.normals[mask])


CASES = [
    ("ls", {}),
    ("l1", {}),
    ("sbl", {}),
    ("sbl", {"noise": None}),
    ("rpca", {}),
    ("rpca", {"shadow": 0.1, "weight": 2.0}),
    ("pls", {"p": 3}),
    ("dlnv", {"max_iter": 6}),
    ("dlsr", {"max_iter": 6}),
    ("pdlnv", {"max_iter": 6}),
    ("pdlnv", {"max_iter": 4, "patch": (4, 4, 1), "p": 3, "dictionary": "random-patches"}),
    ("dlnv", {"max_iter": 4, "learn": False, "dictionary": "dct-separable"}),
]


@pytest.mark.parametrize(("method", "options"), CASES)
def test_equals_the_cpu(method, options, noisy, device) -> None:
    expected, found = (
        solve(noisy, method, **options),
        solve(noisy, method, device=device, **options),
    )
    error = difference(expected, found, noisy.mask)
    assert "torch" in found.versions and "torch" not in expected.versions
    assert error.mean() < 0.001
    assert np.percentile(error, 99) < 0.05  # a code on the threshold may fall the other way
    assert np.abs(expected.albedo - found.albedo).mean() < 1e-4
    for mine, theirs in zip(expected.history, found.history, strict=True):
        assert theirs.cost == pytest.approx(mine.cost, rel=1e-4)
        assert theirs.error == pytest.approx(mine.error, abs=0.01)
        assert theirs.figures["nonzeros"] == pytest.approx(mine.figures["nonzeros"], rel=0.01)


@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("part", ["all", "most", "little"])
def test_photographs_become_the_same_pixels(color, part, device) -> None:
    capture = render_scene("relief" if part == "all" else "sphere", size=48, color=color)
    if part == "little":  # the computer picks the pixels out
        capture = replace(capture, mask=capture.mask & np.pad(np.ones((16, 16), bool), 16))
    expected = intensities(capture, colors=True)
    found = intensities(capture, find_device(device), colors=True)
    if color:  # the gray value is rounded in another order
        assert found.scale == pytest.approx(expected.scale, rel=1e-6)
        assert np.abs(found.pixels.cpu().numpy() - expected.pixels).max() < 1e-6
        assert np.abs(found.colors.cpu().numpy() - expected.colors).max() < 1e-6
    else:
        assert found.scale == expected.scale
        assert found.colors is None and expected.colors is None
        assert np.array_equal(found.pixels.cpu().numpy(), expected.pixels)


def test_double_precision_agrees_to_rounding(noisy, device) -> None:
    options = {"max_iter": 5, "lam": 2.0, "mu": 0.08, "precision": "double"}
    expected, found = (
        solve(noisy, "pdlnv", **options),
        solve(noisy, "pdlnv", device=device, **options),
    )
    assert difference(expected, found, noisy.mask).max() < 1e-4


def test_figures_are_fetched_rarely_and_none_is_lost(noisy, device) -> None:
    class Listener(Control):
        def __init__(self):
            self.numbers = []

        def on_iteration(self, record):
            self.numbers.append(record.number)

    listener, limit = Listener(), FETCH_EVERY + 3
    result = solve(noisy, "dlnv", device=device, max_iter=limit, control=listener)
    assert listener.numbers == list(range(1, limit + 1))
    costs = [record.cost for record in result.history]
    assert np.all(np.diff(costs) <= 1e-6 * costs[0])


def test_tolerance_stops_where_the_cpu_stops(noisy, device) -> None:
    options = {"max_iter": 40, "tol": 3e-3, "precision": "double"}
    expected, found = (
        solve(noisy, "dlnv", **options),
        solve(noisy, "dlnv", device=device, **options),
    )
    assert expected.status == found.status == "converged"
    assert expected.iterations == found.iterations < 40


def test_saved_on_one_device_resumed_on_the_other(noisy, device, tmp_path) -> None:
    options = {"lam": 2.0, "mu": 0.08, "precision": "double"}
    whole = solve(noisy, "pdlnv", max_iter=6, **options)
    solve(noisy, "pdlnv", max_iter=3, device=device, checkpoint=tmp_path / "state.npz", **options)
    state = SolveState.load(tmp_path / "state.npz")
    back = solve(noisy, "pdlnv", max_iter=6, resume=state, **options)
    again = solve(
        noisy, "pdlnv", max_iter=6, resume=tmp_path / "state.npz", device=device, **options
    )
    for result in (back, again):
        assert result.iterations == 6
        assert difference(whole, result, noisy.mask).max() < 1e-4


GRID = [{"lam": lam, "mu": mu} for lam in (0.5, 3.0) for mu in (0.05, 0.1, 0.3)]


def test_a_grid_at_once_equals_one_by_one(noisy, device) -> None:
    options = {"max_iter": 4, "precision": "double"}
    results = solve_grid(noisy, "pdlnv", GRID, device=device, at_once=4, **options)
    assert [(r.parameters["lam"], r.parameters["mu"]) for r in results] == [
        tuple(s.values()) for s in GRID
    ]
    for setting, result in zip(GRID, results, strict=True):
        alone = solve(noisy, "pdlnv", **options, **setting)
        assert difference(alone, result, noisy.mask).max() < 1e-4
        assert result.history[-1].cost == pytest.approx(alone.history[-1].cost, rel=1e-9)
        assert set(result.arrays) == set(alone.arrays)
        assert np.abs(result.maps["slopes"] - alone.maps["slopes"]).max() < 1e-5


def test_a_grid_on_the_cpu_runs_one_by_one(noisy) -> None:
    results = solve_grid(noisy, "dlnv", GRID[:2], max_iter=2)
    alone = solve(noisy, "dlnv", max_iter=2, **GRID[1])
    assert np.array_equal(results[1].normals, alone.normals)


def test_what_cannot_be_done_is_said(noisy, monkeypatch) -> None:
    def code_of(work, *args, **options):
        with pytest.raises(ParameterError) as caught:
            work(*args, **options)
        return caught.value.code

    assert code_of(find_device, "cuba") == "unknown-device"
    for method, settings in (("ls", GRID), ("dlnv", [{"lam": 1.0}])):
        assert code_of(solve_grid, noisy, method, settings) == "grid-of-other-parameters"
    prepared = prepare(noisy, "dlnv", device="torch-cpu")
    assert code_of(solve, noisy, "dlnv", prepared=prepared) == "prepared-for-something-else"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda gpu: (6, 1))
    assert code_of(find_device, "cuda:3") == "no-gpu"
    assert code_of(find_device, "cuda") == "old-gpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert code_of(solve, noisy, "ls", device="cuda") == "no-gpu"


@pytest.mark.parametrize("method", ["dlsr", "pdlnv"])
def test_a_large_capture_is_solved_in_bands(method: str, device: str) -> None:
    # With more noise or atoms a code at its threshold decides the result: rounding turns normals by half a degree.
    scene = add_poisson(render_scene("relief", size=(200, 48)).take(10, rng=0), 30, rng=0)
    row = bytes_of_row(48, 10, 1, prior=260)
    memory = TEMPORARIES * (OF_THE_PROGRAM + 200 * 48 * OF_A_RESULT + (64 + 48) * row)
    options = {"crops": 8, "max_iter": 3, "atoms": 64}
    found = solve(scene, method, memory=memory, device=device, **options)
    expected = solve(scene, method, memory=memory // TEMPORARIES, **options)
    assert angle_between(found.normals, expected.normals)[scene.mask].mean() < 0.01
    assert np.abs(found.albedo - expected.albedo).max() < 1e-3
    assert found.angular_error.mean == pytest.approx(expected.angular_error.mean, abs=1e-3)
    assert "torch" in found.versions


def test_the_command_solves_in_bands_on_a_device(noisy, device, monkeypatch, tmp_path) -> None:
    """What does not fit there in one go is solved as bands there: not on the CPU, and not in one go all the same."""
    from typer.testing import CliRunner

    from photostereo.cli import app

    path, out = tmp_path / "capture.npz", tmp_path / "out"
    np.savez(path, images=noisy.images, lights=noisy.lights.directions, mask=noisy.mask)
    monkeypatch.setattr("photostereo.solver.tiles.SAMPLE_PIXELS", 100)
    options = [
        "--method",
        "dlnv",
        "--set",
        "max_iter=3",
        "--device",
        device,
        "--no-surface",
        "--no-report",
    ]
    done = CliRunner().invoke(app, ["solve", str(path), *options, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "torch" in (out / "summary.json").read_text(encoding="utf-8")
