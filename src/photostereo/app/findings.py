"""Facts about lights and photographs, as shown on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from photostereo.app.small_copies import SmallCopies
from photostereo.capture import Capture
from photostereo.core.findings import by_code
from photostereo.diagnosis.advice import remarks
from photostereo.diagnosis.diagnose import Diagnosis
from photostereo.lights.ball.calibration import Calibration
from photostereo.lights.lights import Lights
from photostereo.photographs.faults import LABELS

#: Photographs with a larger share of clipped values inside the mask are marked; small, harmless highlights stay below.
_CLIPPED = 0.01


def original(name: str) -> str:
    """Return the name of the photograph of a small copy."""
    return name.removesuffix(".ppm")


def lights_facts(
    files: Sequence[str],
    lights: Lights,
    calibration: Calibration | None,
    copies: SmallCopies | None = None,
) -> dict[str, Any]:
    """Directions, strengths, and the balls with their highlights in pixels of the photographs.

    Accuracy, sources and warnings are given only if the lights are those of the photographs, not of small ``copies``.
    """

    def at(x: float, y: float, radius: float = 1.0) -> tuple[float, float, float]:
        return (x, y, radius) if copies is None else copies.scaled((x, y, radius), up=True)

    balls, taken = [], [] if calibration is None else [original(name) for name in calibration.files]
    for ball in () if calibration is None else calibration.balls:
        marks, circle = ball.highlights, at(ball.circle.x, ball.circle.y, ball.circle.radius)
        seen = (
            {}
            if marks is None
            else dict(zip(taken, zip(marks.x, marks.y, strict=True), strict=True))
        )
        spots = [at(*seen[name])[:2] if name in seen else None for name in files]
        balls.append({"circle": circle, "kind": ball.kind, "highlights": spots})
    facts = {
        "kind": "estimated"
        if "estimated" in lights.source
        else "file"
        if calibration is None
        else "ball",
        "files": list(files),
        "directions": lights.directions.tolist(),
        "strengths": np.atleast_2d(lights.strengths.T).mean(axis=0).tolist(),
        "balls": balls,
        "checked": copies is None,
        "warnings": [],
        "suspects": [],
    }
    if copies is not None:
        return facts
    warnings = () if calibration is None else calibration.warnings
    errors = lights.expected_error[np.isfinite(lights.expected_error)]
    said = by_code(warnings).get("lights-estimated")  # gives their mean error
    accuracy = said.values["degrees"] if said else errors.max() if errors.size else None
    return facts | {
        "source": ", ".join(dict.fromkeys(lights.source)),
        "strengths_source": lights.strengths_source,
        "accuracy": accuracy,
        "errors": lights.expected_error.tolist(),
        "found_from": list(lights.source),
        "suspects": []
        if calibration is None
        else [taken[number] for number in calibration.suspects],
        "warnings": [warning.as_dict("app") for warning in warnings],
    }


def findings_of(
    capture: Capture, diagnosis: Diagnosis, faults: Mapping[str, str]
) -> dict[str, Any]:
    """Return findings about the capture, and about single photographs by name."""
    origin = capture.origin
    names = () if origin is None else origin.files
    about: dict[str, list[str]] = {}

    def note(number: int, words: str) -> None:
        about.setdefault(names[number], []).append(words)

    for number in diagnosis.dim_photographs:
        note(number - 1, "nearly dark")
    for number, share in enumerate(diagnosis.saturation_by_photograph):
        if share > _CLIPPED:
            note(number, f"{100 * share:.0f} % clipped")
    for name, reason in faults.items():
        about.setdefault(name, []).append(LABELS.get(reason, "cannot be used"))
    if origin is not None and origin.alignment is not None:
        for number in np.flatnonzero(origin.alignment.corrected.any(axis=1)).tolist():
            note(number, "moved back")
        for number in np.flatnonzero(origin.alignment.uncertain).tolist():
            note(number, "may be displaced")
    general = [finding.as_dict("app") for finding in remarks(capture, diagnosis.findings)]
    return {"general": general, "photographs": about, "faults": dict(faults)}
