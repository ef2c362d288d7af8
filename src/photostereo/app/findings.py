"""Facts about lights and photographs, as shown on the page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from photostereo.core.findings import Finding
from photostereo.core.texts import catalog
from photostereo.io.images import decode_image
from photostereo.lights.geometry import angles_between

if TYPE_CHECKING:
    from photostereo.app.tasks import OpenCapture
    from photostereo.capture import Capture
    from photostereo.lights.ball.calibration import Calibration
    from photostereo.lights.lights import Lights
    from photostereo.pipeline.pipeline import Pipeline

#: Lights are estimated from small copies for the page and at full size for a solve. Larger differences are reported:
#: degrees between two lights (accurate to 0.3° with a ball), and the share of the masks that is in only one (usually 0.01).
LIGHTS_APART, MASK_APART = 2.0, 0.03
#: Photographs with a larger share of clipped values inside the mask are marked; small, harmless highlights stay below.
_CLIPPED = 0.01


def original(name: str) -> str:
    """Return the name of the photograph of a small copy."""
    return name.removesuffix(".ppm")


def lights_facts(opened: OpenCapture, lights: Lights, calibration: Calibration | None) -> dict[str, Any]:
    """Directions, strengths, expected errors, and the balls with their highlights in pixels of the photographs."""
    copies = opened.copies
    files = [original(file.name) for file in opened.pipeline.opened.found.files]
    balls = []
    for ball in () if calibration is None else calibration.balls:
        marks = ball.highlights
        spots = None
        if marks is not None:
            spots = [copies.scaled((x, y, 1), up=True)[:2] for x, y in zip(marks.x, marks.y, strict=True)]
        circle = ball.circle
        at = copies.scaled((circle.x, circle.y, circle.radius), up=True)
        balls.append({"circle": at, "kind": ball.kind, "highlights": spots})
    source = lights.source[0] if len(set(lights.source)) == 1 else ", ".join(dict.fromkeys(lights.source))
    kind = "ball" if calibration is not None else "estimated" if "estimated" in lights.source else "file"
    return {
        "kind": kind,
        "source": source,
        "strengths_source": lights.strengths_source,
        "files": files,
        "directions": lights.directions.tolist(),
        "strengths": np.atleast_2d(lights.strengths.T).mean(axis=0).tolist(),
        "errors": lights.expected_error.tolist(),
        "found_from": list(lights.source),
        "balls": balls,
        "suspects": [] if calibration is None else [files[number] for number in calibration.suspects],
        "warnings": [] if calibration is None else [_shown(w) for w in calibration.warnings],
    }


def _shown(finding: Finding) -> dict[str, Any]:
    """Rewrite a finding about small copies to name the photographs."""
    facts = finding.as_dict("app")
    return {**facts, "text": facts["text"].replace(".ppm", "")}


def findings_of(pipeline: Pipeline, opened: OpenCapture) -> dict[str, Any]:
    """Return findings about the capture, and about single photographs by name."""
    diagnosis, capture = pipeline.diagnosis, pipeline.capture
    names = [original(name) for name in (capture.origin.files if capture.origin else ())]
    about: dict[str, list[str]] = {}

    def note(number: int, words: str) -> None:
        about.setdefault(names[number], []).append(words)

    for number in diagnosis.dim_photographs:
        note(number - 1, "nearly dark")
    for number, share in enumerate(diagnosis.saturation_by_photograph):
        if share > _CLIPPED:
            note(number, f"{100 * share:.0f} % clipped")
    for name, reason in (opened.faults or {}).items():
        about.setdefault(name, []).append(catalog()["faults"].get(reason, "cannot be used"))
    for name in opened.moved.intersection(names):
        note(names.index(name), "camera moved")
    return {"general": list(map(_shown, diagnosis.findings)), "photographs": about, "faults": opened.faults}


def differences(capture: Capture, shown: Mapping[str, Any]) -> list[Finding]:
    """Report differences between the photographs and their small copies, which the page showed."""
    said = []
    files = list(capture.origin.files) if capture.origin else []
    if others := set(files) ^ set(shown["files"]):
        said.append(Finding("other-photographs", names=", ".join(sorted(others))))
    both = [name for name in shown["files"] if name in files]
    here, there = ([every.index(name) for name in both] for every in (files, shown["files"]))
    were = np.reshape(shown["directions"], (-1, 3))[there]
    apart = float(angles_between(capture.lights.directions[here], were).max(initial=0))
    if apart > LIGHTS_APART:
        said.append(Finding("lights-differ", degrees=apart))
    if Path(shown["mask"]).is_file():
        seen = cv2.resize(decode_image(Path(shown["mask"])), capture.frame[::-1]) > 127
        differs = 1 - float((seen & capture.mask).sum() / (seen | capture.mask).sum())
        if differs > MASK_APART:
            said.append(Finding("mask-differs", share=differs))
    return said
