"""An owl on a branch: the demo scene, with cliffs, cast shadows, plumage and colors.

Rounded parts are ellipsoids about a common plane. Their **squared** heights are polynomials defined
everywhere, so blending them before taking the root gives round joints and a round outline. Parts in
front of one another are joined by the plain maximum, with a cliff at the edge of the front one, as
in a real photograph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from photostereo.core.conventions import BoolArray
from photostereo_lab.scenes.jets import Array, Jet, arctangent, smooth_maximum, where
from photostereo_lab.scenes.shapes import RIM
from photostereo_lab.scenes.surface import Size, Surface, grid_variables, surface_of


@dataclass(frozen=True)
class Plumage:
    """The visible part of overlapping feathers."""

    #: lift above the skin, from 0 (root) to about 1 (tip), with a step wherever a feather ends
    height: Jet
    along: Array  #: position on the visible feather, 0 at its root and 1 at the middle of its tip
    across: Array  #: position across it, −1 to 1
    tone: Array  #: a number in [0, 1) for each feather, to vary its color
    row: Array  #: number of the row that the visible feather hangs from (at y = row · pitch)


def overlap_feathers(x: Jet, y: Jet, *, width: float, pitch: float, point: float = 0.4) -> Plumage:
    """Return feathers that hang along −y in staggered rows, each over the roots of the one below.

    Parameters
    ----------
    x, y : Jet
        Coordinates across and along the plumage; they need not be straight.
    width : float
        Width of a feather.
    pitch : float
        Distance between rows; a feather is twice as long.
    point : float
        How much shorter a feather is at its sides, in (0, 0.5].
    """
    # The row whose roots are next above always reaches this point; the row above it only if it is
    # long enough.
    lower = np.ceil(y.value / pitch)
    near, near_across, near_tone = _feather(x, y, lower, width, pitch)
    far, far_across, far_tone = _feather(x, y, lower + 1.0, width, pitch)
    covered = far.value <= 1.0 - point * far_across.value**2
    along = where(covered, far, near)
    across = where(covered, far_across, near_across)
    # The vane falls off to both sides of a thin shaft.
    height = along - 0.22 * across.square() + 0.10 * (-30.0 * across.square()).exp()
    return Plumage(
        height, along.value, across.value, np.where(covered, far_tone, near_tone), lower + covered
    )


def _feather(x: Jet, y: Jet, row: Array, width: float, pitch: float) -> tuple[Jet, Jet, Array]:
    """Position on the row's feather over each point: along (0 to 1), across (−1 to 1); its tone."""
    stagger = 0.5 * width * np.mod(row, 2.0)
    column = np.floor((x.value - stagger) / width)
    along = (row * pitch - y) / (2.0 * pitch)
    across = (x - (stagger + (column + 0.5) * width)) * (2.0 / width)
    # A cheap hash of row and column: the same feather has the same tone at any resolution.
    tone = np.mod(np.sin(row * 12.9898 + column * 78.233) * 43758.5453, 1.0)
    return along, across, tone


Color = tuple[float, float, float]

CREAM = (0.80, 0.66, 0.45)
FAWN = (0.52, 0.33, 0.16)
BROWN = (0.30, 0.165, 0.075)
DARK = (0.13, 0.075, 0.045)
AMBER = (0.92, 0.47, 0.04)
HORN = (0.42, 0.36, 0.26)
GOLD = (0.74, 0.50, 0.16)
BARK = (0.24, 0.19, 0.145)


@dataclass(frozen=True)
class Part:
    """A piece of the figure: its height where it exists, and its colors (H, W, 3)."""

    height: Jet
    exists: BoolArray
    paint: Array


def figure(size: Size = 256) -> Surface:
    """An owl on a branch.

    >>> owl = figure(64)
    >>> bool(owl.mask.any()), owl.paint.shape
    (True, (64, 64, 3))
    """
    u, v, scale = grid_variables(size)
    # The owl is mirror-symmetric: |u|, rounded at 0, lets one eye, wing and foot stand for two.
    side = (u.square() + 0.03**2).sqrt()
    parts = [
        _body(u, side, v),
        _tail(u, v),
        _branch(u, v),
        _wing(side, v),
        _foot(side, v),
        _eye(side, v),
        _beak(u, v),
    ]
    owl = _joined(parts)
    return surface_of(owl.height, owl.exists, scale, owl.paint)


def _joined(parts: list[Part]) -> Part:
    """Join parts that lie in front of one another."""
    seen = parts[0]
    for part in parts[1:]:
        front = part.exists & (~seen.exists | (part.height.value > seen.height.value))
        paint = np.where(front[..., None], part.paint, seen.paint)
        seen = Part(where(front, part.height, seen.height), seen.exists | part.exists, paint)
    return seen


def _ellipse(
    x: Jet, y: Jet, center: tuple[float, float], axes: tuple[float, float], turn: float = 0.0
) -> Jet:
    """1 − (x′/a)² − (y′/b)², turned counter-clockwise by ``turn`` degrees: positive inside."""
    x, y = _turned(x - center[0], y - center[1], turn)
    return 1.0 - (x / axes[0]).square() - (y / axes[1]).square()


def _turned(x: Jet, y: Jet, turn: float) -> tuple[Jet, Jet]:
    c = float(np.cos(np.deg2rad(turn)))
    s = float(np.sin(np.deg2rad(turn)))
    return c * x + s * y, c * y - s * x


def _body(u: Jet, side: Jet, v: Jet) -> Part:
    """Head, trunk and ear tufts in one skin, with brows, hollows around the eyes, and feathers."""
    trunk = 0.44**2 * _ellipse(u, v, (0.0, -0.24), (0.50, 0.60))
    head = 0.42**2 * _ellipse(u, v, (0.0, 0.40), (0.47, 0.37))
    tuft = 0.16**2 * _ellipse(side, v, (0.33, 0.72), (0.085, 0.21), -24.0)
    squared = smooth_maximum(smooth_maximum(trunk, head, 0.05), tuft, 0.03)
    skin = squared.sqrt(floor=RIM**2)

    x = side - 0.185
    y = v - 0.40
    distance = (x.square() + y.square() + 1e-6).sqrt()
    angle = arctangent(y, x)
    in_disc = 1.0 - distance.smoothstep(0.19, 0.25)
    hollow = -0.075 * (1.0 - distance.smoothstep(0.06, 0.23))
    rim = 0.022 * (-((distance - 0.235) / 0.035).square()).exp()
    rays = (
        0.0045 * (34.0 * angle + 16.0 * distance).sin() * distance.smoothstep(0.11, 0.14) * in_disc
    )

    below_face = 1.0 - (v - 0.3 * u.square()).smoothstep(0.02, 0.14)
    belly = overlap_feathers(u + 0.35 * u * u.square(), v, width=0.105, pitch=0.062, point=0.45)
    crown = overlap_feathers(
        u * (1.0 + 0.15 * u.square()), v - 0.10 * u.square(), width=0.052, pitch=0.032
    )
    on_crown = (1.0 - in_disc) * (1.0 - below_face)
    plumage = 0.020 * belly.height * below_face + 0.0085 * crown.height * on_crown

    brow_shape = _ellipse(side, v, (0.235, 0.60), (0.30, 0.052), 26.0)
    brow = 0.060 * brow_shape.smoothstep(0.0, 1.6)
    height = skin + hollow + rim + rays + plumage + brow

    head_paint = _feather_paint(crown, FAWN, BROWN, DARK)
    belly_paint = _belly_paint(belly, side.value)
    paint = _blend(head_paint, belly_paint, below_face.value)
    ring = 0.5 + 0.5 * np.sin(34.0 * angle.value + 16.0 * distance.value)
    disc_paint = _blend(CREAM, FAWN, 0.35 * ring + 0.5 * (distance.value / 0.24) ** 6)
    paint = _blend(paint, disc_paint, in_disc.value)
    paint = _blend(paint, DARK, 0.9 * (-(((distance - 0.235) / 0.022).square())).exp().value)
    paint = _blend(paint, CREAM, 0.8 * brow_shape.smoothstep(0.0, 0.5).value)
    paint = _blend(
        paint, DARK, 0.8 * tuft.smoothstep(0.0, 0.01).value * v.smoothstep(0.66, 0.78).value
    )
    return Part(height, squared.value > RIM**2, paint)


def _belly_paint(belly: Plumage, side: Array) -> Array:
    """Cream feathers with a dark arrow at the tip, darker toward the flanks."""
    ground = _blend(CREAM, FAWN, np.clip(1.3 * side - 0.15, 0.0, 1.0) * 0.8 + 0.15 * belly.tone)
    arrow = np.exp(-((belly.across / 0.28) ** 2)) * np.clip((belly.along - 0.45) / 0.2, 0.0, 1.0)
    return _blend(ground, BROWN, 0.85 * arrow)


def _feather_paint(plumage: Plumage, ground: Color, other: Color, edge: Color) -> Array:
    """Feathers of mixed tones with a dark edge at the tip."""
    mixed = _blend(ground, other, 0.15 + 0.8 * plumage.tone)
    reach = plumage.along + 0.4 * plumage.across**2
    return _blend(mixed, edge, 0.75 * np.clip((reach - 0.72) / 0.2, 0.0, 1.0))


def _wing(side: Jet, v: Jet) -> Part:
    """A folded wing in front of the flank: coverts above, long flight feathers below."""
    x, y = _turned(side - 0.455, v + 0.24, -9.0)
    # Pointed at the bottom: the width decreases downward.
    width = 0.185 - 0.13 * (0.0 - y).smoothstep(-0.05, 0.62)
    shape = 1.0 - (x / width).square() - (y / 0.50).square()
    swell = 0.11 * shape.sqrt(floor=1e-4)
    lean = 0.335 - 0.75 * (x + 0.15) - 0.10 * (y - 0.1).square()
    coverts = overlap_feathers(x, y, width=0.068, pitch=0.050)
    flight = overlap_feathers(x + 0.10 * y, y - 0.5 * x, width=0.075, pitch=0.155, point=0.3)
    upper = coverts.row * 0.050 > 0.0
    height = lean + swell + where(upper, 0.022 + 0.020 * coverts.height, 0.032 * flight.height)
    bars = 0.5 + 0.5 * np.sin(38.0 * flight.along)
    flight_paint = _blend(_feather_paint(flight, BROWN, DARK, DARK), FAWN, 0.55 * bars)
    paint = _blend(flight_paint, _feather_paint(coverts, BROWN, FAWN, DARK), upper.astype(float))
    spots = np.exp(-((coverts.across / 0.35) ** 2) - ((coverts.along - 0.78) / 0.12) ** 2) * (
        coverts.tone > 0.55
    )
    paint = _blend(paint, CREAM, 0.85 * spots * upper)
    return Part(height, shape.value > 0.004, paint)


def _tail(u: Jet, v: Jet) -> Part:
    """Tail feathers below the branch, far behind it."""
    shape = 1.0 - (u / (0.20 + 0.05 * (v + 0.6))).square() - ((v + 0.70) / 0.255).square()
    vanes = overlap_feathers(u, v + 0.9 * u.square(), width=0.078, pitch=0.30, point=0.2)
    height = 0.15 + 0.10 * shape.sqrt(floor=RIM**2) + 0.018 * vanes.height
    bars = 0.5 + 0.5 * np.sin(60.0 * v.value + 25.0 * u.value**2)
    paint = _blend(BROWN, FAWN, bars * 0.8)
    return Part(height, (shape.value > RIM**2) & (v.value < -0.5), paint)


def _branch(u: Jet, v: Jet) -> Part:
    """A rough branch across the picture, in front of the tail."""
    middle = -0.735 + 0.05 * u + 0.018 * (5.0 * u + 0.6).sin()
    thick = 0.088 + 0.010 * (7.0 * u).sin() - 0.016 * u
    y = (v - middle) / thick
    far = (u / 0.90).square().square()
    shape = 1.0 - y.square() - far * far
    warp = 0.35 * (6.0 * u + 0.4).sin()
    grooves = (9.0 * y + 2.0 * (4.0 * u).sin() + warp).sin()
    knots = (31.0 * u + 5.0 * y + 2.0 * (9.0 * u).cos()).sin()
    rough = 0.0065 * grooves + 0.0045 * knots * grooves + 0.002 * (90.0 * u + 14.0 * y).sin()
    height = 0.26 + 1.0 * thick * shape.sqrt(floor=1e-3) + rough
    paint = _blend(BARK, DARK, np.clip(0.45 - 0.4 * grooves.value, 0.0, 1.0))
    moss = np.clip(y.value * 0.9 + 0.35 * knots.value - 0.25, 0.0, 1.0) * np.clip(
        np.abs(u.value) * 2.2 - 0.7, 0.0, 1.0
    )
    paint = _blend(paint, (0.22, 0.27, 0.08), moss)
    return Part(height, shape.value > 4e-3, paint)


def _foot(side: Jet, v: Jet) -> Part:
    """Three toes with claws that hold the branch."""
    toes = []
    for offset, turn in ((-0.062, -14.0), (0.0, 0.0), (0.062, 14.0)):
        x, y = _turned(side - (0.165 + offset), v + 0.715, turn)
        width = 0.030 - 0.020 * (-y).smoothstep(0.03, 0.14)
        shape = 1.0 - (x / width).square() - (y / 0.125).square()
        scutes = 0.0035 * (110.0 * y).cos() * (y + 0.05).smoothstep(-0.01, 0.02)
        height = 0.335 + 0.050 * shape.sqrt(floor=1e-3) - 1.6 * (y + 0.01).square() + scutes
        claw = (-y).smoothstep(0.050, 0.062).value
        toes.append(Part(height, shape.value > 1e-3, _blend(GOLD, DARK, claw)))
    return _joined(toes)


def _eye(side: Jet, v: Jet) -> Part:
    """A bright eye with a black pupil, set in its hollow."""
    x = side - 0.185
    y = v - 0.405
    shape = 0.108**2 - x.square() - y.square()
    distance = np.sqrt(x.value**2 + y.value**2)
    height = 0.318 + 0.85 * shape.sqrt(floor=0.01**2)
    streaks = 0.5 + 0.5 * np.sin(40.0 * np.arctan2(y.value, x.value))
    iris = _blend(AMBER, (0.62, 0.24, 0.02), 0.35 * streaks + np.clip(distance / 0.1, 0, 1) ** 8)
    paint = _blend(iris, (0.025, 0.022, 0.022), np.clip((0.056 - distance) / 0.004, 0.0, 1.0))
    paint = _blend(paint, DARK, np.clip((distance - 0.090) / 0.006, 0.0, 1.0))
    return Part(height, shape.value > 0.012**2, paint)


def _beak(u: Jet, v: Jet) -> Part:
    """A hooked beak that stands out from the face."""
    y = v - 0.275
    width = 0.066 - 0.052 * (-y).smoothstep(-0.06, 0.135)
    shape = 1.0 - (u / width).square() - (y / 0.135).square()
    height = 0.385 + 0.115 * shape.sqrt(floor=1e-3) - 0.15 * y - 2.2 * y.square()
    paint = _blend(HORN, DARK, np.clip(-9.0 * y.value - 0.1, 0.0, 0.9))
    return Part(height, shape.value > 2e-3, paint)


def _blend(first: Array | Color, second: Array | Color, share: Array) -> Array:
    weight = np.clip(share, 0.0, 1.0)[..., None]
    return np.asarray((1.0 - weight) * np.asarray(first) + weight * np.asarray(second))
