"""Grids over (λ, μ) on a device that solves them together."""

from dataclasses import replace

import pytest

from photostereo import solve
from photostereo.core.errors import ParameterError
from photostereo_lab.sweeps import worker as worker_module
from photostereo_lab.sweeps.plan import Corruption, MethodPlan, Plan, grids_of
from photostereo_lab.sweeps.sweep import sweep
from photostereo_lab.sweeps.worker import load_scene, run_trial

SMALL = {"patch": [4, 4, 3], "stride": 2, "atoms": 24, "max_iter": 3}


def a_plan(captures):
    grid = MethodPlan("pdlnv", fixed=SMALL, grid={"p": [1, 2], "lam": [0.5, 2.0], "mu": [0.1, 0.2]})
    return Plan(
        "test", captures, (MethodPlan("ls"), grid), (8,), (Corruption("poisson", 10.0),), (0, 1)
    )


def test_a_grid_is_what_differs_in_lambda_and_mu_alone(captures):
    plan = a_plan(captures[:1])
    grids = grids_of(plan.trials)
    every = {(("lam", lam), ("mu", mu)) for lam in (0.5, 2.0) for mu in (0.1, 0.2)}
    for trial in plan.trials:
        with_setting = "lam" in trial.parameters
        assert (trial.hash in grids) == with_setting
        if with_setting:
            assert set(grids[trial.hash]) == every
            assert (
                tuple((name, trial.parameters[name]) for name in ("lam", "mu")) in grids[trial.hash]
            )


@pytest.mark.torch
def test_settings_solved_together_are_those_solved_alone(captures, monkeypatch):
    from photostereo.solver import solve as solve_module

    calls = []
    together = solve_module.solve_grid
    monkeypatch.setattr(
        solve_module, "solve_grid", lambda *a, **k: calls.append(a[2]) or together(*a, **k)
    )
    worker_module._solve_grid.cache_clear()
    plan = a_plan(captures[:1])
    grids = grids_of(plan.trials)
    trials = [trial for trial in plan.trials if trial.hash in grids and trial.seed == 0]
    for trial in trials:
        outcome = run_trial(trial, device="torch-cpu", grid=grids[trial.hash])
        scene = load_scene(*trial.scene)
        alone = solve(replace(scene.capture, truth=scene.truth), trial.method, **trial.parameters)
        assert outcome.errors["mean"] == pytest.approx(alone.angular_error.mean, abs=2e-3)
        assert outcome.settled["lam"] == trial.parameters["lam"]
        assert outcome.host["device"] == "torch-cpu"
    assert [len(settings) for settings in calls] == [4, 4]  # one for each number of pieces


def test_an_unknown_device_is_reported_before_anything_runs(tmp_path, captures):
    plan = tmp_path / "plan.toml"
    plan.write_text(f'name = "x"\ncaptures = ["{captures[0].path}"]\n[[methods]]\nname = "ls"\n')
    with pytest.raises(ParameterError) as caught:
        sweep(plan, tmp_path / "out", device="gpu9")
    assert caught.value.code == "unknown-device"
    assert not (tmp_path / "out").exists()
