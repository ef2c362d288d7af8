"""Dealing jobs out to workers, whatever happens to the workers.

Jobs of one bundle share work (a corrupted subset of a capture, say). A worker is given jobs of one bundle after
another, so that it does the shared work once; only when no bundle is left do workers share one. Each job is one
task: whatever ends the run, at most the jobs that were running are lost.

Dask leaves tasks that prefer a dead worker unrun and waits for a silent one without end, so dead and silent
workers are noticed here, and every wait has an end that is written down as the outcome of the job.
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

from photostereo.batch.limits import Limits
from photostereo.batch.progress import SILENT_RUN, Progress, RunControl

if TYPE_CHECKING:
    from distributed import Client

#: Seconds between looks at the workers while nothing arrives.
TICK = 1.0
#: Seconds to wait for the result of a job that has ended, at once and in all: networks are slow, workers die.
FETCH_SECONDS = 0.5
RESULT_SECONDS = 60.0
#: A job that was running when this number of workers died is run once more, alone.
DEATHS = 2
#: Seconds that a worker has to come back when it is started again.
RESTART_SECONDS = 20


class Ended(Protocol):
    """What the coordinator needs to know of an outcome."""

    @property
    def status(self) -> str: ...
    @property
    def seconds(self) -> float | None: ...


O = TypeVar("O", bound=Ended)  # noqa: E741


@dataclass(frozen=True)
class Job(Generic[O]):
    """Something for a worker to do.

    Attributes
    ----------
    key : by which its outcome is kept
    call : what the worker calls; whatever goes wrong with the job is its outcome, not an exception
    bundle : jobs of one bundle go to one worker while there are enough bundles
    kind : jobs of one kind take about the same time
    """

    key: str
    call: Callable[[], O]
    bundle: Hashable = None
    kind: str = ""


@dataclass(eq=False)
class _Held(Generic[O]):
    """A job that a worker has."""

    job: Job[O]
    worker: str
    future: Any
    ended: float | None = None


@dataclass
class Tally:
    """Counts of jobs, and what they are called."""

    total: int
    done: int = 0
    failed: int = 0
    unit: str = "trials"


@dataclass
class Coordinator(Generic[O]):
    """Deals out jobs until each has an outcome.

    Attributes
    ----------
    client : of the cluster
    write : keeps an outcome, the moment it is there
    fail : makes an outcome of a job that has none of its own: its worker died or fell silent
    tally : jobs that had their outcome before; the total counts them and those of this run
    limits : how long a job, and a cluster without workers, may take
    more : asked now and then for further jobs; None when there will be no more
    control : receives progress
    """

    client: Client
    write: Callable[[str, O], None]
    fail: Callable[[str], O]
    tally: Tally
    limits: Limits = field(default_factory=Limits)
    more: Callable[[], Sequence[Job[O]] | None] | None = None
    control: RunControl = SILENT_RUN

    def __post_init__(self) -> None:
        self.waiting: deque[deque[Job[O]]] = deque()
        self.current: dict[str, deque[Job[O]]] = {}
        self.held: dict[str, list[_Held[O]]] = defaultdict(list)
        self.ended: queue.SimpleQueue[_Held[O]] = queue.SimpleQueue()
        self.late: list[_Held[O]] = []
        self.deaths: dict[str, int] = defaultdict(int)
        self.suspects: deque[Job[O]] = deque()
        #: Since when a worker has been at the job that it is at: a worker does one at a time.
        self.busy_since: dict[str, float] = {}
        self.roll_call = RollCall(self.client)
        self.times: dict[str, list[float]] = defaultdict(list)
        self.left: dict[str, int] = defaultdict(int)

    def add(self, jobs: Iterable[Job[O]]) -> None:
        """Jobs for the workers, bundled."""
        bundles: dict[Hashable, deque[Job[O]]] = defaultdict(deque)
        for job in jobs:
            bundles[job.bundle].append(job)
            self.left[job.kind] += 1
        self.waiting.extend(bundles.values())

    def run(self) -> Progress:
        """Until every job has an outcome and there will be no more."""
        while self.fetch_more() or self.unfinished:
            self.deal()
            self.control.progress(self.progress())
            arrived = self.late
            self.late = []
            with suppress(queue.Empty):
                arrived.append(self.ended.get(timeout=TICK))
            for held in arrived:
                if held in self.held.get(held.worker, ()):
                    self.finish(held)
        self.control.progress(self.progress())
        return self.progress()

    @property
    def unfinished(self) -> bool:
        return self.queued or any(self.held.values()) or bool(self.suspects)

    @property
    def queued(self) -> bool:
        return any(self.waiting) or any(self.current.values())

    def fetch_more(self) -> bool:
        """Whether there may be more jobs later."""
        if self.more is None:
            return False
        found = self.more()
        if found is None:
            self.more = None
            return False
        self.tally.total += len(found)
        self.add(found)
        return True

    def finish(self, held: _Held[O]) -> None:
        """A job has ended, well or not. Its result may be slow to come, or never come from a stopped worker: it
        is asked for again after the others have had their turn.
        """
        now = time.monotonic()
        if held.ended is None:
            held.ended = self.busy_since[held.worker] = now
        try:
            outcome: O = held.future.result(timeout=FETCH_SECONDS)
        except Exception as problem:
            if isinstance(problem, TimeoutError) and now - held.ended < RESULT_SECONDS:
                self.late.append(held)
                return
            if _is_loss(problem):
                self.held[held.worker].remove(held)
                self.give_back(held)
                return
            outcome = self.fail(f"{type(problem).__name__}: {problem}")
        self.held[held.worker].remove(held)
        held.future.release()
        self.settle(held.job, outcome)

    def give_back(self, held: _Held[O], *, to_blame: bool = True) -> None:
        """A job whose worker is gone: again elsewhere; alone, if that happened before; given up after that."""
        with suppress(Exception):  # the scheduler may be gone too
            held.future.cancel(force=True)
        key = held.job.key
        self.deaths[key] += to_blame
        if self.deaths[key] > DEATHS:
            words = "Every worker that ran this died; perhaps it needs more memory than they have."
            self.settle(held.job, self.fail(words))
        elif self.deaths[key] == DEATHS:
            self.suspects.append(held.job)
        else:
            self.waiting.append(deque([held.job]))

    def settle(self, job: Job[O], outcome: O) -> None:
        """Keep an outcome, and count it."""
        self.write(job.key, outcome)
        self.left[job.kind] -= 1
        if outcome.status == "done":
            self.tally.done += 1
            self.times[job.kind].append(outcome.seconds or 0.0)
        else:
            self.tally.failed += 1

    def deal(self) -> None:
        """Take back what dead and silent workers had, and give every other one something to do."""
        workers = self.roll_call.take()
        for name in [name for name in self.held if self.roll_call.is_gone(name)]:
            several = self.held.pop(name)
            running = _running(several)
            for held in several:
                self.give_back(held, to_blame=held is running)
        for name in [name for name in self.current if self.roll_call.is_gone(name)]:
            self.waiting.appendleft(self.current.pop(name))
        self.end_overdue()
        if self.roll_call.seconds_alone > self.limits.without_workers:
            self.give_up()
            return
        for name, threads in workers.items():
            # One running and one ready, so that it never waits for the coordinator. A worker with several
            # threads takes one at a time and in no certain order, so it is given no more than one.
            while len(self.held[name]) < (2 if threads == 1 else 1):
                job = self.next_job(name)
                if job is None:
                    break
                self.submit(job, name)

    def end_overdue(self) -> None:
        """A job past its deadline has failed; its worker is started again, and trusted with nothing until then."""
        now = time.monotonic()
        for name, several in list(self.held.items()):
            if not several or now - self.busy_since[name] <= self.limits.job:
                continue
            del self.held[name]
            self.roll_call.distrust(name)
            running = _running(several)
            for held in several:
                if held is running:
                    with suppress(Exception):
                        held.future.cancel(force=True)
                    self.settle(held.job, self.fail(self.limits.words_for_job()))
                else:
                    self.give_back(held, to_blame=False)
            if name in self.current:
                self.waiting.appendleft(self.current.pop(name))
            threading.Thread(target=self.restart, args=(name,), daemon=True).start()

    def restart(self, worker: str) -> None:
        """Ask for a fresh process; without a nanny there is none, and the worker stays out of the game."""
        with suppress(Exception):
            self.client.restart_workers([worker], timeout=RESTART_SECONDS, raise_for_error=False)

    def give_up(self) -> None:
        """No worker is left and none has come back: every job that waits has failed, and says why."""
        queues = [*self.waiting, *self.current.values(), self.suspects]
        left = [job for jobs in queues for job in jobs]
        left += [held.job for several in self.held.values() for held in several]
        self.held.clear()
        for jobs in queues:
            jobs.clear()
        for job in left:
            self.settle(job, self.fail(self.limits.words_without_workers()))
        self.more = None

    def submit(self, job: Job[O], worker: str) -> None:
        if not self.held[worker]:
            self.busy_since[worker] = time.monotonic()
        future = self.client.submit(job.call, workers=[worker], pure=False)
        held = _Held(job, worker, future)
        self.held[worker].append(held)
        future.add_done_callback(lambda _: self.ended.put(held))

    def next_job(self, worker: str) -> Job[O] | None:
        bundle = self.current.get(worker)
        if not bundle:
            while self.waiting and not self.waiting[0]:
                self.waiting.popleft()
            # No bundle of its own left: help with the longest.
            longest: deque[Job[O]] = max(self.current.values(), key=len, default=deque())
            bundle = self.waiting.popleft() if self.waiting else longest
            self.current[worker] = bundle
        if bundle:
            return bundle.popleft()
        # What was there when workers died runs with nothing beside it: now it can only be its own fault.
        if self.suspects and not any(self.held.values()):
            return self.suspects.popleft()
        return None

    def progress(self) -> Progress:
        """Where the run stands."""
        known = [seconds for times in self.times.values() for seconds in times]
        left: float | None = None
        if known:
            typical = sum(known) / len(known)
            work = sum(
                count * (sum(self.times[m]) / len(self.times[m]) if self.times[m] else typical)
                for m, count in self.left.items()
            )
            left = work / max(1, len(self.held))
        running = sum(bool(held) for held in self.held.values())
        return Progress(self.tally.total, self.tally.done, self.tally.failed, running, left, self.tally.unit)


class RollCall:
    """Who is alive. A worker is gone when it is missing twice: one answer of the scheduler may be wrong."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._missed: dict[str, list[float]] = {}
        self._known: set[str] = set()
        self._distrusted: set[str] = set()
        self._last_seen = time.monotonic()

    def take(self) -> dict[str, int]:
        """The workers there are and their threads."""
        try:
            found: dict[str, int] = self.client.nthreads()
        except Exception:  # the scheduler does not answer: nobody is there until it does
            found = {}
        present = {name: threads for name, threads in found.items() if name not in self._distrusted}
        now = time.monotonic()
        self._known |= present.keys()
        for name in self._known:
            if name in present:
                self._missed.pop(name, None)
            else:
                self._missed.setdefault(name, []).append(now)
        if present:
            self._last_seen = now
        return present

    def distrust(self, name: str) -> None:
        """Count a worker that has fallen silent as missing; a fresh process has another name."""
        self._distrusted.add(name)

    def is_gone(self, name: str) -> bool:
        """Whether a worker was missing at two looks, half a tick or more apart."""
        looks = self._missed.get(name, ())
        return len(looks) > 1 and looks[-1] - looks[0] >= TICK / 2

    @property
    def seconds_alone(self) -> float:
        """For how long there has been no worker at all."""
        return time.monotonic() - self._last_seen


def _running(several: Sequence[_Held[O]]) -> _Held[O] | None:
    """Which of a worker's jobs it is at: the first that has not ended."""
    return next((held for held in several if held.ended is None), None)


def _is_loss(problem: Exception) -> bool:
    """Whether the workers are to blame, not the job."""
    from concurrent.futures import CancelledError

    from distributed.scheduler import KilledWorker

    return isinstance(problem, (KilledWorker, CancelledError, TimeoutError))
