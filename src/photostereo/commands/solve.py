"""``photostereo solve``: from a folder of photographs to everything in OUT."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from photostereo.capture import Capture
from photostereo.capture.corruptions import photographs_of_seed
from photostereo.capture.loading import read, read_lazily
from photostereo.capture.options import NAMED_FILES, ReadOptions
from photostereo.commands.as_json import print_json
from photostereo.commands.state import tell_state
from photostereo.commands.terminal import Terminal
from photostereo.core.errors import ConvergenceWarning, ParameterError
from photostereo.diagnosis.metrics import ErrorSummary
from photostereo.io.atomic import replacing_directory
from photostereo.io.memory import available_memory, in_words, parse_memory
from photostereo.io.names import folder_name
from photostereo.io.safe import exists
from photostereo.lights.strengths import describe_correction
from photostereo.pipeline.folder import SurfaceChoice, bytes_of_results, fill_results
from photostereo.pipeline.provenance import provenance
from photostereo.solver.large import bands_of, bytes_for_bands, fits_on, solve_large
from photostereo.solver.methods import Method, find_method, method_for
from photostereo.solver.prepared import device_for
from photostereo.solver.reconstruction import Reconstruction
from photostereo.solver.solve import solve
from photostereo.solver.state import require_checkpoint
from photostereo.solver.tiles import OF_THE_PROGRAM
from photostereo.surface.integration import check_method


def run(
    path: Path,
    out: Path | None,
    *,
    method: str,
    prior: str | None,
    parameters: Mapping[str, Any],
    images: int | None,
    seed: int,
    reading: ReadOptions,
    surface: SurfaceChoice | None,
    material: str | None,
    report: bool,
    flip_y: bool,
    checkpoint: Path | None,
    resume: Path | None,
    device: str,
    memory: str | None,
    force: bool,
    quiet: bool,
    as_json: bool = False,
) -> None:
    """Load, solve, write, tell."""
    budget = available_memory() // 2 if memory is None else parse_memory(memory)
    # A misspelt method or parameter is told before photographs are decoded.
    entry = find_method(method, prior)
    entry.resolve(parameters)
    if surface is not None:
        check_method(surface.method)
    if checkpoint is not None:
        require_checkpoint(checkpoint)
    used = files_in_use(path, reading, resume, parameters.get("dictionary"))
    used += [] if checkpoint is None else [checkpoint]
    with Terminal(quiet=quiet or as_json) as terminal:
        began = time.perf_counter()
        found = _open(path, reading_for([entry], reading), images, seed)
        entry, why = method_for(found, method, prior)
        if found.is_color and not reading_for([entry], reading).color:
            found = _open(path, reading, images, seed)
        writing = bytes_of_results(found.frame, 3 if found.is_color else 1, surface, report=report)
        stack = found.stack_bytes
        where = device_for(entry, device)
        on_gpu = where.torch_name.startswith("cuda")
        in_memory = OF_THE_PROGRAM + stack + writing <= budget
        in_parts = not (in_memory and fits_on(where, found, entry, budget))
        # A GPU's bands come faster from memory than from files.
        capture = found.loaded() if in_memory and (on_gpu or not in_parts) else found
        if in_parts and (checkpoint is not None or resume is not None):
            room, remedy = in_words(budget), "allow more (--memory)"
            if on_gpu and in_memory:
                room, remedy = "the memory of the GPU", "solve it on the CPU (--device cpu)"
            raise ParameterError(
                f"{found.name} is solved in parts, as it does not fit into {room}, and then there is no state to save or "
                f"resume. Leave out --checkpoint and --resume, or {remedy}."
            )
        if in_parts:
            require_for_results(found.frame, OF_THE_PROGRAM + writing, budget)
            # An error now, not after a minute.
            bands_of(
                found, entry, entry.resolve(parameters), bytes_for_bands(where, None if on_gpu else budget)
            )
        loading = time.perf_counter() - began
        terminal.say(f"{capture}")
        tell_lamps(terminal, capture)
        tell_state(terminal, capture)
        if why:
            terminal.say(f"Method {entry.name}, {why}.")
        target = out or Path(f"{folder_name(capture.name)}-{entry.name}")
        with (
            replacing_directory(target, force=force, keep=used) as folder,
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always", ConvergenceWarning)
            if in_parts:
                result = solve_large(
                    capture,
                    method,
                    prior=prior,
                    memory=None if on_gpu else budget,
                    device=device,
                    control=terminal,
                    **parameters,
                )
            else:
                result = solve(
                    capture,
                    method=method,
                    prior=prior,
                    control=terminal,
                    checkpoint=checkpoint,
                    resume=resume,
                    device=device,
                    **parameters,
                )
            result = result.with_seconds(load=loading)
            made = provenance(capture, path=path, reading=reading, images=images, seed=seed)
            summary, _ = fill_results(
                folder,
                capture,
                result,
                surface=surface,
                report=report,
                material=material,
                flip_y=flip_y,
                made=made,
                control=terminal,
            )
    if as_json:
        told = [str(warning.message) for warning in caught]
        print_json({**summary, "out": str(target.absolute()), "warnings": told})
        return
    for warning in caught:
        terminal.say(f"Warning: {warning.message}")
    if correction := describe_correction(result.strengths):
        terminal.say(correction)
    _tell(terminal, result, summary, target)


def require_for_results(frame: tuple[int, int], need: int, budget: int) -> None:
    """Raise a :class:`ParameterError` where surface, meshes and page do not fit, before anything is solved."""
    if need > budget:
        raise ParameterError(
            f"The surface, the meshes and the page of {frame[1]} × {frame[0]} pixels need {in_words(need)} of memory, "
            f"but {in_words(max(budget, 0))} may be used. Allow more (--memory), leave them out (--no-surface, "
            "--no-report), integrate by poisson, or look at a lower resolution (--scale)."
        )


def reading_for(methods: Sequence[Method], reading: ReadOptions) -> ReadOptions:
    """How to read the photographs for these methods: with their colors where one of them looks at those."""
    return replace(reading, color=reading.color or any(method.sees_colors for method in methods))


def _open(path: Path, reading: ReadOptions, images: int | None, seed: int) -> Capture:
    """The capture, its photographs on disk, or a random subset of them."""
    found = read_lazily(path, reading)
    return found if images is None else found.take(images, rng=photographs_of_seed(seed))


def read_capture(path: Path, reading: ReadOptions, images: int | None, seed: int) -> Capture:
    """The capture, or a random subset of its photographs."""
    capture = read(path, reading)
    return capture if images is None else capture.take(images, rng=photographs_of_seed(seed))


def files_in_use(path: Path, reading: ReadOptions, *others: Any) -> list[Path]:
    """What a command reads, the capture first: results may not take its place."""
    home = path if path.is_dir() else path.parent
    named = [file for file in (*map(reading.path_of, NAMED_FILES), *others) if file is not None]
    return [path, *(file for name in named for file in (Path(name), home / name) if exists(file))]


def tell_lamps(terminal: Terminal, capture: Capture) -> None:
    """How the lights were found, where there was no light file."""
    calibration = None if capture.origin is None else capture.origin.calibration
    if calibration is None:
        return
    sources = ", ".join(dict.fromkeys(calibration.found_from))
    terminal.say(f"lights found from: {sources}; strengths: {calibration.strengths_from}")
    for warning in calibration.warnings:
        terminal.say(f"Warning: {warning}.")


def error_words(error: ErrorSummary) -> str:
    """The angular error in a sentence; where pixels have no truth, without them first and with them after."""
    with_all = f"mean {error.mean:.2f}°, median {error.median:.2f}°"
    if not error.unknown_truth:
        return f"angular error: {with_all}"
    unknown = f"{error.unknown_truth} of {error.pixels} pixels have no truth"
    if error.known_mean is None or error.known_median is None:
        return f"angular error: unknown ({unknown})"
    return (
        f"angular error: mean {error.known_mean:.2f}°, median {error.known_median:.2f}° where the truth is known; "
        f"{with_all} where the others count 90 ({unknown})"
    )


def _tell(terminal: Terminal, result: Reconstruction, summary: Mapping[str, Any], target: Path) -> None:
    spent = sum(summary["seconds"].values())
    how = {
        "closed form": "closed form",
        "converged": f"converged after {result.iterations} iterations",
        "iterations": f"{result.iterations} iterations",
    }[result.status]
    terminal.say(f"{result.method}: {how}, {spent:.1f} s in all")
    error = result.angular_error
    if error is not None:
        terminal.say(error_words(error))
    if "note" in summary.get("surface", {}):
        terminal.say(summary["surface"]["note"])
    terminal.say(f"Results: {target}")
    if (target / "report.html").exists():
        terminal.say(f"Report:  {target / 'report.html'}  (photostereo view {target})")
