"""The expected error of a result, with a grade in plain words and the reasons.

Three independent errors are combined: the method's estimate for its own normals (the photographs may contradict
each other or the lights), the accuracy of the light directions, and a common rotation of all lights, which no single pixel
reveals but the surface as a whole does. The method's is its map ``spread``, once that is scaled by what no pixel knows: the
detail of the surface and the number of photographs. A detected mistake that the photographs do not contradict (other axes)
outweighs them all.

The terminal, ``summary.json``, batches, comparisons and the page all use this estimate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from photostereo.core.attempt import attempt
from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.findings import Finding, Kind, Subject, sentences
from photostereo.lights.lights import Lights
from photostereo.lights.turn import coarse_curl, turn_of_lights

if TYPE_CHECKING:
    from photostereo.solver.reconstruction import Reconstruction

#: Limits in degrees of a good and of a fair result. The default method is within 5° on well-lit
#: captures with truth and beyond 10° on those with a moved camera. Moving either limit by 1° changes only the grade of
#: results near it: the degrees are always reported with it.
GOOD = 5.0
#: Up to this expected error, in degrees, a result is fair.
FAIR = 10.0
#: Smaller rotations of the lights, in degrees, look like errors of the normals: good captures show up to 2.5°.
LEAST_TURN = 3.0
#: The per-pixel estimate is right if this share of the variation of coarse slopes is not integrable.
USUAL_CURL = 0.12
#: It is scaled with this power of the share. On 320 captures of twelve rendered scenes the best-fit power is 0.24 if all
#: scenes have equal weight; 0.15 to 0.3 lower the scatter of expected over true error from a factor of 1.63 to 1.5.
POWER = 0.2
#: The smallest and the largest factor of that kind.
FACTORS = (0.67, 1.5)
#: Model errors are shared by all photographs: more photographs lower the error less than the pixels suggest. With this
#: correlation between photographs, expected over true error on DiLiGenT with 96 is 0.90 to 1.13 (a smooth ball: 1.45).
#: Without one it is a sixth smaller; with 0.016, right for networks trained without facets, a sixth larger.
CORRELATION = 0.006
#: The estimates of the pixels are right for this number of photographs. Fewer never lower the estimate.
USUAL_COUNT = 20
#: Three photographs fit some normal exactly, so that no residual tells how wrong it is. The mean error in degrees of 450
#: solves with three photographs (DiLiGenT and twelve rendered scenes) is this, times this power of the condition number of
#: the lights: 8° with well-spread lights, 37° if they nearly lie in a plane; nine of ten are within a factor of 3.
OF_THREE = 6.3
OF_THREE_POWER = 0.35
#: Largest number of reasons to name.
MOST_REASONS = 3
#: Least share of the squared error that a reason must contribute: lights that are accurate to 3° do not explain an error of
#: 10°. With 0.05, those of 2.3° would; with 0.2, those of 4.4° would not.
LEAST_SHARE = 0.1
#: Lights that are accurate to this many degrees are no reason.
ACCURATE = 1.0
#: Names of the axes of a rotation.
AXES = ("horizontal axis", "vertical axis", "camera's axis")


@dataclass(frozen=True)
class ExpectedError:
    """The expected error of a result's normals."""

    degrees: float  #: Mean over the mask.
    #: The main contributions, each with a remedy; the most important first.
    reasons: tuple[Finding, ...] = ()
    is_flawed: bool = False  #: Whether the diagnosis found a problem; the grade is then not "good".

    @property
    def grade(self) -> str:
        """``"good"``, ``"fair"`` or ``"do not trust"``."""
        if self.degrees <= GOOD and not self.is_flawed:
            return "good"
        if self.degrees <= FAIR:
            return "fair"
        return "do not trust"

    @property
    def words(self) -> str:
        """The estimate in words.

        >>> ExpectedError(6.1).words, ExpectedError(12.4).words, ExpectedError(0.34).words
        ('about 6° (fair)', 'about 12° (do not trust)', 'about 0.3° (good)')
        """
        return f"about {self.about} ({self.grade})"

    @property
    def about(self) -> str:
        """The degrees, rounded."""
        if self.degrees >= 3:
            return f"{self.degrees:.0f}°"
        return f"{self.degrees:.1f}°"

    def as_dict(self) -> dict[str, Any]:
        """For ``summary.json``."""
        return {
            "degrees": round(self.degrees, 2),
            "grade": self.grade,
            "words": self.words,
            "reasons": sentences(self.reasons),
            "reason_codes": [reason.code for reason in self.reasons],
        }


def expected_error(
    result: Reconstruction,
    lights: Lights | None = None,
    findings: Sequence[Finding] = (),
    *,
    own: float | None = None,
) -> ExpectedError | None:
    """Estimate the error of a result.

    The method's own estimate assumes exact lights; their expected errors are added. Mistakes among the findings count
    toward the error; other findings may be reasons.

    Parameters
    ----------
    result : Reconstruction
        The result.
    lights : Lights, optional
        The lights that it was solved with.
    findings : sequence of Finding
        What the diagnosis of the capture says.
    own : float, optional
        The method's own estimate in degrees, see :func:`photostereo.solver.estimate_error.second_opinion`; by default
        from the map ``spread`` of the result.

    Returns
    -------
    ExpectedError or None
        None if the method does not estimate an error.
    """
    doubts = [finding for finding in findings if finding.severity != "good"]
    if lights is not None and lights.known and len(lights) == 3:
        own = error_of_three(lights.directions)
        doubts.append(Finding("three-photographs", "problem", effect=own, degrees=own))
    elif own is None:
        own = _own(result)
    if own is None:
        return None
    of_lights = _error_of_lights(lights)
    # A ball that contradicts the lights says what to do about it.
    contradicted = any(f.is_mistake and f.subject is Subject.BALL for f in doubts)
    if lights is not None and of_lights >= ACCURATE and not contradicted:
        code = "vague-lights"
        if lights.are_estimated:
            code = "vague-estimate"
        doubts.append(Finding(code, effect=of_lights, degrees=of_lights))
    turned = attempt(
        "the search for turned lights",
        _turned_lights,
        result,
        failures=doubts,
        otherwise=None,
    )
    of_turn = 0.0
    if turned is not None:
        of_turn = turned.effect
        doubts.append(turned)
    # Other errors of the normals may look like a rotation, too, so only the larger one counts.
    of_normals = max(own, of_turn)
    # What may be wrong with the photographs, and was not corrected.
    of_photographs = [
        finding.effect
        for finding in doubts
        if finding.kind is Kind.DOUBT and finding.subject is Subject.PHOTOGRAPHS
    ]
    of_mistakes = max((finding.effect for finding in doubts if finding.is_mistake), default=0.0)
    degrees = max(math.hypot(of_normals, of_lights, *of_photographs), of_mistakes)
    flawed = any(finding.severity == "problem" for finding in doubts)
    expected = ExpectedError(degrees, is_flawed=flawed)
    if expected.grade == "good":
        return expected
    return replace(expected, reasons=_reasons(doubts, degrees, own))


def _error_of_lights(lights: Lights | None) -> float:
    """Mean expected error of the light directions in degrees; 0 if it is not known."""
    if lights is None or not lights.known or not np.isfinite(lights.expected_error).any():
        return 0.0
    return float(np.nanmean(lights.expected_error))


def _turned_lights(result: Reconstruction) -> Finding | None:
    """Report a common rotation of all lights, which the surface as a whole reveals."""
    turn = turn_of_lights(result.normals, result.mask)
    degrees = float(np.linalg.norm(turn))
    if degrees <= LEAST_TURN:
        return None
    moved = np.cross(turn, result.normals[result.mask])
    effect = float(np.linalg.norm(moved, axis=1).mean())
    axis = AXES[int(np.argmax(np.abs(turn)))]
    return Finding("turned-lights", "problem", effect=effect, degrees=degrees, axis=axis)


def _reasons(doubts: Sequence[Finding], degrees: float, own: float) -> tuple[Finding, ...]:
    """The doubts that contribute most to an error, the most important first."""
    least = LEAST_SHARE**0.5 * degrees
    reasons = [f for f in doubts if f.severity == "problem" or not 0 < f.effect < least]
    if not reasons:
        return (Finding("uncertain-normals"),)

    def importance(finding: Finding) -> tuple[float, bool]:
        effect = finding.effect
        if finding.is_mistake and not effect:
            # It makes the photographs contradict each other; the method's estimate includes that.
            effect = own
        return -effect, finding.severity != "problem"

    return tuple(sorted(reasons, key=importance)[:MOST_REASONS])


def _own(result: Reconstruction) -> float | None:
    spread = result.maps.get("spread")
    if spread is None:
        return None
    inside = np.asarray(spread)[result.mask]
    finite = inside[np.isfinite(inside)]
    if not finite.size:
        return None
    return float(finite.mean(dtype=np.float64))


def factor_of_detail(normals: FloatArray, mask: BoolArray) -> float:
    """Factor for the error that pixels expect: smaller on a smooth surface, larger on one with fine detail and edges."""
    curl = coarse_curl(normals, mask)
    if np.isnan(curl):
        return 1.0
    return float(np.clip((curl / USUAL_CURL) ** POWER, *FACTORS))


def error_of_three(directions: FloatArray) -> float:
    """Error in degrees to expect of three photographs, from their (3, 3) light directions."""
    condition = np.linalg.cond(directions)
    return float(min(OF_THREE * condition**OF_THREE_POWER, 90.0))


def factor_of_many(photographs: int) -> float:
    """Factor for the error that pixels expect: errors that all photographs share do not average out."""
    shared = (1 + CORRELATION * (photographs - 1)) / (1 + CORRELATION * (USUAL_COUNT - 1))
    return float(max(shared, 1.0) ** 0.5)
