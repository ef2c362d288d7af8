"""``sweep``: a user's own plan, run like the paper's experiments."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from photostereo.batch.coordinator import Coordinator, Job
from photostereo.batch.options import HERE, SILENT_RUN, Progress, RunControl, RunOptions
from photostereo.batch.worker import warm_up
from photostereo.io.atomic import write_text
from photostereo_lab.sweeps.curves import draw_curves
from photostereo_lab.sweeps.outputs import RunOutputs, captures_of, curve_tables, tidy_table, unique
from photostereo_lab.sweeps.plan import Cell, Corruption, Plan, Trial, grids_of
from photostereo_lab.sweeps.plan_file import read_plan
from photostereo_lab.sweeps.store import Outcome, Store
from photostereo_lab.sweeps.worker import run_trial

if TYPE_CHECKING:
    from photostereo.batch.executor import Executor

#: The axis of a figure over the levels of a noise, by its kind.
LEVEL_LABELS = {
    "poisson": "SNR (dB)",
    "salt_pepper": "corrupted entries (share)",
    "gaussian": "standard deviation",
}


def sweep(
    plan_path: str | Path,
    out: str | Path,
    *,
    data: str | Path | None = None,
    only_figures: bool = False,
    options: RunOptions = HERE,
    device: str = "cpu",
    control: RunControl = SILENT_RUN,
) -> Progress:
    """Run a plan written in TOML; see :mod:`.plan_file` for its format.

    Nothing is written if the plan cannot run. An interrupted sweep continues where it stopped.

    Parameters
    ----------
    plan_path : path
        The plan.
    out : path
        Receives ``results.sqlite``, ``trials.csv`` (every trial), separate tables for the best of
        each grid and the defaults, and figures of curves if the plan varies the number of
        photographs or the level of a noise; with ``maps = true`` in the plan, ``arrays`` with the
        normals of every trial.
    data : path, optional
        The folder with the captures; by default that of the plan.
    only_figures : bool
        Write tables and figures from the store, without running anything.
    options : RunOptions
        Processes, deadlines, and whether failed trials run again.
    device : {"cpu", "cuda"}
        On a GPU, the settings of a grid over (λ, μ) are solved together.
    control : RunControl
        Receives progress and can cancel.

    Returns
    -------
    Progress
        Numbers of planned, finished and failed trials.
    """
    plan = read_plan(plan_path, data=data)
    options.require(device)
    store = Store(out, read_only=only_figures)
    if not only_figures:
        store.keep_plan(plan, {"notes": []})
        keep = [trial.hash for trial in plan.trials] if plan.maps else ()
        with options.connect() as executor:
            control.stage(plan.name, len(plan.trials))
            try:
                run_trials(
                    plan.trials,
                    store,
                    executor,
                    keep=keep,
                    options=options,
                    device=device,
                    control=control,
                )
            finally:
                control.end()
    return report_sweep(plan, store, control)


def report_sweep(plan: Plan, store: Store, control: RunControl = SILENT_RUN) -> Progress:
    """Write the tables and figures of a sweep from its store."""
    outputs = RunOutputs(plan.name, plan.name, plan, store, store.folder, (), control)
    _write_trials(outputs)
    curve_tables(outputs, _scene_of, "scene")
    tidy_table(outputs, _scene_of, "scene")
    for curve in _curves(plan):
        results = [result for result in outputs.results if curve.holds(result.cell)]
        figure = draw_curves(
            results, curve.place, curve.label, title=plan.name, panels=captures_of(plan)
        )
        outputs.figure(figure, plan.name, name=curve.name)
    for failure in outputs.failures():
        control.say(failure)
    failed = sum(row["status"] == "failed" for row in outputs.rows.values())
    return Progress(len(plan.trials), len(outputs.rows) - failed, failed)


def _scene_of(cell: Cell) -> str:
    photographs = "all photographs" if cell.images is None else f"{cell.images} photographs"
    return f"{photographs}, {cell.corruption}"


@dataclass(frozen=True)
class _Curve:
    """An axis along which a plan varies, and the cells on it."""

    name: str  #: of the figure
    label: str  #: of the axis
    #: a noise whose level varies, or the one noise at which the number of photographs varies
    noise: str | Corruption
    images: int | None = None  #: the number of photographs at which a level varies

    def place(self, cell: Cell) -> float | None:
        """Return the position of a cell on the axis."""
        if isinstance(self.noise, str):
            return cell.corruption.level
        return cell.images

    def holds(self, cell: Cell) -> bool:
        """Whether a cell belongs to the curve."""
        if isinstance(self.noise, str):
            return cell.corruption.kind == self.noise and cell.images == self.images
        return cell.corruption == self.noise


def _curves(plan: Plan) -> Iterator[_Curve]:
    """Yield the possible curves of a plan.

    They are a noise with several levels at one number of photographs, or several numbers of
    photographs at one noise.
    """
    images = unique(cell.images for cell in plan.cells)
    noises = unique(cell.corruption for cell in plan.cells)
    for kind, label in LEVEL_LABELS.items():
        if sum(noise.kind == kind for noise in noises) < 2:
            continue
        for count in images:
            name = f"figure-{kind}"
            if len(images) > 1:
                name += f"-{count or 'all'}"
            yield _Curve(name, label, kind, count)
    if sum(count is not None for count in images) < 2:
        return
    for noise in noises:
        name = "figure-photographs"
        if len(noises) > 1:
            name += f"-{noise.kind}-{noise.level:g}"
        yield _Curve(name, "photographs", noise)


def _write_trials(outputs: RunOutputs) -> None:
    """Write every trial of the plan, one line each, in the plan's order.

    ``settled`` holds the choices of "auto".
    """
    columns = (
        "hash", "capture", "images", "corruption", "level", "seed", "method", "parameters",
        "settled", "status", "mean", "median", "p90", "p95", "max", "within_10deg", "iterations",
        "seconds", "error",
    )  # fmt: skip
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    for trial in outputs.plan.trials:
        row = outputs.rows.get(trial.hash)
        if row is not None:
            writer.writerow(_cell(row[name]) for name in columns)
    write_text(outputs.folder / "trials.csv", text.getvalue())


def _cell(value: object) -> object:
    """Return a value for a table: a mapping as JSON."""
    return json.dumps(value) if isinstance(value, dict) else value


def run_trials(
    trials: Iterable[Trial],
    store: Store,
    executor: Executor,
    *,
    keep: Collection[str] = (),
    options: RunOptions = HERE,
    device: str = "cpu",
    control: RunControl = SILENT_RUN,
) -> Progress:
    """Run the trials that are not in the store, and write each result as it arrives.

    Parameters
    ----------
    trials : iterable of Trial
        The trials; equal ones run once.
    store : Store
        Holds the results, old and new.
    executor : Executor
        Runs the trials.
    keep : collection of str
        Hashes of trials that keep their maps; they also run if only the maps are missing.
    options : RunOptions
        Deadlines, and whether failed trials run again.
    device : {"cpu", "cuda"}
        On a GPU, the settings of a grid over (λ, μ) are solved together.
    control : RunControl
        Receives progress and can cancel.
    """
    every = {trial.hash: trial for trial in trials}
    finished = store.finished(failed_too=not options.retry_failed)
    finished -= {key for key in keep if not store.arrays_path(key).exists()}
    missing = [trial for trial in every.values() if trial.hash not in finished]
    before = store.rows(every.keys() & finished)
    failed = sum(row["status"] == "failed" for row in before.values())
    for method in {trial.method for trial in missing if trial.task == "solve"}:
        if options.scheduler is None:
            warm_up(method, device)
    grids = grids_of(missing) if device != "cpu" else {}
    coordinator = Coordinator(
        executor,
        write=lambda key, outcome: store.write(every[key], outcome),
        fail=lambda problem, code: Outcome(status="failed", error=problem),
        tally=Progress(len(every), len(before) - failed, failed),
        options=options,
        control=control,
    )
    return coordinator.run(
        Job(
            trial.hash,
            partial(
                run_trial,
                trial,
                keep=trial.hash in keep,
                device=device,
                grid=grids.get(trial.hash, ()),
            ),
            trial.scene,
        )
        for trial in missing
    )
