"""The store: rows replace each other, failures stay, several processes may write at once."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from dataclasses import replace

import pytest

from photostereo.core.errors import OutputError
from photostereo_lab.sweeps.plan import CaptureSpec, MethodPlan, Plan, Trial
from photostereo_lab.sweeps.store import Outcome, Store

CAPTURE = CaptureSpec("cat", "/somewhere", "0" * 16)


def a_trial(seed):
    return Trial(CAPTURE, "ls", {}, 20, seed=seed)


def test_a_row_has_everything_and_replaces_an_older_one(tmp_path):
    store = Store(tmp_path / "new" / "out")
    trial = a_trial(0)
    store.write(trial, Outcome("failed", error="It broke."))
    assert store.finished() == {trial.hash}
    assert store.finished(failed_too=False) == set()
    done = Outcome(
        "done", errors={"mean": 8.41, "median": 6.52}, outcome="closed form",
        seconds=0.5, stages={"solve": 0.4}, versions={"photostereo": "1"}, host={"cores": 2},
        extra={"nonzeros": 0.1}, settled={"p": 2},
    )  # fmt: skip
    store.write(trial, done)
    ((key, row),) = store.rows().items()
    assert key == trial.hash
    assert (row["mean"], row["median"], row["p90"]) == (8.41, 6.52, None)
    assert (row["status"], row["error"], row["capture"], row["seed"], row["images"]) == (
        "done",
        None,
        "cat",
        0,
        20,
    )
    assert (row["stages"], row["host"], row["versions"]) == (
        {"solve": 0.4},
        {"cores": 2},
        {"photostereo": "1"},
    )
    assert row["settled"] == {"p": 2}


def test_plans_are_remembered(tmp_path):
    plan = Plan("mine", (CAPTURE,), (MethodPlan("pls", grid={"p": [2, 3]}),))
    Store(tmp_path).keep_plan(plan, {"notes": ["quick"]})
    found, facts = Store(tmp_path).plan("mine")
    assert [t.hash for t in found.trials] == [t.hash for t in plan.trials]
    assert facts == {"notes": ["quick"]}
    assert Store(tmp_path).plan("other") is None


WRITER = """
import sys
from photostereo_lab.sweeps.store import Outcome, Store
from photostereo_lab.sweeps.plan import CaptureSpec, Trial
store = Store(sys.argv[1])
for seed in range(int(sys.argv[2]), int(sys.argv[2]) + 60):
    trial = Trial(CaptureSpec("cat", "/somewhere", "0" * 16), "ls", {}, 20, seed=seed)
    store.write(trial, Outcome("done", errors={"mean": float(seed)}, arrays=b"maps"))
"""


def test_processes_write_at_the_same_time(tmp_path):
    # Four writers, every second one on the same trials as its neighbor.
    starts = ("0", "50", "0", "50")
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, tmp_path, first]) for first in starts
    ]
    assert [writer.wait(200) for writer in writers] == [0, 0, 0, 0]
    rows = Store(tmp_path).rows()
    assert len(rows) == 110
    assert {rows[a_trial(seed).hash]["mean"] for seed in range(110)} == set(map(float, range(110)))
    with sqlite3.connect(tmp_path / "results.sqlite") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert len(list((tmp_path / "arrays").iterdir())) == 110


def test_a_store_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError) as caught:
        Store(tmp_path / "file")
    assert caught.value.code == "database"
    (tmp_path / "results.sqlite").write_text(
        "this is not a database, but long enough to look like one" * 30
    )
    with pytest.raises(OutputError) as caught:
        Store(tmp_path)
    assert caught.value.code == "damaged-database"


def test_the_seed_column_may_be_empty(tmp_path):
    store = Store(tmp_path)
    store.write(replace(a_trial(0), seed=None, images=None), Outcome("done"))
    assert next(iter(store.rows().values()))["seed"] is None
