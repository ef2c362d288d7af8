"""What a worker does with one capture: reads, solves and writes it, complete or not at all."""

from __future__ import annotations

import math
import os
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from photostereo.batch.ledger import Outcome
from photostereo.capture import Capture
from photostereo.core.errors import PhotostereoError, error_code
from photostereo.io.memory import available_memory
from photostereo.io.safe import read_json
from photostereo.pipeline.settings import Settings
from photostereo.solver.reconstruction import Reconstruction


def run_capture(
    path: str, out: str, key: str, settings: Settings, command: list[str], share: int = 1
) -> Outcome:
    """Solve one capture; whatever goes wrong with it is an outcome, not an exception.

    Parameters
    ----------
    path : of the capture
    out : the folder of its results
    key : of the capture with these settings; a folder that bears it is complete and is not made again
    settings : of every solve
    command : the words that started the batch
    share : how many workers share the memory of a machine; a capture that does not fit is solved in parts
    """
    from photostereo.batch.process import one_at_a_time, set_threads

    with one_at_a_time():
        try:
            set_threads()
            budget = available_memory() // (2 * share)
            return _finished(Path(out), key) or _solve(Path(path), Path(out), key, settings, command, budget)
        except PhotostereoError as problem:
            return Outcome("failed", str(problem), error_code(problem))
        except MemoryError:
            return Outcome("failed", "The worker ran out of memory.", "memory")
        except Exception as problem:
            last = traceback.extract_tb(problem.__traceback__)[-1]
            where = f"{os.path.basename(last.filename)}, line {last.lineno}"
            return Outcome("failed", f"{type(problem).__name__}: {problem} ({where})", "internal")


def _finished(out: Path, key: str) -> Outcome | None:
    """The outcome of results that are there already: their worker died before it could report them."""
    try:
        facts = read_json(out / "summary.json", "summary", remedy="")["batch"]
        if facts["key"] != key:
            return None
        return Outcome(
            "done", seconds=facts["seconds"], figures=facts["figures"], warnings=tuple(facts["warnings"])
        )
    except (PhotostereoError, KeyError, TypeError):
        return None


def _solve(path: Path, out: Path, key: str, settings: Settings, command: list[str], budget: int) -> Outcome:
    from photostereo.batch.tiles import OverWorkers, for_worker
    from photostereo.pipeline.pipeline import Pipeline

    began = time.perf_counter()
    if settings.solving.memory is None:
        settings = settings.changed(memory=budget)
    pipeline = Pipeline(path, for_worker(settings), deal=OverWorkers(path, settings))
    outcome: Outcome | None = None

    def facts() -> dict[str, Any]:
        nonlocal outcome
        origin = pipeline.at_hand.origin
        outcome = Outcome(
            "done",
            seconds=round(time.perf_counter() - began, 3),
            figures=figures_of(pipeline.at_hand, pipeline.solution),
            warnings=(*pipeline.warnings, *(() if origin is None else origin.notes)),
        )
        own = {"key": key, "seconds": outcome.seconds, "figures": dict(outcome.figures)}
        return {"batch": {**own, "warnings": list(outcome.warnings)}}

    # By force: results of other settings or of older photographs give way, at the very end.
    with warnings.catch_warnings(), pipeline.writing(out, force=True) as (folder, _):
        warnings.simplefilter("ignore")
        pipeline.fill(folder, command=command, further=facts)
    assert outcome is not None
    return outcome


def figures_of(capture: Capture, result: Reconstruction) -> dict[str, float]:
    """Numbers that show which captures of a batch went wrong; they need no truth.

    ``mask_share``, ``albedo`` (median), ``tilt`` (mean angle between normals and camera, degrees), ``away`` (share of
    normals that face away) and, if there is truth, ``error`` (mean, degrees); of photographs in memory also
    ``residual`` (what a matte surface leaves unexplained), ``dark`` and ``saturated`` (shares of the values).
    """
    up = result.normals[result.mask][:, 2]
    figures = _figures_of_photographs(capture, result) if capture.in_memory else {}
    figures |= {
        "mask_share": capture.pixel_count / capture.mask.size,
        "albedo": float(np.median(result.albedo[result.mask])),
        "tilt": float(np.degrees(np.arccos(np.clip(up, -1, 1))).mean()),
        "away": float((up < 0).mean()),
    }
    if result.angular_error is not None:
        figures["error"] = result.angular_error.mean
    return {name: float(f"{value:.6g}") for name, value in figures.items() if math.isfinite(value)}


def _figures_of_photographs(capture: Capture, result: Reconstruction) -> dict[str, float]:
    from photostereo.diagnosis.exposure import dark_counts, saturation_share, typical_residual

    gray = capture.gray()
    dark = dark_counts(gray.images, capture.mask, capture.intensity_scale())[capture.mask]
    return {
        "residual": typical_residual(result.normals, capture),
        "dark": float(dark.mean()) / len(capture),
        "saturated": saturation_share(gray.images, capture.mask)[0],
    }
