"""Assigns jobs to the workers of a Dask cluster until each has an outcome.

Jobs of one bundle share work (a corrupted subset of a capture, say). A worker gets jobs of one bundle after another,
so that it does the shared work once; only when no bundle is left do workers share one. The job of a worker that died is
left to Dask, which runs it on any other, until it has killed several. Dask waits for a silent worker without end, so
every wait has a limit here.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from photostereo.batch.options import HERE, SILENT_RUN, Progress, RunControl, RunOptions, as_time

if TYPE_CHECKING:
    from distributed import Client

#: Seconds between two looks at the workers; only how soon a new one gets its first job depends on it.
TICK = 1.0
#: Seconds between two looks at what has ended; a job takes longer.
PAUSE = 0.02
#: Seconds that a worker has to come back when it is started again.
RESTART_SECONDS = 20


class Ended(Protocol):
    """What is needed of an outcome."""

    @property
    def status(self) -> str: ...


O = TypeVar("O", bound=Ended)  # noqa: E741


@dataclass(frozen=True)
class Job(Generic[O]):
    """Something for a worker to do."""

    key: str  #: identifies its outcome
    call: Callable[[], O]  #: what the worker calls; whatever goes wrong is its outcome, not an exception
    bundle: Hashable = None  #: jobs of one bundle go to one worker while there are enough bundles


@dataclass(eq=False)
class _Held(Generic[O]):
    """A job that a worker has; any worker, if the name is empty."""

    job: Job[O]
    worker: str
    since: float
    future: Any


@dataclass
class Coordinator(Generic[O]):
    """Assigns jobs until each has an outcome."""

    client: Client  #: of the cluster
    write: Callable[[str, O], None]  #: called with the key and the outcome of a job as soon as it is there
    #: makes an outcome, from words and a code, for a job whose workers died or fell silent
    fail: Callable[[str, str], O]
    tally: Progress  #: counts of jobs that had an outcome before; updated
    options: RunOptions = HERE  #: deadlines
    #: asked now and then for further jobs; None when there will be no more
    more: Callable[[], Sequence[Job[O]] | None] | None = None
    control: RunControl = SILENT_RUN  #: receives progress

    def __post_init__(self) -> None:
        from distributed import as_completed

        self.waiting: dict[Hashable, deque[Job[O]]] = {}
        self.bundle_of: dict[str, Hashable] = {}
        self.held: dict[str, _Held[O]] = {}  # by Dask's key
        self.ended = as_completed(loop=self.client.loop, with_results=True, raise_errors=False)
        self.present: set[str] = set()
        self.silent: set[str] = set()
        self.looked, self.last_seen = -TICK, time.monotonic()

    def run(self, jobs: Iterable[Job[O]]) -> Progress:
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

    def add(self, jobs: Iterable[Job[O]]) -> None:
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
        if now - self.last_seen > self.options.wait_for_workers:
            self.give_up()
        for worker in self.present - {held.worker for held in self.held.values()}:
            if (job := self.next_job(worker)) is not None:
                self.submit(job, worker)

    def submit(self, job: Job[O], worker: str) -> None:
        workers = [worker] if worker else sorted(self.present) if self.silent else None
        future = self.client.submit(job.call, workers=workers, pure=False)
        self.held[future.key] = _Held(job, worker, time.monotonic(), future)
        self.ended.add(future)

    def look(self, now: float) -> None:
        """Ask the scheduler who is there, and give the jobs of dead workers to others."""
        self.looked, self.present = now, set()
        with suppress(Exception):
            self.present = set(self.client.nthreads()) - self.silent
        if self.present:
            self.last_seen = now
        for held in [held for held in self.held.values() if held.worker and held.worker not in self.present]:
            with suppress(Exception):  # the scheduler may be gone too
                self.submit(held.job, "")
                del self.held[held.future.key]
                held.future.cancel(force=True)

    def next_job(self, worker: str) -> Job[O] | None:
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
        """A job has ended, well or not."""
        from distributed.scheduler import KilledWorker

        if (held := self.held.get(future.key)) is None:  # overdue, or given to another worker
            return
        if future.status == "finished":
            outcome: O = result
        else:
            problem = result[1] if future.status == "error" else result
            if isinstance(problem, KilledWorker):
                words = "Every worker that ran this died; perhaps it needs more memory than they have."
                outcome = self.fail(words, "worker-died")
            else:
                outcome = self.fail(f"{type(problem).__name__}: {problem}", "internal")
        self.settle(held, outcome)

    def end_overdue(self, held: _Held[O]) -> None:
        """A job past its deadline has failed; its worker gets no more jobs and is restarted under another name."""
        words = f"No result after {as_time(self.options.deadline)}, the time limit of a job: the worker hung or was stopped."
        self.settle(held, self.fail(words, "deadline"))
        self.silent |= {held.worker}
        self.present -= self.silent
        threading.Thread(target=self.restart, args=(held,), daemon=True).start()

    def restart(self, held: _Held[O]) -> None:
        """Ask for a fresh process in place of the one that has a job; a worker without a nanny stays away."""
        with suppress(Exception):  # the scheduler may be gone too
            names = [name for name, keys in self.client.processing().items() if held.future.key in keys]
            names = [held.worker] if held.worker else names
            self.silent |= {*names}
            held.future.cancel(force=True)
            self.client.restart_workers(names, timeout=RESTART_SECONDS, raise_for_error=False)

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

    def settle(self, held: _Held[O], outcome: O) -> None:
        """A held job has its outcome."""
        del self.held[held.future.key]
        self.count(held.job, outcome)

    def count(self, job: Job[O], outcome: O) -> None:
        """Write an outcome, and count it."""
        self.write(job.key, outcome)
        done = outcome.status == "done"
        self.tally.done += done
        self.tally.failed += not done

    def report(self) -> None:
        """Show the progress."""
        self.tally.running = len(self.held)
        self.control.progress(self.tally)
