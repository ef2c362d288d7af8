"""Jobs and their workers: the same on this machine and on a Dask cluster."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from photostereo.batch.coordinator import Coordinator, Job
from photostereo.batch.executor import DeadWorkerError, Executor
from photostereo.batch.ledger import Outcome, failure
from photostereo.batch.local_pool import LocalPool
from photostereo.batch.options import Progress, RunControl, RunOptions


@contextmanager
def dask_cluster(workers: int) -> Iterator[Executor]:
    from distributed import LocalCluster

    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1"
    )
    with cluster, RunOptions(scheduler=cluster.scheduler_address).connect() as executor:
        yield executor


@contextmanager
def processes(workers: int) -> Iterator[Executor]:
    with RunOptions(workers=workers).connect() as executor:
        yield executor


EXECUTORS = [processes, pytest.param(dask_cluster, marks=pytest.mark.slow)]


def run(executor, calls, *, control=None, **limits) -> tuple[Progress, dict]:
    """Run calls by name and return the counts and the outcomes."""
    outcomes = {}
    coordinator = Coordinator(
        executor,
        write=outcomes.__setitem__,
        fail=failure,
        tally=Progress(len(calls)),
        options=RunOptions(**limits),
        control=control or RunControl(),
    )
    return coordinator.run([Job(name, call) for name, call in calls.items()]), outcomes


DONE = partial(Outcome, "done")


@pytest.mark.parametrize("start", EXECUTORS)
def test_a_job_that_kills_every_worker_fails_and_the_others_do_not(start) -> None:
    calls = dict.fromkeys(range(6), DONE) | {"deadly": partial(os._exit, 1)}
    with start(2) as executor:
        end, outcomes = run(executor, calls)
    assert (end.done, end.failed) == (6, 1)
    assert outcomes["deadly"].code == "worker-died"


@pytest.mark.parametrize("start", EXECUTORS)
def test_a_job_that_hangs_costs_one_failure(start) -> None:
    calls = dict.fromkeys(range(4), DONE) | {"slow": partial(time.sleep, 600)}
    with start(2) as executor:
        run(executor, {"first": DONE})
        end, outcomes = run(executor, calls, deadline=3)
    assert (end.done, end.failed) == (4, 1)
    assert outcomes["slow"].code == "deadline"


def test_a_stopped_process_is_replaced() -> None:
    class Stops(RunControl):
        stopped = False

        def progress(self, now: Progress) -> None:
            if now.done and not self.stopped:
                self.stopped = True
                os.kill(executor.process_ids()[0], signal.SIGSTOP)

    with processes(1) as executor:
        calls = {number: partial(_later, 0.2) for number in range(3)}
        end, outcomes = run(executor, calls, deadline=3, control=Stops())
        assert set(executor.workers()) == {"local-2"}
    assert (end.done, end.failed) == (2, 1)
    assert [outcome.code for outcome in outcomes.values() if outcome.code] == ["deadline"]


def _later(seconds: float) -> Outcome:
    time.sleep(seconds)
    return DONE()


def test_without_workers_what_is_left_fails(monkeypatch) -> None:
    with processes(1) as executor:

        def none(self):
            raise OSError("Too many open files")

        monkeypatch.setattr(LocalPool, "workers", none)
        end, outcomes = run(executor, {0: DONE, 1: DONE}, wait_for_workers=0.5)
    assert (end.done, end.failed) == (0, 2)
    assert {outcome.code for outcome in outcomes.values()} == {"no-workers"}


def test_an_error_of_a_job_is_its_outcome() -> None:
    with processes(1) as executor:
        end, outcomes = run(executor, {"bad": partial(int, "x"), "good": DONE})
    assert (end.done, end.failed) == (1, 1)
    assert outcomes["bad"].code == "internal"
    assert "ValueError" in outcomes["bad"].error


def test_processes_share_the_processors_and_leave_the_environment_alone(monkeypatch) -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("photostereo.batch.options.processors", lambda: 7)
    before = dict(os.environ)
    with RunOptions(workers=4).connect(jobs=2) as executor:
        (name, *_) = executor.workers()
        assert executor.submit(name, partial(os.getenv, "OPENBLAS_NUM_THREADS")).result(60) == "3"
        assert dict(os.environ) == before
        pids = executor.process_ids()
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_worker_ends_with_the_run_even_if_it_works() -> None:
    with processes(1) as executor:
        (name,) = executor.workers()
        answer = executor.submit(name, partial(time.sleep, 600))
        time.sleep(1)
    with pytest.raises(DeadWorkerError):
        answer.result(10)
