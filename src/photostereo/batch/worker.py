"""Rules for every worker process, and how it solves one capture: complete results or none."""

from __future__ import annotations

import math
import os
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from photostereo.batch.ledger import Outcome, failure
from photostereo.capture import Capture
from photostereo.core.errors import PhotostereoError
from photostereo.core.findings import as_finding, sentences
from photostereo.diagnosis.exposure import typical_residual
from photostereo.io.atomic import clear_leftovers
from photostereo.io.memory import available_memory
from photostereo.io.safe import read_json
from photostereo.pipeline.pipeline import Pipeline
from photostereo.pipeline.settings import Settings
from photostereo.solver.methods import find_method
from photostereo.solver.tiles import Band

if TYPE_CHECKING:
    from photostereo.solver.finish import Pictures
    from photostereo.solver.prepared import FromSample

O = TypeVar("O")  # noqa: E741

# Numba's portable threading layer must not be entered from two threads of a process at once, and two jobs in one
# process would share its cores anyway.
_ONE_AT_A_TIME = threading.Lock()


def run_safely(work: Callable[[], O], fail: Callable[[str, str], O]) -> O:
    """Run a job; any error becomes an outcome, made by ``fail`` from a message and a code."""
    with _ONE_AT_A_TIME:
        try:
            set_threads()
            return work()
        except PhotostereoError as problem:
            return fail(str(problem), problem.code)
        except MemoryError:
            return fail("The worker ran out of memory.", "memory")
        except Exception as problem:
            last = traceback.extract_tb(problem.__traceback__)[-1]
            where = f"{os.path.basename(last.filename)}, line {last.lineno}"
            return fail(f"{type(problem).__name__}: {problem} ({where})", "internal")


def set_threads() -> None:
    """Use as many Numba threads as the worker owns; NUMBA_NUM_THREADS, if set, has priority."""
    if "NUMBA_NUM_THREADS" in os.environ:
        return
    try:
        from distributed import get_worker

        wanted = int(get_worker().state.nthreads)
    except (ImportError, ValueError):
        return
    import numba

    numba.set_num_threads(max(1, min(wanted, numba.config.NUMBA_NUM_THREADS)))


@cache
def warm_up(method: str, device: str = "cpu") -> None:
    """Compile a method's kernels by a small solve, so that workers do not all compile them, nor measure it."""
    from photostereo.solver.solve import solve

    angle = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    lights = np.stack([0.5 * np.cos(angle), 0.5 * np.sin(angle), np.full(12, 0.8)], axis=1)
    capture = Capture(np.random.default_rng(0).random((12, 64, 64)), lights, name="warm-up")
    try:
        entry = find_method(method)
        brief: dict[str, Any] = {"lam": 1.0, "mu": 0.1, "max_iter": 1} if entry.has_prior else {}
        known = {parameter.name for parameter in entry.parameters}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = {name: value for name, value in brief.items() if name in known}
            solve(capture, method, device=entry.device_or_cpu(device), **values)
    except Exception:  # the job itself will report the error
        return


def run_capture(
    path: Path, out: Path, key: str, settings: Settings, command: list[str], share: int = 1
) -> Outcome:
    """Solve one capture, unless ``out`` has its key and is complete; ``share`` workers share the machine's memory."""
    return run_safely(partial(_solve, path, out, key, settings, command, share), failure)


def _finished(out: Path, key: str) -> Outcome | None:
    """Return the outcome that complete results contain; their worker may have died before it could report it."""
    try:
        facts = read_json(out / "summary.json", "summary", remedy="")["batch"]
        if facts.pop("key") != key:
            return None
        for name in ("warnings", "warning_codes"):
            facts[name] = tuple(facts[name])
        return Outcome("done", **facts)
    except (PhotostereoError, KeyError, TypeError):
        return None


def _solve(
    path: Path, out: Path, key: str, settings: Settings, command: list[str], share: int
) -> Outcome:
    if (known := _finished(out, key)) is not None:
        clear_leftovers(out)  # left by the worker that died
        return known
    began = time.perf_counter()
    settings = settings.changed(workers=1)  # for decoding: the other workers use the other cores
    if settings.memory is None:
        settings = settings.changed(memory=available_memory() // (2 * share))
    pipeline = Pipeline(path, settings, deal=partial(share_bands, path, settings))

    def facts() -> dict[str, Any]:
        origin, figures = pipeline.at_hand.origin, figures_of(pipeline)
        notes = (*pipeline.warnings, *(() if origin is None else origin.notes))
        entry = {
            "key": key,
            "seconds": round(time.perf_counter() - began, 3),
            "figures": figures,
            "warnings": sentences(notes),
            "warning_codes": [as_finding(note).code for note in notes],
        }
        return {"batch": entry}

    # Forced: results of other settings or older photographs are replaced, at the very end.
    with warnings.catch_warnings(), pipeline.writing(out, force=True) as (folder, _):
        warnings.simplefilter("ignore")
        pipeline.fill(folder, command=command, further=facts, began=began)
    outcome = _finished(out, key)
    assert outcome is not None
    return outcome


def figures_of(pipeline: Pipeline) -> dict[str, float]:
    """Return numbers that show which captures of a batch went wrong; ``docs/many-captures.md`` explains them."""
    capture, result, expected = pipeline.at_hand, pipeline.solution, pipeline.expected
    dark = pipeline.diagnosis.dark_count
    up = result.normals[result.mask][:, 2]
    figures = {
        "mask_share": capture.pixel_count / capture.mask.size,
        "dark": float(dark[dark >= 0].mean()) / len(capture),
        "saturated": pipeline.diagnosis.saturation,
        "albedo": float(np.median(result.albedo[result.mask])),
        "tilt": float(np.degrees(np.arccos(np.clip(up, -1, 1))).mean()),
        "away": float((up < 0).mean()),
    }
    if capture.in_memory:
        figures["residual"] = typical_residual(result.normals, capture)
    if expected is not None:
        figures |= {"expected": expected.degrees, "flawed": float(expected.is_flawed)}
    if result.angular_error is not None:
        figures["error"] = result.angular_error.mean
    return {name: float(f"{value:.6g}") for name, value in figures.items() if math.isfinite(value)}


# The bands of a capture too large for one worker are separate tasks, run by any free workers. The worker that has the
# capture learns the dictionary and joins the bands. Each worker opens the capture once and keeps the decoded photographs
# on its own disk. The result is bit for bit that of a single worker, because the bands are the same.

#: The capture whose bands this process solved last, and the path and settings with which it was opened.
_opened: tuple[tuple[Path, Settings], Capture] | None = None


def share_bands(
    path: Path, settings: Settings, capture: Capture, bands: Sequence[Band], learned: FromSample
) -> Iterator[tuple[Band, Pictures]]:
    """Solve the bands of a capture on the workers of this process's cluster, or here if there is no second one."""
    if len(bands) < 2 or _others() < 1:
        for band in bands:
            yield band, _solve_band(capture, settings, band, learned)
        return
    from distributed import as_completed, worker_client

    with worker_client() as client:  # frees its slot for a band while it waits
        # Broadcast, because tasks go to workers that already have their data.
        taught = client.scatter(learned, broadcast=True, hash=False)
        waiting = {
            client.submit(_solve_there, path, settings, band, taught, pure=False): band
            for band in bands
        }
        for future in as_completed(list(waiting)):
            yield waiting.pop(future), future.result()


def _solve_there(path: Path, settings: Settings, band: Band, learned: FromSample) -> Pictures:
    global _opened
    set_threads()
    if _opened is None or _opened[0] != (path, settings):
        _opened = None  # frees its disk space first
        capture = Pipeline(path, settings).capture
        capture.photographs.keep_decoded()
        _opened = ((path, settings), capture)
    return _solve_band(_opened[1], settings, band, learned)


def _solve_band(capture: Capture, settings: Settings, band: Band, learned: FromSample) -> Pictures:
    from photostereo.solver.bands import solve_band
    from photostereo.solver.prepared import device_for

    device = device_for(learned.measured.method, settings.device)
    return solve_band(capture, learned, band, device)


def _others() -> int:
    """Return the number of other workers in this process's cluster; 0 if it is not a worker."""
    try:
        from distributed import get_worker

        return len(get_worker().client.scheduler_info()["workers"]) - 1
    except (ImportError, ValueError):
        return 0
