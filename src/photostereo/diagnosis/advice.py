"""Turn the numbers of a diagnosis into findings that a photographer can act on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from photostereo.core.findings import Finding, Severity, as_finding
from photostereo.core.wording import listed
from photostereo.lights.geometry import compass_word, direction_words

if TYPE_CHECKING:
    from photostereo.capture import Capture
    from photostereo.diagnosis.diagnose import Diagnosis
    from photostereo.solver.reconstruction import Reconstruction

_ORDER: dict[str, int] = {"problem": 0, "notice": 1, "good": 2}

# Sensitivity: each threshold was divided and multiplied by 1.5 on 118 rendered captures, 88 of them degraded. The numbers
# in parentheses count the captures whose findings change; none if not given.
#: Lights within this many degrees of one plane count as nearly coplanar (changes: 0 and 1) ...
NEARLY_COPLANAR = 10.0
#: ... if they spread this many times as far along it.
ALONG_PLANE = 1.5
#: Lights that all lie within this many degrees of each other come from nearly the same direction. The default method has
#: 2.2° on a glossy figure under 12 lights within 97°, 2.9° within 53°, 3.8° within 36°, 4.6° within 29°, 8.4° within 14°.
NARROW = 32.0
#: An azimuth range without lights wider than this, in degrees, leaves slopes in shadow (11 and 4, all notices).
WIDE_GAP = 130.0
#: Signal-to-noise ratio, in decibels, below which noise hides all else (2 and 16).
VERY_NOISY = 15.0
#: Signal-to-noise ratio, in decibels, below which noise is reported (28 and 33, notices).
NOISY = 27.0
#: Share of the pixels that are black in every photograph (1 and 0).
BLACK = 0.002
#: Share of the pixels that are lit in fewer than four photographs, beyond which it is reported (1 and 0) ...
SOME_POORLY_LIT = 0.02
#: ... and is a problem (1 and 0).
MANY_POORLY_LIT = 0.15
#: Share of saturated values beyond which they are reported ...
SOME_SATURATED = 1e-4
#: ... and are a problem.
MANY_SATURATED = 0.01
#: Share of a typical pixel that a matte surface leaves unexplained (16 and 13, notices).
UNEXPLAINED = 0.2
#: Up to this many photographs, a single shadow or highlight spoils a pixel; of six, usually four good ones are left.
FEW = 5
#: Degrees by which rounding to 8 bits turns normals: 0.06 to 0.24 (`ls` and `net`).
ROUNDING = 0.06
#: Share of normals that point away from the camera.
AWAY = 0.005


def advise(
    diagnosis: Diagnosis, capture: Capture, result: Reconstruction | None
) -> tuple[Finding, ...]:
    """Return all findings, the worst first; at least one."""
    findings = [
        *_about_reading(capture),
        *_about_lights(diagnosis),
        *_about_shadows(diagnosis, capture),
        *_about_noise(diagnosis, capture),
        *_about_saturation(diagnosis),
        *_about_fit(diagnosis, result),
    ]
    notes = () if capture.origin is None else map(as_finding, capture.origin.notes)
    is_good = all(finding.severity == "good" for finding in findings)
    if is_good and all(note.is_routine for note in notes):
        findings.append(Finding("no-problems", "good"))
    return tuple(sorted(findings, key=lambda finding: _ORDER[finding.severity]))


def remarks(capture: Capture, findings: Iterable[Finding]) -> list[Finding]:
    """Everything there is to say about a capture, the worst first: the notes on how it was read, and the findings."""
    origin = capture.origin
    if origin is None:
        return sorted(findings, key=lambda finding: (_ORDER[finding.severity], finding.is_routine))
    doubts: Sequence[Finding] = ()
    if origin.calibration is not None:
        doubts = origin.calibration.warnings
    notes = []
    for note in map(as_finding, origin.notes):
        if note in doubts:
            note = note.changed(severity="problem")
        notes.append(note)
    return sorted([*findings, *notes], key=lambda f: (_ORDER[f.severity], f.is_routine))


def _about_reading(capture: Capture) -> Iterator[Finding]:
    origin = capture.origin
    if origin is None:
        return
    if origin.ball_check is not None and origin.ball_check.finding.is_mistake:
        yield origin.ball_check.finding
    if origin.alignment is not None and origin.alignment.uncertain.any():
        count = int(origin.alignment.uncertain.sum())
        yield Finding("displaced-photographs", "problem", count=count, photographs=len(capture))
    yield from origin.doubts


def _about_lights(diagnosis: Diagnosis) -> Iterator[Finding]:
    lights = diagnosis.lights
    count = diagnosis.photographs
    if lights.widest_angle < NARROW:
        yield Finding("narrow-lights", "problem", photographs=count, degrees=lights.widest_angle)
    elif lights.thin_spread < min(NEARLY_COPLANAR, lights.second_spread / ALONG_PLANE):
        missing = direction_words(lights.thin_direction)
        spread = lights.thin_spread
        yield Finding(
            "coplanar-lights", "problem", photographs=count, spread=spread, missing=missing
        )
    elif lights.widest_gap > WIDE_GAP and count > 3:
        missing = compass_word(lights.gap_azimuth)
        yield Finding("gap-between-lights", missing=missing, degrees=lights.widest_gap)
    else:
        yield Finding("lights-well-spread", "good", condition=lights.condition)
    if lights.lowest < 0:
        yield Finding("light-behind-object")


def _about_shadows(diagnosis: Diagnosis, capture: Capture) -> Iterator[Finding]:
    dark = diagnosis.dark_count[capture.mask]
    count = diagnosis.photographs
    black = float((dark == count).mean())
    share = diagnosis.poorly_lit - black
    if black > BLACK:
        yield Finding("black-background" if capture.mask.all() else "black-pixels", share=black)
    dim = diagnosis.dim_photographs
    if dim:
        lit = count - len(dim)
        names = listed(dim, 8)
        severity: Severity = "notice"
        if lit <= FEW or 3 * len(dim) > count:
            severity = "problem"
        yield Finding(
            "dim-photographs", severity, count=len(dim), photographs=count, names=names, lit=lit
        )
    if count <= FEW:
        yield Finding("few-photographs", photographs=count)
    elif share > MANY_POORLY_LIT:
        yield Finding("poorly-lit", "problem", share=share)
    elif share > SOME_POORLY_LIT:
        yield Finding("poorly-lit", share=share)
    elif not dim:
        yield Finding("mild-shadows", "good", usual=float(np.median(dark)), photographs=count)


def _about_noise(diagnosis: Diagnosis, capture: Capture) -> Iterator[Finding]:
    noise = diagnosis.noise
    if not noise.from_residual:
        yield Finding("noise-unknown")
    facts: dict[str, Any] = {"snr_db": noise.snr_db, "degrees": noise.expected_error}
    if noise.snr_db < VERY_NOISY:
        yield Finding("very-noisy", "problem", effect=noise.expected_error, **facts)
    elif noise.snr_db < NOISY:
        yield Finding("noisy", effect=noise.expected_error, **facts)
    elif np.isfinite(noise.snr_db):
        yield Finding("low-noise", "good", **facts)
    if capture.origin is not None and capture.origin.bit_depth == 8:
        yield Finding("eight-bits", effect=ROUNDING)


def _about_saturation(diagnosis: Diagnosis) -> Iterator[Finding]:
    share = diagnosis.saturation
    by_photograph = diagnosis.saturation_by_photograph
    facts: dict[str, Any] = {
        "share": share,
        "affected": int((by_photograph > 0).sum()),
        "photographs": diagnosis.photographs,
        "worst": int(np.argmax(by_photograph)) + 1,
    }
    if share > MANY_SATURATED:
        yield Finding("saturated", "problem", **facts)
    elif share > SOME_SATURATED:
        yield Finding("saturated-highlights", **facts)


def _about_fit(diagnosis: Diagnosis, result: Reconstruction | None) -> Iterator[Finding]:
    # Otherwise the residual is noise, which is reported already.
    if diagnosis.noise.snr_db >= VERY_NOISY:
        typical = float(np.median(diagnosis.residual[np.isfinite(diagnosis.residual)]))
        whose = "least-squares normals"
        if result is not None:
            whose = "the computed normals"
        if typical > UNEXPLAINED:
            yield Finding("not-matte", share=typical, whose=whose)
        else:
            yield Finding("good-fit", "good", share=typical, whose=whose)
    if result is not None:
        away = float((result.normals[..., 2][result.mask] < 0).mean())
        if away > AWAY:
            yield Finding("normals-away", share=away)
