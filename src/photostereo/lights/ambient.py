"""Estimate room light in captures without a photograph taken with the light off.

Where the surface faces away from the light, only other light reaches the camera: room light or bounced light. The share
of room light in a pixel's mean brightness is nearly the same everywhere. The other light counts as room light if its
share is large, and if either a matte surface fits the photographs much better without it, or it is the same in all
shadows: bounced light and gloss are local and satisfy neither.

It is subtracted only if shadows prove it: where the surface turns away from a light, its brightness stays at that of the
room, while that of a surface without shadows would go on falling. Without this proof room light cannot be told from a
gentle slope, above all if all lights have the same height: then a constant brightness is that of a steeper light.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray, gray_from_rgb
from photostereo.lights.thumbnail import bright_enough, matte_fit, shrink

#: Cosine below which the surface certainly faces away from a light.
AWAY = -0.15
#: Minimum number of cells in shadow, counted over the photographs.
FEWEST = 100
#: Fewer lights are explained by any surface and any room light.
FEWEST_LIGHTS = 6
#: The estimate starts from this quantile of the pixels' minimum over their mean brightness.
DARKEST = 0.02
#: Rounds of fit and estimate; the share settles within 1 % of itself.
ROUNDS = 4
#: Room light has at least this share of the mean brightness. At 0.05 the same captures are corrected.
SHARE = 0.08
#: More than this is not subtracted. In 400 rings of lights above glossy sheets, without room light, the false estimates are
#: 0.22 to 0.76, most of them above this; rendered objects with half as much light from the room as from the lamp have 0.33.
LARGEST = 0.4
#: Without room light the misfit of a matte surface falls to this share or less. Six captures of DiLiGenT and three others
#: without room light leave 0.81 of it or more, rendered ones with 15 % of room light 0.7 or less. At 0.6 the same captures
#: are corrected.
MISFIT_LEFT = 0.7
#: Light is the same in all shadows if their 10th percentile is at least this share of their median. Nine captures without
#: room light have 0.4 to 0.56, rendered ones with 10 to 50 % of it 0.87 to 0.99; 0.65 and 0.85 correct the same ones.
EVEN = 0.8
#: Shadows prove room light if they leave at most this share of the misfit of a surface without shadows. Rendered objects
#: leave 0 to 0.5, those false estimates mostly 0.4 to 1.
PROVED = 0.6
#: Lights have one height if the smallest singular value of their differences is below this share of the largest.
ONE_HEIGHT = 0.1
#: A share that nothing proves is unlikely to be true. The doubt is the effect of this share, if it is smaller.
DOUBTED = 0.1
#: Pixels show the color of room light if their darkest value is less than this multiple of it.
#: From 1.1 to 2 the color changes by 2 % at most.
SHADED = 1.2
#: They also have a mean above this share of the brightest. From 0.03 to 0.3 the color changes by 2 % at most.
BRIGHT = 0.1


@dataclass(frozen=True)
class RoomLight:
    """Share of the brightness that comes from the room."""

    share: float  #: of the mean brightness of a pixel
    misfit_left: float  #: share of a matte surface's misfit that remains without it
    evenness: float  #: brightness of the shadows, 10th percentile over median
    #: misfit of the shaded pixels over that of a surface without shadows, under any room light
    shadows_left: float = 0.0
    one_height: bool = False  #: whether all lights have the same height over some plane
    effect: float = 0.0  #: degrees by which it may turn a typical normal, if it is not subtracted

    @property
    def is_possible(self) -> bool:
        """Whether there may be room light."""
        fits = self.misfit_left <= MISFIT_LEFT
        return self.share >= SHARE and (fits or self.evenness >= EVEN)

    @property
    def is_proved(self) -> bool:
        """Whether shadows prove it."""
        fits = self.misfit_left <= MISFIT_LEFT and not self.one_height
        is_like_room = fits or self.evenness >= EVEN
        return self.share >= SHARE and is_like_room and self.shadows_left <= PROVED

    @property
    def is_certain(self) -> bool:
        """Whether the room light may be subtracted."""
        return self.is_proved and self.share <= LARGEST


def estimate_room_light(
    images: FloatArray, lights: FloatArray, mask: BoolArray, strengths: FloatArray | None = None
) -> RoomLight | None:
    """Estimate room light from the shadows of an object.

    Parameters
    ----------
    images : (d, H, W) array
        Photographs in gray, not divided by the strengths of the lights.
    lights : (d, 3) array
        Directions to the lights.
    mask : (H, W) array of bool
        True on the object.
    strengths : (d,) array, optional
        Strengths of the lights; by default they are equal.

    Returns
    -------
    RoomLight or None
        None if the object has no shadows.
    """
    if len(lights) < FEWEST_LIGHTS or not mask.any():
        return None
    values = shrink(images, mask).values
    values = values[:, bright_enough(values)]
    if not values.size:
        return None
    strong = np.ones((len(lights), 1)) if strengths is None else np.asarray(strengths)[:, None]
    mean = values.mean(axis=0)

    def surface(share: float) -> FloatArray:
        """Scaled normals (N, 3) with this share subtracted."""
        return matte_fit(np.maximum(values - share * mean, 0) / strong, lights)[0]

    def squares(share: float, normals: FloatArray) -> FloatArray:
        """Squared misfit (N,) of each pixel."""
        left = np.maximum(values - share * mean, 0) / strong
        return np.asarray(((left - np.maximum(lights @ normals.T, 0)) ** 2).sum(axis=0))

    def misfit(share: float, normals: FloatArray) -> float:
        energy = np.maximum(((values / strong) ** 2).sum(axis=0), 1e-30)
        return float(np.median(squares(share, normals) / energy))

    def shaded(normals: FloatArray) -> BoolArray:
        """Which entries (d, N) are in shadow."""
        lengths = np.maximum(np.linalg.norm(normals, axis=1), 1e-12)
        return np.asarray(lights @ normals.T < AWAY * lengths)

    # Strong room light makes a surface look flat, as if it had no shadows, unless some of it is subtracted first.
    share = max(0.0, float(np.quantile(values.min(axis=0) / mean, DARKEST)))
    for _ in range(ROUNDS):
        shadows = shaded(surface(share))
        if shadows.sum() < FEWEST:
            return None
        darkest, share = np.quantile((values / mean)[shadows], (0.1, 0.5)).tolist()
    normals = surface(share)
    bare = surface(0.0)
    pixels = shadows.any(axis=0)
    linear = _without_shadows(values[:, pixels], lights, strong)
    room = RoomLight(
        share,
        misfit_left=misfit(share, normals) / max(misfit(0.0, bare), 1e-30),
        evenness=max(darkest, 0.0) / max(share, 1e-12),
        shadows_left=float(np.median(squares(share, normals)[pixels] / np.maximum(linear, 1e-30))),
        one_height=_have_one_height(lights),
    )
    is_likely = room.is_proved and not room.one_height
    doubted = share if is_likely else min(share, DOUBTED)
    return replace(room, effect=_mean_angle(surface(doubted), bare))


def _without_shadows(values: FloatArray, lights: FloatArray, strong: FloatArray) -> FloatArray:
    """Squared misfit (N,) of a surface that is never in shadow, each pixel with its own room light."""
    terms = np.column_stack([lights, 1.0 / strong])
    seen = values / strong
    fit = terms @ np.linalg.lstsq(terms, seen, rcond=1e-6)[0]
    return np.asarray(((seen - fit) ** 2).sum(axis=0))


def _have_one_height(lights: FloatArray) -> bool:
    """Whether the lights lie in a plane, as those of a ring do."""
    spread = np.linalg.svd(lights - lights.mean(axis=0), compute_uv=False)
    return bool(spread[-1] < ONE_HEIGHT * spread[0])


def _mean_angle(one: FloatArray, other: FloatArray) -> float:
    """Mean angle in degrees between scaled normals (N, 3)."""
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    cosine = (one * other).sum(axis=1) / np.maximum(lengths, 1e-30)
    return float(np.degrees(np.arccos(np.clip(cosine, -1, 1))).mean())


def share_by_channel(share: float, mean: FloatArray, darkest: FloatArray) -> FloatArray:
    """Return the share of room light in each channel from its color in shadows. ``mean`` and ``darkest`` (H, W, 3) are those
    of the photographs at each pixel; ``share`` is that of their gray values."""
    level = gray_from_rgb(mean)
    shadows = gray_from_rgb(darkest) < SHADED * share * level
    shadows &= level > BRIGHT * np.quantile(level, 0.99)
    if shadows.sum() < FEWEST:
        return np.full(3, share)
    seen = mean[shadows]
    found = np.median(darkest[shadows] / np.maximum(seen, 1e-12), axis=0)
    return np.asarray(found * share * gray_from_rgb(seen).sum() / gray_from_rgb(found * seen).sum())
