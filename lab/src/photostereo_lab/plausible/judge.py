"""Run photostereo on a plausible capture, and compare what it says with the ground truth."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.errors import PhotostereoError
from photostereo.diagnosis.metrics import angular_error
from photostereo.pipeline.pipeline import Pipeline
from photostereo_lab.plausible.captures import Plausible, draw_capture, write_capture

#: A true error above this, in degrees, is wrong; above :data:`NEVER_GOOD` it must not be graded good.
WRONG = 5.0
NEVER_GOOD = 7.0
#: The default may be this much worse, in degrees, than the best of least squares, ``sbl`` and a plane.
WORSE = 0.5
#: Overlap with the true mask (intersection over union) that is asked of surfaces and of objects.
SURFACE_OVERLAP = 0.98
OBJECT_OVERLAP = 0.95
#: Methods that the default is compared with.
RIVALS = ("ls", "sbl")
#: A capture that takes longer than this many seconds hangs.
PATIENCE = 300.0

Row = dict[str, Any]


def judge_seeds(
    seeds: Iterable[int], *, most: float = 0.15, report: Callable[[Row], object] = lambda row: None
) -> list[Row]:
    """Judge the captures of several seeds, each in a process of its own that may crash or hang.

    Parameters
    ----------
    seeds : iterable of int
        Seeds of :func:`.captures.draw_capture`.
    most : float
        Size of the largest photographs in megapixels.
    report : callable, optional
        Receives each row as it is finished.

    Returns
    -------
    list of dict
        One row per capture: what it is, the ``outcome``, errors in degrees and findings.
    """
    rows = []
    for row in _in_processes(seeds, most):
        report(row)
        rows.append(row)
    return rows


def _in_processes(seeds: Iterable[int], most: float) -> Iterator[Row]:
    """Keep one worker for as long as it lives; start another after a crash or a hang."""
    context = multiprocessing.get_context("spawn")
    worker = None
    for seed in seeds:
        if worker is None or not worker.is_alive():
            ours, theirs = context.Pipe()
            worker = context.Process(target=_work, args=(theirs, most), daemon=True)
            worker.start()
        ours.send(seed)
        row = _answer(ours)
        if row is None:
            outcome = "crashed"
            if worker.is_alive():
                outcome = "hung"
                worker.kill()
            worker.join()
            worker = None
            row = {"seed": seed, "outcome": outcome}
        yield row
    if worker is not None:
        worker.kill()


def _answer(connection: Connection) -> Row | None:
    try:
        if connection.poll(PATIENCE):
            row: Row = connection.recv()
            return row
    except EOFError:
        pass
    return None


def _work(connection: Connection, most: float) -> None:
    while True:
        connection.send(judge_capture(draw_capture(connection.recv(), most=most)))


def judge_capture(capture: Plausible) -> Row:
    """Read, solve and judge one capture.

    Returns
    -------
    dict
        ``outcome`` is ``"solved"``, ``"refused"`` (with its code), ``"crashed"`` (with its traceback) or
        ``"not finite"``; ``overlap`` of the mask; ``error``, ``expected``, ``grade`` of the default method; errors of
        the rivals and of a plane; ``codes`` of the findings.
    """
    row: Row = dict(capture.facts)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "capture"
        write_capture(capture, folder)
        try:
            row |= _solved(folder, capture)
        except PhotostereoError as error:
            row |= {"outcome": "refused", "code": error.code}
        except Exception:
            row |= {"outcome": "crashed", "traceback": traceback.format_exc()}
    row["seconds"] = round(time.perf_counter() - began, 1)
    return row


def _solved(folder: Path, capture: Plausible) -> Row:
    # As the app does: without a mask in the folder, the subject is looked for.
    pipeline = Pipeline(folder, mask="auto", report=False)
    findings = [finding.code for finding in pipeline.examined.findings]
    result = pipeline.solution
    expected = pipeline.expected
    notes = [] if pipeline.capture.origin is None else pipeline.capture.origin.notes
    row: Row = {
        "outcome": "solved",
        "method": result.method,
        "overlap": overlap(result.mask, capture.mask),
        "false ball": not capture.has_ball and _uses_ball(pipeline),
        "source": pipeline.capture.lights.source[0],
        "codes": sorted({*findings, *(note.code for note in notes)}),
    }
    if not np.isfinite(result.normals).all():
        return row | {"outcome": "not finite"}
    both = result.mask & capture.mask
    if not both.any():
        return row | {"outcome": "solved", "error": 90.0}
    truth = capture.subject.normals
    row["error"] = mean_error(result.normals, truth, both)
    row["plane"] = mean_error(np.broadcast_to([0.0, 0.0, 1.0], truth.shape), truth, both)
    if expected is not None:
        row |= {"expected": round(expected.degrees, 2), "grade": expected.grade}
    for rival in RIVALS:
        normals = pipeline.configure(method=rival).solution.normals
        row[rival] = mean_error(normals, truth, both & pipeline.solution.mask)
    return row


def _uses_ball(pipeline: Pipeline) -> bool:
    return any("ball" in source for source in pipeline.capture.lights.source)


def overlap(mask: BoolArray, truth: BoolArray) -> float:
    """Intersection over union of two masks."""
    union = (mask | truth).sum()
    return round(float((mask & truth).sum() / max(union, 1)), 3)


def mean_error(normals: FloatArray, truth: FloatArray, mask: BoolArray) -> float:
    """Mean angular error in degrees inside the mask."""
    return round(float(angular_error(normals, truth, mask)[mask].mean()), 2)


# What a row means.


def is_convincingly_wrong(row: Row) -> bool:
    """Whether the expected error is below half of a true error that matters."""
    return bool(row.get("error", 0.0) > WRONG and row.get("expected", 90.0) < 0.5 * row["error"])


def is_wrongly_good(row: Row) -> bool:
    """Whether a bad result is graded good."""
    return bool(row.get("error", 0.0) > NEVER_GOOD and row.get("grade") == "good")


def is_worse_than_simple(row: Row) -> bool:
    """Whether a simple method, or a plane, would have been clearly better than the default."""
    simple = [row[name] for name in (*RIVALS, "plane") if name in row]
    return bool(simple) and row["error"] > min(simple) + WORSE


def has_wrong_mask(row: Row) -> bool:
    """Whether the mask misses the subject."""
    asked = SURFACE_OVERLAP if row.get("fills") else OBJECT_OVERLAP
    return bool(row.get("overlap", 1.0) < asked)


#: What is counted, in the order of the table: a title and a rule.
COUNTED: tuple[tuple[str, Callable[[Row], bool]], ...] = (
    ("crashed", lambda row: row["outcome"] == "crashed"),
    ("hung", lambda row: row["outcome"] == "hung"),
    ("not finite", lambda row: row["outcome"] == "not finite"),
    ("refused", lambda row: row["outcome"] == "refused"),
    ("wrong mask, surface", lambda row: has_wrong_mask(row) and bool(row.get("fills"))),
    ("wrong mask, object", lambda row: has_wrong_mask(row) and not row.get("fills")),
    ("false ball", lambda row: bool(row.get("false ball"))),
    ("convincingly wrong", is_convincingly_wrong),
    ("good above 7 degrees", is_wrongly_good),
    ("worse than ls, sbl or a plane", is_worse_than_simple),
)


def summary_of(rows: Iterable[Row]) -> dict[str, list[int]]:
    """The seeds that each rule counts."""
    every = list(rows)
    return {title: [row["seed"] for row in every if rule(row)] for title, rule in COUNTED}
