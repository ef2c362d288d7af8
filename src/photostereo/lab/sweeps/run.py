"""Running a plan: the trials that the store does not have, every result written at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING

from photostereo.batch.deal import Coordinator, Job, Tally
from photostereo.batch.limits import Limits
from photostereo.batch.progress import SILENT_RUN, Progress, RunControl
from photostereo.batch.warmth import warm_workers
from photostereo.lab.sweeps.grids import grids_of
from photostereo.lab.sweeps.store import Outcome, Store
from photostereo.lab.sweeps.trial import Trial
from photostereo.lab.sweeps.worker import run_trial

if TYPE_CHECKING:
    from distributed import Client


def run_trials(
    trials: Iterable[Trial],
    store: Store,
    client: Client,
    *,
    keep: Collection[str] = (),
    retry_failed: bool = False,
    limits: Limits | None = None,
    device: str = "cpu",
    control: RunControl = SILENT_RUN,
) -> Progress:
    """Run the trials that the store does not have, and write each result as it comes.

    Parameters
    ----------
    trials : what is to be computed
    store : where results go; finished trials are not run again
    client : of the cluster
    keep : hashes of trials whose maps are wanted; those run again where the maps are missing
    retry_failed : run failed trials again
    limits : how long a trial, and a cluster without workers, may take; what takes longer is a failed row
    device : of the workers; on a GPU the settings of a grid over (λ, μ) are solved together
    control : receives progress

    Returns
    -------
    Progress
        At the end: how many are done, and how many failed.
    """
    every = {trial.hash: trial for trial in trials}
    wanted = set(keep)
    have = store.finished(failed_too=not retry_failed)
    missing = [t for t in every.values() if t.hash not in have or (t.hash in wanted and not _kept(store, t))]
    before = store.rows(every.keys() - {t.hash for t in missing})
    failed = sum(row["status"] == "failed" for row in before.values())
    limits = limits or Limits()
    coordinator: Coordinator[Outcome] = Coordinator(
        client,
        write=lambda key, outcome: store.write(every[key], outcome),
        fail=lambda words: Outcome(status="failed", error=words),
        tally=Tally(len(every), len(before) - failed, failed),
        limits=limits,
        control=control,
    )
    if missing:
        warm_workers(client, [trial.method for trial in missing], limits, control, device)
    grids = grids_of(missing) if device != "cpu" else {}
    coordinator.add(
        Job(
            t.hash,
            partial(run_trial, t.as_dict(), keep=t.hash in wanted, device=device, grid=grids.get(t.hash, ())),
            t.scene,
            t.method,
        )
        for t in missing
    )
    return coordinator.run()


def _kept(store: Store, trial: Trial) -> bool:
    return store.arrays_path(trial.hash).exists()
