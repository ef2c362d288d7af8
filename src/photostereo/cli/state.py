"""Messages about a capture before work starts: its lights, likely mistakes, and the worst findings of ``info``."""

from __future__ import annotations

import photostereo as ps
from photostereo.cli.terminal import Terminal
from photostereo.core.findings import as_finding

#: Notes about the source of the lights, which is reported on a separate line.
_SAID_HERE = ("no-lights", "lights-from-ball")


def capture_line(capture: ps.Capture, *, in_color: bool = False) -> str:
    """A capture, which may have been read in gray from photographs in color."""
    height, width = capture.frame
    kind = "in color" if in_color or capture.is_color else "gray"
    return f"{capture.name}: {len(capture)} photographs, {width} × {height} pixels, {kind}"


def report_state(terminal: Terminal, pipeline: ps.Pipeline) -> None:
    """Report the capture, how it was read, the source of the lights, and problems; minor notes are left to ``info``."""
    if terminal.quiet:
        return
    in_color = getattr(pipeline.capture.photographs, "is_color", False)
    terminal.say(capture_line(pipeline.at_hand, in_color=in_color))
    origin = pipeline.at_hand.origin
    if origin is not None:
        notes = origin.notes
        if origin.calibration is not None:
            lights = origin.calibration.lights
            sources = ", ".join(dict.fromkeys(lights.source))
            terminal.say(f"lights found from: {sources}; strengths: {lights.strengths_source}")
            for warning in origin.calibration.warnings:
                terminal.say(f"Warning: {warning}.")
            said = {*origin.calibration.warnings, *(n for n in notes if as_finding(n).code in _SAID_HERE)}
            notes = tuple(note for note in notes if note not in said)
        for note in notes:
            terminal.say(f"• {note}")
    findings = pipeline.diagnosis.findings
    for finding in findings:
        if finding.severity == "problem":
            terminal.say(f"Warning: {finding.rendered('terminal')}")
    notices = sum(finding.severity == "notice" for finding in findings)
    if notices:
        count, them = ("1 minor note", "it") if notices == 1 else (f"{notices} minor notes", "them")
        terminal.say(f"{count}; run `photostereo info` to see {them}.")
