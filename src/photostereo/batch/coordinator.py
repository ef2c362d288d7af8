"""Assign jobs to the workers of an executor until each has an outcome.

Jobs of one bundle share work (a corrupted subset of a capture, say). A worker gets the jobs of one bundle in sequence,
so that it does the shared work once; workers share a bundle only if no other is left. A worker has one job at a time,
so the death of a worker is blamed on one job only.

An executor does not rerun the jobs of a dead worker and waits forever for one that hangs, so both are detected here.
Every wait has a limit, and exceeding it is recorded as the outcome of the job.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from photostereo.batch.executor import Answer, DeadWorkerError, Executor
from photostereo.batch.options import HERE, SILENT_RUN, Progress, RunControl, RunOptions, as_time

#: Seconds between two checks of the workers; this affects only how soon a new one gets its first job.
TICK = 1.0
#: Seconds between two checks for finished jobs; a job takes longer.
PAUSE = 0.02
#: Seconds after which a worker that is no longer listed is gone: two checks, as one answer of a scheduler may be wrong.
GONE = 2.5
#: A job is given up after this number of workers died running it: two deaths may be chance, and each costs a worker.
DEATHS = 3
#: Seconds for the outcome of a job, which is small, to arrive.
FETCH_SECONDS = 60


@dataclass(frozen=True)
class Job:
    """A job for a worker."""

    key: Hashable  #: identifies its outcome
    #: called by the worker; an error is returned as the outcome (an object with a ``status``), not raised
    call: Callable[[], Any]
    bundle: Hashable = None  #: jobs of one bundle go to one worker while there are enough bundles


@dataclass(eq=False)
class _RunningJob:
    job: Job
    worker: str
    began: float
    answer: Answer


@dataclass
class Coordinator:
    """Assigns jobs until each has an outcome."""

    executor: Executor  #: the workers
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
        self.running: dict[Hashable, _RunningJob] = {}  # by the key of the job
        self.deaths: Counter[Hashable] = Counter()
        self.present: set[str] = set()
        self.silent: set[str] = set()
        self.last_check = -TICK
        self.last_seen = {"": time.monotonic()}  # of each worker; "" is the start of the run

    def run(self, jobs: Iterable[Job]) -> Progress:
        """Run until every job has an outcome and there will be no more."""
        self.add(jobs)
        while self.fetch_more() or self.running or any(self.waiting.values()):
            self.assign()
            self.report()
            for job in self.wait():
                self.finish(job)
        self.report()
        return self.tally

    def wait(self) -> list[_RunningJob]:
        """Return the jobs that end within a tick."""
        end = time.monotonic() + TICK
        while True:
            ended = [job for job in self.running.values() if job.answer.done()]
            if ended or time.monotonic() > end:
                return ended
            time.sleep(PAUSE)

    def add(self, jobs: Iterable[Job]) -> None:
        """Put jobs at the end of the queue of their bundle."""
        for job in jobs:
            self.waiting.setdefault(job.bundle, deque()).append(job)

    def fetch_more(self) -> bool:
        """Add new jobs; return whether there may be more later."""
        jobs = None if self.more is None else self.more()
        if jobs is None:
            self.more = None
            return False
        self.tally.total += len(jobs)
        self.add(jobs)
        return True

    def assign(self) -> None:
        """End overdue jobs, and give every idle worker a job."""
        now = time.monotonic()
        if now - self.last_check >= TICK:
            self.check_workers(now)
        for running in list(self.running.values()):
            if now - running.began > self.options.deadline:
                self.end_overdue(running)
        if now - max(self.last_seen.values()) > self.options.wait_for_workers:
            self.give_up()
        for worker in self.present - {running.worker for running in self.running.values()}:
            job = self.next_job(worker)
            if job is not None:
                answer = self.executor.submit(worker, job.call)
                self.running[job.key] = _RunningJob(job, worker, now, answer)

    def check_workers(self, now: float) -> None:
        """Ask the executor for its workers, and take back the jobs of dead ones."""
        self.last_check = now
        self.present = set()
        with suppress(Exception):  # no answer: no workers until it answers
            self.present = set(self.executor.workers()) - self.silent
        self.last_seen |= dict.fromkeys(self.present, now)
        for running in list(self.running.values()):
            if now - self.last_seen[running.worker] > GONE:
                self.take_back(running)

    def take_back(self, running: _RunningJob) -> None:
        """Run a job elsewhere because its worker is gone, unless that happened too often."""
        job = running.job
        self.present.discard(running.worker)
        self.deaths[job.key] += 1
        if self.deaths[job.key] == DEATHS:
            message = "Every worker that ran this died; it may need more memory than they have."
            self.settle(job, self.fail(message, "worker-died"))
            return
        del self.running[job.key]
        self.waiting.setdefault((job.key, "again"), deque()).append(job)
        running.answer.cancel()

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
            bundle = next(free, longest)
            self.bundle_of[worker] = bundle
        return self.waiting[bundle].popleft()

    def finish(self, running: _RunningJob) -> None:
        """Record the outcome of a job that has ended."""
        try:
            outcome = running.answer.result(FETCH_SECONDS)
        except DeadWorkerError:
            self.take_back(running)
            return
        except Exception as problem:
            outcome = self.fail(f"{type(problem).__name__}: {problem}", "internal")
        self.settle(running.job, outcome)

    def end_overdue(self, running: _RunningJob) -> None:
        """Mark a job past its deadline as failed; its worker gets no more jobs and is replaced."""
        limit = as_time(self.options.deadline)
        message = (
            f"No result after {limit}, the time limit of a job: the worker hung or was stopped."
        )
        self.settle(running.job, self.fail(message, "deadline"))
        self.silent.add(running.worker)
        self.present.discard(running.worker)
        running.answer.cancel()
        self.executor.restart(running.worker)

    def give_up(self) -> None:
        """Mark every job as failed: no worker is left and none has come back."""
        message = (
            f"No worker was available for {as_time(self.options.wait_for_workers)}. Find out why they ended (memory, a "
            "limit on processes or open files), then retry the failed jobs."
        )
        running = [running.job for running in self.running.values()]
        waiting = [job for jobs in self.waiting.values() for job in jobs]
        for job in running + waiting:
            self.settle(job, self.fail(message, "no-workers"))
        self.waiting = {}
        self.more = None

    def settle(self, job: Job, outcome: Any) -> None:
        """Write the outcome of a job."""
        self.running.pop(job.key, None)
        self.write(job.key, outcome)
        self.tally.count(outcome.status)

    def report(self) -> None:
        """Report the counts."""
        self.tally.running = len(self.running)
        self.control.progress(self.tally)
