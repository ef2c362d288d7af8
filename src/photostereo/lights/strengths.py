"""Estimate the strength of each light from photographs of any object, whose shading is unknown: one number per photograph.

A matte pixel with b = albedo · normal shows y_i = s_i l_i · b. With the unknown w_i = 1 / s_i, all pixels together

    minimize  Σ_y Σ_i v_yi (w_i y_i - l_i · b_y)²      subject to  Σ_y Σ_i v_yi (w_i y_i)² = 1

over w and all b: a symmetric eigenvalue problem whose size is the number of photographs. Its smallest eigenvalue is the
share of the light that the directions cannot explain. The weights v are 0 in shadow and at white, and elsewhere those of a
Cauchy distribution, so gloss counts little. On a relief, strengths and a tilt of the whole are nearly interchangeable;
solving for all at once separates them.

Only ratios of strengths can be determined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from photostereo.core.conventions import BoolArray, FloatArray
from photostereo.core.errors import CaptureError
from photostereo.lights.source import LightSource, SourceKind
from photostereo.lights.unknown.shading import matte_normals
from photostereo.runtime.illumination import projected, shading, weighted_least_squares
from photostereo.runtime.matte_fits import FEWEST_LIT, LIT_NOISE, LIT_SHARE
from photostereo.runtime.quantiles import MAD_TO_SIGMA, known_medians
from photostereo.runtime.symmetric import inverse_symmetric_3x3

_MOST_PIXELS = 3000
#: Rounds of fit and weights. 10 instead of 15 change strengths by 0.1 % (a glossy relief: 1 %).
ROUNDS = 15
#: The rounds end when no strength moves by more than this share.
SETTLED = 1e-4
#: Maximum alternations between surface and lights if there is also room light.
TURNS = 200
#: Values at this share of the brightest and above may be clipped.
WHITE = 0.98
#: Minimum ratio of singular values of the normals of a solid object.
SOLID = 0.15
#: An entry is used to estimate the strength of its photograph if the cosine to the light is at least this.
FACING = 0.3


def sample_pixels(
    images: FloatArray, mask: BoolArray | None = None, *, overexposed: bool = False
) -> FloatArray:
    """Sample informative pixels (n, d) evenly over the mask: neither dark in every photograph nor white in one.

    With ``overexposed``, pixels may be white in up to half of the photographs; those values are NaN.
    """
    index = np.flatnonzero(np.ones(images.shape[1:3], dtype=bool) if mask is None else mask)
    index = index[:: max(1, len(index) // (4 * _MOST_PIXELS))]
    values = np.asarray(images.reshape(len(images), -1)[:, index], dtype=np.float64).T
    if not len(values):
        return values
    top = float(values.max())
    brightest = values.max(axis=1)
    least = 0.03 if overexposed else 0.2  # next to white parts the background is more informative
    good = brightest > max(least * float(np.percentile(brightest, 90)), 1e-12)
    if overexposed:
        values = np.where(values >= 0.98 * top, np.nan, values)
        good &= np.isnan(values).mean(axis=1) <= 0.5
    else:
        good &= brightest < 0.98 * top if (brightest >= 0.98 * top).mean() > 0.01 else True
    values = values[good]
    return np.asarray(values[:: max(1, len(values) // _MOST_PIXELS)])


def unexplained_light(pixels: FloatArray, directions: FloatArray) -> tuple[float, FloatArray]:
    """Return the share of the light in ``pixels`` (n, d) that no matte surface under these directions explains, and the
    best strengths."""
    gram = _gram(pixels)
    share, inverse = _least(_beyond(directions) * gram, np.diag(gram))
    return share, _even(1.0 / inverse)


def unexplained_by_any(pixels: FloatArray) -> float:
    """Return the share of the light in ``pixels`` (n, d) that no matte surface explains, whatever the lights."""
    spectrum = np.linalg.eigvalsh(_gram(pixels))
    return float(spectrum[:-3].sum() / spectrum.sum())


def unexplained_by_equal(gram: FloatArray, directions: FloatArray) -> float:
    """Return the same share for lights of equal strength, from the Gram matrix (d, d) of the photographs."""
    return float((_beyond(directions) * gram).sum() / max(float(np.trace(gram)), 1e-12))


def _beyond(directions: FloatArray) -> FloatArray:
    """Return the projection (d, d) of photographs on what no matte surface under these directions shows."""
    axes, _ = np.linalg.qr(directions)
    return np.asarray(np.eye(len(directions)) - axes @ axes.T)


def _gram(pixels: FloatArray) -> FloatArray:
    """Return the Gram matrix (d, d) over the photographs of pixels (n, d) scaled to unit brightness."""
    unit = pixels / np.maximum(np.linalg.norm(pixels, axis=1, keepdims=True), 1e-12)
    return np.asarray(unit.T @ unit)


def fit_strengths(
    seen: FloatArray, lights: NDArray[Any], noise: FloatArray, *, equal: bool = False
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Fit strengths to pixels (n, d) with these variances (n,) under ``lights`` (3, d) or (n, 3, d). Return strengths (d,),
    1 for a typical photograph, or all ``equal``; the estimate of each pixel (n, d), NaN if it has none; the scaled normals
    (n, 3) of the matte surface; and the median misfit of a lit entry, as a share of a pixel's brightness."""
    directions = np.asarray(lights, np.float64)
    floor = LIT_NOISE * np.sqrt(noise)[:, None] + LIT_SHARE * seen.max(axis=1, keepdims=True)
    lit = (seen > floor) & (seen < WHITE * seen.max())
    lit &= (lit.sum(axis=1) > FEWEST_LIT)[:, None]
    brightness = np.linalg.norm(seen, axis=1, keepdims=True)
    values = seen / np.where(brightness > 0, brightness, 1.0)
    weight: FloatArray = lit.astype(np.float64)
    count = seen.shape[1]
    inverse: FloatArray = np.ones(count)
    first, second = np.triu_indices(3)
    products = directions[..., first, :] * directions[..., second, :]
    for _ in range(ROUNDS):
        entries = projected(weight, products).T + 1e-9 * (first == second)[:, None]
        xx, xy, xz, yy, yz, zz = (entry[:, None] for entry in inverse_symmetric_3x3(*entries))
        right = (weight * values)[:, None] * directions  # (n, 3, d)
        x, y, z = right[:, 0], right[:, 1], right[:, 2]
        rows = (xx * x + xy * y + xz * z, xy * x + yy * y + yz * z, xz * x + yz * y + zz * z)
        fit = np.stack(rows, 1)  # b = fit @ inverse
        before = inverse
        if not equal:
            squares = (weight * values**2).sum(axis=0)
            explained = right.reshape(-1, count).T @ fit.reshape(-1, count)
            inverse = _least(np.diag(squares) - explained, squares)[1]
        surface = fit @ inverse
        model = shading(surface, directions)
        miss = np.abs(inverse * values - model)
        misfit = float(np.median(miss[lit])) if lit.any() else 1.0
        weight = lit / (1.0 + (miss / (MAD_TO_SIGMA * misfit + 1e-9)) ** 2)
        if not equal and np.abs(inverse - before).max() < SETTLED:
            break
    known = lit & (model > FACING * np.linalg.norm(surface, axis=1, keepdims=True))
    middle = float(np.median(1.0 / inverse))
    ratios = np.where(known, values / np.where(known, model, 1.0), np.nan) / middle
    return 1.0 / inverse / middle, ratios, surface, misfit + 1e-9


def strengths_from_shading(pixels: FloatArray, directions: FloatArray) -> FloatArray:
    """Estimate strengths from pixels (n, d) of any matte object, with a light a that is always on: y_i = (s_i l_i + a) · b.

    Alternates between b and (s, a); entries in shadows and highlights are left out.
    """
    strengths = unexplained_light(pixels, directions)[1]
    pixels = pixels / np.linalg.norm(pixels, axis=1, keepdims=True)
    weight = np.ones(pixels.shape)
    room: FloatArray = np.zeros(3)
    for _ in range(TURNS):
        lights = strengths[:, None] * directions + room
        surface = weighted_least_squares(pixels, lights.T, weight)
        model = surface @ lights.T
        # Dark entries are shadows, whether the model predicts them or not (cast shadows).
        keep = model > 0.05 * model.max(axis=1, keepdims=True)
        keep &= pixels > 0.08 * pixels.max(axis=1, keepdims=True)
        miss = pixels - model
        scale = (
            max(MAD_TO_SIGMA * float(np.median(np.abs(miss[keep]))), 1e-9) if keep.any() else 1.0
        )
        weight = np.where(keep, np.clip(1 - (miss / (4.685 * scale)) ** 2, 0, 1) ** 2, 0.0)
        better, room = _lights_of(pixels, surface, weight, directions)
        moved = float(np.abs(np.log(better / strengths)).max())
        # The alternation moves slowly along the valley of normals and strengths: take larger steps.
        strengths = _even(strengths * (better / strengths) ** 1.7)
        if moved < 1e-5:
            break
    return strengths


def _lights_of(
    pixels: FloatArray, surface: FloatArray, weight: FloatArray, directions: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the strengths along the directions, and one vector common to all photographs: light that is always on."""
    moment = np.einsum("nd,ni,nj->dij", weight, surface, surface)
    right = np.einsum("nd,nd,ni->di", weight, pixels, surface)
    # Σ_i (s_i l_i + a)ᵀ M_i (s_i l_i + a) - 2 r_iᵀ (s_i l_i + a) is quadratic in (s, a); the s_i are eliminated.
    along = np.einsum("dij,dj->di", moment, directions)
    own = (along * directions).sum(axis=1, keepdims=True) + 1e-12
    target = (right * directions).sum(axis=1, keepdims=True)
    together = (1 + 1e-6) * moment.sum(axis=0) - (along / own).T @ along
    room = np.linalg.solve(together, (right - along * target / own).sum(axis=0))
    strengths = ((target[:, 0] - along @ room) / own[:, 0]).clip(1e-12)
    strengths = np.maximum(strengths, 1e-3 * strengths.max())
    mean = float(np.exp(np.mean(np.log(strengths))))
    return strengths / mean, room / mean


def _least(rest: FloatArray, squares: FloatArray) -> tuple[float, FloatArray]:
    """Return the smallest share of unexplained light, and its inverse strengths with weighted root mean square 1."""
    least = 1e-9 * squares.sum() + 1e-30
    rest = rest + np.diag(np.maximum(least - squares, 0))
    squares = np.maximum(squares, least)
    size = np.sqrt(squares)
    values, vectors = np.linalg.eigh((rest + rest.T) / (2 * size * size[:, None]))
    inverse = vectors[:, 0] / size
    inverse *= np.sign(inverse.sum())
    inverse = np.maximum(inverse, 1e-3 * np.abs(inverse).max())
    inverse = inverse / np.sqrt((squares * inverse**2).sum() / squares.sum())
    return max(float(values[0]), 0.0), np.asarray(inverse)


def _even(strengths: FloatArray) -> FloatArray:
    """Return the strengths with geometric mean 1."""
    return np.asarray(strengths / np.exp(np.mean(np.log(strengths))))


def equal_strengths_suffice(pixels: FloatArray, directions: FloatArray) -> bool:
    """Return whether lights of equal strength explain the pixels (n, d) nearly as well as the best strengths do."""
    equal = unexplained_by_equal(_gram(pixels), directions)
    return equal < 1.25 * unexplained_light(pixels, directions)[0] + 1e-4


def strengths_from_flat(pixels: FloatArray, directions: FloatArray) -> FloatArray:
    """Estimate strengths from pixels (n, d) of a flat object that faces the camera, such as a relief or the table.

    If all normals are the same, a light's strength and its cosine cannot be separated; this assumes that
    the surface faces the camera. NaN values are left out.
    """
    logs = np.log(np.maximum(pixels, 1e-12))
    level = np.zeros(len(directions))
    for _ in range(60):  # pixels missing (NaN) in some photographs are compared in the others
        before, level = level, known_medians(logs - known_medians((logs - level).T)[:, None])
        if float(np.ptp(level - before)) < 1e-6:
            break
    return _even(np.exp(level) / np.maximum(directions[:, 2], 0.05))


def strengths_from_card(
    images: FloatArray, directions: FloatArray, box: Sequence[int]
) -> FloatArray:
    """Estimate strengths from a matte gray card that faces the camera: brightness over the cosine of the light's angle.

    ``box`` is (left, top, right, bottom) in pixels, the last two exclusive.
    """
    left, top, right, bottom = box
    height, width = images.shape[1:3]
    if not (0 <= left < right <= width and 0 <= top < bottom <= height):
        words = f"{left},{top},{right},{bottom}"
        raise CaptureError(
            f"The card {words} is not inside the photographs, which are {width} × {height} (width "
            "× height). Give left,top,right,bottom in pixels.",
            code="card-outside",
            words=words,
            width=width,
            height=height,
        )
    level = np.median(images[:, top:bottom, left:right].reshape(len(images), -1), axis=1).astype(
        np.float64
    )
    if not (level > 0).all():
        raise CaptureError(
            "The card is black in some photograph. Choose a part of it that every light reaches.",
            code="black-card",
        )
    return _even(level / np.maximum(directions[:, 2], 1e-3))


def strengths_of_scene(
    images: FloatArray, mask: BoolArray | None, directions: FloatArray, pixels: FloatArray | None
) -> tuple[FloatArray, LightSource]:
    """Return strengths from the object in photographs (d, H, W), and their source.

    ``pixels`` are its :func:`.sample_pixels`, or None if too few of them are well exposed.
    """
    equal = np.ones(len(directions))
    if len(directions) < 6:
        return equal, LightSource(SourceKind.ASSUMED_EQUAL)
    if pixels is None:
        # Each pixel is used in the photographs in which it is not white.
        pixels = sample_pixels(images, mask, overexposed=True)
        if len(pixels) < 300 or np.isfinite(pixels).sum(axis=0).min() < 100:
            return equal, LightSource(SourceKind.ASSUMED_EQUAL)
        words = "brightness of the overexposed object, assumed to face the camera"
        return strengths_from_flat(pixels, directions), LightSource(SourceKind.FLAT_PARTS, words)
    if equal_strengths_suffice(pixels, directions):
        return equal, LightSource(SourceKind.EQUAL_FITS)
    if solid_normals(as_gray(pixels), directions) is None:
        return strengths_from_flat(pixels, directions), LightSource(SourceKind.FLAT_PARTS)
    return strengths_from_shading(pixels, directions), LightSource(SourceKind.SHADING)


def solid_normals(gray: FloatArray, directions: FloatArray) -> FloatArray | None:
    """Return normals (1, n, 3) of an object in values (d, 1, n), or None if it is flat, which does not determine a light."""
    equal = np.ones(len(directions), np.float32)
    normals = matte_normals(gray, directions.astype(np.float32), equal).normals
    spread = np.linalg.svd(normals[0], compute_uv=False)
    return normals if spread[2] > SOLID * spread[0] else None


def as_gray(pixels: FloatArray) -> FloatArray:
    """Return pixels (n, d) as small photographs (d, 1, n) of mean brightness 1."""
    return np.asarray(pixels.T[:, None] / pixels.mean(), np.float32)
