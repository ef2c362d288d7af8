"""No wait without an end: stopped workers, and dead ones that do not come back."""

from __future__ import annotations

import os
import signal

import pytest

from photostereo.batch.options import RunControl, RunOptions
from photostereo.core.errors import ParameterError
from photostereo_lab.sweeps.plan import Corruption, MethodPlan, Plan
from photostereo_lab.sweeps.store import Store
from photostereo_lab.sweeps.sweep import run_trials


def a_plan(captures, seeds):
    return Plan(
        "test", captures, (MethodPlan("ls"),), (8,), (Corruption("poisson", 10.0),), range(seeds)
    )


class SendsASignal(RunControl):
    """Sends a signal to a worker process when some trials are done."""

    def __init__(self, process, sign, after):
        self.process, self.sign, self.after, self.sent = process, sign, after, False

    def progress(self, now):
        if not self.sent and now.done >= self.after:
            os.kill(self.process, self.sign)
            self.sent = True


@pytest.mark.slow
def test_a_stopped_worker_costs_one_failed_row_and_no_more(captures, tmp_path):
    plan = a_plan(captures, 6)
    store = Store(tmp_path)
    with RunOptions(workers=2).connect() as executor:
        run_trials(plan.trials[:4], store, executor)  # the workers have loaded what they need
        victim = executor.process_ids()[0]
        control = SendsASignal(victim, signal.SIGSTOP, after=6)
        end = run_trials(
            plan.trials, store, executor, options=RunOptions(deadline=10), control=control
        )
    assert control.sent
    assert (end.done, end.failed) == (len(plan.trials) - 1, 1)
    (failed,) = [row for row in store.rows().values() if row["status"] == "failed"]
    assert "10 s" in failed["error"]


def test_without_workers_what_is_left_fails_with_the_reason(captures, tmp_path, monkeypatch):
    plan = a_plan(captures, 40)
    store = Store(tmp_path)
    with RunOptions(workers=1).connect() as executor:

        def refuse(*given):
            raise OSError("Too many open files")

        monkeypatch.setattr("photostereo.batch.local_pool.LocalWorker", refuse)
        control = SendsASignal(executor.process_ids()[0], signal.SIGKILL, after=2)
        end = run_trials(
            plan.trials, store, executor, options=RunOptions(wait_for_workers=2), control=control
        )
    assert end.done >= 2
    assert end.failed >= 1
    assert end.done + end.failed == len(plan.trials) == len(store.rows())
    errors = {row["error"] for row in store.rows().values() if row["status"] == "failed"}
    assert len(errors) == 1
    assert "2 s" in errors.pop()


@pytest.mark.parametrize(
    "limits", [{"deadline": 0}, {"wait_for_workers": -1.0}, {"deadline": float("nan")}]
)
def test_deadlines_are_positive(limits):
    with pytest.raises(ParameterError) as caught:
        RunOptions(**limits)
    assert (caught.value.code, caught.value.values["name"]) == ("bad-deadline", *limits)
