"""Estimate room light in captures without a photograph taken with the light off.

Where the surface faces away from the light, only other light reaches the camera: room light or bounced light. The share
of room light in a pixel's mean brightness is nearly the same everywhere. The other light counts as room light if its
share is large, and if either a matte surface fits the photographs much better without it, or it is the same in all
shadows: bounced light and gloss are local and satisfy neither.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray, gray_from_rgb
from photostereo.lights.thumbnail import bright_enough, matte_fit, shrink

#: Cosine below which the surface certainly faces away from a light.
AWAY = -0.15
#: Minimum number of cells in shadow, counted over the photographs.
FEWEST = 100
#: The estimate starts from this quantile of the pixels' minimum over their mean brightness.
DARKEST = 0.02
#: Rounds of fit and estimate; the share settles within 1 % of itself.
ROUNDS = 4
#: Room light has at least this share of the mean brightness, and without it the misfit of a matte surface falls to this
#: share or less. Six captures of DiLiGenT and three others without room light leave 0.81 of the misfit or more;
#: rendered ones with 15 % of room light 0.7 or less. At 0.05 or 0.6 the same captures are corrected.
SHARE, MISFIT_LEFT = 0.08, 0.7
#: Light is the same in all shadows if their 10th percentile is at least this share of their median. Nine captures without
#: room light have 0.4 to 0.56, rendered ones with 10 to 50 % of it 0.87 to 0.99; 0.65 and 0.85 correct the same ones.
EVEN = 0.8
#: Pixels show the color of room light if their darkest value is less than this multiple of it, and their mean is above this
#: share of the brightest. From 1.1 to 2 and 0.03 to 0.3 the color changes by 2 % at most.
SHADED, BRIGHT = 1.2, 0.1


@dataclass(frozen=True)
class RoomLight:
    """Share of the brightness that comes from the room."""

    share: float  #: of the mean brightness of a pixel
    misfit_left: float  #: share of a matte surface's misfit that remains without it
    evenness: float  #: brightness of the shadows, 10th percentile over median

    @property
    def is_certain(self) -> bool:
        """Whether the room light may be subtracted."""
        return self.share >= SHARE and (self.misfit_left <= MISFIT_LEFT or self.evenness >= EVEN)


def estimate_room_light(
    images: FloatArray, lights: FloatArray, mask: BoolArray, strengths: FloatArray | None = None
) -> RoomLight | None:
    """Estimate room light from the shadows of an object; None if it has no shadows. ``images`` (d, H, W) are not divided
    by the strengths of the lights."""
    if len(lights) < 6 or not mask.any():
        return None
    values = shrink(images, mask).values
    values = values[:, bright_enough(values)]
    if not values.size:
        return None
    strong = np.ones((len(lights), 1)) if strengths is None else np.asarray(strengths)[:, None]
    mean = values.mean(axis=0)

    def fit(share: float) -> tuple[FloatArray, float]:
        """Return which entries are in shadow, and the misfit, with this share subtracted."""
        left = np.maximum(values - share * mean, 0) / strong
        normals = matte_fit(left, lights)[0]
        shading = (
            lights @ (normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)).T
        )
        missed = ((left - np.maximum(lights @ normals.T, 0)) ** 2).sum(axis=0)
        energy = np.maximum(((values / strong) ** 2).sum(axis=0), 1e-30)
        return shading < AWAY, float(np.median(missed / energy))

    # Strong room light makes a surface look flat, as if it had no shadows, unless some of it is subtracted first.
    share = max(0.0, float(np.quantile(values.min(axis=0) / mean, DARKEST)))
    for _ in range(ROUNDS):
        shadows = fit(share)[0]
        if shadows.sum() < FEWEST:
            return None
        darkest, share = np.quantile((values / mean)[shadows], (0.1, 0.5)).tolist()
    left = fit(share)[1] / max(fit(0.0)[1], 1e-30)
    return RoomLight(share, left, max(darkest, 0.0) / max(share, 1e-12))


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
