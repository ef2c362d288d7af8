"""Inputs of the context network: maps of the evidence of single pixels, and of its residuals.

v are a pixel's intensities over their root mean square, n its normal so far, a max(n·l, 0) a matte
pixel with that normal. Darker intensities indicate a cast shadow; brighter ones gloss, or light
from neighbors; light from below the horizon (n·l < 0) comes from neighbors. Each of these has a
share and, as a vector, the lights that it comes from. The same code serves NumPy and torch.
"""

from __future__ import annotations

from typing import Any

from photostereo.reflectance.learned.matte import Witness
from photostereo.runtime.arrays import Array, cast, namespace
from photostereo.runtime.illumination import projected, shading


def _vector(name: str) -> list[str]:
    return [f"{name}-{axis}" for axis in "xyz"]


#: Maps of a pixel, followed by constants of the capture; the mask's share of a cell comes last.
NAMES = ["x", "y", "z", *_vector("matte"), "log-error", "log-matte", "log-noise"]
NAMES += ["shadow", *_vector("shadow"), "gloss", *_vector("gloss"), "behind", *_vector("behind")]
NAMES += ["hidden-lights", *_vector("arriving"), "misfit", "brightness", "red", "blue"]
CONSTANTS = ("lights-x", "lights-y", "lights-z", "lights-zz", "photographs")
CHANNELS = len(NAMES) + len(CONSTANTS) + 1
#: Channel of the x component of each vector; its y follows.
VECTORS = tuple(
    i for i, name in enumerate((*NAMES, *CONSTANTS)) if name == "x" or name.endswith("-x")
)
#: The channel that is relative to the object's mean.
BRIGHTNESS = NAMES.index("brightness")
#: Limits of v, of log errors (radians), and of the logarithms of colors and brightness.
MOST_V = 8.0
LEAST_LOG = -6.0
MOST_LOG = 1.0
MOST_TINT = 2.0
#: Added to divisors.
TINY = 1e-3
#: Lights with n·l below this count as hidden.
BEHIND = -0.03


def features_of(
    gray: Array, colors: Array | None, lights: Array, noise: Array, both: Witness, matte: Witness
) -> Array:
    """Return the maps (N, len(NAMES)) of pixels.

    Parameters
    ----------
    gray : array (N, d)
        Intensities.
    colors : array (N, d, 3), or None
        The same in color.
    lights : array (3, d) or (N, 3, d)
        Unit lights.
    noise : array (N,)
        Variance of an intensity.
    both : Witness
        The network and the matte fit, combined.
    matte : Witness
        The matte fit alone.
    """
    xp = namespace(gray)
    rms = xp.sqrt((gray * gray).mean(-1) + 1e-12)
    v = (gray / rms[:, None]).clip(0.0, MOST_V)
    cosine = shading(cast(both.normals, "float32"), lights)
    facing = cosine.clip(0.0)
    albedo = (v * facing).sum(-1) / ((facing * facing).sum(-1) + TINY)
    rest = v - albedo[:, None] * facing
    # Fit again, with less weight on poorly fitting photographs.
    trust = facing / xp.sqrt(1.0 + rest * rest)
    albedo = (trust * v).sum(-1) / ((trust * facing).sum(-1) + TINY)
    rest = v - albedo[:, None] * facing
    # All shares are relative to what a matte pixel would show.
    total = (albedo * facing.sum(-1) + TINY)[:, None]
    behind = cast(cosine < BEHIND, "float32")

    def share_and_source(part: Array) -> list[Array]:
        """Return the sum over the lights of ``part``, and the sum of the lights weighted by it."""
        part = part / total
        return [part.sum(-1), *_components(projected(part, lights))]

    arriving = projected(v, lights) / (v.sum(-1) + TINY)[:, None]
    maps = [*_components(both.normals), *_components(matte.normals)]
    maps += [_half_log(both.variance, xp) + 2.0, _half_log(matte.variance, xp) + 2.0]
    maps += [_half_log(noise / (rms * rms), xp) + 2.0]
    # Missing light, extra light from the front, and light from behind the horizon.
    maps += share_and_source((-rest).clip(0.0))
    maps += share_and_source(rest.clip(0.0) * (1.0 - behind))
    maps += share_and_source(v * behind)
    maps += [behind.mean(-1), *_components(arriving)]
    maps += [xp.sqrt((rest * rest).mean(-1)), xp.log(rms)]
    maps += _tint(colors, xp, rms)
    return xp.stack([cast(m, "float32").clip(-MOST_V, MOST_V) for m in maps], -1)


def _components(vectors: Array) -> list[Array]:
    return [vectors[:, 0], vectors[:, 1], vectors[:, 2]]


def constants_of(lights: Any, photographs: int) -> list[float]:
    """Return the constants of the capture.

    They are the arrangement of the (3, d) lights, and the number of photographs.
    """
    x, y, z = (float(v) for v in lights.mean(-1))
    return [x, y, z, float((lights[2] * lights[2]).mean()), photographs**0.5 / 4.0]


def _half_log(variance: Array, xp: Any) -> Array:
    """Return the logarithm of the standard deviation, within limits."""
    return (0.5 * xp.log(variance + 1e-12)).clip(LEAST_LOG, MOST_LOG)


def _tint(colors: Array | None, xp: Any, brightness: Array) -> list[Array]:
    """Return logarithms of red and blue over green; 0 for gray photographs."""
    if colors is None:
        return [0.0 * brightness, 0.0 * brightness]
    mean = colors.mean(1).clip(0.0) + TINY * brightness[:, None]
    green = mean[:, 1]
    return [xp.log(mean[:, k] / green).clip(-MOST_TINT, MOST_TINT) for k in (0, 2)]
