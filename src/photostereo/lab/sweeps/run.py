"""Running a plan: the trials that the store does not have, every result written at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING

from photostereo.batch.deal import Coordinator, Job
from photostereo.batch.options import HERE, SILENT_RUN, Progress, RunControl, RunOptions
from photostereo.batch.worker import warm_up
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
    options: RunOptions = HERE,
    device: str = "cpu",
    control: RunControl = SILENT_RUN,
) -> Progress:
    """Run the trials that the store does not have, and write each result as it comes.

    Trials whose hashes are in ``keep`` also run if their maps are missing. On a GPU the settings of a grid over (λ, μ) are
    solved together.
    """
    every = {trial.hash: trial for trial in trials}
    have = store.finished(failed_too=not options.retry_failed)
    have -= {key for key in keep if not store.arrays_path(key).exists()}
    missing = [trial for trial in every.values() if trial.hash not in have]
    before = store.rows(every.keys() & have)
    failed = sum(row["status"] == "failed" for row in before.values())
    for method in {trial.method for trial in missing if trial.task == "solve"}:
        if options.scheduler is None:
            warm_up(method, device)
    grids = grids_of(missing) if device != "cpu" else {}
    coordinator: Coordinator[Outcome] = Coordinator(
        client,
        write=lambda key, outcome: store.write(every[key], outcome),
        fail=lambda words, code: Outcome(status="failed", error=words),
        tally=Progress(len(every), len(before) - failed, failed),
        options=options,
        control=control,
    )
    return coordinator.run(
        Job(
            trial.hash,
            partial(run_trial, trial, keep=trial.hash in keep, device=device, grid=grids.get(trial.hash, ())),
            trial.scene,
        )
        for trial in missing
    )
