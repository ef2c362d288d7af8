"""Assign jobs to the workers of a Dask cluster until each has an outcome.

Jobs of one bundle share work (a corrupted subset of a capture, say). A worker gets the jobs of one bundle in sequence,
so that it does the shared work once; workers share a bundle only if no other is left. A worker has one job at a time:
Dask would blame the death of a worker on all of its jobs.

Dask does not rerun the jobs of a dead worker and waits forever for one that hangs, so both are detected here. Every
wait has a limit, and exceeding it is recorded as the outcome of the job.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from photostereo.batch.options import HERE, SILENT_RUN, Progress, RunControl, RunOptions, as_time

if TYPE_CHECKING:
    from distributed import Client

#: Seconds between two checks of the workers; this affects only how soon a new one gets its first job.
TICK = 1.0
#: Seconds between two checks for finished jobs; a job takes longer.
PAUSE = 0.02
#: Seconds after which a worker that the scheduler no longer lists is gone: two checks, as one answer may be wrong.
GONE = 2.5
#: A job is given up after this number of workers died running it: two deaths may be chance, and each costs a worker.
DEATHS = 3
#: Seconds for the outcome of a job, which is small, to arrive.
FETCH_SECONDS = 60
#: Seconds for a worker to come back after a restart; the others continue meanwhile, so a longer wait costs nothing.
RESTART_SECONDS = 20


@dataclass(frozen=True)
class Job:
    """A job for a worker."""

    key: Hashable  #: identifies its outcome
    #: called by the worker; an error is returned as the outcome (an object with a ``status``), not raised
    call: Callable[[], Any]
    bundle: Hashable = None  #: jobs of one bundle go to one worker while there are enough bundles


@dataclass(eq=False)
class _Held:
    job: Job
    worker: str
    since: float
    future: Any


@dataclass
class Coordinator:
    """Assigns jobs until each has an outcome."""

    client: Client  #: of the cluster
    write: Callable[[Any, Any], None]  #: called with the key and outcome of each job when it ends
    #: makes an outcome, from a message and a code, for a job whose workers died or hung
    fail: Callable[[str, str], Any]
    tally: Progress  #: counts of jobs, including earlier ones; updated
    options: RunOptions = HERE  #: deadlines
    #: called regularly for further jobs; returns None when there will be no more
    more: Callable[[], Sequence[Job] | None] | None = None
    control: RunControl = SILENT_RUN  #: receives progress

    def __post_init__(self) -> None:
        self.waiting: dict[Hashable, deque[Job]] = {}
        self.bundle_of: dict[str, Hashable] = {}
        self.held: dict[Hashable, _Held] = {}  # by the key of the job
        self.deaths: Counter[Hashable] = Counter()
        self.present: set[str] = set()
        self.silent: set[str] = set()
        self.looked, self.seen = -TICK, {"": time.monotonic()}  # when each worker was last seen

    def run(self, jobs: Iterable[Job]) -> Progress:
        """Run until every job has an outcome and there will be no more."""
        self.add(jobs)
        while self.fetch_more() or self.held or any(self.waiting.values()):
            self.deal()
            self.report()
            for held in self.wait():
                self.finish(held)
        self.report()
        return self.tally

    def wait(self) -> list[_Held]:
        """Return the jobs that end within a tick."""
        end = time.monotonic() + TICK
        while not (ended := [held for held in self.held.values() if held.future.done()]):
            if time.monotonic() > end:
                break
            time.sleep(PAUSE)
        return ended

    def add(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            self.waiting.setdefault(job.bundle, deque()).append(job)

    def fetch_more(self) -> bool:
        """Add new jobs; return whether there may be more later."""
        found = None if self.more is None else self.more()
        if found is None:
            self.more = None
            return False
        self.tally.total += len(found)
        self.add(found)
        return True

    def deal(self) -> None:
        """End overdue jobs, and give every idle worker a job."""
        now = time.monotonic()
        if now - self.looked >= TICK:
            self.look(now)
        for held in list(self.held.values()):
            if now - held.since > self.options.deadline:
                self.end_overdue(held)
        if now - max(self.seen.values()) > self.options.wait_for_workers:
            self.give_up()
        for worker in self.present - {held.worker for held in self.held.values()}:
            if (job := self.next_job(worker)) is not None:
                future = self.client.submit(job.call, workers=[worker], pure=False)
                self.held[job.key] = _Held(job, worker, now, future)

    def look(self, now: float) -> None:
        """Ask the scheduler for its workers, and take back the jobs of dead ones."""
        self.looked, self.present = now, set()
        with suppress(Exception):  # no answer: no workers until it answers
            self.present = set(self.client.nthreads()) - self.silent
        self.seen |= dict.fromkeys(self.present, now)
        for held in [held for held in self.held.values() if now - self.seen[held.worker] > GONE]:
            self.take_back(held)

    def take_back(self, held: _Held) -> None:
        """Run a job elsewhere because its worker is gone, unless that happened too often."""
        job = held.job
        self.deaths[job.key] += 1
        if self.deaths[job.key] == DEATHS:
            words = "Every worker that ran this died; it may need more memory than they have."
            self.settle(job, self.fail(words, "worker-died"))
            return
        del self.held[job.key]
        self.waiting.setdefault((job.key, "again"), deque()).append(job)
        with suppress(Exception):  # the scheduler may be gone too
            held.future.cancel(force=True)

    def next_job(self, worker: str) -> Job | None:
        """Return a job of the worker's own bundle, of a new one, or of the longest that other workers are running."""
        self.waiting = {bundle: jobs for bundle, jobs in self.waiting.items() if jobs}
        if not self.waiting:
            return None
        bundle = self.bundle_of.get(worker)
        if bundle not in self.waiting:
            taken = {self.bundle_of.get(other) for other in self.present}
            free = (name for name in self.waiting if name not in taken)
            longest = max(self.waiting, key=lambda name: len(self.waiting[name]))
            bundle = self.bundle_of[worker] = next(free, longest)
        return self.waiting[bundle].popleft()

    def finish(self, held: _Held) -> None:
        from distributed.scheduler import KilledWorker

        try:
            outcome = held.future.result(timeout=FETCH_SECONDS)
        except (KilledWorker, CancelledError, TimeoutError):
            self.take_back(held)
            return
        except Exception as problem:
            outcome = self.fail(f"{type(problem).__name__}: {problem}", "internal")
        self.settle(held.job, outcome)

    def end_overdue(self, held: _Held) -> None:
        """Mark a job past its deadline as failed; its worker gets no more jobs and is restarted under another name."""
        words = f"No result after {as_time(self.options.deadline)}, the time limit of a job: the worker hung or was stopped."
        self.settle(held.job, self.fail(words, "deadline"))
        self.silent.add(held.worker)
        self.present.discard(held.worker)

        def restart() -> None:  # a worker without a nanny does not come back
            with suppress(Exception):  # the scheduler may be gone too
                held.future.cancel(force=True)
                self.client.restart_workers(
                    [held.worker], timeout=RESTART_SECONDS, raise_for_error=False
                )

        threading.Thread(target=restart, daemon=True).start()

    def give_up(self) -> None:
        """Mark every job as failed: no worker is left and none has come back."""
        words = (
            f"No worker was available for {as_time(self.options.wait_for_workers)}. Find out why they ended (memory, a "
            "limit on processes or open files), then retry the failed jobs."
        )
        waiting = [job for jobs in self.waiting.values() for job in jobs]
        for job in (*(held.job for held in self.held.values()), *waiting):
            self.settle(job, self.fail(words, "no-workers"))
        self.waiting, self.more = {}, None

    def settle(self, job: Job, outcome: Any) -> None:
        self.held.pop(job.key, None)
        self.write(job.key, outcome)
        self.tally.count(outcome.status)

    def report(self) -> None:
        self.tally.running = len(self.held)
        self.control.progress(self.tally)
