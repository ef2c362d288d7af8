"""What a command says about a capture before it works on it: its lights, likely mistakes, and the worst of ``info``."""

from __future__ import annotations

from photostereo.capture import Capture
from photostereo.cli.terminal import Terminal
from photostereo.core.findings import as_finding
from photostereo.pipeline.pipeline import Pipeline


def capture_line(capture: Capture) -> str:
    height, width = capture.frame
    kind = "in color" if capture.is_color else "gray"
    return f"{capture.name}: {len(capture)} photographs, {width} × {height} pixels, {kind}"


def report_state(terminal: Terminal, pipeline: Pipeline) -> None:
    """The capture, how it was read, where the lights come from, and problems; minor notes are left to ``info``."""
    if terminal.quiet:
        return
    terminal.say(capture_line(pipeline.at_hand))
    origin = pipeline.at_hand.origin
    if origin is not None:
        notes = origin.notes
        if origin.calibration is not None:
            sources = ", ".join(dict.fromkeys(origin.calibration.found_from))
            terminal.say(f"lights found from: {sources}; strengths: {origin.calibration.strengths_from}")
            for warning in origin.calibration.warnings:
                terminal.say(f"Warning: {warning}.")
            said = origin.calibration.warnings
            notes = tuple(
                n
                for n in notes
                if n not in said and as_finding(n).code not in ("no-lights", "lights-from-ball")
            )
        for note in notes:
            terminal.say(f"• {note}")
    findings = pipeline.diagnosis.findings
    for finding in findings:
        if finding.severity == "problem":
            terminal.say(f"Warning: {finding.rendered('terminal')}")
    notices = sum(finding.severity == "notice" for finding in findings)
    if notices:
        plural = "s" if notices > 1 else ""
        terminal.say(
            f"{notices} minor note{plural}; run `photostereo info` to see {'them' if plural else 'it'}."
        )
