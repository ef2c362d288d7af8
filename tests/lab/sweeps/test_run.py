"""Running plans: resuming, failing, dying workers, killed processes, a scheduler by its address."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from distributed import LocalCluster

from photostereo import load, solve
from photostereo.batch.options import RunOptions
from photostereo.core.errors import ParameterError
from photostereo.diagnosis.metrics import angular_error
from photostereo_lab.sweeps.plan import Corruption, MethodPlan, Plan
from photostereo_lab.sweeps.store import Store
from photostereo_lab.sweeps.sweep import run_trials, sweep
from photostereo_lab.sweeps.worker import load_scene, run_trial

#: A dictionary that fits into small captures, and few iterations.
SMALL = {"patch": [4, 4, 3], "stride": 2, "atoms": 24, "max_iter": 3}

TABLES = ("table.csv", "table.md", "table.tex", "table-oracle.csv", "table-defaults.csv")


def a_plan(captures, seeds=(0, 1)):
    dictionary = MethodPlan(
        "dlnv", fixed={**SMALL, "lam": 1.0}, grid={"mu": [0.1, 0.2]}, defaults=False
    )
    noise = (Corruption("poisson", 10.0),)
    return Plan("test", captures, (MethodPlan("ls"), dictionary), (8,), noise, seeds)


def test_results_are_those_of_solve(captures, executor, tmp_path):
    plan = a_plan(captures)
    store = Store(tmp_path)
    end = run_trials(plan.trials, store, executor)
    assert (end.done, end.failed, end.total) == (len(plan.trials), 0, len(plan.trials))
    rows = store.rows()
    for trial in plan.trials[::3]:
        scene = load_scene(*trial.scene)
        alone = solve(replace(scene.capture, truth=scene.truth), trial.method, **trial.parameters)
        assert rows[trial.hash]["mean"] == alone.angular_error.mean
        assert rows[trial.hash]["median"] == alone.angular_error.median
        settled = rows[trial.hash]["settled"]
        assert settled.keys() == alone.parameters.keys() and "auto" not in settled.values()
        assert rows[trial.hash]["versions"]["photostereo"]
        assert rows[trial.hash]["host"]["cores"] == os.cpu_count()
        assert rows[trial.hash]["stages"].keys() >= {"prepare", "statistics", "solve"}


def test_draws_and_noise_depend_on_the_seed_alone(captures):
    noisy = Corruption("poisson", 10.0)
    first = load_scene(captures[0], 8, noisy, 0).capture
    load_scene.cache_clear()
    again = load_scene(captures[0], 8, noisy, 0).capture
    assert first is not again
    assert first.digest == again.digest
    assert load_scene(captures[0], 8, noisy, 1).capture.digest != first.digest
    # The same photographs at another level of the noise.
    assert (
        load_scene(captures[0], 8, Corruption("poisson", 30.0), 0).capture.lights.directions
        == first.lights.directions
    ).all()


def test_least_squares_on_clean_photographs_as_the_reference(captures):
    spec = replace(captures[0], reference="ls")
    trial = Plan("x", (spec,), (MethodPlan("ls"),)).trials[0]
    assert run_trial(trial).errors["mean"] < 1e-6
    assert (load_scene(*trial.scene).truth == solve(load(spec.path), "ls").normals).all()


def test_a_failed_trial_is_a_row_and_stops_nothing(captures, executor, tmp_path):
    gone = replace(captures[0], path=str(tmp_path / "gone.npz"), name="gone", fingerprint="0" * 16)
    too_many = MethodPlan(
        "dlnv", "too many atoms", {**SMALL, "atoms": 100_000, "lam": 1.0, "mu": 0.1}, defaults=False
    )
    plan = Plan("test", (captures[0], gone), (MethodPlan("ls"), too_many), (8,))
    store = Store(tmp_path / "out")
    end = run_trials(plan.trials, store, executor)
    assert (end.done, end.failed) == (1, 3)
    errors = {(row["capture"], row["method"]): row["error"] for row in store.rows().values()}
    assert errors["sphere", "ls"] is None
    assert "does not exist" in errors["gone", "ls"]
    assert "more atoms than patches" in errors["sphere", "dlnv"]
    # Again: failed ones stay as they are, unless asked for.
    stamps = {key: row["finished"] for key, row in store.rows().items()}
    assert run_trials(plan.trials, store, executor).failed == 3
    assert {key: row["finished"] for key, row in store.rows().items()} == stamps
    assert (
        run_trials(plan.trials, store, executor, options=RunOptions(retry_failed=True)).failed == 3
    )


def test_maps_are_kept_for_the_trials_that_want_them(captures, executor, tmp_path):
    import numpy as np

    plan = a_plan(captures[:1], seeds=(0,))
    store = Store(tmp_path)
    run_trials(plan.trials, store, executor)
    before = store.rows()
    wanted = plan.trials[1]
    run_trials(plan.trials, store, executor, keep=[wanted.hash])
    with np.load(store.arrays_path(wanted.hash)) as file:
        assert file["normals"].shape == (40, 40, 3)
        assert file["dictionary"].shape == (24, 48)
        assert len(file["history_cost"]) == 3
        assert (np.diff(file["history_error"]) != 0).any()
    assert store.rows()[wanted.hash]["mean"] == before[wanted.hash]["mean"]
    assert [path.stem for path in (tmp_path / "arrays").iterdir()] == [wanted.hash]


def start_sweep(plan: Path, out: Path, killed_at: int = 0) -> subprocess.Popen[bytes]:
    """A sweep in a process of its own; it kills itself while it writes the maps of a trial, if ``killed_at`` says which."""
    code = f"""
import os, signal
from photostereo.batch.options import RunOptions
from photostereo_lab.sweeps.sweep import sweep
replace, written = os.replace, []
def replace_or_die(stage, target):
    written.extend([target] if "arrays" in str(target) else [])
    if len(written) == {killed_at} and {killed_at}:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(stage, target)
if __name__ == "__main__":
    os.replace = replace_or_die
    sweep({str(plan)!r}, {str(out)!r}, options=RunOptions(workers=2))
"""
    script = out.parent / f"{out.name}.py"
    script.write_text(code, encoding="utf-8")
    return subprocess.Popen([sys.executable, str(script)], start_new_session=True)


def count_rows(out: Path) -> int:
    if not (out / "results.sqlite").exists():
        return 0
    try:
        with sqlite3.connect(out / "results.sqlite", timeout=60) as database:
            return int(database.execute("SELECT count(*) FROM trials").fetchone()[0])
    except sqlite3.OperationalError:  # the table is just being made
        return 0


@pytest.mark.slow
def test_a_killed_run_goes_on_and_ends_with_the_same_tables(write_plan, tmp_path):
    plan = write_plan(1)
    plan.write_text("maps = true\n" + plan.read_text(encoding="utf-8"), encoding="utf-8")
    whole = start_sweep(plan, tmp_path / "whole")
    assert whole.wait(150) == 0
    total = count_rows(tmp_path / "whole")

    killed = start_sweep(plan, tmp_path / "killed", killed_at=total // 4)
    assert killed.wait(150) == -signal.SIGKILL
    before = Store(tmp_path / "killed").rows()
    assert len(before) == total // 4 - 1
    assert len(list((tmp_path / "killed" / "arrays").glob(".*.partial-*"))) == 1

    resumed = start_sweep(plan, tmp_path / "killed")
    assert resumed.wait(150) == 0
    after = Store(tmp_path / "killed").rows()
    assert len(after) == total
    # A trial that had finished was not run again: its row is the very same, times included.
    assert {key: after[key] for key in before} == before
    assert {path.stem for path in (tmp_path / "killed" / "arrays").iterdir()} == set(after)
    for name in TABLES:
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.slow
def test_a_scheduler_by_its_address(write_plan, tmp_path, recorder):
    plan = write_plan(1)
    with LocalCluster(
        n_workers=1, threads_per_worker=2, dashboard_address=":0", host="127.0.0.1"
    ) as cluster:
        address = cluster.scheduler_address
        assert address.startswith("tcp://127.0.0.1:")
        end = sweep(plan, tmp_path / "out", options=RunOptions(scheduler=address), control=recorder)
    assert (end.done, end.failed) == (end.total, 0)
    assert (recorder.last.done, recorder.last.running) == (end.total, 0)


def test_a_sweep_with_maps_feeds_a_figure(executor, folder, tmp_path, monkeypatch):
    from photostereo.core.errors import CaptureError
    from photostereo_lab.paper.gather import columns_of

    text = f"""data = "{folder}"
captures = ["vase.npz"]
images = [8]
[[methods]]
name = "ls"
"""
    plan, out = tmp_path / "plan.toml", tmp_path / "out"
    plan.write_text(text)
    monkeypatch.setattr(RunOptions, "connect", lambda _: nullcontext(executor))
    sweep(plan, out)
    with pytest.raises(CaptureError) as caught:
        columns_of(out, None)
    assert caught.value.code == "no-maps"
    plan.write_text("maps = true\n" + text)
    sweep(plan, out)  # runs again what has no maps
    (column,), truth = columns_of(out, ["ls"])
    row = next(iter(Store(out).rows().values()))
    assert truth is not None and column.normals.shape == truth.shape
    assert angular_error(column.normals, truth, column.mask)[column.mask].mean() == pytest.approx(
        row["mean"]
    )


def test_no_scheduler_at_the_address(write_plan, tmp_path):
    plan = write_plan(1)
    with pytest.raises(ParameterError) as caught:
        sweep(plan, tmp_path / "out", options=RunOptions(scheduler="not an address"))
    assert caught.value.code == "no-scheduler"
