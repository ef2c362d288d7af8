"""What a worker does with one capture: reads, solves and writes it, complete or not at all."""

from __future__ import annotations

import math
import os
import time
import traceback
import warnings
from pathlib import Path

import numpy as np

from photostereo.batch.ledger import Outcome
from photostereo.batch.settings import Settings
from photostereo.capture import Capture
from photostereo.capture.options import NAMED_FILES
from photostereo.core.errors import ConvergenceWarning, PhotostereoError, error_code
from photostereo.io.memory import available_memory
from photostereo.io.safe import read_json
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
    from photostereo.batch.tiles import OverWorkers, open_capture
    from photostereo.core.units import PixelSize
    from photostereo.io.atomic import replacing_directory
    from photostereo.pipeline.folder import SurfaceChoice, fill_results, write_summary
    from photostereo.pipeline.provenance import provenance
    from photostereo.solver.large import fits, solve_large
    from photostereo.solver.methods import method_for
    from photostereo.solver.solve import solve

    began = time.perf_counter()
    found = open_capture(path, settings)
    entry, _ = method_for(found, settings.method, settings.prior)
    in_parts = not fits(found, entry, budget)
    capture = found if in_parts else found.loaded()
    loading = time.perf_counter() - began
    size = PixelSize.of(settings.pixel_size)
    surface = SurfaceChoice(method=settings.surface_method, pixel_size=size) if settings.surface else None
    # By force: results of other settings or of older photographs give way, at the very end.
    with replacing_directory(out, force=True, keep=_read_by(path, settings)) as folder:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", ConvergenceWarning)
            if in_parts:
                deal = OverWorkers(path, settings)
                result = solve_large(
                    capture,
                    settings.method,
                    prior=settings.prior,
                    memory=budget,
                    deal=deal,
                    **settings.parameters,
                )
            else:
                result = solve(capture, settings.method, prior=settings.prior, **settings.parameters)
        made = provenance(
            capture,
            path=path,
            reading=settings.reading,
            images=settings.images,
            seed=settings.seed,
            command=command,
        )
        summary, _ = fill_results(
            folder,
            capture,
            result.with_seconds(load=loading),
            surface=surface,
            report=settings.report,
            flip_y=settings.flip_y,
            made=made,
        )
        notes = capture.origin.notes if capture.origin is not None else ()
        outcome = Outcome(
            "done",
            seconds=round(time.perf_counter() - began, 3),
            figures=figures_of(capture, result, photographs=not in_parts),
            warnings=(*(str(warning.message) for warning in caught), *notes),
        )
        facts = {"key": key, "seconds": outcome.seconds, "figures": dict(outcome.figures)}
        write_summary(folder, {**summary, "batch": {**facts, "warnings": list(outcome.warnings)}})
    return outcome


def _read_by(path: Path, settings: Settings) -> list[Path]:
    """What results may not take the place of."""
    named = [settings.reading.path_of(name) for name in NAMED_FILES]
    return [path, *(file for file in named if file is not None and file.exists())]


def figures_of(capture: Capture, result: Reconstruction, *, photographs: bool = True) -> dict[str, float]:
    """Numbers by which a capture that went wrong is told from its neighbors; they need no truth.

    ``mask_share``, ``albedo`` (median), ``tilt`` (mean angle between normals and camera, degrees), ``away`` (share of
    normals that face away) and, where there is truth, ``error`` (mean, degrees); with ``photographs``, which must
    fit into memory, also ``residual`` (what a matte surface leaves unexplained), ``dark`` and ``saturated`` (shares of
    the values).
    """
    up = result.normals[result.mask][:, 2]
    figures = _figures_of_photographs(capture, result) if photographs else {}
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
