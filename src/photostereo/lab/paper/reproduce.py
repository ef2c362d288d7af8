"""``reproduce``: the paper's experiments by name, on one machine or a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from photostereo.batch.options import HERE, RunOptions
from photostereo.batch.progress import SILENT_RUN, Progress, RunControl
from photostereo.core.errors import ParameterError
from photostereo.io.atomic import write_text
from photostereo.lab.paper.catalog import Catalog
from photostereo.lab.paper.runs import NAMED_RUNS, NamedRun, find_run
from photostereo.lab.sweeps.outputs import RunOutputs
from photostereo.lab.sweeps.plan import Plan
from photostereo.lab.sweeps.run import run_trials
from photostereo.lab.sweeps.store import Store
from photostereo.lab.sweeps.summary import results_of

QUICK_NOTE = "Quick: small grids and few trials; the figures are rougher than those of a full run."


@dataclass(frozen=True)
class RunSummary:
    """How a named run ended."""

    name: str
    folder: Path
    done: int
    failed: int
    notes: tuple[str, ...]


def list_runs() -> list[tuple[str, str, str]]:
    """Name, title and the paper's finding of every named run."""
    return [(run.name, run.title, run.source) for run in NAMED_RUNS.values()]


def reproduce(
    names: Sequence[str],
    data: str | Path | None,
    out: str | Path,
    *,
    quick: bool = False,
    only_figures: bool = False,
    options: RunOptions = HERE,
    device: str = "cpu",
    control: RunControl = SILENT_RUN,
) -> list[RunSummary]:
    """Run experiments of the paper and write their tables and figures.

    Parameters
    ----------
    names : of the runs, see :func:`list_runs`; empty for all of them
    data : folder that holds ``diligent/pmsData`` and ``harvard``; not needed with ``only_figures``
    out : folder for ``results.sqlite``, and a folder per run; a run that was interrupted goes on where it
        stopped
    quick : small grids and few trials
    only_figures : draw tables and figures again from the store, compute nothing
    options : where trials run, for how long, and whether those that failed are run again
    device : of the workers; on a GPU the settings of a grid are solved together
    control : receives progress

    Raises
    ------
    ParameterError
        For an unknown run, or for ``only_figures`` where the store does not know the run.
    """
    chosen = [find_run(name) for name in names] or list(NAMED_RUNS.values())
    store = Store(out)
    if only_figures:
        summaries = [_redraw(run, store, control) for run in chosen]
    else:
        if data is None:
            raise ParameterError("Name the folder that holds the captures with --data.")
        options.require(device)
        planned = [(run, *_planned(run, Path(data), quick)) for run in chosen]
        cluster: AbstractContextManager[Any] = (
            options.connect() if any(plan.trials for _, plan, _ in planned) else nullcontext()
        )
        with cluster as client:
            trials_on = partial(run_trials, store=store, client=client, limits=options.limits, device=device)
            summaries = [
                _run(run, plan, facts, store, trials_on, options.retry_failed, control)
                for run, plan, facts in planned
            ]
    from photostereo.lab.paper.index import write_index

    control.say(f"All tables and figures: {write_index(store, control)}")
    return summaries


def _planned(run: NamedRun, data: Path, quick: bool) -> tuple[Plan, dict[str, Any]]:
    catalog = Catalog(data)
    blocks = run.blocks(catalog, quick)
    notes = []
    if quick:
        notes.append(QUICK_NOTE)
    notes += catalog.notes
    replaced = {note.split(" ")[0] for note in catalog.notes}
    left_out = [name for name in catalog.missing if name not in replaced]
    if left_out:
        notes.append(f"Not in the data folder and left out: {', '.join(left_out)}.")
    facts = {"notes": notes, "quick": quick}
    return Plan(run.name, tuple(blocks)), facts


def _run(
    run: NamedRun,
    plan: Plan,
    facts: dict[str, Any],
    store: Store,
    trials_on: Callable[..., Progress],
    retry_failed: bool,
    control: RunControl,
) -> RunSummary:
    for note in facts["notes"]:
        control.say(f"{run.name}: {note}")
    store.keep_plan(plan, facts)
    if not plan.trials:
        control.say(f"{run.name}: none of its objects is in the data folder.")
        return RunSummary(run.name, store.folder / run.name, 0, 0, tuple(facts["notes"]))
    control.stage(run.name, len(plan.trials))
    try:
        end = trials_on(plan.trials, retry_failed=retry_failed, control=control)
        _fetch_maps(run, plan, store, trials_on)
    finally:
        control.end()
    _report(run, plan, facts, store, control)
    return RunSummary(run.name, store.folder / run.name, end.done, end.failed, tuple(facts["notes"]))


def _fetch_maps(run: NamedRun, plan: Plan, store: Store, trials_on: Callable[..., Progress]) -> None:
    """Which trials a figure shows is known only when all are done: those few run once more and keep their
    maps.
    """
    rows = store.rows(trial.hash for trial in plan.trials)
    wanted = {row["hash"] for row in run.maps(results_of(plan, rows))}
    if wanted:
        trials_on((t for t in plan.trials if t.hash in wanted), keep=wanted)


def _redraw(run: NamedRun, store: Store, control: RunControl) -> RunSummary:
    remembered = store.plan(run.name)
    if remembered is None:
        known = ", ".join(store.plan_names()) or "none"
        raise ParameterError(
            f"{store.path} has no results of {run.name} (it has: {known}). Run it first without "
            "--only-figures."
        )
    plan, facts = remembered
    if plan.trials:
        _report(run, plan, facts, store, control)
    rows = store.rows(trial.hash for trial in plan.trials)
    failed = sum(row["status"] == "failed" for row in rows.values())
    return RunSummary(run.name, store.folder / run.name, len(rows) - failed, failed, tuple(facts["notes"]))


def _report(run: NamedRun, plan: Plan, facts: dict[str, Any], store: Store, control: RunControl) -> None:
    out = RunOutputs(
        run.name, run.title, plan, store, store.folder / run.name, tuple(facts["notes"]), control
    )
    out.folder.mkdir(exist_ok=True)
    run.report(out)
    for failure in out.failures():
        control.say(f"{run.name}: {failure}")
        out.say(failure)
    heading = [f"## {run.name}: {run.title}", "", f"The paper: {run.source}.", ""]
    notes = [line for note in out.notes for line in (note, "")]
    write_text(out.folder / "page.md", "\n".join([*heading, *notes, *out.page]))
