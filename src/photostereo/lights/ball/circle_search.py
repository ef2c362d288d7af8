"""Find circles in a stack of photographs, possible balls, to a fraction of a pixel.

The silhouette of a ball is in the same place in every photograph; highlights, shadows and reflections move.
So outlines are edges on which the photographs agree. Each photograph votes with its gradient
g = ∇I / (contrast around the pixel), so that a dim silhouette counts as much as a bright one, and a glaring reflection
no more, as a tensor g gᵀ / |g|, which encodes the direction of an edge but not which side is bright:

    J = mean_i  g_i g_iᵀ / |g_i|,        strength = λ₁(J) - λ₂(J)

Edges in the same direction add up; edges in different directions (a moving highlight, noise) cancel in the
difference of the eigenvalues. Contrast is measured in linear intensity: the middle of a blurred silhouette is where
half of the light is, and a logarithm would move it toward the dark side.

Every edge pixel votes for the centers of circles that it could lie on (Hough), on a pyramid of halved frames. The best
are then fitted on the finest level: along rays from the center, edges across the ray are located to a fraction of a
pixel, and a least-squares circle is fitted to those that belong together, with Tukey's weights.

A circle is only a possible ball: the behavior of its pixels under the lights decides (:mod:`.search`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import cv2
import numpy as np

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, Float32, FloatArray, Indices
from photostereo.lights.ball.geometry import Circle, visible_share
from photostereo.runtime.quantiles import MAD_TO_SIGMA

#: A change of brightness by this share is not an edge.
_FLAT = 0.04
#: The brightest value divided by this is black.
_DARK = 4095.0
#: Standard deviation, in pixels, of the blur before gradients are taken: it calms noise, and moves no straight edge.
_SMOOTHING = 1.0
#: Side in pixels of the square around a pixel that tells its contrast: wider than the blurred edge.
_AROUND = 7
#: Side in pixels of the blocks for the typical strength.
_BLOCK = 24
#: Noise is measured in this share of the frame, the darkest part: bright places have more, but also more contrast.
_DARKEST = 0.2


@dataclass(frozen=True, eq=False)
class Outlines:
    """Edges that the photographs share."""

    #: (H, W) float32, non-negative; about 0.3 for a sharp edge in every photograph
    strength: Float32
    #: cos2, sin2: (H, W) float32, strength times cosine and sine of twice the angle of the edge's normal (x
    #: to the right, y down; its sign has no meaning)
    cos2: Float32
    sin2: Float32
    #: (H, W) float32, the typical strength around each pixel, due to chance and the pattern of the ground
    noise: Float32

    @property
    def frame(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return int(self.strength.shape[0]), int(self.strength.shape[1])

    @cached_property
    def normals(self) -> tuple[Float32, Float32]:
        """Return unit vectors across the edges: x to the right, y down."""
        angle = 0.5 * np.arctan2(self.sin2, self.cos2)
        return np.cos(angle), np.sin(angle)

    def across_rays(self, x: Float32, y: Float32, angles: FloatArray) -> Float32:
        """Interpolate the strength, at points (x, y) on rays (rows) at these angles, of edges that lie across their ray."""
        cos2, sin2 = (cv2.remap(part, x, y, cv2.INTER_LINEAR) for part in (self.cos2, self.sin2))
        along, across = (f(2 * angles).astype(np.float32)[:, None] for f in (np.cos, np.sin))
        return np.asarray(np.maximum(cos2 * along + sin2 * across, 0.0))


def shared_outlines(images: FloatArray, *, black: float, control: Control = SILENT) -> Outlines:
    """Find edges that the photographs (d, H, W) of a stack share; differences up to ``black`` do not count."""
    difference, cross = (np.zeros(images.shape[1:3], np.float32) for _ in range(2))
    window = np.ones((_AROUND, _AROUND), np.uint8)
    for image in images:
        control.check()
        value = cv2.GaussianBlur(np.asarray(image, np.float32), (0, 0), _SMOOTHING)
        gx = cv2.Sobel(value, cv2.CV_32F, 1, 0, scale=0.125, borderType=cv2.BORDER_REPLICATE)
        gy = cv2.Sobel(value, cv2.CV_32F, 0, 1, scale=0.125, borderType=cv2.BORDER_REPLICATE)
        high = cv2.dilate(value, window)
        contrast = high - cv2.erode(value, window)
        # |g|² / |g| of the normalized gradient, as sums of its doubled angle
        weight = cv2.magnitude(gx, gy)
        weight *= contrast + (np.float32(black) + np.float32(_FLAT) * high)
        np.maximum(weight, 1e-20, out=weight)
        difference += (gx * gx - gy * gy) / weight
        cross += 2 * gx * gy / weight
    difference /= len(images)
    cross /= len(images)
    strength = cv2.magnitude(difference, cross)
    return Outlines(strength, difference, cross, noise=_usual_around(strength))


def _usual_around(strength: Float32) -> Float32:
    """Return the median strength around each pixel: black cloth is smooth, and an object next to it full of detail."""
    height, width = strength.shape
    rows, cols = max(height // _BLOCK, 1), max(width // _BLOCK, 1)
    blocks = [
        [np.median(part) for part in np.array_split(band, cols, axis=1)]
        for band in np.array_split(strength, rows, axis=0)
    ]
    # The next block may be much smoother or rougher; a ball's edge lies on both.
    calm = cv2.blur(np.array(blocks, np.float32), (3, 3), borderType=cv2.BORDER_REPLICATE)
    return np.asarray(cv2.resize(calm, (width, height), interpolation=cv2.INTER_LINEAR))


def black_level(images: FloatArray) -> float:
    """Return the insignificant difference of brightness in the dark: four deviations of the noise, or two file levels.

    In brighter places noise is stronger; there a difference is compared with the brightness itself.
    """
    sample = np.asarray(images[:: max(1, len(images) // 8)], np.float32)
    # High-pass in both directions: flat and smoothly shaded places leave nothing but noise.
    rough = sample[:, 1:, 1:] - sample[:, 1:, :-1] - sample[:, :-1, 1:] + sample[:, :-1, :-1]
    rough, around = np.abs(rough[:, ::3, ::3]), cv2.blur(sample.mean(axis=0), (5, 5))[1::3, 1::3]
    dark = around <= np.quantile(around, _DARKEST)
    noise = float(np.median(rough[:, dark])) * MAD_TO_SIGMA / 2.0
    thin = sample[:, ::4, ::4]
    levels = np.unique(thin)[:32]
    level = float(np.median(np.diff(levels))) if len(levels) > 1 else 0.0
    return max(4.0 * noise, 2.0 * level, float(thin.max()) / _DARK, 1e-9)


#: Each radius of the vote is this many times the last one, ...
_NEXT_RADIUS = 1.06
#: ... and this many pixels more.
_NEXT_PIXELS = 0.25
#: Centers may lie outside the frame by this share of the radius.
_OUTSIDE = 0.5
#: Minimum share of the visible outline that votes for a circle.
_LEAST_VOTES = 0.25
#: Minimum share of the outline that lies inside the frame.
_LEAST_VISIBLE = 0.3
#: Most circles to fit on one level of the pyramid.
_MOST_PEAKS = 24


def vote_for_circles(
    outlines: Outlines, smallest: float, largest: float
) -> list[tuple[float, Circle]]:
    """Return peaks of the vote for (center, radius), with the share of the visible outline that voted."""
    rows, cols = _thin_edges(outlines)
    if len(rows) < 12:
        return []
    ux, uy = (part[rows, cols] for part in outlines.normals)
    height, width = outlines.frame
    radii = [smallest]
    while radii[-1] < largest:
        radii.append(radii[-1] * _NEXT_RADIUS + _NEXT_PIXELS)
    found: list[tuple[float, Circle]] = []
    for radius in radii:
        pad = int(_OUTSIDE * radius)
        shape = (height + 2 * pad, width + 2 * pad)
        votes = np.zeros(shape[0] * shape[1], np.float32)
        for sign in (-1.0, 1.0):
            x = np.rint(cols + sign * radius * ux).astype(np.intp) + pad
            y = np.rint(rows + sign * radius * uy).astype(np.intp) + pad
            ok = (x >= 0) & (x < shape[1]) & (y >= 0) & (y < shape[0])
            votes += np.bincount(y[ok] * shape[1] + x[ok], minlength=len(votes)).astype(np.float32)
        # Votes scatter with the error of the edge's direction, which grows with the radius.
        spread = 2 * int(np.ceil(0.05 * radius + 0.5)) + 1
        gathered = cv2.boxFilter(votes.reshape(shape), -1, (spread, spread), normalize=False)
        found += _peaks(gathered, radius, pad, outlines.frame)
    kept: list[tuple[float, Circle]] = []
    for score, circle in sorted(found, key=lambda pair: -pair[0]):
        if len(kept) < _MOST_PEAKS and not any(circle.is_same(other) for _, other in kept):
            kept.append((score, circle))
    return kept


def _thin_edges(outlines: Outlines) -> tuple[Indices, ...]:
    """Return rows and columns of edge pixels: stronger than chance, and than their neighbors across the edge."""
    strength = outlines.strength
    rows, cols = np.mgrid[: strength.shape[0], : strength.shape[1]].astype(np.float32)
    ridge = np.ones(strength.shape, dtype=bool)
    ux, uy = outlines.normals
    for sign in (-1.0, 1.0):
        beside = cv2.remap(strength, cols + sign * ux, rows + sign * uy, cv2.INTER_LINEAR)
        ridge &= strength >= beside
    ridge[:2] = ridge[-2:] = False
    ridge[:, :2] = ridge[:, -2:] = False
    # A frame full of texture has edges everywhere; the strongest eighth is enough to show any ball.
    floor = np.maximum(
        np.minimum(3.0 * outlines.noise, float(np.percentile(strength, 87.5))), 0.004
    )
    return np.nonzero(ridge & (strength > floor))


def _peaks(
    votes: Float32, radius: float, pad: int, frame: tuple[int, int]
) -> list[tuple[float, Circle]]:
    """Return the best centers of circles of a radius, with the share of their visible outline that voted."""
    size = 2 * int(0.25 * radius) + 1
    highest = cv2.dilate(votes, np.ones((size, size), np.uint8))
    length = 2 * np.pi * radius
    y, x = np.nonzero((votes >= highest) & (votes > _LEAST_VOTES * _LEAST_VISIBLE * length))
    centers, last = np.stack([x, y], 1) - float(pad), np.array(frame[::-1]) - 2
    visible = np.ones(len(centers))
    cut = ((centers < 1 + radius) | (centers > last - radius)).any(1)
    outlines = centers[cut, None] + Circle(0.0, 0.0, radius).outline(360)
    visible[cut] = ((outlines >= 1) & (outlines <= last)).all(2).mean(1)
    shares = votes[y, x] / length / np.maximum(visible, _LEAST_VISIBLE)
    best = np.argsort(-shares)[:12]
    return [
        (float(shares[i]), Circle(float(centers[i, 0]), float(centers[i, 1]), radius))
        for i in best
        if shares[i] > _LEAST_VOTES
    ]


#: Smallest radius, in pixels, that is searched on a level of the pyramid. Levels overlap: an outline is hidden by the
#: pattern of a table in small frames, and by noise in large ones.
_SMALLEST = 9.0
#: Largest radius, in pixels, except on the coarsest level.
_LARGEST = 100.0
#: Frames are halved down to this width or height.
_COARSEST = 60.0
#: Minimum radius of a circle, in pixels of the photographs.
LEAST_RADIUS = 16.0
#: Frames are halved until they have no more pixels than this before the search.
_MOST_PIXELS = 4_000_000
#: A circle of this radius is accurate enough: finer levels would show the blur of the lens, not more of the edge.
_FINE_ENOUGH = 100.0
#: Minimum share of the visible outline that must be an edge.
LEAST_COVERAGE = 0.5


def find_circles(
    images: FloatArray,
    *,
    most: int = 12,
    beside: BoolArray | None = None,
    control: Control = SILENT,
) -> list[Circle]:
    """Find at most ``most`` circles in the photographs (d, H, W) of a stack, those with the longest outlines first.

    Circles with their centers on the object ``beside`` which they lie are skipped.

    Finds circles at least 32 pixels wide (in frames above four megapixels, larger in proportion),
    even if up to half of the outline is outside the frame or invisible against the background.
    """
    if min(images.shape[1:]) < LEAST_RADIUS:  # not even half of a ball
        return []
    black = black_level(images)
    stack, scale = np.asarray(images, np.float32), 1.0
    while stack[0].size > _MOST_PIXELS:
        stack, scale = _halved(stack), 2.0 * scale
    pyramid = [shared_outlines(stack, black=black, control=control)]
    while min(stack.shape[1:]) >= _COARSEST:
        stack = _halved(stack)
        pyramid.append(shared_outlines(stack, black=black, control=control))
    votes: list[tuple[float, int, Circle]] = []
    for level, outlines in enumerate(pyramid):
        control.check()
        largest = 1.2 * max(outlines.frame) if outlines is pyramid[-1] else _LARGEST
        smallest = max(_SMALLEST, LEAST_RADIUS / 2**level / scale)
        for score, circle in vote_for_circles(outlines, smallest, largest):
            if beside is None or not circle.scaled(scale * 2.0**level).is_centered_on(beside):
                votes.append((score, level, circle))
    votes.sort(key=lambda vote: -vote[0])
    found: list[Circle] = []
    for _, level, circle in votes[: 4 * most]:
        control.check()
        fitted = _refined(pyramid, level, circle)
        if fitted is not None and not any(fitted.is_same(other) for other in found):
            found.append(fitted)
    found.sort(
        key=lambda circle: -circle.coverage * circle.radius
    )  # the most edges, not the smallest circle
    return [circle.scaled(scale) for circle in found[:most]]


def _refined(pyramid: Sequence[Outlines], level: int, circle: Circle) -> Circle | None:
    """Fit the circle from its level of the pyramid to the finest that improves it."""
    slack = 0.12
    while (fitted := fit_circle(pyramid[level], circle, slack=slack)) is not None:
        if not level or fitted.radius > _FINE_ENOUGH:
            return fitted.scaled(2.0**level)
        circle, level, slack = fitted.scaled(2.0), level - 1, 0.05
    return None


def close_up(
    images: FloatArray, circle: Circle, reach: float
) -> tuple[Float32, Circle, Callable[[Circle], Circle]]:
    """Return the photographs within ``reach`` of a circle's center, halved as long as no detail of its edge is lost.

    Also returns the circle there, and a function that maps circles back to the frame.
    """
    left, top = max(int(circle.x - reach), 0), max(int(circle.y - reach), 0)
    right, bottom, corner = (
        int(circle.x + reach) + 2,
        int(circle.y + reach) + 2,
        np.array([left, top]),
    )
    stack = np.asarray(images[:, top:bottom, left:right], np.float32)
    local = replace(circle, x=circle.x - left, y=circle.y - top, points=circle.points - corner)
    scale = 1.0
    while local.radius > _FINE_ENOUGH:
        stack, local, scale = _halved(stack), local.scaled(0.5), 2 * scale

    def in_frame(found: Circle) -> Circle:
        found = found.scaled(scale)
        return replace(found, x=found.x + left, y=found.y + top, points=found.points + corner)

    return stack, local, in_frame


def circles_around(images: FloatArray, circle: Circle) -> list[Circle]:
    """Find larger circles with the same center: a mirror shows the horizon as a sharper circle inside its outline."""
    stack, local, in_frame = close_up(images, circle, 1.9 * circle.radius)
    outlines = shared_outlines(stack, black=black_level(images))
    return [
        in_frame(outer)
        for ratio in np.arange(1.09, 1.8, 0.07)
        if (
            outer := fit_circle(
                outlines, Circle(local.x, local.y, ratio * local.radius), slack=0.05
            )
        )
        and outer.away_from(local) < 0.15 * local.radius
    ]


def fit_circle(outlines: Outlines, guess: Circle, *, slack: float) -> Circle | None:
    """Return the circle on which most rays meet an edge, within ``slack`` radii of ``guess``; None if there is none."""
    circle = guess
    for width in (slack, 0.5 * slack, 0.25 * slack):
        reach = max(width * circle.radius, 2.0)
        rays, points, weights = _edges_along_rays(outlines, circle, reach)
        if len(np.unique(rays)) < 12:
            return None
        tolerance = max(0.75, 0.012 * circle.radius)
        fit = _tukey_fit(circle, points, weights, reach, tolerance)
        if fit is None or fit.radius <= 3:
            return None
        circle = fit
    seen = visible_share(circle, outlines.frame)
    distance = np.abs(np.hypot(points[:, 0] - circle.x, points[:, 1] - circle.y) - circle.radius)
    near = distance < tolerance
    if near.sum() < 12 or seen < _LEAST_VISIBLE:
        return None
    total = max(round(_ray_count(circle.radius) * seen), 1)
    coverage = min(len(np.unique(rays[near])) / total, 1.0)
    if coverage < LEAST_COVERAGE:
        return None
    residual = float(np.sqrt(np.mean(distance[near] ** 2)))
    return Circle(circle.x, circle.y, circle.radius, coverage, residual, points[near])


def _halved(stack: Float32) -> Float32:
    rows, cols = stack.shape[1] // 2 * 2, stack.shape[2] // 2 * 2
    size = (cols // 2, rows // 2)
    return np.stack(
        [cv2.resize(image[:rows, :cols], size, interpolation=cv2.INTER_AREA) for image in stack]
    )


def _ray_count(radius: float) -> int:
    return int(np.clip(2 * np.pi * radius / 1.5, 72, 720))


def _edges_along_rays(
    outlines: Outlines, circle: Circle, reach: float
) -> tuple[Indices, FloatArray, FloatArray]:
    """Return edges across the rays from the center, within ``reach`` of the circle: ray, point (x, y), strength."""
    angles = np.linspace(0, 2 * np.pi, _ray_count(circle.radius), endpoint=False)
    step = 0.5 if circle.radius < 200 else 1.0
    radii = np.arange(circle.radius - reach, circle.radius + reach + step, step)
    x = (circle.x + radii[None] * np.cos(angles)[:, None]).astype(np.float32)
    y = (circle.y + radii[None] * np.sin(angles)[:, None]).astype(np.float32)
    profile = outlines.across_rays(x, y, angles)
    frame = outlines.frame
    profile[(x < 1) | (x > frame[1] - 2) | (y < 1) | (y > frame[0] - 2)] = 0
    middle = profile[:, 1:-1]
    noise = cv2.remap(outlines.noise, x[:, 1:-1], y[:, 1:-1], cv2.INTER_LINEAR)
    peak = (middle >= profile[:, :-2]) & (middle > profile[:, 2:])
    peak &= middle > np.clip(1.5 * noise, 0.002, 0.05)
    rays, places = np.nonzero(peak)
    left, top, right = profile[rays, places], middle[rays, places], profile[rays, places + 2]
    offset = 0.5 * (left - right) / np.minimum(left - 2 * top + right, -1e-12)
    radius = radii[places + 1] + step * np.clip(offset, -0.5, 0.5)
    points = circle.x + radius * np.cos(angles[rays]), circle.y + radius * np.sin(angles[rays])
    return rays, np.stack(points, axis=1), top.astype(np.float64)


#: A fit may move the center and the radius by this many times the distance within which edges were collected. Fits of
#: true outlines move by at most about one. On smooth surfaces, whose short edges lie on no circle, the radius of
#: some fits would run away to millions of pixels.
_MOST_MOVE = 2.0
#: Tukey's window shrinks by this factor in each step.
_SHRINKING = 0.8
#: Most steps of one fit, and the step in pixels below which it has converged.
_MOST_STEPS = 40
_SMALL_STEP = 1e-4


def _tukey_fit(
    guess: Circle, points: FloatArray, strength: FloatArray, reach: float, tolerance: float
) -> Circle | None:
    """Fit the geometric circle by Gauss–Newton, with Tukey's weights, which ignore edges beyond a shrinking window.

    Parameters
    ----------
    guess : Circle
        The circle near which the edges lie.
    points : (n, 2) array
        Edges: columns and rows.
    strength : (n,) array
        Strength of each edge.
    reach : float
        Largest distance of the edges from ``guess``, in pixels.
    tolerance : float
        Half of the final width of the window, in pixels.

    Returns
    -------
    Circle or None
        None if the fit moves away from ``guess``: then these edges determine no circle.
    """
    start = np.array([guess.x, guess.y, guess.radius])
    state = start.copy()
    window = 2 * reach
    trust = np.sqrt(strength)
    design = np.ones((len(points), 3))
    ridge = 1e-9 * np.eye(3)
    for _ in range(_MOST_STEPS):
        toward = points - state[:2]
        length = np.maximum(np.hypot(toward[:, 0], toward[:, 1]), 1e-9)
        miss = length - state[2]
        weight = np.maximum(1 - (miss / window) ** 2, 0.0) ** 2 * trust
        design[:, :2] = toward / length[:, None]
        normal = design.T @ (weight[:, None] * design) + ridge
        step = np.linalg.solve(normal, design.T @ (weight * miss))
        state += step
        # Written so that NaN is no fit either.
        if not np.abs(state - start).max() <= _MOST_MOVE * reach:
            return None
        if window == 2 * tolerance and np.abs(step).max() < _SMALL_STEP:
            break
        window = max(_SHRINKING * window, 2 * tolerance)
    x, y, radius = state.tolist()
    return Circle(x, y, radius)
