"""Facts about lights and photographs, as shown on the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from photostereo.app.small_copies import SmallCopies
from photostereo.capture import Capture
from photostereo.core.findings import Finding, by_code
from photostereo.core.wording import listed
from photostereo.diagnosis.advice import remarks
from photostereo.diagnosis.diagnose import Diagnosis
from photostereo.lights.ball.calibration import Calibration
from photostereo.lights.lights import Lights
from photostereo.photographs.faults import LABELS

#: Photographs with a larger share of clipped values inside the mask are marked; small, harmless highlights stay below.
CLIPPED = 0.01


#: Why several photographs are left out, by the code of the reason.
REASONS_OF_MANY = {
    "duplicate": "they are copies of others",
    "dark": "they are almost black",
    "light-off": "they were taken with the light off",
    "blurred": "they are blurred",
    "mismatched": "they do not match the others",
    "size-mismatch": "their size differs from that of the others",
    "mode-mismatch": "they are gray and the others in color, or vice versa",
    "damaged-image": "they are damaged or truncated",
    "unreadable-file": "they cannot be read",
    "excluded": "they were excluded",
}


def original(name: str) -> str:
    """Return the name of the photograph of a small copy."""
    return name.removesuffix(".ppm")


def lights_facts(
    files: Sequence[str],
    lights: Lights,
    calibration: Calibration | None,
    copies: SmallCopies | None = None,
) -> dict[str, Any]:
    """Return what the page shows of the lights.

    Parameters
    ----------
    files : sequence of str
        Names of the photographs that the lights belong to.
    lights : Lights
        Directions and strengths.
    calibration : Calibration, optional
        How they were found, if no light file gives them.
    copies : SmallCopies, optional
        The small copies, if the lights are theirs. Accuracy, sources and warnings are given only for the lights of the
        photographs themselves.
    """
    facts = {
        "kind": kind_of(lights, calibration),
        "files": list(files),
        "directions": lights.directions.tolist(),
        "strengths": np.atleast_2d(lights.strengths.T).mean(axis=0).tolist(),
        "balls": [],
        "ball_kind": None,
        "checked": copies is None,
        "warnings": [],
        "suspects": [],
    }
    if calibration is not None and calibration.balls:
        facts["ball_kind"] = calibration.balls[0].kind
        if calibration.in_frame:  # not in photographs of its own, where no circle is drawn
            facts["balls"] = _balls(files, calibration, copies)
    if copies is not None:
        return facts
    facts |= {
        "source": ", ".join(dict.fromkeys(lights.source)),
        "strengths_source": lights.strengths_source,
        "accuracy": _accuracy(lights, calibration),
        "errors": lights.expected_error.tolist(),
        "found_from": list(lights.source),
    }
    if calibration is not None:
        facts["suspects"] = [original(calibration.files[n]) for n in calibration.suspects]
        facts["warnings"] = [warning.as_dict("app") for warning in calibration.warnings]
    return facts


def kind_of(lights: Lights, calibration: Calibration | None) -> str:
    """Return where lights come from: ``"file"``, ``"ball"`` or ``"estimated"``."""
    if lights.are_estimated:
        return "estimated"
    return "file" if calibration is None else "ball"


def _balls(
    files: Sequence[str], calibration: Calibration, copies: SmallCopies | None
) -> list[dict[str, Any]]:
    """Return circles and highlights of the balls, in pixels of the photographs; None without a highlight."""

    def full_size(x: float, y: float, radius: float = 1.0) -> tuple[float, float, float]:
        return (x, y, radius) if copies is None else copies.scaled((x, y, radius), up=True)

    names = [original(name) for name in calibration.files]
    balls = []
    for ball in calibration.balls:
        highlights = dict.fromkeys(files)
        if ball.highlights is not None:
            places = zip(names, ball.highlights.x, ball.highlights.y, strict=True)
            highlights |= {name: full_size(x, y)[:2] for name, x, y in places if name in highlights}
        circle = full_size(ball.circle.x, ball.circle.y, ball.circle.radius)
        balls.append({"circle": circle, "kind": ball.kind, "highlights": list(highlights.values())})
    return balls


def _accuracy(lights: Lights, calibration: Calibration | None) -> float | None:
    """Return the expected error of the lights in degrees, if it is known."""
    if calibration is not None:
        estimate = by_code(calibration.warnings).get("lights-estimated")
        if estimate is not None:
            return float(estimate.values["degrees"])  # the mean
    errors = lights.expected_error[np.isfinite(lights.expected_error)]
    return float(errors.max()) if errors.size else None


def findings_of(
    capture: Capture, diagnosis: Diagnosis, faults: Mapping[str, str]
) -> dict[str, Any]:
    """Return findings about the capture, and about single photographs by name."""
    origin = capture.origin
    names = () if origin is None else origin.files
    about: dict[str, list[str]] = {}

    def note(name: str, label: str) -> None:
        about.setdefault(name, []).append(label)

    for number in diagnosis.dim_photographs:
        note(names[number - 1], "nearly dark")
    for number, share in enumerate(diagnosis.saturation_by_photograph):
        if share > CLIPPED:
            note(names[number], f"{100 * share:.0f} % clipped")
    for name, reason in faults.items():
        note(name, LABELS.get(reason, "cannot be used"))
    if origin is not None and origin.alignment is not None:
        for number in np.flatnonzero(origin.alignment.corrected.any(axis=1)).tolist():
            note(names[number], "moved back")
        for number in np.flatnonzero(origin.alignment.uncertain).tolist():
            note(names[number], "may be displaced")
    general = grouped(remarks(capture, diagnosis.findings))
    return {"general": general, "photographs": about, "faults": dict(faults)}


def grouped(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings for the page; many photographs left out for the same reason are one finding."""
    entries: list[dict[str, Any]] = []
    alike: dict[str, list[Finding]] = {}
    for finding in findings:
        entry = finding.as_dict("app")
        if finding.code == "left-out":
            same = alike.setdefault(str(finding.values["reason"]), [])
            same.append(finding)
            if len(same) > 1:
                continue
        entries.append(entry)
    for entry in entries:
        same = alike.get(str(entry["values"].get("reason")), [])
        if entry["code"] == "left-out" and len(same) > 1:
            files = [finding.values["file"] for finding in same]
            why = REASONS_OF_MANY.get(entry["values"]["reason"], "they cannot be used")
            entry["text"] = f"{len(files)} photographs are left out: {why} ({listed(files)})"
            entry["values"] = {**entry["values"], "files": files}
    return entries
