"""``photostereo info``: what a capture contains, and what is wrong with it; briefly also before a solve."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import photostereo as ps
from photostereo.capture.options import ESTIMATE, ReadOptions
from photostereo.cli.messages import about_capture, about_state
from photostereo.cli.options import Reading
from photostereo.cli.terminal import Terminal
from photostereo.core.findings import Finding, Kind, as_finding, sentences


def info(
    terminal: Terminal, reading: Reading, capture: Path, pixel_size: str | None = None
) -> dict[str, Any]:
    """Show what a capture contains and what may be wrong with it."""
    pipeline = ps.Pipeline(
        capture, control=terminal, reading=reading.options(), pixel_size=pixel_size
    )
    terminal.pipeline = pipeline
    try:
        diagnosis = pipeline.examined
    except ps.CaptureError as problem:
        return _what_there_is(capture, reading.options(), problem, terminal)
    found = pipeline.loaded if pipeline.is_current("loaded") else pipeline.capture
    facts = describe(found)
    if getattr(pipeline.capture.photographs, "is_color", False):
        facts["channels"] = "RGB"
    still = False
    origin = found.origin
    if origin is not None and origin.alignment is not None and origin.alignment.farthest.any():
        facts["alignment"] = moves = origin.alignment.as_dict(origin.files)
        still = origin.alignment.is_still and not moves["uncertain"]
    terminal.say_all(about_capture(facts, notes_of(found), diagnosis.findings, still=still))
    findings = [finding.as_dict("terminal") for finding in diagnosis.findings]
    return {**facts, "advice": list(diagnosis.advice), "findings": findings}


def _what_there_is(
    capture: Path, options: ReadOptions, problem: ps.CaptureError, terminal: Terminal
) -> dict[str, Any]:
    """Return what can be read of an unsolvable capture without lights and mask; raise if nothing can be read."""
    from photostereo.capture.loading import read_lazily

    plain = replace(
        options, lights=ESTIMATE, ball=None, circle=None, mask="full", edits=False, color=True
    )
    try:
        found = read_lazily(capture, plain, terminal, need_lights=False)
    except ps.PhotostereoError:
        raise problem from None
    unsaid = ("no-lights", "full-mask")  # they were not looked for
    facts = photograph_facts(found, unsaid)
    terminal.say_all(about_capture(facts, notes_of(found, unsaid), [problem]))
    return {**facts, "problem": problem.as_dict("terminal")}


def notes_of(capture: ps.Capture, unsaid: tuple[str, ...] = ()) -> list[Finding]:
    """Return the notes on how a capture was read, without those of some codes."""
    notes = () if capture.origin is None else map(as_finding, capture.origin.notes)
    return [note for note in notes if note.code not in unsaid]


def photograph_facts(capture: ps.Capture, unsaid: tuple[str, ...] = ()) -> dict[str, Any]:
    origin = capture.origin
    notes = notes_of(capture, unsaid)
    return {
        "name": capture.name,
        "layout": origin.layout if origin else "in memory",
        "photographs": len(capture),
        "size": "{1} × {0} pixels (width × height)".format(*capture.frame),
        "channels": "RGB" if capture.is_color else "gray",
        "bit_depth": origin.bit_depth if origin else 0,
        "notes": sentences(notes),
        "note_codes": [note.code for note in notes],
    }


def describe(capture: ps.Capture) -> dict[str, Any]:
    import numpy as np

    tilt = np.degrees(np.arccos(np.clip(capture.lights.directions[:, 2], -1, 1)))
    unknown = 0 if capture.truth is None else int((~capture.truth[capture.mask].any(axis=1)).sum())
    return {
        **photograph_facts(capture),
        "mask_pixels": capture.pixel_count,
        "mask_share": round(capture.pixel_count / capture.mask.size, 4),
        "lights_condition": round(capture.lights.condition, 3),
        "lights_tilt_degrees": [round(float(tilt.min()), 1), round(float(tilt.max()), 1)],
        "brightness_99": round(capture.intensity_scale(), 5),
        "truth": "none" if capture.truth is None else "normals",
        "truth_unknown_pixels": unknown,
        "truth_depth": capture.truth_depth is not None,
        "digest": capture.digest,
    }


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
    findings = pipeline.diagnosis.findings
    origin = pipeline.at_hand.origin
    if origin is None:
        terminal.say_all(about_state(None, (), (), findings))
        return
    lights = None
    warnings: tuple[Finding, ...] = ()
    if origin.calibration is not None:
        lights = origin.calibration.lights
        warnings = tuple(origin.calibration.warnings)
    # The source of the lights is reported on a separate line.
    notes = tuple(
        note
        for note in map(as_finding, origin.notes)
        if note not in warnings and note.kind is not Kind.SOURCE
    )
    terminal.say_all(about_state(lights, warnings, notes, findings))
