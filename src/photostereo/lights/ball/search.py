"""Find balls among circles: the pixels' behavior under the lights decides whether a circle is a ball, and of which kind.

A *shiny* ball shows, in nearly every photograph, one small bright highlight that moves over an otherwise dark surface.
A *matte* ball is explained by the shading of a sphere. An eye, a coin, a plate or a round part of the object
is neither. If circles overlap (a mirror shows the horizon as a sharp circle inside its fainter outline), the one whose
directions best explain the shading of the rest of the frame is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.lights.ball.circle_search import circles_around, find_circles
from photostereo.lights.ball.geometry import (
    Camera,
    Circle,
    facing_view,
    mirrored_directions,
    visible_share,
)
from photostereo.lights.ball.highlight import (
    SHINY_FOUND,
    Highlights,
    find_highlights,
    is_shiny,
    looks_shiny,
)
from photostereo.lights.ball.outline_fit import settle_outline
from photostereo.lights.ball.shading import Shading, fit_shading, settle_circle
from photostereo.lights.source import LightSource, SourceKind
from photostereo.lights.strengths import sample_pixels, unexplained_by_any, unexplained_light

#: Error of the center of a highlight in pixels, ...
_SPOT = 0.03
#: ... as a share of its extent, ...
_SPOT_SHARE = 0.03
#: ... and in pixels times its noise over its peak (0.8 at best in each direction, by the bound of Cramér and Rao for a
#: Gaussian spot).
_SPOT_NOISE = 1.2
#: A larger circle is searched around a circle of this coverage.
_CLEAR = 0.8
#: Matte ball: minimum share of the variance that the shading of a sphere explains.
_MATTE_EXPLAINED = 0.98
#: Matte ball: minimum share of the outline that is seen as an edge.
_MATTE_COVERAGE = 0.7
#: Minimum share of a matte ball's disc inside the frame: the shading of a small cap fits many objects.
_MATTE_SHARE = 0.4
#: A ball has one color; an eye, a button or a head does not.
_MATTE_PATCHINESS = 0.16
#: The same for a ball that the frame cuts: a dome of a relief fits its part nearly as well.
_CUT_PATCHINESS = 0.06
#: The directions from a ball may leave at most this many times as much of the light on the rest unexplained as the best
#: directions, and this share more. True balls: 1.1 times for matte objects; 2 times and 0.05 for a mirror that is
#: photographed alone in a room. Round parts of shiny reliefs: up to 40 times, and 0.5.
_DISAGREEMENT = 2.0
_DISAGREEMENT_MORE = 0.03
#: If less than this share of a shiny ball's outline lies inside the frame, more of that part must be visible.
_CUT = 0.8
_CUT_COVERAGE = 0.72
#: Deviation of a photograph from that shading, as a share of its brightness.
_MATTE_RESIDUAL = 0.05
#: Circles whose radii differ by less than this are two measurements of one outline.
_SAME_EDGE = 0.88
#: If one circle is this many times larger than the other, they are distinct: a horizon and an outline.
_RINGS = 1.25
#: Maximum difference of near lights between balls, in degrees; above it, one is not a ball.
_ALIKE = 35.0
#: The same for a matte ball next to a shiny one: a round object that is not quite a ball does not help.
_MATTE_ALIKE = 6.0


@dataclass(frozen=True, eq=False)
class FoundBall:
    """A ball and the lights measured from it."""

    kind: str  #: ``"shiny"`` or ``"matte"``
    circle: Circle  #: its outline
    directions: FloatArray  #: (d, 3) unit; NaN if the highlight is missing
    strengths: (
        FloatArray | None
    )  #: (d,) with geometric mean 1, or None: a mirror image has no strength
    residual: FloatArray  #: (d,) expected error of each direction, in degrees
    highlights: Highlights | None = None  #: of a shiny ball

    @property
    def source(self) -> LightSource:
        """The ball as a source of directions."""
        kind = SourceKind.SHINY_BALL if self.kind == "shiny" else SourceKind.MATTE_BALL
        return LightSource(kind, f"{kind.value} at {self.circle.x:.0f},{self.circle.y:.0f}")


def find_balls(
    images: FloatArray,
    *,
    camera: Camera | None = None,
    most: int = 4,
    beside: BoolArray | None = None,
    control: Control = SILENT,
) -> list[FoundBall]:
    """Find at most ``most`` balls in the photographs (d, H, W), shiny ones first, then by the length of their outlines;
    only balls ``beside`` an object, if its mask is given."""
    candidates = []
    for circle in find_circles(images, most=24, beside=beside, control=control):
        control.check()
        ball = ball_at(images, circle, camera=camera)
        if ball is None or not _is_plausible(images, ball):
            continue
        candidates.append(ball)
        if ball.kind == "shiny" and circle.coverage > _CLEAR:
            for outer in circles_around(images, circle):
                highlights = find_highlights(images, outer)
                around = shiny_ball(outer, highlights, camera)
                if highlights.found.mean() >= SHINY_FOUND and _in_front(
                    around.directions[highlights.found]
                ):
                    candidates.append(around)
    chosen = [_best_of(images, group) for group in _overlapping(candidates)]
    chosen.sort(key=lambda ball: (ball.kind != "shiny", -ball.circle.coverage * ball.circle.radius))
    # All balls see the same lights; those that disagree with the most trusted one are none.
    agreeing = [ball for ball in chosen if ball is chosen[0] or _agree(ball, chosen[0])]
    return [settled(images, ball, camera, control) for ball in agreeing[:most]]


def ball_at(
    images: FloatArray, circle: Circle, *, camera: Camera | None = None, certain: bool = False
) -> FoundBall | None:
    """Return the ball in a circle, or None if its pixels do not behave like one.

    With ``certain`` (the user marked the ball) the more likely kind is assumed.
    """
    highlights = find_highlights(images, circle)
    bright = float(np.percentile(images[:, ::4, ::4], 99.9))
    if is_shiny(highlights, circle, bright=bright) or (certain and looks_shiny(highlights)):
        ball = shiny_ball(circle, highlights, camera)
        # If only the rim glitters, as on a coin, the lights would be below the table.
        return ball if certain or _in_front(ball.directions[highlights.found]) else None
    share_in = float(circle.inside(images.shape[1:]).sum()) / (np.pi * circle.radius**2)
    if not certain and (circle.coverage < _MATTE_COVERAGE or share_in < _MATTE_SHARE):
        return None
    shading = fit_shading(images, circle, camera)
    matte = (
        shading.explained > _MATTE_EXPLAINED
        and float(np.median(shading.residual)) < _MATTE_RESIDUAL
    )
    patchiness = _MATTE_PATCHINESS
    if visible_share(circle, images.shape[1:3]) < _CUT:
        patchiness = _CUT_PATCHINESS
    matte &= shading.patchiness < patchiness and _in_front(shading.directions)
    # Constant light explains a plain disc, but not a ball.
    likely = (
        shading.explained > 0.5 and shading.constant < 2 and float(np.ptp(images[:, ::2, ::2])) > 0
    )
    return matte_ball(circle, shading) if matte or (certain and likely) else None


def _is_plausible(images: FloatArray, ball: FoundBall) -> bool:
    """Return whether enough of a ball's outline is seen, and its lights agree with the shading of all the rest."""
    frame = images.shape[1:3]
    is_cut = visible_share(ball.circle, frame) < _CUT
    if ball.kind == "shiny" and is_cut and ball.circle.coverage < _CUT_COVERAGE:
        return False
    witness = ~ball.circle.inside(frame, share=1.05)
    pixels = sample_pixels(images, witness)
    seen = np.isfinite(ball.directions).all(axis=1)
    if seen.sum() < 5 or len(pixels) < 200:
        return True
    least = unexplained_by_any(pixels[:, seen])
    return not (
        scene_misfit(images, ball.directions, witness) > _DISAGREEMENT * least + _DISAGREEMENT_MORE
    )


def _in_front(directions: FloatArray) -> bool:
    return bool((directions[:, 2] > -0.2).mean() > 0.9)


def matte_ball(circle: Circle, shading: Shading) -> FoundBall:
    """Return the matte ball with this shading."""
    # A deviation of the shading by a share q turns the direction by at most about q radians.
    residual = np.degrees(shading.residual) / 2.0
    return FoundBall("matte", circle, shading.directions, shading.strengths, residual)


def shiny_ball(circle: Circle, highlights: Highlights, camera: Camera | None = None) -> FoundBall:
    """Return the shiny ball with these highlights."""
    directions = mirrored_directions(circle, highlights.x, highlights.y, camera)
    # The direction turns twice as fast as the normal, and faster toward the rim.
    place = np.hypot(highlights.x - circle.x, highlights.y - circle.y) / circle.radius
    cosine = np.sqrt(np.maximum(1 - place**2, 0.05))
    center, radius = circle.standard_errors()
    noise = _SPOT_NOISE * highlights.noise / np.maximum(highlights.peak, 1e-12)
    error = np.sqrt(
        center**2
        + (place * radius) ** 2
        + _SPOT**2
        + (_SPOT_SHARE * highlights.spread) ** 2
        + noise**2
    )
    residual = np.degrees(2 * error / (circle.radius * cosine))
    return FoundBall("shiny", circle, directions, None, residual, highlights=highlights)


def settled(
    images: FloatArray, ball: FoundBall, camera: Camera | None = None, control: Control = SILENT
) -> FoundBall:
    """Return the ball with its circle refined from all of its pixels, not from single edges."""
    circle = ball.circle
    if ball.kind == "matte":
        circle = settle_circle(images, circle, camera)
        return matte_ball(circle, fit_shading(images, circle, camera))
    if camera is None:
        circle = settle_outline(images, circle, control)
    elif circle.radius < camera.focal and len(circle.points) >= 24:
        # Only a camera that points at the ball sees a circle; the highlights are still those of the photographs.
        view, outline, in_photographs = facing_view(images, circle, camera)
        circle = in_photographs(settle_outline(view, outline, control))
    return shiny_ball(circle, find_highlights(images, circle), camera)


def _overlapping(balls: Sequence[FoundBall]) -> list[list[FoundBall]]:
    """Return groups of overlapping balls."""
    groups: list[list[FoundBall]] = []
    for ball in balls:
        touching = [
            group for group in groups if any(ball.circle.overlaps(other.circle) for other in group)
        ]
        merged = [ball, *(member for group in touching for member in group)]
        groups = [*(group for group in groups if group not in touching), merged]
    return groups


def _best_of(images: FloatArray, group: Sequence[FoundBall]) -> FoundBall:
    """Return, of circles that cannot all be balls, the one whose directions explain the rest of the frame best."""
    if len(group) == 1:
        return group[0]
    outside = np.ones(images.shape[1:3], dtype=bool)
    for ball in group:
        if ball.circle.coverage > 0.5:
            outside &= ~ball.circle.inside(images.shape[1:3], share=1.03)
    shares = [scene_misfit(images, ball.directions, outside) for ball in group]
    lowest = np.nanmin(shares) if np.isfinite(shares).any() else np.inf
    # Of those that explain nearly as much, take the most complete, and of concentric circles the outermost.
    able = [
        b
        for b, s in zip(group, shares, strict=True)
        if s <= 1.15 * lowest + 1e-4 or lowest == np.inf
    ]
    clearest = max(able, key=lambda ball: ball.circle.coverage).circle
    rings = [
        b.circle for b in group if b.circle.coverage > _CLEAR and _concentric(b.circle, clearest)
    ]
    around = [ball for ball in able if _concentric(ball.circle, clearest)]
    clear = [ball for ball in around if ball.circle.coverage > _CLEAR]
    if clear and max(ring.radius for ring in rings) > _RINGS * min(ring.radius for ring in rings):
        around = clear  # horizon and outline are both visible: fainter circles around them are something else
    outermost = max(ball.circle.radius for ball in around)
    around = [ball for ball in around if ball.circle.radius > _SAME_EDGE * outermost]
    return max(around, key=lambda ball: ball.circle.coverage)


def _concentric(a: Circle, b: Circle) -> bool:
    return a.away_from(b) < 0.15 * min(a.radius, b.radius)


def scene_misfit(images: FloatArray, directions: FloatArray, where: BoolArray) -> float:
    """Return the share of the light in a region that these directions cannot explain; NaN if nothing is visible."""
    known = np.isfinite(directions).all(axis=1)
    pixels = sample_pixels(images, where)
    if known.sum() < 5 or len(pixels) < 200:
        return float("nan")
    if np.linalg.matrix_rank(directions[known], tol=1e-3) < 3:
        return 1.0
    return unexplained_light(pixels[:, known], directions[known])[0]


def _agree(ball: FoundBall, trusted: FoundBall) -> bool:
    """Return whether two balls typically see a light in the same direction; False if they have no light in common."""
    cosine = (ball.directions * trusted.directions).sum(axis=1)
    known = np.isfinite(cosine)
    limit = _ALIKE if ball.kind == "shiny" else _MATTE_ALIKE
    return bool(known.any() and np.median(cosine[known]) >= np.cos(np.radians(limit)))
