"""Circles in a stack of photographs: where balls may be, to a fraction of a pixel.

Every edge pixel votes for the centers of circles that it could lie on (Hough), on a pyramid of halved frames. The best
are then fitted on the finest level: along rays from the center the edges that lie across the ray are found to a
fraction of a pixel, a robust vote over triples of them settles which belong together, and a least-squares circle with
Tukey's weights goes through those.

A circle is only a place where a ball may be: what its pixels do under the lights decides (:mod:`.balls`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.lights.ball.circle import Circle, visible_share
from photostereo.lights.ball.outlines import Outlines, black_level, shared_outlines


def vote_for_circles(outlines: Outlines, smallest: float, largest: float) -> list[tuple[float, Circle]]:
    """Peaks of the vote for (center, radius), with the share of the visible outline that voted."""
    rows, cols = _thin_edges(outlines)
    if len(rows) < 12:
        return []
    ux, uy = (part[rows, cols] for part in outlines.normals)
    height, width = outlines.frame
    radii = [smallest]
    while radii[-1] < largest:
        radii.append(radii[-1] * 1.06 + 0.25)
    layers: list[tuple[float, int, NDArray[np.float32]]] = []
    for radius in radii:
        pad = int(0.5 * radius)
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
        share = gathered / np.maximum(_visible_outline(radius, pad, outlines.frame), 0.3 * 2 * np.pi * radius)
        layers.append((radius, pad, share))
    return _peaks(layers)


def _thin_edges(outlines: Outlines) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of edge pixels: stronger than chance, and than their neighbors across the edge."""
    strength = outlines.strength
    rows, cols = np.mgrid[: strength.shape[0], : strength.shape[1]].astype(np.float32)
    ridge = np.ones(strength.shape, dtype=bool)
    ux, uy = outlines.normals
    for sign in (-1.0, 1.0):
        beside = cv2.remap(strength, cols + sign * ux, rows + sign * uy, cv2.INTER_LINEAR)
        ridge &= strength >= beside
    ridge[:2] = ridge[-2:] = False
    ridge[:, :2] = ridge[:, -2:] = False
    # A frame full of texture has edges everywhere; the strongest eighth is enough for any ball to show.
    floor = np.maximum(np.minimum(3.0 * outlines.noise, float(np.percentile(strength, 87.5))), 0.004)
    rows_of, cols_of = np.nonzero(ridge & (strength > floor))
    return rows_of, cols_of


def _visible_outline(radius: float, pad: int, frame: tuple[int, int]) -> NDArray[np.float32]:
    """For every center the length of the circle's outline inside the frame, coarsely."""
    height, width = frame
    shape = (height + 2 * pad, width + 2 * pad)
    coarse = (max(shape[0] // 4, 2), max(shape[1] // 4, 2))
    y = np.linspace(-pad, height + pad - 1, coarse[0])[:, None]
    x = np.linspace(-pad, width + pad - 1, coarse[1])[None, :]
    count = np.zeros(coarse, np.float32)
    for angle in np.linspace(0, 2 * np.pi, 32, endpoint=False):
        px, py = x + radius * np.cos(angle), y + radius * np.sin(angle)
        count += (px >= 0) & (px <= width - 1) & (py >= 0) & (py <= height - 1)
    length = cv2.resize(count, (shape[1], shape[0]), interpolation=cv2.INTER_LINEAR)
    return np.asarray(length * np.float32(2 * np.pi * radius / 32))


def _peaks(layers: Sequence[tuple[float, int, NDArray[np.float32]]]) -> list[tuple[float, Circle]]:
    found: list[tuple[float, Circle]] = []
    for radius, pad, share in layers:
        size = 2 * int(0.25 * radius) + 1
        highest = cv2.dilate(share, np.ones((size, size), np.uint8))
        y, x = np.nonzero((share >= highest) & (share > 0.25))
        order = np.argsort(-share[y, x])[:12]
        found += [
            (float(share[y[i], x[i]]), Circle(float(x[i] - pad), float(y[i] - pad), radius)) for i in order
        ]
    found.sort(key=lambda pair: -pair[0])
    kept: list[tuple[float, Circle]] = []
    for score, circle in found:
        if len(kept) == 24:
            break
        if not any(same_circle(circle, other) for _, other in kept):
            kept.append((score, circle))
    return kept


def same_circle(a: Circle, b: Circle) -> bool:
    """Whether two circles are the same but for a tenth of the radius."""
    return float(np.hypot(a.x - b.x, a.y - b.y)) + abs(a.radius - b.radius) < 0.1 * min(a.radius, b.radius)


#: Radii in pixels that one level of the pyramid looks for. Levels overlap: the pattern of a table drowns an outline in
#: small frames, noise in large ones.
_SMALLEST, _LARGEST = 9.0, 100.0
#: Frames are halved down to this width or height.
_COARSEST = 60.0
#: Smaller circles than this, in pixels of the photographs, are not searched.
LEAST_RADIUS = 16.0
#: Frames are halved until they have no more pixels than this before the search.
_MOST_PIXELS = 4_000_000
#: A circle of this radius is known well enough: finer levels would see the blur of the lens, not more of the edge.
_FINE_ENOUGH = 100.0
#: The share of the visible outline that has to be seen as an edge.
LEAST_COVERAGE = 0.5


def find_circles(images: FloatArray, *, most: int = 12, control: Control = SILENT) -> list[Circle]:
    """Circles in the photographs (d, H, W) of a stack, at most ``most``, those with the longest outlines first.

    Finds circles of 32 pixels' width and more (in frames above four megapixels of as much more as these are
    larger), even if up to half of the outline is outside the frame or invisible against the background.

    >>> rows, cols = np.mgrid[:90, :120]
    >>> disc = np.clip(25.5 - np.hypot(cols - 70.3, rows - 40.5), 0, 1)
    >>> circle = find_circles(np.stack([disc, 0.5 * disc, 0.8 * disc]))[0]
    >>> round(circle.x, 1), round(circle.y, 1), round(circle.radius, 1)
    (70.3, 40.5, 25.0)
    """
    if min(images.shape[1:]) < LEAST_RADIUS:  # not even half of a ball
        return []
    black = black_level(images)
    pyramid: list[Outlines] = []
    stack, scale = np.asarray(images, np.float32), 1.0
    while stack[0].size > _MOST_PIXELS:
        stack, scale = _halved(stack), 2.0 * scale
    first_scale = scale
    while True:
        pyramid.append(shared_outlines(stack, black=black, control=control))
        if min(stack.shape[1:]) < _COARSEST:
            break
        stack = _halved(stack)
    votes: list[tuple[float, int, Circle]] = []
    for level, outlines in enumerate(pyramid):
        control.check()
        last = level == len(pyramid) - 1
        largest = 1.2 * max(outlines.frame) if last else _LARGEST
        smallest = max(_SMALLEST, LEAST_RADIUS / 2**level / first_scale)
        votes += [(score, level, circle) for score, circle in vote_for_circles(outlines, smallest, largest)]
    votes.sort(key=lambda vote: -vote[0])
    found: list[Circle] = []
    for _, level, circle in votes[: 4 * most]:
        control.check()
        fitted = _refined(pyramid, level, circle)
        if fitted is not None and not any(same_circle(fitted, other) for other in found):
            found.append(fitted)
    found.sort(key=lambda circle: -circle.coverage * circle.radius)  # the most edges, not the smallest circle
    return [circle.scaled(first_scale) if first_scale != 1 else circle for circle in found[:most]]


def _refined(pyramid: Sequence[Outlines], level: int, guess: Circle) -> Circle | None:
    """The circle fitted from its level of the pyramid to the finest that improves it."""
    fitted: Circle | None = guess
    for finer in range(level, -1, -1):
        assert fitted is not None
        fitted = fit_circle(pyramid[finer], fitted, slack=0.12 if finer == level else 0.05)
        if fitted is None:
            return None
        if fitted.radius > _FINE_ENOUGH or not finer:
            break
        fitted = fitted.scaled(2.0)
    assert fitted is not None
    return fitted.scaled(2.0**finer) if finer else fitted


def close_up(
    images: FloatArray, circle: Circle, reach: float
) -> tuple[NDArray[np.float32], Circle, Callable[[Circle], Circle]]:
    """The photographs within ``reach`` of a circle's center, halved until no more of its edge can be seen.

    Also the circle there, and a function that takes circles back into the frame.
    """
    left, top = max(int(circle.x - reach), 0), max(int(circle.y - reach), 0)
    corner = np.array([left, top])
    stack = np.asarray(
        images[:, top : int(circle.y + reach) + 2, left : int(circle.x + reach) + 2], np.float32
    )
    local = replace(circle, x=circle.x - left, y=circle.y - top, points=circle.points - corner)
    scale = 1.0
    while local.radius > _FINE_ENOUGH:
        stack, local, scale = _halved(stack), local.scaled(0.5), 2 * scale

    def in_frame(found: Circle) -> Circle:
        found = found.scaled(scale)
        return replace(found, x=found.x + left, y=found.y + top, points=found.points + corner)

    return stack, local, in_frame


def circles_around(images: FloatArray, circle: Circle) -> list[Circle]:
    """Larger circles with the same center: a mirror shows the horizon as a circle inside its outline, and sharper."""
    stack, local, in_frame = close_up(images, circle, 1.9 * circle.radius)
    outlines = shared_outlines(stack, black=black_level(images))
    return [
        in_frame(outer)
        for ratio in np.arange(1.09, 1.8, 0.07)
        if (outer := fit_circle(outlines, Circle(local.x, local.y, ratio * local.radius), slack=0.05))
        and np.hypot(outer.x - local.x, outer.y - local.y) < 0.15 * local.radius
    ]


def fit_circle(
    outlines: Outlines, guess: Circle, *, slack: float = 0.12, least_coverage: float = LEAST_COVERAGE
) -> Circle | None:
    """The circle near ``guess`` on which most rays meet an edge, or None.

    ``slack`` is how far the outline may be from the guess, as a share of the radius.
    """
    circle = guess
    for width in (slack, 0.5 * slack, 0.25 * slack):
        reach = max(width * circle.radius, 2.0)
        rays, points, weights = _edges_along_rays(outlines, circle, reach)
        if len(np.unique(rays)) < 12:
            return None
        tolerance = max(0.75, 0.012 * circle.radius)
        better = _consensus(circle, rays, points, weights, tolerance)
        if better is None:
            return None
        circle = _tukey_fit(better, points, weights, tolerance)
        if not (np.isfinite(circle.radius) and circle.radius > 3):
            return None
    seen = visible_share(circle, outlines.frame)
    distance = np.abs(np.hypot(points[:, 0] - circle.x, points[:, 1] - circle.y) - circle.radius)
    near = distance < tolerance
    if near.sum() < 12 or seen < 0.3:
        return None
    total = max(round(_ray_count(circle.radius) * seen), 1)
    coverage = min(len(np.unique(rays[near])) / total, 1.0)
    if coverage < least_coverage:
        return None
    residual = float(np.sqrt(np.mean(distance[near] ** 2)))
    return Circle(circle.x, circle.y, circle.radius, coverage, residual, points[near])


def _halved(stack: NDArray[np.float32]) -> NDArray[np.float32]:
    rows, cols = stack.shape[1] // 2 * 2, stack.shape[2] // 2 * 2
    size = (cols // 2, rows // 2)
    return np.stack([cv2.resize(image[:rows, :cols], size, interpolation=cv2.INTER_AREA) for image in stack])


def _ray_count(radius: float) -> int:
    return int(np.clip(2 * np.pi * radius / 1.5, 72, 720))


def _edges_along_rays(
    outlines: Outlines, circle: Circle, reach: float
) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
    """Edges across the rays from the center, within ``reach`` of the circle: ray, point (x, y), strength."""
    angles = np.linspace(0, 2 * np.pi, _ray_count(circle.radius), endpoint=False)
    step = 0.5 if circle.radius < 200 else 1.0
    radii = np.arange(circle.radius - reach, circle.radius + reach + step, step)
    x = circle.x + radii[None] * np.cos(angles)[:, None]
    y = circle.y + radii[None] * np.sin(angles)[:, None]
    profile = outlines.across_rays(x, y, circle.x, circle.y)
    frame = outlines.frame
    profile[(x < 1) | (x > frame[1] - 2) | (y < 1) | (y > frame[0] - 2)] = 0
    middle = profile[:, 1:-1]
    usual = cv2.remap(
        outlines.noise, x[:, 1:-1].astype(np.float32), y[:, 1:-1].astype(np.float32), cv2.INTER_LINEAR
    )
    floor = np.clip(1.5 * usual, 0.002, 0.05)
    peak = (middle > floor) & (middle >= profile[:, :-2]) & (middle > profile[:, 2:])
    rays, places = np.nonzero(peak)
    left, top, right = profile[rays, places], middle[rays, places], profile[rays, places + 2]
    offset = 0.5 * (left - right) / np.minimum(left - 2 * top + right, -1e-12)
    radius = radii[places + 1] + step * np.clip(offset, -0.5, 0.5)
    points = np.stack(
        [circle.x + radius * np.cos(angles[rays]), circle.y + radius * np.sin(angles[rays])], axis=1
    )
    return rays, points, top.astype(np.float64)


def _consensus(
    circle: Circle, rays: NDArray[np.intp], points: FloatArray, weights: FloatArray, tolerance: float
) -> Circle | None:
    """Of circles through three edges each, the one on which most rays have an edge."""
    rng = np.random.default_rng(0)
    chance = np.sqrt(weights)
    chance = chance / chance.sum()
    triples = rng.choice(len(points), size=(240, 3), p=chance)
    centers, radii, good = _circles_through(points[triples])
    shift = np.hypot(centers[:, 0] - circle.x, centers[:, 1] - circle.y)
    good &= (shift < 0.3 * circle.radius) & (np.abs(radii / circle.radius - 1) < 0.3)
    if not good.any():
        return None
    centers, radii = centers[good], radii[good]
    centers, radii = np.vstack([centers, [[circle.x, circle.y]]]), np.append(radii, circle.radius)
    # Each ray counts once, with the strongest of its edges that lie on the circle; weak edges count less, but
    # not in proportion: half of a ball's outline may be ten times fainter than the other half.
    dx = points[None, :, 0] - centers[:, None, 0]
    dy = points[None, :, 1] - centers[:, None, 1]
    miss = np.abs(np.sqrt(dx * dx + dy * dy) - radii[:, None])
    value = np.where(miss < tolerance, (weights**0.25)[None], 0.0)
    first = np.flatnonzero(np.diff(rays, prepend=-1))  # points are in the order of their rays
    total = np.maximum.reduceat(value, first, axis=1).sum(axis=1)
    best = int(np.argmax(total))
    return Circle(float(centers[best, 0]), float(centers[best, 1]), float(radii[best]))


def _circles_through(points: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Circles through triples of points (n, 3, 2): centers, radii and which of them exist."""
    a, b, c = points[:, 0], points[:, 1], points[:, 2]
    ab, ac = b - a, c - a
    det = 2 * (ab[:, 0] * ac[:, 1] - ab[:, 1] * ac[:, 0])
    good = np.abs(det) > 1e-6
    safe = np.where(good, det, 1.0)
    sb, sc = (ab**2).sum(1), (ac**2).sum(1)
    offset = np.stack([ac[:, 1] * sb - ab[:, 1] * sc, ab[:, 0] * sc - ac[:, 0] * sb], axis=1) / safe[:, None]
    return a + offset, np.hypot(offset[:, 0], offset[:, 1]), good


def _tukey_fit(circle: Circle, points: FloatArray, strength: FloatArray, tolerance: float) -> Circle:
    """Gauss–Newton for the geometric circle, with Tukey's weights that forget edges beyond the tolerance."""
    x, y, radius = circle.x, circle.y, circle.radius
    for _ in range(20):
        dx, dy = points[:, 0] - x, points[:, 1] - y
        length = np.maximum(np.hypot(dx, dy), 1e-9)
        miss = length - radius
        weight = np.where(np.abs(miss) < 2 * tolerance, (1 - (miss / (2 * tolerance)) ** 2) ** 2, 0.0)
        weight = weight * np.sqrt(strength)
        design = np.stack([dx / length, dy / length, np.ones_like(dx)], axis=1)
        normal = design.T @ (weight[:, None] * design) + 1e-9 * np.eye(3)
        step = np.linalg.solve(normal, design.T @ (weight * miss))
        x, y, radius = x + step[0], y + step[1], radius + step[2]
        if np.abs(step).max() < 1e-4:
            break
    return Circle(float(x), float(y), float(radius))
