"""From the numbers of a diagnosis to sentences that a photographer can act on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from photostereo.lights.geometry import compass_word, direction_words

if TYPE_CHECKING:
    from photostereo.capture import Capture
    from photostereo.diagnosis.diagnose import Diagnosis
    from photostereo.solver.reconstruction import Reconstruction

Severity = Literal["problem", "notice", "good"]
_ORDER: dict[str, int] = {"problem": 0, "notice": 1, "good": 2}

# On 118 rendered captures, 88 of them spoiled, each number was divided and multiplied by 1.5. The findings change on none of
# them if nothing else is said.
#: Lights closer than this to one plane, in degrees, count as nearly coplanar (changes: 0 and 1).
NEARLY_COPLANAR = 10.0
#: Lights that spread less than this in two directions, in degrees, come from nearly one place (0 and 2).
NARROW_CONE = 14.0
#: An empty sector of the compass wider than this, in degrees, leaves slopes in shadow (11 and 4, all notices).
WIDE_GAP = 130.0
#: Signal-to-noise ratios below these, in decibels: everything else is hidden (2 and 16); worth a line (28 and 33, notices).
VERY_NOISY, NOISY = 15.0, 27.0
#: Shares of the pixels: black in every photograph; lit in fewer than four (worth a line, a problem; 1 and 0 each).
BLACK, POORLY_LIT = 0.002, (0.02, 0.15)
#: Shares of the values that are saturated: worth a line, a problem.
SATURATED = (1e-4, 0.01)
#: Share of a typical pixel that a matte surface leaves unexplained (16 and 13, notices).
UNEXPLAINED = 0.2
#: Share of normals that point away from the camera.
AWAY = 0.005


@dataclass(frozen=True)
class Finding:
    """One sentence or two of advice, and how much it matters."""

    severity: Severity  #: how much it matters
    text: str  #: the advice
    terminal: str = ""  #: the words for the terminal if they differ
    effect: float = 0.0  #: by how many degrees it turns a typical normal, as far as that is known
    is_mistake: bool = False  #: whether something is wrong with the light file, the mask or the tone curve

    def rendered(self, shell: str = "python") -> str:
        """The advice in the words of a shell."""
        return self.terminal if shell == "terminal" and self.terminal else self.text


def advise(diagnosis: Diagnosis, capture: Capture, result: Reconstruction | None) -> tuple[Finding, ...]:
    """Everything worth saying, the worst first; at least one sentence."""
    found = [
        *_about_ball(capture),
        *_about_movement(capture),
        *_about_lights(diagnosis),
        *_about_shadows(diagnosis, capture),
        *_about_noise(diagnosis, capture),
        *_about_saturation(diagnosis),
        *_about_fit(diagnosis, result),
        *(() if result is None else _about_result(result)),
    ]
    if not any(finding.severity != "good" for finding in found):
        found.append(Finding("good", "No problems were found."))
    return tuple(sorted(found, key=lambda finding: _ORDER[finding.severity]))


def _about_ball(capture: Capture) -> Iterator[Finding]:
    check = None if capture.origin is None else capture.origin.ball_check
    if check is not None and (check.suspects or not check.agrees):
        remedy = "Check the light file, or remove it to use the ball."
        effect = float(np.nanmean(check.apart))
        yield Finding("problem", f"{check.words} {remedy}", effect=effect, is_mistake=True)


def _about_movement(capture: Capture) -> Iterator[Finding]:
    alignment = None if capture.origin is None else capture.origin.alignment
    if alignment is not None and alignment.uncertain.any():
        yield Finding(
            "problem",
            f"{int(alignment.uncertain.sum())} of {len(alignment.uncertain)} photographs may be displaced and were not "
            "moved back. Check them, and leave them out if they do not match the others.",
        )


def _about_lights(diagnosis: Diagnosis) -> Iterator[Finding]:
    lights, count = diagnosis.lights, diagnosis.photographs
    if lights.second_spread < NARROW_CONE:
        yield Finding(
            "problem",
            f"The lights of all {count} photographs come from nearly the same direction (spread about "
            f"{lights.second_spread:.0f}°), so slopes hardly change the brightness. Move lights 30° to 60° to the sides.",
        )
    elif lights.thin_spread < NEARLY_COPLANAR:
        yield Finding(
            "problem",
            f"The lights of all {count} photographs are nearly coplanar (within about "
            f"{lights.thin_spread:.0f}° of one plane): add one {direction_words(lights.thin_direction)}.",
        )
    elif lights.widest_gap > WIDE_GAP and diagnosis.photographs > 3:
        yield Finding(
            "notice",
            f"No light comes from the {compass_word(lights.gap_azimuth)} of the picture (an empty sector "
            f"of {lights.widest_gap:.0f}°): slopes that face there are in shadow. Add a light on that side.",
        )
    else:
        yield Finding(
            "good",
            f"The lights are well spread (condition number {lights.condition:.1f}; 1 is ideal).",
        )
    if lights.lowest < 0:
        yield Finding(
            "notice",
            "At least one light is behind the object (its z is negative). If this is wrong, the light file uses other axes: "
            "x must point right, y up, z toward the camera.",
        )


def _about_shadows(diagnosis: Diagnosis, capture: Capture) -> Iterator[Finding]:
    dark = diagnosis.dark_count[capture.mask]
    black = float((dark == diagnosis.photographs).mean())
    share = diagnosis.poorly_lit - black
    if black > BLACK:
        mask = " If that is background, exclude it with a mask." if capture.mask.all() else ""
        yield Finding(
            "notice",
            f"{percent(black)} of the pixels are black in every photograph and have no normal.{mask}",
        )
    dim = diagnosis.dim_photographs
    if dim:
        lit = diagnosis.photographs - len(dim)
        names = ", ".join(map(str, dim[:8])) + (", ..." if len(dim) > 8 else "")
        yield Finding(
            "problem" if lit < 6 or 3 * len(dim) > diagnosis.photographs else "notice",
            f"{len(dim)} of {diagnosis.photographs} photographs are nearly dark: less than a tenth as bright as "
            f"the brightest (number {names}). Check the lights and the exposure, or leave them out with their lights; only "
            f"{lit} show the object well.",
        )
    if diagnosis.photographs <= 5:
        yield Finding(
            "notice",
            f"With {diagnosis.photographs} photographs, a single shadow or highlight spoils a "
            "pixel. Take ten or more; with fewer, use the default method.",
        )
    elif share > POORLY_LIT[0]:
        yield Finding(
            "problem" if share > POORLY_LIT[1] else "notice",
            f"{percent(share)} of the pixels are lit in fewer than four photographs, so their normals are "
            "unreliable. Add photographs with higher lights.",
        )
    elif not dim:
        usual = float(np.median(dark))
        yield Finding(
            "good",
            f"Shadows are mild: a typical pixel is dark in {f'{usual:.0f}' if usual >= 1 else 'none'} of "
            f"{diagnosis.photographs} photographs.",
        )


def _about_noise(diagnosis: Diagnosis, capture: Capture) -> Iterator[Finding]:
    noise = diagnosis.noise
    if not noise.from_residual:
        yield Finding(
            "notice",
            "With three photographs, noise cannot be distinguished from fine texture.",
        )
    effect = f"by itself it turns a least-squares normal by about {noise.expected_error:.1f}°"
    if noise.snr_db < VERY_NOISY:
        yield Finding(
            "problem",
            f"The photographs are very noisy (about {noise.snr_db:.0f} dB; {effect}). Expose longer or "
            "average several shots. For these, use the default method, or dlnv for a matte object.",
            effect=noise.expected_error,
        )
    elif noise.snr_db < NOISY:
        yield Finding(
            "notice",
            f"The photographs are noisy (about {noise.snr_db:.0f} dB; {effect}). Use a method with a "
            "dictionary, such as the default.",
            effect=noise.expected_error,
        )
    elif np.isfinite(noise.snr_db):
        yield Finding("good", f"Noise is low (about {noise.snr_db:.0f} dB; {effect}).")
    if capture.origin is not None and capture.origin.bit_depth == 8:
        yield Finding(
            "notice",
            "The photographs have 8 bits per channel: shadows are coarse, and the camera may have applied "
            "a tone curve. Prefer raw or 16-bit linear files.",
        )


def _about_saturation(diagnosis: Diagnosis) -> Iterator[Finding]:
    worst = int(np.argmax(diagnosis.saturation_by_photograph)) + 1
    affected = int((diagnosis.saturation_by_photograph > 0).sum())
    if diagnosis.saturation > SATURATED[1]:
        yield Finding(
            "problem",
            f"{percent(diagnosis.saturation)} of the values are saturated, in {affected} of "
            f"{diagnosis.photographs} photographs (worst: number {worst}). Expose less.",
        )
    elif diagnosis.saturation > SATURATED[0]:
        yield Finding(
            "notice",
            f"Highlights are saturated in {affected} of {diagnosis.photographs} photographs "
            f"({percent(diagnosis.saturation)} of all values; worst: number {worst}). Robust methods "
            "ignore them.",
        )


def _about_fit(diagnosis: Diagnosis, result: Reconstruction | None) -> Iterator[Finding]:
    inside = diagnosis.residual[np.isfinite(diagnosis.residual)]
    typical = float(np.median(inside))
    whose = "the computed normals" if result is not None else "least-squares normals"
    if diagnosis.noise.snr_db < VERY_NOISY:
        return  # what is unexplained is the noise, which is reported already
    if typical > UNEXPLAINED:
        yield Finding(
            "notice",
            f"A matte surface with {whose} leaves {percent(typical)} of a typical pixel's brightness "
            "unexplained: the object is shiny, strongly shadowed or noisy. The default method handles "
            "this; if the whole object is far from matte, compare it with pdlnv.",
        )
    else:
        yield Finding(
            "good",
            f"The photographs fit {whose} well: {percent(typical)} of a typical pixel's brightness is unexplained.",
        )


def _about_result(result: Reconstruction) -> Iterator[Finding]:
    away = float((result.normals[..., 2][result.mask] < 0).mean())
    if away > AWAY:
        yield Finding(
            "notice",
            f"{percent(away)} of the normals point away from the camera, which is impossible on a visible surface: "
            "shadows or noise misled the method there.",
        )


def percent(share: float) -> str:
    """A share in words that fit its size.

    >>> percent(0.1234), percent(0.0123), percent(0.00004)
    ('12 %', '1.2 %', 'under 0.1 %')
    """
    if 0 < share < 0.001:
        return "under 0.1 %"
    return f"{100 * share:.1f} %" if share < 0.0995 else f"{100 * share:.0f} %"
