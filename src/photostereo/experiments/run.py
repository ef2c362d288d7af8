"""Running a plan: bundles of trials dealt out to workers, every result written at once.

Trials of one scene (a corrupted subset of a capture) form a bundle. A worker is given trials of one bundle
after another, so that it loads and corrupts each scene once; only when no bundle is left do workers share
one. Each trial is one task: whatever ends the run, at most the trials that were running are lost.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from photostereo.experiments.progress import SILENT_RUN, Progress, RunMonitor
from photostereo.experiments.store import Outcome, Store
from photostereo.experiments.trial import Trial
from photostereo.experiments.worker import run_trial

if TYPE_CHECKING:
    from distributed import Client

#: Trials that a worker holds: one running, one ready, so that it never waits for the coordinator.
HELD = 2


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


class _Coordinator:
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
        self.held: dict[str, int] = defaultdict(int)
        self.flight: dict[Any, tuple[Trial, str]] = {}
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
        from distributed import as_completed

        if not self.left:
            return self.progress()
        completed = as_completed([], with_results=False)
        self.fill(completed)
        self.monitor.progress(self.progress())
        while self.flight:
            future = next(completed)
            trial, worker = self.flight.pop(future)
            self.held[worker] -= 1
            outcome = self.outcome(future)
            future.release()
            if outcome is None:
                self.suspects.append(trial)
            else:
                self.write(trial, outcome)
            self.fill(completed)
            self.monitor.progress(self.progress())
        for trial in self.suspects:
            self.write(trial, self.alone(trial))
            self.monitor.progress(self.progress())
        return self.progress()

    def outcome(self, future: Any) -> Outcome | None:
        """The result; None where the workers died that held the trial, be it by its own fault or a
        neighbour's.
        """
        from distributed.scheduler import KilledWorker

        try:
            result: Outcome = future.result()
            return result
        except KilledWorker:
            return None
        except Exception as problem:
            return Outcome(status="failed", error=f"{type(problem).__name__}: {problem}")

    def alone(self, trial: Trial) -> Outcome:
        """A trial that was there when workers died, with nothing beside it: now it can only be its own
        fault.
        """
        future = self.client.submit(run_trial, trial.as_dict(), keep=trial.hash in self.keep, pure=False)
        outcome = self.outcome(future)
        if outcome is None:
            return Outcome(
                status="failed",
                error="Every worker that ran this trial died; it may need more memory than the workers have.",
            )
        return outcome

    def write(self, trial: Trial, outcome: Outcome) -> None:
        self.store.write(trial, outcome)
        self.left[trial.method] -= 1
        if outcome.status == "done":
            self.done += 1
            self.times[trial.method].append(outcome.seconds or 0.0)
        else:
            self.failed += 1

    def fill(self, completed: Any) -> None:
        """Give every worker something to do."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        while not workers:  # all of them died and their nannies are starting new ones
            time.sleep(0.2)
            workers = self.client.scheduler_info(n_workers=-1)["workers"]
        for name in [name for name in self.current if name not in workers]:
            # What a dead worker held is run elsewhere by Dask; what it had not been given yet goes back.
            self.waiting.appendleft(self.current.pop(name))
            self.held.pop(name, None)
        for name in workers:
            while self.held[name] < HELD:
                trial = self.next_trial(name)
                if trial is None:
                    return
                future = self.client.submit(
                    run_trial,
                    trial.as_dict(),
                    keep=trial.hash in self.keep,
                    workers=[name],
                    allow_other_workers=True,
                    pure=False,
                )
                self.flight[future] = (trial, name)
                self.held[name] += 1
                completed.add(future)

    def next_trial(self, worker: str) -> Trial | None:
        bundle = self.current.get(worker)
        if not bundle:
            while self.waiting and not self.waiting[0]:
                self.waiting.popleft()
            if self.waiting:
                bundle = self.waiting.popleft()
            else:
                bundle = max(self.current.values(), key=len, default=deque())
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
        running = sum(count > 0 for count in self.held.values())
        return Progress(self.total, self.done, self.failed, running, left)
