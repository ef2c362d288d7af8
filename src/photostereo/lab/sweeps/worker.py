"""What a worker does: one trial, with everything that trials share kept between them.

A worker keeps the last captures it loaded, the last corrupted subsets and the last models' statistics, so
that a grid over (λ, μ) loads, corrupts and reduces the photographs once. Captures lose their truth before
they are solved: the error at every iteration would cost a tenth of the time, and only trials that keep their
history want it.
"""

from __future__ import annotations

import io
import os
import platform
import time
import traceback
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from photostereo.batch.process import one_at_a_time, set_threads
from photostereo.batch.warmth import warm_up
from photostereo.capture import Capture
from photostereo.capture.corruptions import noise_of_seed, photographs_of_seed
from photostereo.core.conventions import FloatArray
from photostereo.core.errors import CaptureError, ParameterError, PhotostereoError
from photostereo.lab.sweeps.grids import Setting, setting_of, without_setting
from photostereo.lab.sweeps.store import Outcome
from photostereo.lab.sweeps.trial import CaptureSpec, Corruption, Trial

if TYPE_CHECKING:
    from photostereo.solver.methods import Method
    from photostereo.solver.prepared import Prepared
    from photostereo.solver.reconstruction import Reconstruction

Value = TypeVar("Value")


class _Recent:
    """The last few values by key."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key, made where it is not there; always made where the key is None."""
        if key is None:
            return make()
        if key not in self._values:
            self._values[key] = make()
        self._values.move_to_end(key)
        while len(self._values) > self._size:
            self._values.popitem(last=False)
        value: Value = self._values[key]
        return value


@dataclass(frozen=True, eq=False)
class _Scene:
    """A corrupted subset without its truth, and the truth."""

    capture: Capture
    truth: FloatArray


_captures = _Recent(3)
_scenes = _Recent(2)
_prepared = _Recent(3)
_grids = _Recent(2)


def run_trial(
    facts: dict[str, Any], keep: bool = False, device: str = "cpu", grid: Sequence[Setting] = ()
) -> Outcome:
    """Run one trial; whatever goes wrong with it is an outcome, not an exception.

    Parameters
    ----------
    facts : of the trial, as :meth:`Trial.as_dict` gives them
    keep : send the maps along: normals, truth, mask, history, dictionaries
    device : where it is solved; methods without a GPU path run on the CPU
    grid : settings of the prior to solve together with its own, once; the trials they belong to find them made
    """
    trial = Trial.from_dict(facts)
    with one_at_a_time():
        try:
            set_threads()
            if trial.task == "represent":
                return _represent(trial)
            return _solve(trial, keep, device, grid)
        except PhotostereoError as problem:
            return _failure(str(problem))
        except MemoryError:
            return _failure("The worker ran out of memory.")
        except Exception as problem:
            last = traceback.extract_tb(problem.__traceback__)[-1]
            where = f"{os.path.basename(last.filename)}, line {last.lineno}"
            return _failure(f"{type(problem).__name__}: {problem} ({where})")


def _solve(trial: Trial, keep: bool, device: str, grid: Sequence[Setting]) -> Outcome:
    from photostereo.diagnosis.metrics import summarize_error
    from photostereo.solver.methods import find_method

    entry = find_method(trial.method)
    scene = load_scene(*trial.scene, color=entry.sees_colors)
    device = entry.device_or_cpu(device)
    warm_up(trial.method, device)
    capture = replace(scene.capture, truth=scene.truth) if keep else scene.capture
    setting = setting_of(trial.method, trial.parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converged is a column, not a line on a terminal far away
        if setting is not None and setting in grid and not keep:
            key = (
                trial.scene,
                trial.method,
                repr(sorted(without_setting(trial.method, trial.parameters).items())),
                tuple(grid),
            )
            results, spent = _grids.get(key, lambda: _solve_grid(trial, capture, device, grid))
            result = results[setting]
        else:
            result, spent = _solve_one(trial, capture, device, keep)
    summary = summarize_error(result.normals, scene.truth, capture.mask)
    facts = result.summary()
    return Outcome(
        status="done",
        errors={name: float(value) for name, value in summary.as_dict().items() if value is not None},
        outcome=result.status,
        iterations=result.iterations,
        settled=facts["parameters"],
        extra={"cpu_seconds": round(spent, 4), **(result.history[-1].figures if result.history else {})},
        seconds=float(sum(result.seconds.values())),
        stages={name: round(value, 4) for name, value in result.seconds.items()},
        versions=dict(result.versions),
        host={**host_facts(), "device": device},
        arrays=_packed(result, scene.truth) if keep else None,
    )


def _solve_one(trial: Trial, capture: Capture, device: str, keep: bool) -> tuple[Reconstruction, float]:
    """The result and its processor seconds; the statistics are kept for the next one, and count for each."""
    from photostereo.solver.solve import solve

    prepared, spent = _prepare(trial, capture, device, keep)
    began = time.process_time()
    result = solve(capture, trial.method, device=device, prepared=prepared, **trial.parameters)
    return result, spent + time.process_time() - began


def _solve_grid(
    trial: Trial, capture: Capture, device: str, grid: Sequence[Setting]
) -> tuple[dict[Setting, Reconstruction], float]:
    """The results by setting, and the processor seconds of one."""
    from photostereo.solver.solve import solve_grid

    prepared, spent = _prepare(trial, capture, device)
    settings = [dict(setting) for setting in grid]
    began = time.process_time()
    common = without_setting(trial.method, trial.parameters)
    results = solve_grid(capture, trial.method, settings, device=device, prepared=prepared, **common)
    return dict(zip(grid, results, strict=True)), spent + (time.process_time() - began) / len(grid)


def _strengths(entry: Method) -> str:
    """Published figures of the classical methods are of the photographs as they are."""
    return "auto" if "noise" in entry.model.sees else "given"


def _prepare(trial: Trial, capture: Capture, device: str, keep: bool = False) -> tuple[Prepared, float]:
    """The model's statistics, kept for the trials that share them, and the processor seconds that they took."""
    from photostereo.solver.methods import find_method
    from photostereo.solver.prepared import prepare

    entry = find_method(trial.method)
    values = entry.of_model(entry.resolve(trial.parameters))

    def make() -> tuple[Prepared, float]:
        began = time.process_time()
        prepared = prepare(capture, trial.method, device=device, strengths=_strengths(entry), **values)
        return prepared, time.process_time() - began

    return _prepared.get(
        None if keep else (trial.scene, trial.method, repr(sorted(values.items())), device), make
    )


def _represent(trial: Trial) -> Outcome:
    """Learn a dictionary on the least-squares normals: ‖P − DB‖/‖P‖ and the share of non-zeros."""
    from photostereo.core.control import SILENT
    from photostereo.priors.dictionary.patches import PatchGrid
    from photostereo.priors.dictionary.prior import DictionaryPrior
    from photostereo.solver.finish import versions
    from photostereo.solver.prepared import prepare

    scene = load_scene(*trial.scene)
    values = {"passes": 30, "atoms": 192, **trial.parameters}
    began = time.perf_counter()
    normals = prepare(scene.capture, "ls", strengths="given").model.alone(SILENT).normals
    prior = DictionaryPrior(PatchGrid.from_mask(scene.capture.mask), mu=values["mu"], atoms=values["atoms"])
    state = prior.begin(normals)
    energy = float(prior.cost(state, normals)["fit"])
    for number in range(values["passes"]):
        prior.update(state, normals, number)
    left = float(prior.cost(state, normals)["fit"])
    return Outcome(
        status="done",
        outcome="iterations",
        iterations=values["passes"],
        settled=values,
        extra={
            "representation_error": (left / energy) ** 0.5,
            **{name: float(value) for name, value in prior.record(state).items()},
        },
        seconds=time.perf_counter() - began,
        versions=versions(),
        host=host_facts(),
    )


def load_scene(
    capture: CaptureSpec, images: int | None, corruption: Corruption, seed: int | None, *, color: bool = False
) -> _Scene:
    """A capture's seeded subset with its seeded noise; kept, as is the capture itself."""
    return _scenes.get(
        (capture, images, corruption, seed, color),
        lambda: _make_scene(capture, images, corruption, seed, color),
    )


def _make_scene(
    spec: CaptureSpec, images: int | None, corruption: Corruption, seed: int | None, color: bool
) -> _Scene:
    clean = _captures.get((spec, color), lambda: _load(spec, color))
    truth = clean.truth
    if truth is None:
        raise CaptureError(f"{spec.path} has no true normals to compare with.")
    capture = clean if images is None else clean.take(images, rng=photographs_of_seed(seed or 0))
    capture = corrupt(capture, corruption, noise_of_seed(seed or 0))
    return _Scene(replace(capture, truth=None), truth)


def _load(spec: CaptureSpec, color: bool) -> Capture:
    from photostereo.pipeline.pipeline import Pipeline

    pipeline = Pipeline(spec.path, method="ls", color=color, workers=1, strengths="given", align="off")
    if spec.reference == "ls":
        return replace(pipeline.loaded, truth=pipeline.solution.normals)
    return pipeline.loaded


def corrupt(capture: Capture, corruption: Corruption, rng: np.random.Generator) -> Capture:
    """The capture with the noise that a plan asks for."""
    from photostereo.capture import corruptions as noise

    if corruption.kind == "none":
        return capture
    if corruption.kind == "poisson":
        return noise.add_poisson(capture, corruption.level, rng)
    if corruption.kind == "salt_pepper":
        return noise.add_salt_and_pepper(capture, corruption.level, rng)
    if corruption.kind == "gaussian":
        return noise.add_gaussian(capture, corruption.level, rng)
    raise ParameterError(f'There is no corruption "{corruption.kind}".')


def _packed(result: Any, truth: FloatArray) -> bytes:
    """The maps of a reconstruction as the bytes of an ``.npz`` file."""
    rows = [record.as_dict() for record in result.history]
    history = {
        f"history_{name}": np.array([row[name] for row in rows], dtype=np.float64)
        for name in (rows[0] if rows else ())
    }
    chosen = {
        name: result.arrays[name] for name in ("dictionary", "dictionary_initial") if name in result.arrays
    }
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {
        "normals": result.normals,
        "truth": truth.astype(np.float32),
        "mask": result.mask,
        **{name: array.astype(np.float32) for name, array in chosen.items()},
        **history,
    }
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _failure(problem: str) -> Outcome:
    from photostereo.solver.finish import versions

    return Outcome(status="failed", error=problem, versions=versions(), host=host_facts())


def host_facts() -> dict[str, Any]:
    """The machine, as far as it matters for a time."""
    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": os.environ.get("NUMBA_NUM_THREADS"),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        return platform.processor()
