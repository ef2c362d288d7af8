"""``photostereo solve``: compute all results from a folder of photographs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import photostereo as ps
from photostereo.cli.messages import about_solve
from photostereo.cli.options import Making, Reading
from photostereo.cli.terminal import Terminal
from photostereo.core.findings import sentences


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
    from photostereo.lights.exposure import describe_correction
    from photostereo.pipeline.settings import Settings

    began = time.perf_counter()
    settings = Settings(reading.options()).changed(
        **making.settings(terminal.given), checkpoint=checkpoint, resume=resume
    )
    pipeline = ps.Pipeline(capture, settings, control=terminal)
    terminal.pipeline = pipeline
    with pipeline.writing(out, force=force) as (folder, target):
        pipeline.require_memory()
        report_state(terminal, pipeline)
        if pipeline.why:
            terminal.say(f"Method {pipeline.method.name}, {pipeline.why}.")
        written = pipeline.fill(folder, release=True, began=began)
    result = pipeline.solution
    total = sum(written.summary["seconds"].values())
    terminal.say_all(
        about_solve(
            result,
            total,
            warnings=written.warnings,
            expected=pipeline.expected,
            correction=describe_correction(result.strengths),
            surface=written.summary.get("surface", {}),
            time=terminal.summary(total),
            target=target,
            page=target / "report.html" if (target / "report.html").exists() else None,
        )
    )
    return {
        **written.summary,
        "out": str(target.absolute()),
        "warnings": sentences(written.warnings),
    }
