"""What a command says of a capture before it works on it: likely mistakes, and the worst of what ``info`` says."""

from __future__ import annotations

import numpy as np

from photostereo.capture import Capture
from photostereo.commands.terminal import Terminal
from photostereo.core.control import SILENT, Control
from photostereo.diagnosis.diagnose import diagnose

#: Photographs that are not in memory are looked at with so many pixels along their longer side.
GLANCE = 512


def tell_state(terminal: Terminal, capture: Capture) -> None:
    """How it was read, likely mistakes and problems, a line each; the lesser notices are left to ``photostereo info``."""
    if terminal.quiet:
        return
    origin = capture.origin
    if origin is not None:
        told = () if origin.calibration is None else origin.calibration.warnings
        for note in origin.notes:
            if note not in told and not note.startswith("no light file"):
                terminal.say(f"• {note}")
    capture = capture if capture.in_memory else glance(capture, terminal)
    findings = diagnose(capture).findings
    for finding in findings:
        if finding.severity == "problem":
            terminal.say(f"Warning: {finding.text}")
    notices = sum(finding.severity == "notice" for finding in findings)
    if notices:
        terminal.say(f"{notices} smaller thing{'s' if notices > 1 else ''} to know: photostereo info")


def glance(capture: Capture, control: Control = SILENT) -> Capture:
    """A capture whose photographs stay on disk, with every so many pixels: each is decoded once, and sampled."""
    step = max(1, max(capture.frame) // GLANCE)
    capture.photographs.keep_decoded()
    control.stage("photographs", len(capture))
    sampled = []
    for frame in capture.photographs.frames():
        sampled.append(frame[::step, ::step].copy())  # a view would keep the whole frame
        control.advance()
    return Capture(
        images=np.stack(sampled),
        lights=capture.lights,
        mask=capture.mask[::step, ::step],
        name=capture.name,
        origin=capture.origin,
    )
