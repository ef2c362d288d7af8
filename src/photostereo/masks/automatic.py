"""Find the object in a stack of photographs, in front of black cloth or on a table.

The ground is whatever reaches the border of the frame (:mod:`.ground`). Pixels that clearly differ from it (brighter, of
another color, not following the lights as the ground does) give a first guess, their convex hull. Two steps then
alternate: learn how often each combination of clues is ground and object, and find the outline that is cheapest under
these odds and runs along edges (:func:`cheapest_outline`). Then the share of the object in the pixels of the outline is
estimated. If the object is a ball, its disc is used, since a mirror may look like the ground along half of
its outline; balls beside the object are removed from the mask.

References
----------
C. Rother, V. Kolmogorov, A. Blake, "GrabCut", 2004. doi:10.1145/1015706.1015720
T. Chan, S. Esedoglu, M. Nikolova, "Algorithms for finding global minimizers of image segmentation and denoising
models", 2006. doi:10.1137/040615286
A. Chambolle, T. Pock, "A first-order primal-dual algorithm for convex problems", 2011. doi:10.1007/s10851-010-0251-1
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from photostereo.core.control import SILENT, Control
from photostereo.core.conventions import BoolArray, Float32, FloatArray, Indices, gray_from_rgb
from photostereo.lights.ball.search import find_balls
from photostereo.masks.ground import Clues, clues, shrunk
from photostereo.masks.subject import has_structure, is_surface

#: A pixel farther than this many times the ground's spread from the ground's median is certainly not ground.
CERTAIN = 3.0
#: Ratio of the distances from the median at which the last tenth and the last quarter of a bell curve begin.
TENTH_PER_QUARTER = 1.9
# Weights relative to the length of the outline.
#: Weight of the odds.
ODDS = 0.05
#: Weight of the first guess.
GUESS = 0.05
#: Weight of pixels that are certainly not ground.
EVIDENCE = 0.1
#: Limit of the odds (natural logarithm): the photographs are never more certain than that.
MOST_ODDS = 3.0
#: Rounds of learning and cutting.
TURNS = 4
#: Histogram bins along each clue.
CELLS = 24
#: Parts with less than this share of the largest one's area or light are specks.
SPECK = 0.02
#: Holes below this share of the object are filled as dark spots.
SPOT = 0.003
#: Larger ones below this share stay if they look like ground.
HOLE = 0.02
#: Number of photographs to search for balls.
BALL_FRAMES = 8
#: Pixels of these photographs.
BALL_PIXELS = 120_000
#: Pixels on either side of an outline that may be mixed. On 112 rendered tables 2.5 changes the mean overlap by -0.001.
BAND = 1.5
#: Quantile over the photographs that bound the object's share from below. On these tables 0.7 and 0.9 change the mean
#: overlap by -0.0005 and 0.0003.
BOUND = 0.8
#: A ball that covers less than this share of the frame may lie beside a surface; one that is photographed for itself is
#: larger.
BALL_BESIDE = 0.1
#: A ball is the object if it has this share of the light in the mask.
IS_THE_OBJECT = 0.7
#: Step of the descent: its square times 8, the bound of the gradient's norm, is below 1.
STEP = 0.35
#: Frames are halved until their shorter side is below this.
COARSEST = 40
#: Iterations on coarse levels, where an outline may still move far.
COARSE_ITERATIONS = 150
#: Iterations on the finest level, where it does not.
FINE_ITERATIONS = 60


@dataclass(frozen=True, eq=False)
class FoundObject:
    """An object in photographs."""

    mask: BoolArray  #: (H, W) bool; all False if nothing stands out from the border
    doubt: str = ""  #: why it may be wrong; "" if it is certain
    #: whether the photographs rather show a surface that fills the frame (:mod:`.subject`)
    is_surface: bool = False
    #: (H, W) balls that lie on the surface or beside it; empty if none were found
    balls: BoolArray = field(default_factory=lambda: np.zeros((1, 1), bool))


def find_object(
    frames: Iterable[NDArray[Any]], *, without: BoolArray | None = None, control: Control = SILENT
) -> FoundObject:
    """Find the object in photographs, or recognize a surface that fills the frame.

    Detection fails if the object reaches most of the frame's border, if it lies flat and has the color and brightness of
    its ground, or if its edge is as black as the ground; ``doubt`` reports most of these cases.

    Parameters
    ----------
    frames : iterable of (H, W) or (H, W, 3) arrays
        Photographs; color helps, and two dozen are enough.
    without : (H, W) bool array, optional
        Balls beside the object, which are excluded.
    control : Control
        Can cancel the work.
    """
    stack, shape = shrunk(frames, control=control)
    out = np.zeros(stack.shape[1:3], dtype=bool)
    if without is not None:
        share = cv2.resize(
            without.astype(np.float32), out.shape[::-1], interpolation=cv2.INTER_AREA
        )
        out = share > 0
    known = clues(stack, out)
    if known is None:
        return FoundObject(np.zeros(shape, dtype=bool), "the photographs are black")
    mask, odds = _cut_out(known, out, control)
    is_ball = False
    if not out.any():
        mask, is_ball = _with_balls(mask, stack, known.light, control)
    if is_ball and mask.mean() < BALL_BESIDE and _is_beside_a_surface(mask, stack, control):
        ball = cv2.dilate(mask.astype(np.uint8), np.ones((5, 5), np.uint8))
        ball = cv2.resize(ball, shape[::-1], interpolation=cv2.INTER_NEAREST)
        return FoundObject(np.zeros(shape, bool), is_surface=True, balls=ball > 0)
    soft = mask.astype(np.float32)
    if not is_ball:
        for _ in range(2):
            soft = _matte(soft > 0.5, stack, out)
    return FoundObject(
        mask=cv2.resize(soft, shape[::-1], interpolation=cv2.INTER_LINEAR) > 0.5,
        doubt=_doubt(mask, odds, known),
        is_surface=not is_ball and is_surface(mask, known),
    )


def _is_beside_a_surface(ball: BoolArray, stack: Float32, control: Control) -> bool:
    """Whether a ball lies on or beside a textured surface that fills the frame, rather than on an even ground."""
    out = cv2.dilate(ball.astype(np.uint8), np.ones((7, 7), np.uint8)) > 0
    known = clues(stack, out)
    if known is None or not has_structure(known):
        return False
    mask, _ = _cut_out(known, out, control)
    return is_surface(mask & ~out, known)


def _matte(mask: BoolArray, stack: Float32, out: BoolArray) -> Float32:
    """Estimate the share of the object in each pixel along its outline: above one half is object.

    Such a pixel mixes object and ground from either side; a cut calls it object, because it is not ground. Each
    photograph bounds the share. Shadows on the ground and the darker rim of the object make it too small if the object is
    brighter than the ground, and too large otherwise.
    """
    soft = mask.astype(np.float32)
    parts = (mask.astype(np.uint8), (~mask).astype(np.uint8))
    inside, outside = (cv2.distanceTransform(part, cv2.DIST_L2, 5) - 0.5 for part in parts)
    cores = [(inside > BAND).astype(np.float32), ((outside > BAND) & ~out).astype(np.float32)]
    reach = [cv2.GaussianBlur(core, (0, 0), BAND) for core in cores]
    band = (np.maximum(inside, outside) <= BAND) & (np.minimum(*reach) > 1e-4)
    shares, contrast = np.empty((2, len(stack), np.count_nonzero(band)), np.float32)
    for image, share, squares in zip(stack, shares, contrast, strict=True):
        pixels = np.atleast_3d(image)
        near, far = (
            np.atleast_3d(cv2.GaussianBlur(pixels * core[..., None], (0, 0), BAND))[band]
            / blurred[band, None]
            for core, blurred in zip(cores, reach, strict=True)
        )
        squares[:] = ((near - far) ** 2).sum(axis=1)
        share[:] = ((pixels[band] - far) * (near - far)).sum(axis=1) / np.maximum(squares, 1e-12)
        squares *= np.sign((near - far).sum(axis=1))
    order = np.argsort(shares, axis=0)
    shares, contrast = (np.take_along_axis(part, order, 0) for part in (shares, contrast))
    share, total = np.zeros((2, shares.shape[1]), np.float32)
    for weights, quantile in (
        (np.maximum(contrast, 0), BOUND),
        (np.maximum(-contrast, 0), 1 - BOUND),
    ):
        heaped = np.cumsum(weights, axis=0)
        place = np.argmax(heaped >= quantile * heaped[-1], axis=0)
        weight = heaped[-1] ** 0.25  # both count unless one has little contrast
        share += weight * np.clip(np.take_along_axis(shares, place[None], 0)[0], 0, 1)
        total += weight
    soft[band] = np.where(total > 0, share / np.maximum(total, 1e-30), soft[band])
    return soft


def _cut_out(known: Clues, out: BoolArray, control: Control) -> tuple[BoolArray, FloatArray]:
    """Cut out the object, without specks and with its dark spots; also return the odds, as :func:`_cut` does."""
    mask, odds = _cut(known, out, control)
    if mask.any():
        mask = _whole(mask, odds, known.light)
    return mask & ~out, odds


def _cut(known: Clues, out: BoolArray, control: Control) -> tuple[BoolArray, FloatArray]:
    """Return the object and the odds (negative: object) from which it was cut; ``out`` is neither object nor ground."""
    difference = _difference(known)
    certain = (difference > CERTAIN) & ~out
    settled = (known.border & ~certain) | out
    length = (0.02 + 1 / (1 + (known.edges / max(float(known.edges.mean()), 1e-6)) ** 2)).astype(
        np.float32
    )
    guess = np.where(_hull(certain, known.light), -GUESS, GUESS)
    half = 0.5 * CERTAIN
    cost = np.where(
        difference < half, guess, -(np.clip(difference, half, CERTAIN) - half) / CERTAIN
    )
    odds = cost
    found = cheapest_outline(np.where(settled, 1.0, cost).astype(np.float32), length)
    for _ in range(TURNS):
        control.check()
        if found.all() or not found.any():
            break
        odds = _likelier(known.level, known.strangeness, found, ~found & ~out)
        if known.color is not None:
            odds = odds + _likelier(known.color[..., 0], known.color[..., 1], found, ~found & ~out)
        odds = np.clip(odds, -MOST_ODDS, MOST_ODDS)
        cost = np.where(certain, np.minimum(ODDS * odds, -EVIDENCE), ODDS * odds)
        found = cheapest_outline(np.where(settled, 1.0, cost).astype(np.float32), length)
    return found, odds


def _difference(known: Clues) -> FloatArray:
    """Difference of each pixel from the ground at the border, in units of the ground's spread."""
    border = known.border

    def beyond(clue: FloatArray, least: float) -> FloatArray:
        middle, upper = np.percentile(
            clue[border], [50, 75]
        )  # a quarter of the border may be something else
        return np.asarray((clue - middle) / max(TENTH_PER_QUARTER * (upper - middle), least))

    different = np.maximum(beyond(known.level, 0.2), beyond(known.strangeness, 0.2))
    if known.color is not None:
        apart = np.linalg.norm(known.color - np.median(known.color[border], axis=0), axis=-1)
        different = np.maximum(
            different, apart / max(1.3 * float(np.percentile(apart[border], 75)), 0.1)
        )
    return np.asarray(different)


def _likelier(
    one: FloatArray, other: FloatArray, found: BoolArray, ground: BoolArray
) -> FloatArray:
    """Log-likelihood ratio of two clues of each pixel, ground over object, from their histograms so far."""

    def cells(clue: FloatArray) -> Indices:
        low, high = np.percentile(clue, [0.5, 99.5])
        place = (clue - low) / max(high - low, 1e-6) * (CELLS - 1) + 0.5
        return np.asarray(np.clip(place, 0, CELLS - 1), dtype=np.intp)

    cell = CELLS * cells(one) + cells(other)

    def frequency(where: BoolArray) -> FloatArray:
        count = (
            np.bincount(cell[where], minlength=CELLS**2).reshape(CELLS, CELLS).astype(np.float64)
        )
        smooth = cv2.GaussianBlur(count, (0, 0), 1.0, borderType=cv2.BORDER_REPLICATE)
        return np.asarray(smooth / max(smooth.sum(), 1) + 1e-4)

    odds = np.log(frequency(ground) / frequency(found)).ravel()
    return np.asarray(odds[cell])


def _without_specks(mask: BoolArray, light: FloatArray) -> BoolArray:
    """Remove thin parts, and those that are small or dark compared with the largest."""
    opened = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    count, labels = cv2.connectedComponents(opened, connectivity=8)
    areas = np.bincount(labels.ravel(), minlength=count).astype(np.float64)
    lights = np.bincount(labels.ravel(), weights=light.ravel(), minlength=count)
    areas[0] = lights[0] = 0
    main = int(np.argmax(lights))
    keep = (areas >= SPECK * areas[main]) & (lights >= SPECK * lights[main])
    return np.asarray(keep[labels] & (opened > 0))


def _hull(certain: BoolArray, light: FloatArray) -> BoolArray:
    points = np.argwhere(_without_specks(certain, light))[:, ::-1].astype(np.int32)
    canvas = np.zeros(certain.shape, np.uint8)
    if len(points) >= 3:
        cv2.fillConvexPoly(canvas, cv2.convexHull(points), 1)
    return canvas > 0


def _whole(mask: BoolArray, odds: FloatArray, light: FloatArray) -> BoolArray:
    """Remove specks and fill dark spots; keep holes that show the ground."""
    mask = _without_specks(mask, light)
    outside = np.pad((~mask).astype(np.uint8), 1, constant_values=1)
    count, labels = cv2.connectedComponents(outside, connectivity=4)
    outer = labels[0, 0]
    labels = labels[1:-1, 1:-1]
    areas = np.bincount(labels.ravel(), minlength=count)
    like_ground = np.bincount(labels.ravel(), weights=(odds > 0).ravel(), minlength=count)
    fill = (areas < SPOT * mask.sum()) | ((areas < HOLE * mask.sum()) & (like_ground < 0.5 * areas))
    fill[outer] = False
    return np.asarray(mask | (fill[labels] & ~mask))


def _with_balls(
    mask: BoolArray, stack: Float32, light: FloatArray, control: Control
) -> tuple[BoolArray, bool]:
    """Remove balls beside the object from the mask, or return a ball's disc; also whether the object is a ball."""
    some = stack[:: max(1, len(stack) // BALL_FRAMES)]
    gray, _ = shrunk(
        (gray_from_rgb(image) if image.ndim == 3 else image for image in some), BALL_PIXELS
    )
    total = float(light[mask].sum())
    balls = find_balls(gray, control=control)
    for ball in balls:
        circle = ball.circle.scaled(mask.shape[0] / gray.shape[1])
        disc = circle.inside(mask.shape)
        inside = float(light[mask & disc].sum())
        alone = len(balls) == 1 and not mask.any()
        if alone or (inside > IS_THE_OBJECT * total and disc.sum() > 0.5 * mask.sum()):
            return disc, True
        around = circle.inside(mask.shape, share=1.3) & ~circle.inside(mask.shape, share=1.1)
        if around.any() and mask[around].mean() < 0.4 and (mask & ~disc).any():  # it stands alone
            mask = mask & ~circle.inside(mask.shape, share=1.05)
    return mask, False


def _doubt(mask: BoolArray, odds: FloatArray, known: Clues) -> str:
    if not mask.any():
        return "nothing stands out from the border"
    if mask.mean() > 0.9:
        return "it fills the frame"
    if mask.mean() < 0.01:
        return "it is small"
    touching = float(mask[known.border].mean())
    if touching > 0.3:
        return f"it reaches {100 * touching:.0f} % of the frame's border"
    unlike = float((odds[mask] > 0.5).mean())
    if unlike > 0.15:
        return f"{100 * unlike:.0f} % of it looks like the ground"
    return ""


def cheapest_outline(cost: Float32, length: Float32) -> BoolArray:
    """The cheapest outline in a picture: a graph cut by its convex relaxation.

        minimize  Σ length · |∇u| + Σ cost · u    over  0 ≤ u ≤ 1

    ``cost`` is the cost of labeling a pixel as object (negative where it looks like one), ``length`` the cost of a unit of
    outline there (small on an edge). Every level set of a minimizer is an optimal outline, so cutting u at one half solves
    the combinatorial problem, without the corners of a pixel grid. Solved by primal–dual descent from coarse to fine.
    """
    levels = [(np.asarray(cost, np.float32), np.asarray(length, np.float32))]
    while min(levels[-1][0].shape) > COARSEST:
        height, width = levels[-1][0].shape
        # A coarse pixel covers four, a piece of its outline two: the costs weigh twice as much.
        coarse_cost, coarse_length = (
            cv2.resize(part, (width // 2, height // 2), interpolation=cv2.INTER_AREA)
            for part in levels[-1]
        )
        levels.append((2 * coarse_cost, coarse_length))
    u = np.asarray(levels[-1][0] < 0, np.float32)
    for number, (level_cost, level_length) in reversed(list(enumerate(levels))):
        if u.shape != level_cost.shape:
            u = cv2.resize(u, level_cost.shape[::-1], interpolation=cv2.INTER_LINEAR)
        iterations = COARSE_ITERATIONS if number or len(levels) == 1 else FINE_ITERATIONS
        u = _descend(u, level_cost, level_length, iterations)
    return np.asarray(u > 0.5)


def _descend(u: Float32, cost: Float32, length: Float32, iterations: int) -> Float32:
    """Steps of the primal–dual descent from u (0 to 1), with the dual variables at zero."""
    # Compiled, it would take four fifths of the time.
    step = np.float32(STEP)
    ahead = u
    right = np.zeros_like(u)
    down = np.zeros_like(u)
    for _ in range(iterations):
        right[:, :-1] += step * np.diff(ahead, axis=1)
        down[:-1] += step * np.diff(ahead, axis=0)
        norm = np.sqrt(right * right + down * down)
        shrink = np.divide(length, norm, out=np.ones_like(u), where=norm > length)
        right *= shrink
        down *= shrink
        divergence = right + down
        divergence[:, 1:] -= right[:, :-1]
        divergence[1:] -= down[:-1]
        new = np.clip(u + step * (divergence - cost), np.float32(0), np.float32(1))
        ahead = 2 * new - u
        u = new
    return u
