"""Whether the highlights in a circle are those of a shiny ball: small, bright on dark ground, and wandering."""

from __future__ import annotations

import numpy as np

from photostereo.lights.ball.circle import Circle
from photostereo.lights.ball.highlight import Highlights

#: A shiny ball: its highlight is found in this share of the photographs, ...
SHINY_FOUND = 0.7
#: ... covers at most this share of its disc, ...
_SHINY_AREA = 0.05
#: ... is this many times as bright as the surface around it, ...
_SHINY_CONTRAST = 3.0
#: ... and moves by this share of the radius.
_SHINY_WANDER = 0.06
#: A light is among the brightest things: the peak of its highlight, as a share of what is bright in the frame.
_SHINY_PEAK = 0.2
#: If the outline is complete and a small highlight moves far over it in nearly every photograph, it may be fainter.
_CERTAIN_COVERAGE, _CERTAIN_FOUND, _CERTAIN_AREA, _CERTAIN_WANDER = 0.85, 0.9, 0.01, 0.15
_CERTAIN_CONTRAST, _CERTAIN_PEAK = 2.0, 0.1
#: A highlight of this many pixels is small on any ball: the blur of the lens.
_SPECK = 12.0


def is_shiny(highlights: Highlights, circle: Circle, *, bright: float) -> bool:
    """Whether the highlights are those of a shiny ball, in a frame in which ``bright`` is bright."""
    found = highlights.found
    if found.sum() < 3 or found.mean() < SHINY_FOUND:
        return False
    wander, area, contrast, peak = _usual_highlight(highlights, circle)
    if (
        circle.coverage > _CERTAIN_COVERAGE
        and found.mean() >= _CERTAIN_FOUND
        and area < max(_CERTAIN_AREA, _SPECK / (np.pi * circle.radius**2))
        and wander > _CERTAIN_WANDER
    ):
        return contrast > _CERTAIN_CONTRAST and peak > _CERTAIN_PEAK * bright
    return mirrors_a_light(highlights, circle, bright)


def looks_shiny(highlights: Highlights) -> bool:
    """Whether a circle in which a ball is known to be shows a highlight rather than shading."""
    found = highlights.found
    return bool(found.mean() > 0.5 and np.median(highlights.area[found]) < 2 * _SHINY_AREA)


def mirrors_a_light(highlights: Highlights, circle: Circle, bright: float) -> bool:
    """Whether the highlights are small, wander, and are as bright on dark ground as only a light is."""
    wander, area, contrast, peak = _usual_highlight(highlights, circle)
    return (
        area < _SHINY_AREA
        and contrast > _SHINY_CONTRAST
        and peak > _SHINY_PEAK * bright
        and wander > _SHINY_WANDER
    )


def _usual_highlight(highlights: Highlights, circle: Circle) -> tuple[float, float, float, float]:
    """How far the highlights wander, and the medians of their area, contrast and peak."""
    found = highlights.found
    wander = float(np.hypot(np.std(highlights.x[found]), np.std(highlights.y[found]))) / circle.radius
    area, contrast, peak = (
        float(np.median(part[found])) for part in (highlights.area, highlights.contrast, highlights.peak)
    )
    return wander, area, contrast, peak
