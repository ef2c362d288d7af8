"""``reproduce``: the paper's experiments by name, on one machine or a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from photostereo.batch.options import HERE, SILENT_RUN, Progress, RunControl, RunOptions
from photostereo.core.errors import ParameterError
from photostereo.io.atomic import write_text
from photostereo.io.safe import read_text
from photostereo_lab.paper.claims import check_claims, claims_table
from photostereo_lab.paper.experiments import NAMED_RUNS, NamedRun, find_run
from photostereo_lab.paper.reports import shown_rows, write_report
from photostereo_lab.sweeps.outputs import RunOutputs, results_of
from photostereo_lab.sweeps.plan import Plan
from photostereo_lab.sweeps.store import Store
from photostereo_lab.sweeps.sweep import run_trials
from photostereo_lab.sweeps.tables import Table


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
) -> list[Progress]:
    """Run experiments of the paper and write their tables and figures.

    An interrupted run continues where it stopped.

    Parameters
    ----------
    names : sequence of str
        The runs; all of them if empty.
    data : path
        Contains ``diligent/pmsData`` and ``harvard``.
    out : path
        Receives ``results.sqlite`` and a folder per run.
    quick : bool
        Use small grids and few trials.
    only_figures : bool
        Redraw from the store, without computing anything.
    options : RunOptions
        Processes, deadlines, and whether failed trials run again.
    device : {"cpu", "cuda"}
        Where trials run.
    control : RunControl
        Receives progress and can cancel.

    Returns
    -------
    list of Progress
        The numbers of trials of each run.
    """
    runs = [find_run(name) for name in names] or list(NAMED_RUNS.values())
    if data is None and not only_figures:
        raise ParameterError(
            "The data folder is missing.", code="no-data-folder", remedy="give-data"
        )
    store = Store(out, read_only=only_figures)
    if only_figures:
        summaries = [_redraw(run, store, control) for run in runs]
    else:
        options.require(device)
        plans = [(run, *run.plan(str(data), quick)) for run in runs]
        cluster: AbstractContextManager[Any] = nullcontext()
        if any(plan.trials for _, plan, _ in plans):
            cluster = options.connect()
        with cluster as executor:
            compute = partial(
                run_trials, store=store, executor=executor, options=options, device=device
            )
            summaries = [
                _run(run, plan, notes, store, compute, control) for run, plan, notes in plans
            ]
    control.say(f"All tables and figures: {_write_index(store, control)}")
    return summaries


def _run(
    run: NamedRun,
    plan: Plan,
    notes: list[str],
    store: Store,
    compute: Callable[..., Progress],
    control: RunControl,
) -> Progress:
    """Compute the trials of a run that are missing, and write its report."""
    for note in notes:
        control.say(f"{run.name}: {note}")
    store.keep_plan(plan, {"notes": notes})
    if not plan.trials:
        control.say(f"{run.name}: none of its objects is in the data folder.")
        return Progress(0)
    control.stage(run.name, len(plan.trials))
    try:
        compute(plan.trials, control=control)
        # The trials shown in a figure are known only when all are done: those few run again and
        # keep their maps.
        rows = store.rows(trial.hash for trial in plan.trials)
        keep = {row["hash"] for row in shown_rows(run, results_of(plan, rows))}
        if keep:
            compute((trial for trial in plan.trials if trial.hash in keep), keep=keep)
    finally:
        control.end()
    return _redraw(run, store, control)


def _redraw(run: NamedRun, store: Store, control: RunControl) -> Progress:
    """Write the tables, figures and page of a run from the store."""
    entry = store.plan(run.name)
    if entry is None:
        runs = ", ".join(store.plan_names()) or "none"
        raise ParameterError(
            f"{store.path} has no results of {run.name} (it has: {runs}). Run it first.",
            code="no-results-of-run",
            file=store.path,
        )
    plan, facts = entry
    out = RunOutputs(
        name=run.name,
        title=run.title,
        plan=plan,
        store=store,
        folder=store.folder / run.name,
        notes=tuple(facts["notes"]),
        control=control,
    )
    if plan.trials:
        write_report(run, out)
        for failure in out.failures():
            control.say(f"{run.name}: {failure}")
            out.say(failure)
        heading = [f"## {run.name}: {run.title}", "", f"The paper: {run.source}.", ""]
        notes = [line for note in out.notes for line in (note, "")]
        write_text(out.folder / "page.md", "\n".join([*heading, *notes, *out.page]))
    failed = sum(row["status"] == "failed" for row in out.rows.values())
    return Progress(len(plan.trials), len(out.rows) - failed, failed)


def _write_index(store: Store, control: RunControl) -> Path:
    """Write ``index.md``: the claims, then the pages of the runs, in the paper's order."""
    parts = ["# The paper's experiments\n"]
    claims = check_claims(store)
    if claims:
        header, rows = claims_table(claims)
        table = Table("The paper's claims, on these results", header, rows)
        table.write(store.folder, "claims")
        parts.append(table.markdown())
        control.table(table.title, header, rows)
    pages = [store.folder / name / "page.md" for name in NAMED_RUNS]
    parts += [read_text(page, "page of a run") for page in pages if page.exists()]
    path = store.folder / "index.md"
    write_text(path, "\n".join(parts))
    return path
