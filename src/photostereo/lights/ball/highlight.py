"""Locate the highlight of the light on a shiny ball, in each photograph, to a fraction of a pixel.

A ball mirrors the whole room: windows, the table, the object, a light that is always on. All of these stay in
place. Only the highlight moves with the light, so each pixel is compared with its values in the other
photographs:

    moving_i(p) = max(0, I_i(p) - k_i median_j I_j(p))

with k_i ≥ 1 if a stronger light makes the mirrored table brighter as a whole.
The highlight is the patch of ``moving_i`` above half of its peak; its middle is the patch's centroid. A saturated
highlight is a flat patch, often with rays of glare; these are thin, so they are removed by opening the patch with
most of the largest disc that fits into it. Parts of a double highlight (two tubes, a glass ball) are one patch if they
are closer than a light's width.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.lights.ball.geometry import Circle

#: Highlights are searched within this share of the radius: farther out a mirror shows the scene behind it.
_REACH = 0.97
#: Patches closer than this share of the radius are one highlight (about 6 degrees of light).
_TOGETHER = 0.06
#: For a patch of fewer pixels, the slopes around it carry most of the information on its position.
_SMALL = 40
#: A patch with more than this many times the area of the largest disc inside it has rays.
_COMPACT = 2.0
#: A second patch with this share of the first one's peak and mass is a second light.
_RIVAL = 0.5
#: A highlight rises above this many deviations of the noise.
_ABOVE_NOISE = 6.0
#: A highlight has at least this share of the typical peak; less is a reflection of something else.
_FAINT = 0.25


@dataclass(frozen=True, eq=False)
class Highlights:
    """Highlights of one ball, one per photograph (NaN if there is none)."""

    #: x, y: (d,) middles, columns and rows
    x: FloatArray
    y: FloatArray
    peak: FloatArray  #: (d,) brightness above the room
    area: FloatArray  #: (d,) pixels above half of the peak, as a share of the ball's disc
    spread: FloatArray  #: (d,) root mean square extent in pixels
    rival: (
        FloatArray  #: (d,) brightness of the next patch as a share of this one, 0 if there is none
    )
    contrast: FloatArray  #: (d,) peak over the room's brightness there
    noise: float = 0.0  #: standard deviation of a pixel of the ball

    @property
    def found(self) -> BoolArray:
        """Which photographs have a highlight."""
        return np.isfinite(self.x)

    def compactness(self, circle: Circle) -> float:
        """Return the typical squared extent of the highlights, relative to that of discs of the same area.

        It is 1 for a disc, and about 2 for the blurred spot of a small lamp. Glints of a coin or of letters consist of
        scattered parts.
        """
        area = self.area[self.found] * np.pi * circle.radius**2
        return float(np.median(2 * np.pi * self.spread[self.found] ** 2 / area))

    def uneven(self, circle: Circle) -> float:
        """Return the standard deviation of the logarithm of the area, without the foreshortening of a sphere."""
        place = np.hypot(self.x - circle.x, self.y - circle.y)[self.found] / circle.radius
        facing = np.sqrt(np.maximum(1 - place**2, 0.05))
        return float(np.std(np.log(self.area[self.found] / facing)))

    @property
    def two_lights(self) -> BoolArray:
        """Which photographs show a second highlight that moves and is nearly as strong."""
        return np.asarray(self.found & (self.rival > _RIVAL))


def find_highlights(images: FloatArray, circle: Circle) -> Highlights:
    """Find the highlight of the moving light inside a circle, for each photograph (d, H, W)."""
    count, reach = len(images), circle.radius + 2
    dx, dy = max(int(circle.x - reach), 0), max(int(circle.y - reach), 0)
    stack = np.asarray(
        images[:, dy : int(circle.y + reach) + 2, dx : int(circle.x + reach) + 2], np.float32
    )
    local = Circle(circle.x - dx, circle.y - dy, circle.radius)
    disc = local.inside(stack.shape[1:], share=_REACH)
    # With few photographs the median may show the light itself: then the second darkest is used.
    room = np.partition(stack, (count - 1) // 2, axis=0)[(count - 1) // 2]
    size = max(0.6, 0.004 * circle.radius)
    table = np.full((count, 7), np.nan)
    noise = _noise(stack, room, disc)
    left_of_noise = noise / (2 * np.sqrt(np.pi) * size)  # after smoothing
    telling = disc & (room > max(4.0 * noise, 1e-4 * float(room.max()), 1e-9))
    for number, image in enumerate(stack):
        brighter = float(np.median(image[telling] / room[telling])) if telling.sum() > 50 else 1.0
        still = np.float32(max(brighter, 1.0)) * room
        moving = np.where(disc, np.maximum(image - still, 0), 0).astype(np.float32)
        smooth = cv2.GaussianBlur(moving, (0, 0), size)
        smooth[~disc] = 0
        table[number] = _measure(smooth, still, local, left_of_noise)
    x, y, peak, area, spread, rival, contrast = table.T
    if np.isfinite(peak).any():
        faint = ~(peak > _FAINT * np.nanmedian(peak))
        x, y = np.where(faint, np.nan, x), np.where(faint, np.nan, y)
    return Highlights(x + dx, y + dy, peak, area, spread, rival, contrast, noise)


def _noise(stack: FloatArray, room: FloatArray, disc: BoolArray) -> float:
    """Return the standard deviation of a pixel, from differences of neighbors that the room does not explain.

    Four in five differences lie below 1.81 deviations; the median would be zero if a sensor clips noise at black.
    """
    step = np.abs(np.diff(stack - room, axis=2))[:, disc[:, 1:]]
    return float(np.quantile(step, 0.8)) / 1.812 if step.size else 0.0


def _measure(smooth: FloatArray, room: FloatArray, ball: Circle, noise: float) -> list[float]:
    """Return x, y, peak, area, spread, rival, contrast; NaN if nothing rises above the noise."""
    top = float(smooth.max())
    if top <= _ABOVE_NOISE * noise or top <= 0:
        return [np.nan] * 5 + [0.0, np.nan]
    binary = (smooth > 0.5 * top).astype(np.uint8)
    # Parts of one light are joined before they are separated from other reflections.
    gap = 2 * int(max(_TOGETHER * ball.radius, 1.0) / 2) + 1
    joined = cv2.dilate(binary, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (gap, gap)))
    labels_of, labels = cv2.connectedComponents(joined, connectivity=8)
    labels = np.where(binary > 0, labels, 0)

    def total(weights: FloatArray) -> FloatArray:
        flat = weights.reshape(-1).astype(np.float64)
        return np.asarray(np.bincount(labels.reshape(-1), flat, labels_of), np.float64)

    mass, pixels = total(smooth), total(np.ones_like(smooth))
    mass[0] = 0
    peak = np.array([smooth[labels == k].max() if k else 0.0 for k in range(labels_of)])
    # The light is the brightest thing in the room, and if several reach white, the largest of them. It brightens
    # pixels that are otherwise dark; a bright wall that becomes a little brighter is not a light.
    dark = total(smooth / np.maximum(smooth + room, 1e-12))
    score = peak * np.sqrt(np.maximum(mass, 0)) * dark / np.maximum(pixels, 1)
    best = int(np.argmax(score))
    x, y, spread = _centroid(smooth, labels == best)
    contrast = float(peak[best] / (float(room[labels == best].mean()) + 4.0 * noise + 1e-9))
    rival = 0.0
    others = np.flatnonzero(
        (np.arange(labels_of) != best) & (mass > 0) & (peak > _ABOVE_NOISE * noise)
    )
    if len(others):
        other = int(others[np.argmax(score[others])])
        rival = float(min(mass[other] / mass[best], peak[other] / peak[best]))
    area = float(pixels[best] / (np.pi * ball.radius**2))
    return [x, y, float(peak[best]), area, spread, rival, contrast]


def _centroid(moving: FloatArray, patch: BoolArray) -> tuple[float, float, float]:
    """Return center and extent of a patch without its rays of glare; for a small one, with the slopes around it."""
    if patch.sum() < _SMALL:
        _, labels = cv2.connectedComponents((moving > 0.15 * moving[patch].max()).astype(np.uint8))
        wider = np.isin(labels, np.unique(labels[patch]))
        patch = wider if wider.sum() < 4 * _SMALL else patch
    patch = _without_rays(patch)
    rows, cols = np.nonzero(patch)
    weight = moving[rows, cols].astype(np.float64)
    weight /= weight.sum()
    x, y = float(weight @ cols), float(weight @ rows)
    spread = float(np.sqrt(weight @ ((cols - x) ** 2 + (rows - y) ** 2)))
    return x, y, spread


def _without_rays(patch: BoolArray) -> BoolArray:
    """Open the patch with a disc of 0.7 of the largest that fits into it; compact patches are unchanged."""
    depth = cv2.distanceTransform(
        np.pad(patch, 1).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE
    )
    widest = float(depth.max())
    if widest < 4.0 or patch.sum() < _COMPACT * np.pi * widest**2:
        return patch
    radius = 0.7 * widest
    core = (depth > radius).astype(np.uint8)
    beside = cv2.distanceTransform(1 - core, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    return np.asarray(patch & (beside <= radius)[1:-1, 1:-1])


#: A shiny ball: its highlight is found in this share of the photographs, ...
SHINY_FOUND = 0.7
#: ... covers at most this share of its disc (true balls: at most 0.011), ...
_SHINY_AREA = 0.03
#: ... moves by this share of the radius, ...
_SHINY_WANDER = 0.06
#: ... is this many times as bright as the surface around it, and has this share of the bright level of the frame.
_SHINY_LIGHT = (3.0, 0.2)
#: If a small highlight moves far over a complete outline in nearly every photograph, this is enough.
_FAINTER_LIGHT = (2.0, 0.1)
#: A complete outline: at least this share of it is seen as an edge.
_CERTAIN_COVERAGE = 0.85
#: Nearly every photograph: at least this share of them.
_CERTAIN_FOUND = 0.9
#: A small highlight: at most this share of the disc.
_CERTAIN_AREA = 0.01
#: Far: the standard deviation of its place, as a share of the radius.
_CERTAIN_WANDER = 0.15
#: A highlight of this many pixels is small on any ball: the blur of the lens.
_SPECK = 12.0
#: Highlights of a sphere are compact (true balls: at most 2.4; coins, scrolls and letters: 5 to 20), ...
_COMPACT_SPOT = 4.5
#: ... of one size (true balls: at most 0.53, those of few pixels; other things: up to 1.2), ...
_ONE_SIZE = 0.7
#: ... of this extent (root mean square, as a share of the radius; true balls: at most 0.07) or as small as the blur of
#: the lens, in pixels, ...
_WIDEST_SPOT = 0.09
_BLURRED_SPOT = 1.5
#: ... and single: a second one with this share of its light in so many of the photographs is relief that glitters.
_SECOND_SPOT = 0.3
_MOST_SECOND = 0.45


def is_shiny(highlights: Highlights, circle: Circle, *, bright: float) -> bool:
    """Return whether the highlights are those of a shiny ball: small, moving, and as bright on a dark surface as only a
    light is. ``bright`` is the bright level of the frame."""
    found = highlights.found
    if found.sum() < 3 or found.mean() < SHINY_FOUND:
        return False
    wander = (
        float(np.hypot(np.std(highlights.x[found]), np.std(highlights.y[found]))) / circle.radius
    )
    area, contrast, peak = (
        float(np.median(part[found]))
        for part in (highlights.area, highlights.contrast, highlights.peak)
    )
    is_certain = (
        circle.coverage > _CERTAIN_COVERAGE
        and found.mean() >= _CERTAIN_FOUND
        and area < max(_CERTAIN_AREA, _SPECK / (np.pi * circle.radius**2))
        and wander > _CERTAIN_WANDER
    )
    least_contrast, least_peak = _FAINTER_LIGHT if is_certain else _SHINY_LIGHT
    like_a_light = contrast > least_contrast and peak > least_peak * bright
    moves = area < _SHINY_AREA and wander > _SHINY_WANDER
    return like_a_light and moves and _as_on_a_sphere(highlights, circle)


def _as_on_a_sphere(highlights: Highlights, circle: Circle) -> bool:
    """Return whether the highlights have the shape, the size and the number that a smooth sphere shows."""
    spread = float(np.median(highlights.spread[highlights.found]))
    second = float((highlights.rival[highlights.found] > _SECOND_SPOT).mean())
    return bool(
        highlights.compactness(circle) < _COMPACT_SPOT
        and highlights.uneven(circle) < _ONE_SIZE
        and spread < max(_WIDEST_SPOT * circle.radius, _BLURRED_SPOT)
        and second <= _MOST_SECOND
    )


#: In a circle that the user marked, a patch below this share of the disc is a highlight; a larger one is shading.
_MARKED_AREA = 0.1


def looks_shiny(highlights: Highlights) -> bool:
    """Return whether a circle that is known to be a ball shows a highlight rather than shading."""
    found = highlights.found
    return bool(found.mean() > 0.5 and np.median(highlights.area[found]) < _MARKED_AREA)
