"""Light of the room in photographs without one that was taken with the light off.

Where the surface faces away from the light, only other light reaches the camera: that of the room, or light that bounces.
Its share of a pixel's mean brightness is nearly the same everywhere. It counts as the light of the room if it is a large
share, and if either a matte surface fits the photographs much better without it, or all shadows have it alike: bounced
light and gloss do neither, they are here and not there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.lights.thumbnail import bright_enough, matte_fit, shrink

#: Cosine below which the surface faces away from a light for certain.
AWAY = -0.15
#: Cells that must be in shadow in some photograph, counted over the photographs.
FEWEST = 100
#: The share of the darkest of all pixels, as this quantile, is where the estimate begins.
DARKEST = 0.02
#: Rounds of fit and estimate; the share settles within 1 % of itself.
ROUNDS = 4
#: Light of the room has at least this share of the mean brightness, and without it the misfit of a matte surface falls at
#: least to this part. Six captures of DiLiGenT and three others without room light leave 0.81 of the misfit and more;
#: rendered ones with 15 % of room light 0.7 and less. At 0.05 or 0.6 the same captures are corrected.
SHARE, MISFIT_LEFT = 0.08, 0.7
#: Shadows have it alike if the darkest tenth of them has at least this part of what half of them have. Nine captures without
#: room light have 0.4 to 0.56, rendered ones with 10 to 50 % of it 0.87 to 0.99; 0.65 and 0.85 correct the same ones.
EVEN = 0.8


@dataclass(frozen=True)
class RoomLight:
    """How much of the brightness comes from the room."""

    share: float  #: of the mean brightness of a pixel
    misfit_left: float  #: what is left of the misfit of a matte surface without it
    evenness: float  #: brightness of the darkest tenth of the shadows over that of half of them

    @property
    def is_certain(self) -> bool:
        """Whether it may be subtracted."""
        return self.share >= SHARE and (self.misfit_left <= MISFIT_LEFT or self.evenness >= EVEN)


def estimate_room_light(
    images: FloatArray, lights: FloatArray, mask: BoolArray, strengths: FloatArray | None = None
) -> RoomLight | None:
    """The light of the room from the shadows of an object; None if it has no shadows. In ``images`` (d, H, W) the
    strengths of the lights are not divided out.

    >>> import photostereo as ps
    >>> scene = ps.render_scene("sphere", size=64)
    >>> lit = scene.images + 0.2 * scene.truth_albedo * scene.truth[..., 2]
    >>> estimate_room_light(lit, scene.lights.directions, scene.mask).is_certain
    True
    >>> estimate_room_light(scene.images, scene.lights.directions, scene.mask).is_certain
    False
    """
    if len(lights) < 6 or not mask.any():
        return None
    values = shrink(images, mask).values
    values = values[:, bright_enough(values)]
    if not values.size:
        return None
    strong = np.ones((len(lights), 1)) if strengths is None else np.asarray(strengths)[:, None]
    mean = values.mean(axis=0)

    def fit(share: float) -> tuple[FloatArray, float]:
        """Which entries are in shadow, and the misfit, with this share subtracted."""
        left = np.maximum(values - share * mean, 0) / strong
        normals = matte_fit(left, lights)[0]
        shading = lights @ (normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)).T
        missed = ((left - np.maximum(lights @ normals.T, 0)) ** 2).sum(axis=0)
        return shading < AWAY, float(
            np.median(missed / np.maximum(((values / strong) ** 2).sum(axis=0), 1e-30))
        )

    # Much light of the room makes a surface look flat, as if it had no shadows, unless some of it is subtracted first.
    share = max(0.0, float(np.quantile(values.min(axis=0) / mean, DARKEST)))
    for _ in range(ROUNDS):
        shadows = fit(share)[0]
        if shadows.sum() < FEWEST:
            return None
        darkest, share = np.quantile((values / mean)[shadows], (0.1, 0.5)).tolist()
    left = fit(share)[1] / max(fit(0.0)[1], 1e-30)
    return RoomLight(share, left, max(darkest, 0.0) / max(share, 1e-12))
