"""Assigns jobs to workers, whatever happens to the workers.

Jobs of one bundle share work (a corrupted subset of a capture, say). A worker gets jobs of one bundle after another,
so that it does the shared work once; only when no bundle is left do workers share one. Each job is one task: whatever
ends the run, at most the jobs that were running are lost.

Dask leaves tasks that prefer a dead worker unrun and waits for a silent one without end, so both are noticed here, and
every wait has an end that is recorded as the outcome of the job.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from photostereo.batch.options import HERE, RunOptions
from photostereo.batch.progress import SILENT_RUN, Progress, RunControl, as_time

if TYPE_CHECKING:
    from distributed import Client

#: Seconds between two looks at the workers. A worker is gone if it is missing at two: one answer of the scheduler may
#: be wrong.
TICK = 1.0
#: Seconds to wait for the result of a job that has ended before others have their turn; its worker may have stopped.
FETCH_SECONDS = 0.5
#: A job that was running when this number of workers died is given up.
DEATHS = 3
#: Seconds that a worker has to come back when it is started again.
RESTART_SECONDS = 20


class Ended(Protocol):
    """What is needed of an outcome."""

    @property
    def status(self) -> str: ...


O = TypeVar("O", bound=Ended)  # noqa: E741


@dataclass(frozen=True)
class Job(Generic[O]):
    """Something for a worker to do.

    Attributes
    ----------
    key : identifies its outcome
    call : what the worker calls; whatever goes wrong is its outcome, not an exception
    bundle : jobs of one bundle go to one worker while there are enough bundles
    """

    key: str
    call: Callable[[], O]
    bundle: Hashable = None


@dataclass(eq=False)
class _Held(Generic[O]):
    """A job that a worker has."""

    job: Job[O]
    worker: str
    since: float
    future: Any


@dataclass
class Coordinator(Generic[O]):
    """Assigns jobs until each has an outcome.

    Attributes
    ----------
    client : of the cluster
    write : called with the key and the outcome of a job as soon as it is there
    fail : makes an outcome, from words and a code, for a job whose worker died or fell silent
    tally : counts of jobs that had an outcome before; updated
    options : deadlines
    more : asked now and then for further jobs; None when there will be no more
    control : receives progress
    """

    client: Client
    write: Callable[[str, O], None]
    fail: Callable[[str, str], O]
    tally: Progress
    options: RunOptions = HERE
    more: Callable[[], Sequence[Job[O]] | None] | None = None
    control: RunControl = SILENT_RUN

    waiting: deque[deque[Job[O]]] = field(default_factory=deque, init=False)
    current: dict[str, deque[Job[O]]] = field(default_factory=dict, init=False)
    held: dict[str, _Held[O]] = field(default_factory=dict, init=False)
    deaths: dict[str, int] = field(default_factory=lambda: defaultdict(int), init=False)

    def __post_init__(self) -> None:
        self.ended: queue.SimpleQueue[_Held[O]] = queue.SimpleQueue()
        self.workers = Workers(self.client)

    def run(self, jobs: Iterable[Job[O]]) -> Progress:
        """Until every job has an outcome and there will be no more."""
        self.add(jobs)
        while self.fetch_more() or self.held or any(self.waiting) or any(self.current.values()):
            self.deal()
            self.report()
            with suppress(queue.Empty):
                self.finish(self.ended.get(timeout=TICK))
        self.report()
        return self.tally

    def add(self, jobs: Iterable[Job[O]]) -> None:
        """Put jobs into the queue, by bundle."""
        bundles: dict[Hashable, deque[Job[O]]] = defaultdict(deque)
        for job in jobs:
            bundles[job.bundle].append(job)
        self.waiting.extend(bundles.values())

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
        """Take back the jobs of dead and silent workers, and give every idle worker one."""
        self.workers.look()
        now = time.monotonic()
        for held in list(self.held.values()):
            if self.workers.is_gone(held.worker):
                self.take_back(held)
            elif now - held.since > self.options.deadline:
                self.end_overdue(held)
        for name in [name for name in self.current if self.workers.is_gone(name)]:
            self.waiting.appendleft(self.current.pop(name))
        if self.workers.seconds_alone > self.options.wait_for_workers:
            self.give_up()
        for name in self.workers.present:
            if name not in self.held and (job := self.next_job(name)) is not None:
                held = _Held(job, name, now, self.client.submit(job.call, workers=[name], pure=False))
                self.held[name] = held
                held.future.add_done_callback(lambda _, held=held: self.ended.put(held))

    def next_job(self, worker: str) -> Job[O] | None:
        """Of the worker's own bundle, of a new one, or of the longest that others are at."""
        bundle = self.current.get(worker)
        if not bundle:
            while self.waiting and not self.waiting[0]:
                self.waiting.popleft()
            longest: deque[Job[O]] = max(self.current.values(), key=len, default=deque())
            bundle = self.current[worker] = self.waiting.popleft() if self.waiting else longest
        return bundle.popleft() if bundle else None

    def finish(self, held: _Held[O]) -> None:
        """A job has ended, well or not. If its result is slow to come, it is asked for again later."""
        if self.held.get(held.worker) is not held:  # taken back meanwhile
            return
        try:
            outcome: O = held.future.result(timeout=FETCH_SECONDS)
        except TimeoutError:
            self.ended.put(held)
            return
        except Exception as problem:
            if _is_loss(problem):
                self.take_back(held)
                return
            outcome = self.fail(f"{type(problem).__name__}: {problem}", "internal")
        del self.held[held.worker]
        held.future.release()
        self.settle(held.job, outcome)

    def take_back(self, held: _Held[O]) -> None:
        """The worker of a job is gone: run it elsewhere, unless that happened too often."""
        del self.held[held.worker]
        _cancel(held.future)
        self.deaths[held.job.key] += 1
        if self.deaths[held.job.key] < DEATHS:
            self.waiting.append(deque([held.job]))
        else:
            words = "Every worker that ran this died; perhaps it needs more memory than they have."
            self.settle(held.job, self.fail(words, "worker-died"))

    def end_overdue(self, held: _Held[O]) -> None:
        """A job past its deadline has failed; its worker gets no more jobs and is restarted under another name."""
        del self.held[held.worker]
        _cancel(held.future)
        self.workers.distrust(held.worker)
        words = f"No result after {as_time(self.options.deadline)}, the time limit of a job: the worker hung or was stopped."
        self.settle(held.job, self.fail(words, "deadline"))
        threading.Thread(target=self.restart, args=(held.worker,), daemon=True).start()

    def restart(self, worker: str) -> None:
        """Ask for a fresh process; a worker without a nanny stays away."""
        with suppress(Exception):
            self.client.restart_workers([worker], timeout=RESTART_SECONDS, raise_for_error=False)

    def give_up(self) -> None:
        """No worker is left and none has come back: every job that waits has failed."""
        left = [job for jobs in (*self.waiting, *self.current.values()) for job in jobs]
        left += [held.job for held in self.held.values()]
        for queued in (self.waiting, self.current, self.held):
            queued.clear()
        words = (
            f"No worker was available for {as_time(self.options.wait_for_workers)}. Find out what ended them (memory, a "
            "limit on processes or open files), then run again what failed."
        )
        for job in left:
            self.settle(job, self.fail(words, "no-workers"))
        self.more = None

    def settle(self, job: Job[O], outcome: O) -> None:
        """Write an outcome, and count it."""
        self.write(job.key, outcome)
        done = outcome.status == "done"
        self.tally.done += done
        self.tally.failed += not done

    def report(self) -> None:
        """Show the progress."""
        self.tally.running = len(self.held)
        self.control.progress(self.tally)


class Workers:
    """Who is alive."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.present: set[str] = set()
        self._misses: dict[str, int] = {}
        self._distrusted: set[str] = set()
        self._last_look, self._last_seen = -TICK, time.monotonic()

    def look(self) -> None:
        """Ask the scheduler, at most once in a tick."""
        now = time.monotonic()
        if now - self._last_look < TICK:
            return
        self._last_look = now
        try:
            self.present = set(self.client.nthreads()) - self._distrusted
        except Exception:  # the scheduler does not answer: nobody is there until it does
            self.present = set()
        for name in {*self._misses, *self.present}:
            self._misses[name] = 0 if name in self.present else self._misses.get(name, 0) + 1
        if self.present:
            self._last_seen = now

    def distrust(self, name: str) -> None:
        """Count a worker that has fallen silent as gone."""
        self._distrusted.add(name)
        self.present.discard(name)

    def is_gone(self, name: str) -> bool:
        """Whether a worker was missing at two looks, or is silent."""
        return name in self._distrusted or self._misses.get(name, 0) > 1

    @property
    def seconds_alone(self) -> float:
        """For how long there has been no worker at all."""
        return time.monotonic() - self._last_seen


def _cancel(future: Any) -> None:
    with suppress(Exception):  # the scheduler may be gone too
        future.cancel(force=True)


def _is_loss(problem: Exception) -> bool:
    """Whether the worker is to blame, not the job."""
    from concurrent.futures import CancelledError

    from distributed.scheduler import KilledWorker

    return isinstance(problem, (KilledWorker, CancelledError))
