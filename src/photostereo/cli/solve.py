"""``photostereo solve``: from a folder of photographs to everything in OUT."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from photostereo.cli.command import ADVANCED, METHOD, OUTPUT, RESOURCES
from photostereo.cli.options import (
    About,
    CapturePath,
    Device,
    FlipY,
    Force,
    Images,
    Material,
    OutFolderOrDefault,
    Parameters,
    PixelSizeChoice,
    Reading,
    Report,
    Seed,
    SurfaceMethod,
    complete_method,
    option,
    parse_parameters,
)
from photostereo.cli.terminal import Terminal

if TYPE_CHECKING:
    from photostereo.diagnosis.metrics import ErrorSummary
    from photostereo.pipeline.pipeline import Pipeline, Written


@dataclass(frozen=True)
class Solving:
    """How it is solved."""

    method: Annotated[
        str,
        option(
            "--method",
            "-m",
            panel=METHOD,
            help="A name from `photostereo methods`, or best, or fast (default: the best that takes minutes).",
            autocompletion=complete_method,
        ),
    ] = "auto"
    prior: Annotated[
        str | None,
        option(
            "--prior", panel=ADVANCED, help="Add a prior to a method that has none: dictionary or smoothness."
        ),
    ] = None
    parameters: Parameters = None
    device: Device = "cpu"
    memory: Annotated[
        str | None,
        option(
            "--memory", panel=RESOURCES, help="Memory limit, e.g. 4GB (default: half of the free memory)."
        ),
    ] = None
    checkpoint: Annotated[
        Path | None,
        option(
            "--checkpoint", panel=ADVANCED, metavar="FILE", help="Save the state here every ten iterations."
        ),
    ] = None
    resume: Annotated[
        Path | None, option("--resume", panel=ADVANCED, metavar="FILE", help="Continue from a saved state.")
    ] = None


def solve(
    capture: CapturePath,
    reading: Reading,
    solving: Solving,
    material: Material,
    terminal: Terminal,
    images: Images = None,
    seed: Seed = 0,
    out: OutFolderOrDefault = None,
    surface: Annotated[
        bool, option("--surface/--no-surface", panel=OUTPUT, help="Write depth and meshes.")
    ] = True,
    report: Report = True,
    pixel_size: PixelSizeChoice = None,
    surface_method: SurfaceMethod = "poisson",
    flip_y: FlipY = False,
    about: About = None,
    force: Force = False,
) -> dict[str, Any]:
    """Estimate normals, albedo, depth and a mesh from photographs, and write them with a page to explore them."""
    from photostereo.cli.state import report_state
    from photostereo.core.units import PixelSize
    from photostereo.pipeline.pipeline import Pipeline
    from photostereo.pipeline.settings import OutputSettings, Settings, SolveSettings, SurfaceChoice

    settings = Settings(
        reading.options(),
        images,
        seed,
        SolveSettings(**{**vars(solving), "parameters": parse_parameters(solving.parameters)}),
        SurfaceChoice(surface_method, pixel_size=PixelSize.of(pixel_size)) if surface else None,
        OutputSettings(report, material.kind, flip_y, parse_parameters(about, "--about license=CC0")),
    )
    pipeline = Pipeline(capture, settings, control=terminal)
    with pipeline.writing(out, force=force) as (folder, target):
        pipeline.require_memory()
        terminal.say(f"{pipeline.at_hand}")
        report_state(terminal, pipeline)
        if pipeline.why:
            terminal.say(f"Method {pipeline.method.name}, {pipeline.why}.")
        written = pipeline.fill(folder)
    _conclude(terminal, pipeline, written, target)
    return {**written.summary, "out": str(target.absolute()), "warnings": list(written.warnings)}


def _conclude(terminal: Terminal, pipeline: Pipeline, written: Written, target: Path) -> None:
    from photostereo.diagnosis.expected_error import expected_error
    from photostereo.lights.strengths import describe_correction

    for warning in written.warnings:
        terminal.say(f"Warning: {warning}")
    result = pipeline.solution
    how = {
        "closed form": "closed form",
        "converged": f"converged after {result.iterations} iterations",
        "iterations": f"{result.iterations} iterations",
    }[result.status]
    terminal.say(f"{result.method}: {how}, {sum(written.summary['seconds'].values()):.1f} s in all")
    if result.angular_error is not None:
        terminal.say(error_words(result.angular_error))
    if (expected := expected_error(result, pipeline.capture.lights)) is not None:
        terminal.say(f"Expected error: {expected.words}")
    if correction := describe_correction(result.strengths):
        terminal.say(correction)
    if "note" in written.summary.get("surface", {}):
        terminal.say(written.summary["surface"]["note"])
    if summary := terminal.summary():
        terminal.say(summary)
    terminal.say(f"Results: {target}")
    if pipeline.settings.output.report:
        terminal.say(f"Report:  {target / 'report.html'}  (photostereo view {target})")


def error_words(error: ErrorSummary) -> str:
    """The angular error in a sentence; if some pixels have no truth, without them first and with them after."""
    with_all = f"mean {error.mean:.2f}°, median {error.median:.2f}°"
    if not error.unknown_truth:
        return f"angular error: {with_all}"
    unknown = f"{error.unknown_truth} of {error.pixels} pixels have no truth"
    if error.known_mean is None or error.known_median is None:
        return f"angular error: unknown ({unknown})"
    return (
        f"angular error: mean {error.known_mean:.2f}°, median {error.known_median:.2f}° where the truth is known; "
        f"{with_all} if the others count as 90° ({unknown})"
    )
