"""``photostereo solve``: compute all results from a folder of photographs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import photostereo as ps
from photostereo.cli.options import Making, Reading
from photostereo.cli.terminal import Terminal

if TYPE_CHECKING:
    from photostereo.pipeline.pipeline import Written


def solve(
    terminal: Terminal,
    reading: Reading,
    making: Making,
    capture: Path,
    out: Path | None = None,
    checkpoint: Path | None = None,
    resume: Path | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Compute normals, albedo, depth and a mesh from photographs, with a page to explore them."""
    from photostereo.cli.info import report_state
    from photostereo.pipeline.settings import Settings

    settings = Settings(reading.options()).changed(
        **making.settings(terminal.given), checkpoint=checkpoint, resume=resume
    )
    pipeline = ps.Pipeline(capture, settings, control=terminal)
    with pipeline.writing(out, force=force) as (folder, target):
        pipeline.require_memory()
        report_state(terminal, pipeline)
        if pipeline.why:
            terminal.say(f"Method {pipeline.method.name}, {pipeline.why}.")
        written = pipeline.fill(folder, release=True)
    _conclude(terminal, pipeline, written, target)
    return {**written.summary, "out": str(target.absolute()), "warnings": list(written.warnings)}


def _conclude(terminal: Terminal, pipeline: ps.Pipeline, written: Written, target: Path) -> None:
    from photostereo.lights.exposure import describe_correction

    for warning in written.warnings:
        terminal.say(f"Warning: {warning}")
    result = pipeline.solution
    how = f"{result.iterations} iteration{'s' * (result.iterations != 1)}"
    how = {"closed form": "closed form", "converged": f"converged after {how}"}.get(result.status, how)
    terminal.say(f"{result.method}: {how}, {sum(written.summary['seconds'].values()):.1f} s in total")
    if result.angular_error is not None:
        terminal.say(error_words(result.angular_error))
    if (expected := pipeline.expected) is not None:
        terminal.say(f"Expected error: {expected.words}")
        for reason in expected.reasons:
            terminal.say(f"  {reason.rendered('terminal')}")
    if result.near:
        terminal.say(result.near)
    if correction := describe_correction(result.strengths):
        terminal.say(correction)
    if "note" in written.summary.get("surface", {}):
        terminal.say(written.summary["surface"]["note"])
    if summary := terminal.summary():
        terminal.say(summary)
    terminal.say(f"Results: {target}")
    if pipeline.settings.report:
        terminal.say(f"Report:  {target / 'report.html'}  (photostereo view {target})")


def error_words(error: ps.ErrorSummary) -> str:
    """Describe the angular error; if some pixels have no truth, first without and then with them."""
    with_all = f"mean {error.mean:.2f}°, median {error.median:.2f}°"
    if not error.unknown_truth:
        return f"Angular error: {with_all}"
    unknown = f"{error.unknown_truth} of {error.pixels} pixels have no truth"
    if error.known_mean is None or error.known_median is None:
        return f"Angular error: unknown ({unknown})"
    return (
        f"Angular error: mean {error.known_mean:.2f}°, median {error.known_median:.2f}° over pixels with known truth; "
        f"{with_all} if the others count as 90° ({unknown})"
    )
