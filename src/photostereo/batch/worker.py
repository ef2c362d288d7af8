"""What a worker does with one capture: reads, solves and writes it, complete or not at all."""

from __future__ import annotations

import math
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from photostereo.batch.ledger import Outcome, failure
from photostereo.batch.process import run_safely
from photostereo.capture import Capture
from photostereo.core.errors import PhotostereoError
from photostereo.diagnosis.expected_error import ExpectedError
from photostereo.io.memory import available_memory
from photostereo.io.safe import read_json
from photostereo.pipeline.settings import Settings
from photostereo.solver.reconstruction import Reconstruction


def run_capture(
    path: str, out: str, key: str, settings: Settings, command: list[str], share: int = 1
) -> Outcome:
    """Solve one capture; whatever goes wrong with it is an outcome, not an exception.

    A folder ``out`` that bears the key (of the capture with these settings) is complete and is not made again. ``share``
    workers share the memory of a machine; a capture that does not fit is solved in parts.
    """
    return run_safely(partial(_solve, Path(path), Path(out), key, settings, command, share), failure)


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


def _solve(path: Path, out: Path, key: str, settings: Settings, command: list[str], share: int) -> Outcome:
    from photostereo.batch.tiles import OverWorkers, for_worker
    from photostereo.pipeline.pipeline import Pipeline

    if (outcome := _finished(out, key)) is not None:
        return outcome
    began = time.perf_counter()
    if settings.solving.memory is None:
        settings = settings.changed(memory=available_memory() // (2 * share))
    pipeline = Pipeline(path, for_worker(settings), deal=OverWorkers(path, settings))

    def facts() -> dict[str, Any]:
        nonlocal outcome
        origin = pipeline.at_hand.origin
        outcome = Outcome(
            "done",
            seconds=round(time.perf_counter() - began, 3),
            figures=figures_of(pipeline.at_hand, pipeline.solution, pipeline.expected),
            warnings=(*pipeline.warnings, *(() if origin is None else origin.notes)),
        )
        own = {"key": key, "seconds": outcome.seconds, "figures": dict(outcome.figures)}
        return {"batch": {**own, "warnings": list(outcome.warnings)}}

    # By force: results of other settings or of older photographs are replaced, at the very end.
    with warnings.catch_warnings(), pipeline.writing(out, force=True) as (folder, _):
        warnings.simplefilter("ignore")
        pipeline.fill(folder, command=command, further=facts)
    assert outcome is not None
    return outcome


def figures_of(
    capture: Capture, result: Reconstruction, expected: ExpectedError | None = None
) -> dict[str, float]:
    """Numbers that show which captures of a batch went wrong.

    ``expected`` (expected error, degrees), ``mask_share``, ``albedo`` (median), ``tilt`` (mean angle between normals
    and camera, degrees), ``away`` (share of normals that face away) and, if there is truth, ``error`` (mean, degrees);
    of photographs in memory also ``residual`` (what a matte surface leaves unexplained), ``dark`` and ``saturated``
    (shares of the values).
    """
    up = result.normals[result.mask][:, 2]
    figures = _figures_of_photographs(capture, result) if capture.in_memory else {}
    figures |= {
        "mask_share": capture.pixel_count / capture.mask.size,
        "albedo": float(np.median(result.albedo[result.mask])),
        "tilt": float(np.degrees(np.arccos(np.clip(up, -1, 1))).mean()),
        "away": float((up < 0).mean()),
    }
    if expected is not None:
        figures["expected"] = expected.degrees
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
