"""Running a plan: bundles of trials dealt out to workers, every result written at once.

Trials of one scene (a corrupted subset of a capture) form a bundle. A worker is given trials of one bundle
after another, so that it loads and corrupts each scene once; only when no bundle is left do workers share
one. Each trial is one task: whatever ends the run, at most the trials that were running are lost.
"""

from __future__ import annotations

import queue
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from photostereo.jobs.progress import SILENT_RUN, Progress, RunMonitor
from photostereo.jobs.store import Outcome, Store
from photostereo.jobs.trial import Trial
from photostereo.jobs.worker import run_trial

if TYPE_CHECKING:
    from distributed import Client

#: Trials that a worker holds: one running, one ready, so that it never waits for the coordinator.
HELD = 2
#: Seconds between looks at the workers while nothing arrives.
TICK = 1.0
#: Seconds to wait for the result of a trial that has ended, on a slow network.
RESULT_SECONDS = 60.0
#: A trial that was running when so many workers died is run once more, alone.
DEATHS = 2


def run_trials(
    trials: Iterable[Trial],
    store: Store,
    client: Client,
    *,
    keep: Collection[str] = (),
    retry_failed: bool = False,
    monitor: RunMonitor = SILENT_RUN,
) -> Progress:
    """Run the trials that the store does not have, and write each result as it comes.

    Parameters
    ----------
    trials : what is to be computed
    store : where results go; finished trials are not run again
    client : of the cluster
    keep : hashes of trials whose maps are wanted; those run again where the maps are missing
    retry_failed : run failed trials again
    monitor : receives progress

    Returns
    -------
    Progress
        At the end: how many are done, and how many failed.
    """
    every = list({trial.hash: trial for trial in trials}.values())
    wanted = set(keep)
    have = store.finished(failed_too=not retry_failed)
    missing = [t for t in every if t.hash not in have or (t.hash in wanted and not _kept(store, t))]
    return _Coordinator(missing, every, store, client, wanted, monitor).run()


def _kept(store: Store, trial: Trial) -> bool:
    return store.arrays_path(trial.hash).exists()


@dataclass(eq=False)
class _Held:
    """A trial that a worker has."""

    trial: Trial
    worker: str
    future: Any


class _Coordinator:
    """Deals out trials and notices dead workers itself: Dask leaves tasks that prefer a dead worker unrun."""

    def __init__(
        self,
        missing: Sequence[Trial],
        every: Sequence[Trial],
        store: Store,
        client: Client,
        keep: set[str],
        monitor: RunMonitor,
    ) -> None:
        self.store, self.client, self.keep, self.monitor = store, client, keep, monitor
        bundles: dict[Any, deque[Trial]] = defaultdict(deque)
        for trial in missing:
            bundles[trial.scene].append(trial)
        self.waiting = deque(bundles.values())
        self.current: dict[str, deque[Trial]] = {}
        self.held: dict[str, list[_Held]] = defaultdict(list)
        self.ended: queue.SimpleQueue[_Held] = queue.SimpleQueue()
        self.deaths: dict[str, int] = defaultdict(int)
        self.suspects: list[Trial] = []
        self.total = len(every)
        rows = store.rows({t.hash for t in every} - {t.hash for t in missing})
        self.failed = sum(row["status"] == "failed" for row in rows.values())
        self.done = len(rows) - self.failed
        self.times: dict[str, list[float]] = defaultdict(list)
        self.left: dict[str, int] = defaultdict(int)
        for trial in missing:
            self.left[trial.method] += 1

    def run(self) -> Progress:
        if not self.left:
            return self.progress()
        self.deal()
        self.monitor.progress(self.progress())
        while any(self.held.values()) or any(self.waiting) or any(self.current.values()):
            try:
                held = self.ended.get(timeout=TICK)
            except queue.Empty:
                held = None
            if held is not None and held in self.held.get(held.worker, ()):
                self.finish(held)
            self.deal()
            self.monitor.progress(self.progress())
        for trial in self.suspects:
            self.write(trial, self.alone(trial))
            self.monitor.progress(self.progress())
        return self.progress()

    def finish(self, held: _Held) -> None:
        self.held[held.worker].remove(held)
        try:
            outcome = self.result_of(held)
        except Exception as problem:
            if _is_loss(problem):
                self.give_back(held)
                return
            outcome = Outcome(status="failed", error=f"{type(problem).__name__}: {problem}")
        held.future.release()
        self.write(held.trial, outcome)

    def result_of(self, held: _Held) -> Outcome:
        """The result; a TimeoutError where the worker died with it, for which Dask would wait for ever."""
        waited = 0.0
        while True:
            try:
                outcome: Outcome = held.future.result(timeout=TICK)
                return outcome
            except TimeoutError:
                waited += TICK
                alive = held.worker in self.client.scheduler_info(n_workers=-1)["workers"]
                if not alive or waited > RESULT_SECONDS:
                    raise

    def give_back(self, held: _Held) -> None:
        """A trial whose worker is gone: again elsewhere, or, if that happened before, alone at the end."""
        held.future.cancel(force=True)
        self.deaths[held.trial.hash] += 1
        if self.deaths[held.trial.hash] >= DEATHS:
            self.suspects.append(held.trial)
        else:
            self.waiting.append(deque([held.trial]))

    def alone(self, trial: Trial) -> Outcome:
        """A trial that was there when workers died, with nothing beside it: now it can only be its own
        fault.
        """
        future = self.client.submit(run_trial, trial.as_dict(), keep=trial.hash in self.keep, pure=False)
        try:
            outcome: Outcome = future.result()
            return outcome
        except Exception as problem:
            words = f"{type(problem).__name__}: {problem}"
            if _is_loss(problem):
                words = "Every worker that ran this trial died; perhaps it needs more memory than they have."
            return Outcome(status="failed", error=words)

    def write(self, trial: Trial, outcome: Outcome) -> None:
        self.store.write(trial, outcome)
        self.left[trial.method] -= 1
        if outcome.status == "done":
            self.done += 1
            self.times[trial.method].append(outcome.seconds or 0.0)
        else:
            self.failed += 1

    def deal(self) -> None:
        """Take back what dead workers had, and give every living one something to do."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        for name in [name for name in self.held if name not in workers]:
            for number, held in enumerate(self.held.pop(name)):
                if number > 0:  # only the first was running: the others bear no blame
                    self.deaths[held.trial.hash] -= 1
                self.give_back(held)
        for name in [name for name in self.current if name not in workers]:
            self.waiting.appendleft(self.current.pop(name))
        for name in workers:
            while len(self.held[name]) < HELD and (trial := self.next_trial(name)) is not None:
                self.submit(trial, name)

    def submit(self, trial: Trial, worker: str) -> None:
        future = self.client.submit(
            run_trial, trial.as_dict(), keep=trial.hash in self.keep, workers=[worker], pure=False
        )
        held = _Held(trial, worker, future)
        self.held[worker].append(held)
        future.add_done_callback(lambda _: self.ended.put(held))

    def next_trial(self, worker: str) -> Trial | None:
        bundle = self.current.get(worker)
        if not bundle:
            while self.waiting and not self.waiting[0]:
                self.waiting.popleft()
            # No bundle of its own left: help with the longest.
            longest: deque[Trial] = max(self.current.values(), key=len, default=deque())
            bundle = self.waiting.popleft() if self.waiting else longest
            self.current[worker] = bundle
        return bundle.popleft() if bundle else None

    def progress(self) -> Progress:
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
        return Progress(self.total, self.done, self.failed, running, left)


def _is_loss(problem: Exception) -> bool:
    """Whether the workers are to blame, not the trial."""
    from concurrent.futures import CancelledError

    from distributed.scheduler import KilledWorker

    return isinstance(problem, (KilledWorker, CancelledError, TimeoutError))
