"""How sure a result is of itself: the error that is expected of it, with a grade in plain words and the reasons.

Three things add up, as independent errors do: what the method expects of its own normals (the photographs may contradict
each other or the lights), the accuracy of the light directions, and a turn of all lights together, which no single pixel
shows but the surface as a whole does. What a method expects is found pixel by pixel; a smooth and simple surface is known
better than that, one with fine detail and edges worse, and a great many photographs help less. A detected mistake that the
photographs do not contradict (other axes) outweighs them all.

The terminal, ``summary.json``, batches, comparisons and the page all report it from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from photostereo.core.findings import Finding
from photostereo.lights.lights import Lights
from photostereo.lights.turn import coarse_curl, turn_of_lights

if TYPE_CHECKING:
    from photostereo.solver.reconstruction import Reconstruction

#: Up to this many degrees a result is good, and up to the second fair. The default method is within 5° on well-lit
#: captures with truth and beyond 10° on those with a moved camera. Moving either by 1° changes only the word of
#: results near it: the degrees are always reported with it.
GOOD, FAIR = 5.0, 10.0
#: A smaller turn of the lights, in degrees, is not told from errors of the normals: good captures show up to 2.5°.
LEAST_TURN = 3.0
#: The error that pixels expect is right if this share of the variation of coarse slopes belongs to no surface, and grows
#: with this power of it, within these factors. On 320 captures of twelve rendered scenes the power of best fit is 0.24 if
#: all scenes count alike; 0.15 to 0.3 lower the scatter of expected over true from a factor of 1.63 to 1.5.
USUAL_CURL, POWER, FACTORS = 0.12, 0.2, (0.67, 1.5)
#: Errors of a model are alike in all photographs: more of them lower the error less than pixels expect. With a correlation
#: of this much between photographs, and expectations that are right with 20 of them, expected over true error of 32
#: rendered captures is the same with 10, 20 and 96. Fewer than 20 never lower an expectation. Correlations of 0.01 and
#: 0.025 explain the change with the number of photographs nearly as well (with 96, factors of 1.28 and 1.51, not 1.39).
CORRELATION, USUAL_COUNT = 0.016, 20
#: Notices that explain no error of degrees: rounding to 8 bits turns normals by 0.06° to 0.24° (`ls` and `net`).
NO_REASONS = ("eight-bits",)
#: Findings about lights that are not where a ball shows them.
BALL_DOUBTS = ("ball-doubts-lights", "ball-doubts-some-lights")
#: Reasons that are named.
MOST_REASONS = 3


@dataclass(frozen=True)
class ExpectedError:
    """The error that is expected of a result's normals."""

    degrees: float  #: Mean over the mask.
    #: What contributes most, each with what to do about it; the most important first.
    reasons: tuple[Finding, ...] = ()
    is_flawed: bool = False  #: Whether the diagnosis found a problem: then the result is not called good.

    @property
    def grade(self) -> str:
        """``"good"``, ``"fair"`` or ``"do not trust"``."""
        good = self.degrees <= GOOD and not self.is_flawed
        return "good" if good else "fair" if self.degrees <= FAIR else "do not trust"

    @property
    def words(self) -> str:
        """For people.

        >>> ExpectedError(6.1).words, ExpectedError(12.4).words, ExpectedError(0.34).words
        ('about 6° (fair)', 'about 12° (do not trust)', 'about 0.3° (good)')
        """
        return f"about {self.about} ({self.grade})"

    @property
    def about(self) -> str:
        """The degrees, rounded."""
        return f"{self.degrees:.0f}°" if self.degrees >= 3 else f"{self.degrees:.1f}°"

    def as_dict(self) -> dict[str, Any]:
        """For ``summary.json``."""
        return {
            "degrees": round(self.degrees, 2),
            "grade": self.grade,
            "words": self.words,
            "reasons": list(self.reasons),
            "reason_codes": [reason.code for reason in self.reasons],
        }


def expected_error(
    result: Reconstruction,
    lights: Lights | None = None,
    findings: Sequence[Finding] = (),
    *,
    own: float | None = None,
) -> ExpectedError | None:
    """The error that is expected of a result; None if its method does not estimate one (its map ``spread``, or
    ``own`` in degrees, see :func:`photostereo.solver.opinion.second_opinion`).

    That takes the lights as true; their own expected errors are added. Of the findings, mistakes count, and the
    others may be reasons.
    """
    own = _own(result) if own is None else own
    if own is None:
        return None
    curl = coarse_curl(result.normals, result.mask)
    own *= 1.0 if np.isnan(curl) else float(np.clip((curl / USUAL_CURL) ** POWER, *FACTORS))
    own *= 1.0 if lights is None else _of_many(len(lights))
    found = [f for f in findings if f.severity != "good" and f.code not in NO_REASONS]
    of_lights = 0.0
    if lights is not None and lights.known and np.isfinite(lights.expected_error).any():
        of_lights = float(np.nanmean(lights.expected_error))
        doubted = any(finding.code in BALL_DOUBTS for finding in found)  # they say what to do about it
        if of_lights >= 1.0 and not doubted:
            code = "vague-estimate" if "estimated" in lights.source else "vague-lights"
            found.append(Finding(code, effect=of_lights, degrees=of_lights))
    turn = turn_of_lights(result.normals, result.mask)
    turned, of_turn = float(np.linalg.norm(turn)), 0.0
    if turned > LEAST_TURN:
        of_turn = float(np.linalg.norm(np.cross(turn, result.normals[result.mask]), axis=1).mean())
        axis = ("horizontal axis", "vertical axis", "camera's axis")[int(np.argmax(np.abs(turn)))]
        found.append(Finding("turned-lights", "problem", effect=of_turn, degrees=turned, axis=axis))
    mistakes = max((finding.effect for finding in found if finding.is_mistake), default=0.0)
    # Whatever else is wrong with the normals may look like a turn, too, so only the larger one counts.
    degrees = max(float(np.hypot(max(own, of_turn), of_lights)), mistakes)
    # Of a mistake without an effect of its own the photographs contradict each other, which the method knows.
    found = found or [Finding("uncertain-normals")]
    found.sort(key=lambda f: (-(f.effect or own * f.is_mistake), f.severity != "problem"))
    expected = ExpectedError(degrees, is_flawed=any(finding.severity == "problem" for finding in found))
    return expected if expected.grade == "good" else replace(expected, reasons=tuple(found[:MOST_REASONS]))


def _own(result: Reconstruction) -> float | None:
    spread = result.maps.get("spread")
    if spread is None:
        return None
    inside = np.asarray(spread)[result.mask]
    known = inside[np.isfinite(inside)]
    return float(known.mean(dtype=np.float64)) if known.size else None


def _of_many(photographs: int) -> float:
    """What the error that pixels expect is multiplied by: the part that all photographs share does not average out.

    >>> [round(_of_many(photographs), 2) for photographs in (6, 20, 48, 96)]
    [1.0, 1.0, 1.16, 1.39]
    """
    shared = (1 + CORRELATION * (photographs - 1)) / (1 + CORRELATION * (USUAL_COUNT - 1))
    return float(max(shared, 1.0) ** 0.5)
