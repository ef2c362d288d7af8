"""No wait without an end: stopped workers, dead ones that do not come back, wrong answers of the scheduler."""

from __future__ import annotations

import asyncio
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from distributed.comm import connect as knock_at
from distributed.security import Security

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
    with RunOptions(workers=2).connect() as client:
        run_trials(plan.trials[:4], store, client)  # the workers have loaded what they need
        victim = next(iter(client.run(os.getpid).values()))
        control = SendsASignal(victim, signal.SIGSTOP, after=6)
        end = run_trials(
            plan.trials, store, client, options=RunOptions(deadline=10), control=control
        )
    assert control.sent
    assert (end.done, end.failed) == (len(plan.trials) - 1, 1)
    (failed,) = [row for row in store.rows().values() if row["status"] == "failed"]
    assert "10 s" in failed["error"]


def test_without_workers_what_is_left_fails_with_the_reason(captures, tmp_path):
    plan = a_plan(captures, 40)
    store = Store(tmp_path)
    with RunOptions(workers=1).connect() as client:
        client.run(_leave_dead, nanny=True)
        (victim,) = client.run(os.getpid).values()
        control = SendsASignal(victim, signal.SIGKILL, after=2)
        end = run_trials(
            plan.trials, store, client, options=RunOptions(wait_for_workers=2), control=control
        )
    assert end.done >= 2
    assert end.failed >= 1
    assert end.done + end.failed == len(plan.trials) == len(store.rows())
    errors = {row["error"] for row in store.rows().values() if row["status"] == "failed"}
    assert len(errors) == 1
    assert "2 s" in errors.pop()


def _leave_dead(dask_worker):
    """In the nanny: the worker cannot be started again."""

    async def refuse():
        raise OSError("Too many open files")

    dask_worker.instantiate = refuse


def test_a_client_without_the_key_is_refused(client):
    address = client.scheduler.address
    assert address.startswith("tls://127.0.0.1:")

    def knock(door: str, seconds: float = 2, **key: object) -> None:
        """What a client does first; a Client that is refused may leave its event loop in a state of its own."""

        async def enter_and_leave() -> None:
            await (await knock_at(door, timeout=seconds, **key)).close()

        with ThreadPoolExecutor(
            1
        ) as own:  # the browser of other tests may have left a loop in this thread
            own.submit(asyncio.run, enter_and_leave()).result()

    with pytest.raises(OSError):
        knock(address, **Security.temporary().get_connection_args("client"))
    with pytest.raises((OSError, TypeError)):
        knock(address)
    with pytest.raises(OSError):
        knock(address.replace("tls://", "tcp://"))
    knock(
        address, 60, **client.security.get_connection_args("client")
    )  # whoever has the key comes in
    assert client.submit(abs, -1, pure=False).result(timeout=60) == 1


@pytest.mark.parametrize(
    "limits", [{"deadline": 0}, {"wait_for_workers": -1.0}, {"deadline": float("nan")}]
)
def test_deadlines_are_positive(limits):
    with pytest.raises(ParameterError) as caught:
        RunOptions(**limits)
    assert (caught.value.code, caught.value.values["name"]) == ("bad-deadline", *limits)
