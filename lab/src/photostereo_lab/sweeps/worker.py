"""Run one trial on a worker, which keeps data that trials share.

A worker keeps the most recently loaded captures, corrupted subsets and statistics of models, so
that a grid over (λ, μ) loads, corrupts and reduces the photographs once. The truth is removed from
captures before they are solved: the error at every iteration would take a tenth of the time, and
only trials that keep their history need it.
"""

from __future__ import annotations

import io
import json
import os
import platform
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from photostereo.batch.settings import canonical_json
from photostereo.batch.worker import run_safely, warm_up
from photostereo.capture import Capture
from photostereo.capture.capture import photographs_of_seed
from photostereo.core.control import SILENT
from photostereo.core.conventions import FloatArray
from photostereo.core.errors import CaptureError
from photostereo.diagnosis.metrics import summarize_error
from photostereo.priors.dictionary.patches import PatchGrid
from photostereo.solver import solve as solving
from photostereo.solver.finish import versions
from photostereo.solver.methods import find_method
from photostereo.solver.prepared import Prepared, prepare
from photostereo.solver.reconstruction import Reconstruction
from photostereo_lab import corruptions
from photostereo_lab.sweeps.plan import CaptureSpec, Corruption, Setting, Trial, split_setting
from photostereo_lab.sweeps.store import Outcome


@dataclass(frozen=True, eq=False)
class _Scene:
    """A corrupted subset without its truth, and the truth."""

    capture: Capture
    truth: FloatArray


@dataclass(frozen=True)
class _Shared:
    """A key for data that trials share: their common parameters as JSON."""

    scene: tuple[CaptureSpec, int | None, Corruption, int | None]
    method: str
    common: str
    device: str
    grid: tuple[Setting, ...] = ()

    def load(self) -> _Scene:
        """Return the scene, in color if the method sees colors."""
        return load_scene(*self.scene, color=find_method(self.method).sees_colors)


def run_trial(
    trial: Trial, keep: bool = False, device: str = "cpu", grid: Sequence[Setting] = ()
) -> Outcome:
    """Run one trial; any error becomes an outcome, not an exception.

    Parameters
    ----------
    trial : Trial
        What to run.
    keep : bool
        Include the maps: normals, ground truth, mask, history, dictionaries.
    device : {"cpu", "cuda"}
        Where to run it.
    grid : sequence of Setting
        Settings of the prior that are solved together with the trial's own, once; the other trials
        then reuse these results.
    """
    if trial.task == "represent":
        return run_safely(partial(_represent, trial), _failure)
    return run_safely(partial(_solve, trial, keep, device, tuple(grid)), _failure)


def _solve(trial: Trial, keep: bool, device: str, grid: tuple[Setting, ...]) -> Outcome:
    entry = find_method(trial.method)
    device = entry.device_or_cpu(device)
    warm_up(trial.method, device)
    setting, common = split_setting(trial.method, trial.plain_parameters)
    together = setting is not None and setting in grid and not keep
    shared = _Shared(
        scene=trial.scene,
        method=trial.method,
        common=canonical_json(common),
        device=device,
        grid=grid if together else (),
    )
    scene = shared.load()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # non-convergence is recorded in a column instead
        if setting is not None and together:
            results, spent = _solve_grid(shared)
            result = results[setting]
        else:
            result, spent = _solve_one(trial, shared, keep)
    summary = summarize_error(result.normals, scene.truth, scene.capture.mask).as_dict()
    figures = result.history[-1].figures if result.history else {}
    return Outcome(
        status="done",
        errors={name: float(value) for name, value in summary.items() if value is not None},
        outcome=result.status,
        iterations=result.iterations,
        settled=result.summary()["parameters"],
        extra={"cpu_seconds": round(spent, 4), **figures},
        seconds=float(sum(result.seconds.values())),
        stages={name: round(value, 4) for name, value in result.seconds.items()},
        versions=dict(result.versions),
        host={**host_facts(), "device": device},
        arrays=_packed(result, scene.truth) if keep else None,
    )


def _solve_one(trial: Trial, shared: _Shared, keep: bool) -> tuple[Reconstruction, float]:
    """Return the result and its processor seconds.

    The statistics are kept for the next trial, and counted for each.
    """
    scene = shared.load()
    capture = scene.capture
    if keep:
        capture = replace(capture, truth=scene.truth)
        prepared, spent = _prepare(capture, shared)
    else:
        prepared, spent = _prepared(shared)
    start = time.process_time()
    result = solving.solve(
        capture, trial.method, device=shared.device, prepared=prepared, **trial.parameters
    )
    return result, spent + time.process_time() - start


@lru_cache(maxsize=2)
def _solve_grid(shared: _Shared) -> tuple[dict[Setting, Reconstruction], float]:
    """Return the results by setting, and the processor seconds per setting."""
    prepared, spent = _prepared(replace(shared, grid=()))
    settings = [dict(setting) for setting in shared.grid]
    start = time.process_time()
    results = solving.solve_grid(
        shared.load().capture,
        shared.method,
        settings,
        device=shared.device,
        prepared=prepared,
        **json.loads(shared.common),
    )
    spent += (time.process_time() - start) / len(settings)
    return dict(zip(shared.grid, results, strict=True)), spent


@lru_cache(maxsize=3)
def _prepared(shared: _Shared) -> tuple[Prepared, float]:
    return _prepare(shared.load().capture, shared)


def _prepare(capture: Capture, shared: _Shared) -> tuple[Prepared, float]:
    """Return the model's statistics and their processor seconds."""
    entry = find_method(shared.method)
    start = time.process_time()
    prepared = prepare(
        capture,
        shared.method,
        device=shared.device,
        # Published results of the classical methods use the photographs as they are.
        strengths="auto" if "noise" in entry.model.sees else "given",
        **entry.of_model(entry.resolve(json.loads(shared.common))),
    )
    return prepared, time.process_time() - start


def _represent(trial: Trial) -> Outcome:
    """Learn a dictionary on the least-squares normals.

    The outcome holds ‖P − DB‖/‖P‖ and the share of non-zeros.
    """
    from photostereo.priors.dictionary.prior import DictionaryPrior

    scene = load_scene(*trial.scene)
    values = {"passes": 30, "atoms": 192, **trial.parameters}
    start = time.perf_counter()
    normals = prepare(scene.capture, "ls", strengths="given").model.alone(SILENT).normals
    prior = DictionaryPrior(
        PatchGrid.from_mask(scene.capture.mask), mu=values["mu"], atoms=values["atoms"]
    )
    state = prior.begin(normals)
    energy = float(prior.cost(state, normals)["fit"])
    for number in range(values["passes"]):
        prior.update(state, normals, number)
    rest = float(prior.cost(state, normals)["fit"])
    figures = {name: float(value) for name, value in prior.record(state).items()}
    return Outcome(
        status="done",
        outcome="iterations",
        iterations=values["passes"],
        settled=values,
        extra={"representation_error": (rest / energy) ** 0.5, **figures},
        seconds=time.perf_counter() - start,
        versions=versions(),
        host=host_facts(),
    )


@lru_cache(maxsize=2)
def load_scene(
    capture: CaptureSpec,
    images: int | None,
    corruption: Corruption,
    seed: int | None,
    *,
    color: bool = False,
) -> _Scene:
    """Return a capture's seeded subset with its seeded noise.

    Parameters
    ----------
    capture : CaptureSpec
        The capture.
    images : int or None
        Number of photographs; None for all.
    corruption : Corruption
        The noise.
    seed : int or None
        Seed of both; None if nothing is random.
    color : bool
        Read the photographs in color.
    """
    clean = _load(capture, color)
    if clean.truth is None:
        raise CaptureError(
            f"{capture.path} has no true normals.", code="no-truth", file=capture.path
        )
    subset = clean
    if images is not None:
        subset = clean.take(images, rng=photographs_of_seed(seed or 0))
    return _Scene(replace(_corrupted(subset, corruption, seed or 0), truth=None), clean.truth)


@lru_cache(maxsize=3)
def _load(spec: CaptureSpec, color: bool) -> Capture:
    """Return a capture as it is, with its ground truth."""
    from photostereo.pipeline.pipeline import Pipeline

    pipeline = Pipeline(
        spec.path, method="ls", color=color, workers=1, strengths="given", align="off"
    )
    if spec.reference == "ls":
        return replace(pipeline.loaded, truth=pipeline.solution.normals)
    return pipeline.loaded


def _corrupted(capture: Capture, corruption: Corruption, seed: int) -> Capture:
    """Return a capture with noise."""
    add: dict[str, Callable[..., Capture]] = {
        "poisson": corruptions.add_poisson,
        "salt_pepper": corruptions.add_salt_and_pepper,
        "gaussian": corruptions.add_gaussian,
    }
    if corruption.kind == "none":
        return capture
    return add[corruption.kind](capture, corruption.level, corruptions.noise_of_seed(seed))


def _packed(result: Reconstruction, truth: FloatArray) -> bytes:
    """Return the maps of a reconstruction as the bytes of an ``.npz`` file."""
    rows = [record.as_dict() for record in result.history]
    arrays: dict[str, Any] = {
        "normals": result.normals,
        "truth": truth.astype(np.float32),
        "mask": result.mask,
    }
    for name in ("dictionary", "dictionary_initial"):
        if name in result.arrays:
            arrays[name] = result.arrays[name].astype(np.float32)
    if rows:
        for name in rows[0]:
            arrays[f"history_{name}"] = np.array([row[name] for row in rows], dtype=np.float64)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _failure(problem: str, code: str) -> Outcome:
    return Outcome(status="failed", error=problem, versions=versions(), host=host_facts())


def host_facts() -> dict[str, Any]:
    """Describe the machine, as far as it affects times."""
    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "processor": platform.processor(),
        "cores": os.cpu_count(),
        "threads": os.environ.get("NUMBA_NUM_THREADS"),
    }
