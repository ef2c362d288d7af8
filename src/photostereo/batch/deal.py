"""Assigns jobs to the workers of a Dask cluster until each has an outcome.

Jobs of one bundle share work (a corrupted subset of a capture, say). A worker gets jobs of one bundle after another,
so that it does the shared work once; only when no bundle is left do workers share one. A worker has one job at a time:
Dask would blame the death of a worker on all jobs that it has.

Dask leaves jobs of a dead worker unrun and waits for a silent one without end, so both are noticed here, and every wait
has an end that is recorded as the outcome of the job.
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

#: Seconds between two looks at the workers; only how soon a new one gets its first job depends on it.
TICK = 1.0
#: Seconds between two looks at what has ended; a job takes longer.
PAUSE = 0.02
#: Seconds after which a worker that the scheduler does not name is gone: two looks, as one answer may be wrong.
GONE = 2.5
#: A job that was running when this number of workers died is given up: two deaths may be chance, and each costs a worker.
DEATHS = 3
#: Seconds that a worker has to come back when it is started again; others go on meanwhile, so more costs nothing.
RESTART_SECONDS = 20


@dataclass(frozen=True)
class Job:
    """Something for a worker to do."""

    key: Any  #: identifies its outcome
    #: what the worker calls; whatever goes wrong is its outcome (an object with a ``status``), not an exception
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
    write: Callable[[Any, Any], None]  #: called with the key and the outcome of a job as soon as it is there
    #: makes an outcome, from words and a code, for a job whose workers died or fell silent
    fail: Callable[[str, str], Any]
    tally: Progress  #: counts of jobs that had an outcome before; updated
    options: RunOptions = HERE  #: deadlines
    #: asked now and then for further jobs; None when there will be no more
    more: Callable[[], Sequence[Job] | None] | None = None
    control: RunControl = SILENT_RUN  #: receives progress

    def __post_init__(self) -> None:
        from distributed import as_completed

        self.waiting: dict[Hashable, deque[Job]] = {}
        self.bundle_of: dict[str, Hashable] = {}
        self.held: dict[str, _Held] = {}  # by Dask's key
        self.ended = as_completed(loop=self.client.loop, with_results=True, raise_errors=False)
        self.deaths: Counter[Any] = Counter()
        self.present: set[str] = set()
        self.silent: set[str] = set()
        self.looked, self.seen = -TICK, {"": time.monotonic()}  # when each worker was last there

    def run(self, jobs: Iterable[Job]) -> Progress:
        """Until every job has an outcome and there will be no more."""
        self.add(jobs)
        while self.fetch_more() or self.held or any(self.waiting.values()):
            self.deal()
            self.report()
            for future, result in self.wait():
                self.finish(future, result)
        self.report()
        return self.tally

    def wait(self) -> list[tuple[Any, Any]]:
        """The jobs that end within a tick, with their results."""
        end = time.monotonic() + TICK
        while not (found := self.ended.next_batch(block=False)) and time.monotonic() < end:
            time.sleep(PAUSE)
        return list(found)

    def add(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            self.waiting.setdefault(job.bundle, deque()).append(job)

    def fetch_more(self) -> bool:
        """Whether there may be more jobs later."""
        found = None if self.more is None else self.more()
        if found is None:
            self.more = None
            return False
        self.tally.total += len(found)
        self.add(found)
        return True

    def deal(self) -> None:
        """End jobs that are overdue, and give every idle worker one."""
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
                self.held[future.key] = _Held(job, worker, now, future)
                self.ended.add(future)

    def look(self, now: float) -> None:
        """Ask the scheduler who is there, and take back the jobs of dead workers."""
        self.looked, self.present = now, set()
        with suppress(Exception):  # it does not answer: nobody is there until it does
            self.present = set(self.client.nthreads()) - self.silent
        self.seen |= dict.fromkeys(self.present, now)
        for held in [held for held in self.held.values() if now - self.seen[held.worker] > GONE]:
            self.take_back(held)

    def take_back(self, held: _Held) -> None:
        """The worker of a job is gone: run it elsewhere, unless that happened too often."""
        self.deaths[held.job.key] += 1
        if self.deaths[held.job.key] == DEATHS:
            words = "Every worker that ran this died; perhaps it needs more memory than they have."
            self.settle(held, self.fail(words, "worker-died"))
            return
        del self.held[held.future.key]
        self.waiting.setdefault((held.job.key, "again"), deque()).append(held.job)
        with suppress(Exception):  # the scheduler may be gone too
            held.future.cancel(force=True)

    def next_job(self, worker: str) -> Job | None:
        """Of the worker's own bundle, of a new one, or of the longest that others are at."""
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

    def finish(self, future: Any, result: Any) -> None:
        from distributed.scheduler import KilledWorker

        if (held := self.held.get(future.key)) is None:  # overdue, or taken back
            return
        problem = None if future.status == "finished" else result[1] if future.status == "error" else result
        if isinstance(problem, (KilledWorker, CancelledError)):
            self.take_back(held)
        else:
            words = f"{type(problem).__name__}: {problem}"
            self.settle(held, result if problem is None else self.fail(words, "internal"))

    def end_overdue(self, held: _Held) -> None:
        """A job past its deadline has failed; its worker gets no more jobs and is restarted under another name."""
        words = f"No result after {as_time(self.options.deadline)}, the time limit of a job: the worker hung or was stopped."
        self.settle(held, self.fail(words, "deadline"))
        self.silent.add(held.worker)
        self.present.discard(held.worker)
        threading.Thread(target=self.restart, args=(held,), daemon=True).start()

    def restart(self, held: _Held) -> None:
        """Ask for a fresh process; a worker without a nanny stays away."""
        with suppress(Exception):  # the scheduler may be gone too
            held.future.cancel(force=True)
            self.client.restart_workers([held.worker], timeout=RESTART_SECONDS, raise_for_error=False)

    def give_up(self) -> None:
        """No worker is left and none has come back: every job that waits has failed."""
        words = (
            f"No worker was available for {as_time(self.options.wait_for_workers)}. Find out what ended them (memory, a "
            "limit on processes or open files), then run again what failed."
        )
        for held in list(self.held.values()):
            self.settle(held, self.fail(words, "no-workers"))
        for job in (job for jobs in self.waiting.values() for job in jobs):
            self.count(job, self.fail(words, "no-workers"))
        self.waiting, self.more = {}, None

    def settle(self, held: _Held, outcome: Any) -> None:
        del self.held[held.future.key]
        self.count(held.job, outcome)

    def count(self, job: Job, outcome: Any) -> None:
        self.write(job.key, outcome)
        self.tally.count(outcome.status)

    def report(self) -> None:
        self.tally.running = len(self.held)
        self.control.progress(self.tally)
