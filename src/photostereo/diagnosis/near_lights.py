r"""Detect lights that are close to the object although assumed distant, from the residuals of a matte fit.

To first order in x / D, a light at distance D in direction l gives a surface point x with normal n the brightness

.. math:: n \cdot l + \tfrac{1}{D} \left( 3\, (n \cdot l)(l \cdot x) - n \cdot x \right).

Per pixel, most of the second term looks like another normal, which bends the surface. The rest is a pattern over lights
and positions that has no other cause. Its strength 1 / D is fitted to the residuals of a matte fit with robust weights,
together with powers of the shading, which model gloss, and its mean, which models the room light.
"""

from __future__ import annotations

import numpy as np

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.findings import Finding
from photostereo.runtime.illumination import least_squares, shading, weighted_least_squares
from photostereo.runtime.quantiles import MAD_TO_SIGMA

#: Number of pixels to sample; the fit has five unknowns and costs milliseconds.
SAMPLE = 1500
#: Fewest pixels that suffice for its robust weights.
FEWEST = 200
#: Number of photographs in which each pixel must be lit: three for its normal, three for what is left.
LIT_IN = 6
#: A pixel is lit above this share of its bright level. Between 0.05 and 0.3 the estimates change by a tenth.
LIT = 0.15
#: Rounds of reweighting; the weights hardly change after four.
ROUNDS = 6
#: Standard deviations beyond which residuals get little weight.
OUTLIER = 2.0
# Three conditions must hold at once. Rendered captures with distant lights have at most 0.02, 1 and 0.02 (a glossy sphere
# 0.09), those with other faults 0.3, 9 and 0.14, and those with lights at five widths mostly more than 0.13, 8 and 0.2. On
# 72 captures under distant lights, 30 % less and more changes the verdict on 3 and 1 (LEAST) and none (the others).
#: Lights are near if 1 / D, in frame widths, is larger than this ...
LEAST = 0.1
#: ... exceeds this many standard errors ...
CERTAIN = 10.0
#: ... and explains this share of the residual.
EXPLAINED = 0.2
#: Bend with the default method as a share of that with least squares: 0.5 to 0.8 on six rendered objects.
OF_THE_BEND = 0.7


def find_near_lights(
    images: FloatArray, lights: FloatArray, mask: BoolArray, strengths: FloatArray | float = 1.0
) -> Finding | None:
    """Detect near lights in photographs (d, H, W) of these relative strengths under assumed distant lights (d, 3)."""
    rows, columns = (part[:: max(1, int(mask.sum()) // SAMPLE)] for part in np.nonzero(mask))
    seen = np.asarray(images[:, rows, columns], dtype=np.float64).T / strengths
    height, width = mask.shape
    places = (
        np.stack([columns - 0.5 * (width - 1), 0.5 * (height - 1) - rows, 0 * rows], axis=1) / width
    )
    lit = seen > LIT * np.quantile(seen, 0.9, axis=1, keepdims=True)
    useful = lit.sum(axis=1) >= LIT_IN
    if useful.sum() < FEWEST:
        return None
    seen = seen[useful]
    places = places[useful]
    lit = lit[useful]
    matrix = lights.T
    half = lights + np.array([0.0, 0.0, 1.0])
    half /= np.linalg.norm(half, axis=1, keepdims=True) + 1e-12
    weight = lit.astype(np.float64)
    for _ in range(ROUNDS):
        rest, scaled = _unexplained(seen, matrix, weight)
        length = np.linalg.norm(scaled, axis=1, keepdims=True) + 1e-12
        normals = scaled / length
        cosine = np.maximum(shading(normals, matrix), 0)
        near = 3 * cosine * shading(places, matrix) - (normals * places).sum(axis=1, keepdims=True)
        gloss = (cosine**2, cosine**6, np.maximum(shading(normals, half.T), 0) ** 20)
        room = cosine.mean(axis=1, keepdims=True) * np.ones_like(cosine)
        patterns = np.stack(
            [_unexplained(one, matrix, weight)[0] for one in (near, *gloss, room)], axis=-1
        )
        moment = np.einsum("nd,nda,ndb->ab", weight, patterns, patterns) + 1e-12 * np.eye(5)
        right = np.einsum("nd,nda,nd->a", weight, patterns, rest / length)
        strength = np.linalg.solve(moment, right)
        left = rest / length - patterns @ strength
        spread = MAD_TO_SIGMA * float(np.median(np.abs(left[lit]))) + 1e-9
        weight = lit / (1 + (left / (OUTLIER * spread)) ** 2)
    without = rest / length - patterns[..., 1:] @ np.linalg.solve(moment[1:, 1:], right[1:])
    explained = 1 - float((weight * left**2).sum() / max((weight * without**2).sum(), 1e-30))
    inverse = float(strength[0])
    least = max(LEAST, CERTAIN * _error(weight, patterns, left, moment, places))
    if inverse < least or explained < EXPLAINED:
        return None
    straight, bent = (least_squares(one, matrix) for one in (cosine, np.where(cosine > 0, near, 0)))
    aside = np.linalg.norm(np.cross(straight, bent), axis=1) / (straight**2).sum(axis=1)
    bend = float(np.degrees(OF_THE_BEND * inverse * aside.mean()))
    return Finding("close-lights", "problem", effect=bend, widths=1 / inverse, degrees=bend)


def _unexplained(
    values: FloatArray, lights: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Residual of values (n, d) after the best fit b · l, and that b (n, 3)."""
    fit = weighted_least_squares(values, lights, weight)
    return values - shading(fit, lights), fit


def _error(
    weight: FloatArray,
    patterns: FloatArray,
    left: FloatArray,
    moment: FloatArray,
    places: FloatArray,
) -> float:
    """Standard error of the first strength, from the disagreement between 5 × 5 parts of the frame."""
    part = np.floor(5 * (places[:, 0] + 0.5)) * 5 + np.floor(5 * (places[:, 1] + 0.5))
    pulls = np.einsum("nd,nda,nd->na", weight, patterns, left)
    sums = np.stack([pulls[part == one].sum(axis=0) for one in np.unique(part)]) @ np.linalg.inv(
        moment
    )
    return float(np.sqrt((sums[:, 0] ** 2).sum()))
